package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/session/failover"
	"github.com/selvage/selvage/internal/session/redis"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/store"
)

// backends are what the services stand on: chosen here, by URL, and nowhere else.
type backends struct {
	Store    *store.Store
	sessions session.Store
	media    *blob.Dir // nil where nobody handles recordings

	sessionRows *sessionsql.Store // the sessions, or what they fall back to
	redis       *redis.Store      // nil if sessions are not there
	failover    *failover.Store   // between the two, else nil
	databases   databases         // that are open
	opened      []io.Closer       // in the order of opening
}

// openStore opens what holds the rows.
func (b *backends) openStore(ctx context.Context, c config.Config, check time.Duration) (err error) {
	b.Store, err = store.Open(ctx, store.Config{URL: string(c.Database), Dir: c.Data,
		Pool: int(c.Pool.Database), Check: check})
	if err != nil {
		return err
	}
	b.opened = append(b.opened, b.Store)
	b.databases = databases{"rows": b.Store.Stats}
	return nil
}

// openSessions opens what holds short-lived state. Sessions in Redis fall back to
// where the rows are, if other nodes can look there too. log is told when that
// happens.
func (b *backends) openSessions(ctx context.Context, c config.Config, log *slog.Logger) (err error) {
	if !c.Sessions.Redis() {
		err = b.openSessionRows(ctx, c, string(c.Sessions))
		b.sessions = b.sessionRows
		return err
	}
	if b.redis, err = redis.Open(ctx, redis.Config{URL: string(c.Sessions), Pool: int(c.Pool.Sessions)}); err != nil {
		return err
	}
	b.opened = append(b.opened, b.redis)
	fallback := ""
	if c.Database.Shared() {
		fallback = string(c.Database)
	}
	if err := b.openSessionRows(ctx, c, fallback); err != nil {
		return err
	}
	b.failover = failover.New(b.redis, b.sessionRows,
		failover.Config{Log: log, Longest: max(24*time.Hour, time.Duration(c.Session.Idle))})
	b.opened = append(b.opened, b.failover)
	b.sessions = b.failover
	return nil
}

// openSessionRows opens sessions in a database, by default a file of their own.
func (b *backends) openSessionRows(ctx context.Context, c config.Config, url string) (err error) {
	if !config.SessionsURL(url).Shared() {
		if err := datadir.Make(c.Data); err != nil {
			return err
		}
	}
	b.sessionRows, err = sessionsql.Open(ctx, sessionsql.Config{URL: url, Dir: c.Data, Pool: int(c.Pool.Sessions)})
	if err != nil {
		return err
	}
	b.opened = append(b.opened, b.sessionRows)
	b.databases["sessions"] = b.sessionRows.Stats
	return nil
}

// askSessions reports whether sessions can be kept, and that they are not where
// they should be.
func (b *backends) askSessions(ctx context.Context) (note string, err error) {
	if b.failover != nil {
		state := b.failover.State()
		if !state.Away {
			return "", nil
		}
		note = "Redis is away since " + state.Since.UTC().Format(time.RFC3339) + ", and the database is used instead"
	}
	return note, b.sessionRows.Ping(ctx)
}

// openMedia opens what holds recordings, and makes it where there is none.
func (b *backends) openMedia(c config.Config) (err error) {
	if b.media, err = blob.OpenDir(c.MediaDir()); err != nil {
		return err
	}
	b.opened = append(b.opened, b.media)
	return nil
}

// Close closes what was opened, the last first.
func (b *backends) Close() error {
	var errs []error
	for _, c := range slices.Backward(b.opened) {
		errs = append(errs, c.Close())
	}
	b.opened = nil
	return errors.Join(errs...)
}
