package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/internal/session"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/internal/store"
)

// backends are what the services stand on: chosen here, by URL, and nowhere else.
type backends struct {
	store    *store.Store
	sessions sessions
	media    *blob.Dir // nil where nobody handles recordings

	databases databases // that are open
}

// sessions keep short-lived state.
type sessions interface {
	session.Store
	Ping(ctx context.Context) error
	Close() error
}

// openStore opens what holds the rows.
func (b *backends) openStore(ctx context.Context, c Config, check time.Duration) (err error) {
	if b.store, err = store.Open(ctx, store.Config{URL: string(c.Database), Dir: c.Data, Pool: int(c.Pool.Database), Check: check}); err != nil {
		return err
	}
	b.databases = databases{"rows": b.store.Stats}
	return nil
}

// openSessions opens what holds short-lived state. log is told of what does not
// work and is not needed at once.
func (b *backends) openSessions(ctx context.Context, c Config, _ *slog.Logger) error {
	if !c.Sessions.shared() {
		if err := makeDataDir(c.Data); err != nil {
			return err
		}
	}
	opened, err := sessionsql.Open(ctx, sessionsql.Config{URL: string(c.Sessions), Dir: c.Data, Pool: int(c.Pool.Sessions)})
	if err != nil {
		return err
	}
	b.sessions, b.databases["sessions"] = opened, opened.Stats
	return nil
}

// openMedia opens what holds recordings, and makes it where there is none.
func (b *backends) openMedia(c Config) (err error) {
	b.media, err = blob.OpenDir(c.mediaDir())
	return err
}

// mediaDir gives the directory of recordings.
func (c Config) mediaDir() string {
	dir := c.Media.folder()
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(c.Data, dir)
}

// close closes what was opened.
func (b *backends) close() (err error) {
	if b.media != nil {
		err = b.media.Close()
	}
	if b.sessions != nil {
		err = errors.Join(err, b.sessions.Close())
	}
	if b.store != nil {
		err = errors.Join(err, b.store.Close())
	}
	return err
}
