package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/sessions"

	"github.com/selvage/selvage/internal/session"
)

// browserCookie holds an opaque random id. The database and the session store hold the
// browser's values under a digest of that id.
const browserCookie = "selvage"

// Browsers keeps browser sessions between requests. It implements the Store interface of
// gorilla/sessions, and uses our session store as a cache of database rows. If the session store
// lacks an entry, Browsers reads the rows, so nobody is signed out if the session store loses its
// entries.
type Browsers struct {
	Store   session.Store
	Rows    BrowserRows
	Cookies Cookies
	Idle    func() time.Duration // time without requests after which a browser is forgotten
	Now     func() time.Time     // nil means time.Now
}

// BrowserRows stores the values of browsers, each under the digest of its id.
type BrowserRows interface {
	// FindBrowser returns a browser's values and when it was last seen. The error is
	// problem.NotFound if the browser is unknown.
	FindBrowser(ctx context.Context, browser string) (values map[string]string, seen time.Time, err error)
	// MoveBrowser stores values under the digest to, and deletes the values under the digest from.
	// Either digest may be "".
	MoveBrowser(ctx context.Context, from, to string, values map[string]string) error
	// SeeBrowser records that a browser has just been seen.
	SeeBrowser(ctx context.Context, browser string) error
}

// A Browser holds a few short values for one browser. Only Renew makes changes permanent.
type Browser struct {
	all *Browsers
	s   *sessions.Session
}

// Open returns the browser that sent r. If the browser is unknown, its session has expired, or its
// cookie is not ours, Open returns a new browser without values.
func (b *Browsers) Open(r *http.Request) (*Browser, error) {
	s, err := b.Get(r, browserCookie)
	if err != nil {
		return nil, err
	}
	return &Browser{b, s}, nil
}

// Value returns the value with the given name, or "".
func (b *Browser) Value(name string) string {
	v, _ := b.s.Values[name].(string)
	return v
}

// Set sets the value with the given name; "" deletes it.
func (b *Browser) Set(name, value string) {
	if value == "" {
		delete(b.s.Values, name)
		return
	}
	b.s.Values[name] = value
}

// Values returns all values by name.
func (b *Browser) Values() map[string]string {
	values := make(map[string]string, len(b.s.Values))
	for key := range b.s.Values {
		name, _ := key.(string)
		values[name] = b.Value(name)
	}
	return values
}

// Renew saves the browser under a new id, and invalidates the old id. Call it whenever the browser's rights
// change. Otherwise an id that an attacker has planted or stolen before would also have the new rights.
func (b *Browser) Renew(w http.ResponseWriter, r *http.Request) error {
	old, id := b.s.ID, newBrowserID()
	if err := b.all.Rows.MoveBrowser(r.Context(), digest(old), digest(id), b.Values()); err != nil {
		return fmt.Errorf("renewing browser session: %w", err)
	}
	b.s.ID = id
	if err := b.s.Save(r, w); err != nil {
		return err
	}
	return b.all.retire(r.Context(), old)
}

// Forget deletes the browser's cookie and all its values.
func (b *Browser) Forget(w http.ResponseWriter, r *http.Request) error {
	if b.s.ID == "" {
		return nil // the browser has no session
	}
	if err := b.all.Rows.MoveBrowser(r.Context(), digest(b.s.ID), "", nil); err != nil {
		return fmt.Errorf("forgetting browser session: %w", err)
	}
	clear(b.s.Values)
	b.s.Options.MaxAge = -1
	return b.s.Save(r, w)
}
