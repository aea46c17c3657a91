package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/revocation"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/internal/store"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/recordings"
)

// An app is the services over their backends: what the server mounts and the
// commands call.
type app struct {
	config Config
	where  where

	store       *store.Store
	sessions    *sessionsql.Store
	media       *blob.Dir
	ring        *keys.Ring
	passwords   *password.Hasher
	revocations *revocation.List

	fabric     *fabric.Fabric
	idp        *idp.Provider
	recordings *recordings.Recordings
}

// open opens the backends and builds the services. observe is told what the
// identity provider does; nil tells nobody.
func open(ctx context.Context, c Config, w where, observe func(event string)) (_ *app, err error) {
	a := &app{config: c, where: w}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if a.store, err = store.Open(ctx, store.Config{URL: string(c.Database), Dir: c.Data}); err != nil {
		return nil, err
	}
	if a.sessions, err = sessionsql.Open(ctx, sessionsql.Config{URL: string(c.Sessions), Dir: c.Data}); err != nil {
		return nil, err
	}
	if a.media, err = blob.OpenDir(c.mediaDir()); err != nil {
		return nil, err
	}
	master, err := c.master()
	if err != nil {
		return nil, err
	}
	if a.ring, err = keys.Open(ctx, keys.Config{Store: a.store, Master: master}); err != nil {
		return nil, err
	}
	a.revocations = revocation.New(a.store, nil)
	if err := a.revocations.Sync(ctx); err != nil {
		return nil, err
	}
	a.build(observe)
	return a, nil
}

// build makes the services. They meet here: the fabric asks the identity
// provider whether a login lives, which asks it for subscribers and tokens.
func (a *app) build(observe func(event string)) {
	a.passwords = password.New(a.config.Password.Parallel)
	a.fabric = fabric.New(fabric.Config{
		Store: a.store, Ring: a.ring, Passwords: a.passwords, Revocations: a.revocations,
		Host: a.where.fabric, Issuer: a.where.issuer(),
		Live: func(ctx context.Context, sid string) error { return a.idp.Live(ctx, sid) },
	})
	a.idp = idp.New(idp.Config{
		Store: a.store, Subscribers: a.store, Sessions: a.sessions, Fabric: a.fabric, Passwords: a.passwords,
		Ring: a.ring, Revocations: a.revocations, Issuer: a.where.issuer(), Lifetimes: a.config.lifetimes(), Observe: observe,
	})
	a.recordings = recordings.New(recordings.Config{
		Store: a.store, Media: a.media, MaxUpload: int64(a.config.Recordings.MaxUpload),
		SubscriberOf: func(ctx context.Context, projectID, address string) (string, error) {
			return a.fabric.SubscriberOf(ctx, projectID, address, "")
		},
	})
}

func (c Config) lifetimes() idp.Lifetimes {
	return idp.Lifetimes{
		Code: time.Duration(c.Tokens.Code), AccessFabric: time.Duration(c.Tokens.AccessFabric), AccessJWT: time.Duration(c.Tokens.AccessJWT),
		RefreshIdle: time.Duration(c.Tokens.RefreshIdle), RefreshAbsolute: time.Duration(c.Tokens.RefreshAbsolute),
		BrowserIdle: time.Duration(c.Session.Idle), BrowserAbsolute: time.Duration(c.Session.Absolute),
	}
}

// master gives the key that seals the key ring.
func (c Config) master() ([]byte, error) {
	if c.MasterKey != "" {
		return keys.ParseMaster(string(c.MasterKey))
	}
	return keys.ReadMaster(filepath.Join(c.Data, "master.key"))
}

// mediaDir gives the directory of recordings.
func (c Config) mediaDir() string {
	dir := c.Media.folder()
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(c.Data, dir)
}

// ready reports what does not answer, by its name.
func (a *app) ready(ctx context.Context) map[string]error {
	_, err := os.Stat(a.config.mediaDir())
	if err != nil {
		err = fmt.Errorf("reading media directory: %w", err)
	}
	return map[string]error{"store": a.store.Ping(ctx), "sessions": a.sessions.Ping(ctx), "media": err}
}

// close closes the backends, as far as they were opened.
func (a *app) close() (err error) {
	if a.media != nil {
		err = a.media.Close()
	}
	if a.sessions != nil {
		err = errors.Join(err, a.sessions.Close())
	}
	if a.store != nil {
		err = errors.Join(err, a.store.Close())
	}
	return err
}
