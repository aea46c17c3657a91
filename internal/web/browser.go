package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/sessions"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// browserCookie holds an opaque random id; what it stands for lies in the
// session store under the id's digest.
const browserCookie = "selvage"

// touchEvery bounds how often a visit pushes the idle limit on.
const touchEvery = 5 * time.Minute

// Browsers remembers browsers between their requests. It is a store of gorilla's
// sessions over our session store.
type Browsers struct {
	Store   session.Store
	Cookies Cookies
	Idle    func() time.Duration // a browser not seen for so long is forgotten
	Now     func() time.Time     // nil means time.Now
}

var _ sessions.Store = (*Browsers)(nil)

// A Browser is what is remembered of one browser: a few short strings. Changes
// count once they are saved or renewed.
type Browser struct {
	all *Browsers
	s   *sessions.Session
}

// Open gives the browser that sent r. One that is not known, whose session has
// expired or whose cookie is not ours is a new one without values.
func (b *Browsers) Open(r *http.Request) (*Browser, error) {
	s, err := b.Get(r, browserCookie)
	if err != nil {
		return nil, err
	}
	return &Browser{b, s}, nil
}

// Value gives what is remembered under a name, or "".
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

// Values gives all that is remembered, by name.
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
	old := b.s.ID
	b.s.ID = ""
	if err := b.s.Save(r, w); err != nil {
		return err
	}
	if old == "" {
		return nil
	}
	return b.all.Store.Delete(r.Context(), browserKey(old))
}

// Forget removes the browser's cookie and all that is remembered.
func (b *Browser) Forget(w http.ResponseWriter, r *http.Request) error {
	if b.s.ID == "" {
		return nil // it came without one
	}
	clear(b.s.Values)
	b.s.Options.MaxAge = -1
	return b.s.Save(r, w)
}

// Get gives the session of r, reading it once a request.
func (b *Browsers) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(b, name)
}

// New reads the session of r from the session store.
func (b *Browsers) New(r *http.Request, name string) (*sessions.Session, error) {
	s := sessions.NewSession(b, name)
	s.Options = &sessions.Options{Path: "/"}
	s.IsNew = true
	id := b.Cookies.read(r, name)
	if len(id) != len(newBrowserID()) {
		return s, nil
	}
	value, err := b.Store.Get(r.Context(), browserKey(id))
	if errors.Is(err, problem.NotFound) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading browser session: %w", err)
	}
	var kept browserValue
	if err := json.Unmarshal(value, &kept); err != nil {
		return s, nil // written by another version: begin anew
	}
	s.ID, s.IsNew = id, false
	for k, v := range kept.Values {
		s.Values[k] = v
	}
	if now := b.now(); now.Sub(kept.Seen) > touchEvery {
		_ = b.write(r.Context(), s, now) // a missed push is made up by the next visit
	}
	return s, nil
}

// Save writes the session and sets its cookie.
func (b *Browsers) Save(r *http.Request, w http.ResponseWriter, s *sessions.Session) error {
	if s.Options.MaxAge < 0 {
		http.SetCookie(w, b.Cookies.make(r, s.Name(), ""))
		if s.ID == "" {
			return nil
		}
		return b.Store.Delete(r.Context(), browserKey(s.ID))
	}
	if s.ID == "" {
		s.ID = newBrowserID()
	}
	if err := b.write(r.Context(), s, b.now()); err != nil {
		return err
	}
	http.SetCookie(w, b.Cookies.make(r, s.Name(), s.ID))
	return nil
}

type browserValue struct {
	Seen   time.Time         `json:"seen"`
	Values map[string]string `json:"values"`
}

func (b *Browsers) write(ctx context.Context, s *sessions.Session, now time.Time) error {
	kept := browserValue{Seen: now, Values: make(map[string]string, len(s.Values))}
	for k, v := range s.Values {
		name, _ := k.(string)
		kept.Values[name], _ = v.(string)
	}
	value, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("writing browser session: %w", err)
	}
	if err := b.Store.Put(ctx, browserKey(s.ID), value, b.Idle()); err != nil {
		return fmt.Errorf("writing browser session: %w", err)
	}
	return nil
}

func (b *Browsers) now() time.Time {
	if b.Now != nil {
		return b.Now()
	}
	return time.Now()
}

func newBrowserID() string { return rand.Text() + rand.Text() }

func browserKey(id string) session.Key { return session.Key{Kind: "browser", ID: session.Digest(id)} }
