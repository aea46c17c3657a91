package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/session/failover"
	"github.com/selvage/selvage/internal/session/redis"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/internal/spent"
	"github.com/selvage/selvage/internal/telemetry"
	"github.com/selvage/selvage/store"
)

// backends holds the storage of the services. Only this file chooses storage by URL.
type backends struct {
	Store    *store.Store
	sessions session.Store
	media    blob.Store   // nil if recordings are not opened
	bucket   *blob.Bucket // nil unless media is in an object store

	proofsUsed *spent.Log // DPoP proofs used at resources; nil unless this is a server and the only node
	used       *spent.Log // other one-time values that were used; nil if proofsUsed is nil

	sessionRows *sessionsql.Store // store of the sessions, or their fallback if they are in Redis
	redis       *redis.Store      // nil if sessions are not in Redis
	failover    *failover.Store   // switches between redis and sessionRows; nil without Redis
	tracer      *telemetry.Tracer // nil without tracing
	databases   databases         // statistics of the open databases, for the metrics
	opened      []io.Closer       // backends in the order in which they were opened
}

// traceRows returns a function that adds tracing to a database. It returns nil without tracing.
func (b *backends) traceRows(c config.Config) func(database.DB) database.DB {
	if b.tracer == nil {
		return nil
	}
	system := systemOf(c.Database.Shared())
	return func(db database.DB) database.DB { return b.tracer.Database(db, system) }
}

// systemOf returns the name of a database system in traces. shared is whether several nodes can use the
// database.
func systemOf(shared bool) string {
	if shared {
		return "postgresql"
	}
	return "sqlite"
}

// openStore opens the database.
func (b *backends) openStore(ctx context.Context, c config.Config, check time.Duration) (err error) {
	b.Store, err = store.Open(ctx, store.Config{
		URL:   string(c.Database),
		Dir:   c.Data,
		Pool:  int(c.Pool.Database),
		Check: check,
		Wrap:  b.traceRows(c),
	})
	if err != nil {
		return err
	}
	b.opened = append(b.opened, b.Store)
	b.databases = databases{"rows": b.Store.Stats}
	return nil
}

// openSessions opens the store of short-lived state. The fallback for Redis is the database if
// other nodes can reach it too, and otherwise a file. Switching between Redis and the fallback is
// logged.
func (b *backends) openSessions(ctx context.Context, c config.Config, log *slog.Logger) (err error) {
	if !c.Sessions.Redis() {
		if err := b.openSessionRows(ctx, c, string(c.Sessions)); err != nil {
			return err
		}
		b.sessions = b.tracer.Sessions(b.sessionRows, systemOf(c.Sessions.Shared()))
		return nil
	}
	b.redis, err = redis.Open(ctx, redis.Config{URL: string(c.Sessions), Pool: int(c.Pool.Sessions)})
	if err != nil {
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
	b.failover = failover.New(b.redis, b.sessionRows, failover.Config{
		Log:     log,
		Longest: max(24*time.Hour, time.Duration(c.Session.Idle)),
	})
	b.opened = append(b.opened, b.failover)
	b.sessions = b.tracer.Sessions(b.failover, "redis")
	return nil
}

// openSessionRows opens the sessions in the database at url. If url is empty, it uses a separate
// file.
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

// openUsed opens the logs of used values, if this is the only node. The data directory must be locked.
func (b *backends) openUsed(ctx context.Context, c config.Config) (err error) {
	if c.Database.Shared() || c.Sessions.Shared() {
		return nil
	}
	dir := filepath.Join(c.Data, "used")
	b.proofsUsed, err = spent.Open(spent.Config{Dir: filepath.Join(dir, "proofs")})
	if err != nil {
		return err
	}
	b.opened = append(b.opened, b.proofsUsed)
	b.used, err = spent.Open(spent.Config{Dir: filepath.Join(dir, "requests")})
	if err != nil {
		return err
	}
	b.opened = append(b.opened, b.used)

	stored, err := b.Store.LiveUses(ctx)
	if err != nil {
		return err
	}
	b.used.Learn(idp.Logged(stored)...)
	return nil
}

// checkSessions returns an error if sessions cannot be stored. It returns a note while the fallback is
// used because Redis is unavailable.
func (b *backends) checkSessions(ctx context.Context) (note string, err error) {
	if b.failover != nil {
		state := b.failover.State()
		if !state.Away {
			return "", nil
		}
		since := state.Since.UTC().Format(time.RFC3339)
		note = "Redis has been unavailable since " + since + "; using the database instead"
	}
	return note, b.sessionRows.Ping(ctx)
}

// Close closes all backends, in the reverse order of opening.
func (b *backends) Close() error {
	var errs []error
	for _, c := range slices.Backward(b.opened) {
		errs = append(errs, c.Close())
	}
	b.opened = nil
	return errors.Join(errs...)
}
