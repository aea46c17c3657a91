package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/sessions"

	"github.com/selvage/selvage/internal/session"
)

// browserCookie holds an opaque random id; what it stands for lies in rows, and in
// the session store, under the id's digest.
const browserCookie = "selvage"

// Browsers remembers browsers between their requests. It is a store of gorilla's
// sessions over our session store, which spares the rows; where an entry is
// absent, the rows decide, so that nobody is signed out when the session store is
// emptied.
type Browsers struct {
	Store   session.Store
	Rows    BrowserRows
	Cookies Cookies
	Idle    func() time.Duration // a browser not seen for so long is forgotten
	Now     func() time.Time     // nil means time.Now
}

// BrowserRows keep what browsers hold, each under the digest of its id.
type BrowserRows interface {
	// FindBrowser returns what a browser holds and when it was here last; nothing is
	// problem.NotFound.
	FindBrowser(ctx context.Context, browser string) (values map[string]string, seen time.Time, err error)
	// MoveBrowser returns values to a browser, and takes all others from the one that
	// it was before; either may be "".
	MoveBrowser(ctx context.Context, from, to string, values map[string]string) error
	// SeeBrowser notes that a browser is here now.
	SeeBrowser(ctx context.Context, browser string) error
}

// A Browser is what is remembered of one browser: a few short strings. Changes
// count once they are saved or renewed.
type Browser struct {
	all *Browsers
	s   *sessions.Session
}

// Open returns the browser that sent r. One that is not known, whose session has
// expired or whose cookie is not ours is a new one without values.
func (b *Browsers) Open(r *http.Request) (*Browser, error) {
	s, err := b.Get(r, browserCookie)
	if err != nil {
		return nil, err
	}
	return &Browser{b, s}, nil
}

// Value returns what is remembered under a name, or "".
func (b *Browser) Value(name string) string {
	v, _ := b.s.Values[name].(string)
	return v
}

// Set remembers a value under a name; "" forgets it.
func (b *Browser) Set(name, value string) {
	if value == "" {
		delete(b.s.Values, name)
		return
	}
	b.s.Values[name] = value
}

// Values returns all that is remembered, by name.
func (b *Browser) Values() map[string]string {
	all := make(map[string]string, len(b.s.Values))
	for k := range b.s.Values {
		name, _ := k.(string)
		all[name] = b.Value(name)
	}
	return all
}

// Renew saves the browser under a new id and forgets the old one: at each change
// of what the browser may do, so that an id planted or seen before is worthless.
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

// Forget removes the browser's cookie and all that is remembered.
func (b *Browser) Forget(w http.ResponseWriter, r *http.Request) error {
	if b.s.ID == "" {
		return nil // it came without one
	}
	if err := b.all.Rows.MoveBrowser(r.Context(), digest(b.s.ID), "", nil); err != nil {
		return fmt.Errorf("forgetting browser session: %w", err)
	}
	clear(b.s.Values)
	b.s.Options.MaxAge = -1
	return b.s.Save(r, w)
}
