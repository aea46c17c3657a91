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

// touchEvery is the minimum interval between two extensions of a browser's idle limit.
const touchEvery = 5 * time.Minute

var _ sessions.Store = (*Browsers)(nil)

// A browserValue is a browser's entry in the session store. An entry without values marks an id
// that was renewed or forgotten.
type browserValue struct {
	Seen   time.Time         `json:"seen"`
	Values map[string]string `json:"values"`
}

// Get returns the session of r. The session is read only once per request.
func (b *Browsers) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(b, name)
}

// New reads the session of r.
func (b *Browsers) New(r *http.Request, name string) (*sessions.Session, error) {
	s := sessions.NewSession(b, name)
	s.Options = &sessions.Options{Path: "/"}
	s.IsNew = true

	id := b.Cookies.Read(r, name)
	if len(id) != browserIDLength {
		return s, nil
	}

	kept, err := b.read(r.Context(), id)
	if err != nil {
		return s, fmt.Errorf("reading browser session: %w", err)
	}
	if len(kept.Values) == 0 {
		return s, nil
	}

	s.ID, s.IsNew = id, false
	for k, v := range kept.Values {
		s.Values[k] = v
	}
	return s, nil
}

// Save writes the session and sets its cookie. A negative MaxAge ends the session.
func (b *Browsers) Save(r *http.Request, w http.ResponseWriter, s *sessions.Session) error {
	if s.Options.MaxAge < 0 {
		http.SetCookie(w, b.Cookies.make(r, s.Name(), ""))
		return b.retire(r.Context(), s.ID)
	}

	if s.ID == "" {
		s.ID = newBrowserID()
	}

	kept := browserValue{Seen: b.now(), Values: make(map[string]string, len(s.Values))}
	for k, v := range s.Values {
		name, _ := k.(string)
		kept.Values[name], _ = v.(string)
	}

	value, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("writing browser session: %w", err)
	}
	if err := b.Store.Put(r.Context(), browserKey(s.ID), value, b.Idle()); err != nil {
		return fmt.Errorf("writing browser session: %w", err)
	}

	http.SetCookie(w, b.Cookies.make(r, s.Name(), s.ID))
	return nil
}

// read returns a browser's entry, and extends the browser's idle limit.
func (b *Browsers) read(ctx context.Context, id string) (kept browserValue, err error) {
	value, err := b.Store.Get(ctx, browserKey(id))
	if err != nil || json.Unmarshal(value, &kept) != nil {
		kept, value, err = b.restore(ctx, id)
	}
	if err != nil && !errors.Is(err, problem.NotFound) {
		return browserValue{}, err
	}

	away := b.now().Sub(kept.Seen)
	if len(kept.Values) == 0 || away >= b.Idle() {
		return browserValue{}, nil
	}

	if away > touchEvery {
		b.touch(ctx, id, kept, value)
	}
	return kept, nil
}

// restore reads a browser from the rows and adds it to the session store. Callers use restore if the entry
// in the session store is missing or cannot be read.
func (b *Browsers) restore(ctx context.Context, id string) (kept browserValue, value []byte, err error) {
	values, seen, err := b.Rows.FindBrowser(ctx, digest(id))
	if err != nil {
		return browserValue{}, nil, err
	}
	kept = browserValue{Seen: seen, Values: values}
	value, err = json.Marshal(kept)
	if err != nil {
		return browserValue{}, nil, err
	}
	if left := b.Idle() - b.now().Sub(kept.Seen); left > 0 {
		// Use Add, not Put: if the id was renewed in the meantime, Put would replace the entry that
		// records this. If Add fails, the next request reads the rows again.
		_ = b.Store.Add(ctx, browserKey(id), value, left)
	}
	return kept, value, nil
}

// touch extends the idle limit, unless the entry has changed in the meantime. If it fails, the next
// request extends the limit.
func (b *Browsers) touch(ctx context.Context, id string, kept browserValue, old []byte) {
	kept.Seen = b.now()
	value, err := json.Marshal(kept)
	if err != nil {
		return // cannot happen: an entry consists of a time and texts
	}
	err = b.Store.CompareAndSwap(ctx, browserKey(id), old, value, b.Idle())
	if !errors.Is(err, problem.Conflict) {
		_ = b.Rows.SeeBrowser(ctx, digest(id))
	}
}

// retire invalidates an id by replacing its entry with a marker. A concurrent request may have read the
// id's values before the rows changed; the marker stops it from adding them to the session store again.
// The marker lives as long as any entry, because a session store that fails over during the write may
// still have the old entry.
func (b *Browsers) retire(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	if err := b.Store.Put(ctx, browserKey(id), []byte("{}"), b.Idle()); err != nil {
		return fmt.Errorf("retiring browser session: %w", err)
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

// browserIDLength is the length of the ids from newBrowserID.
var browserIDLength = len(newBrowserID())

func browserKey(id string) session.Key { return session.Key{Kind: "browser", ID: digest(id)} }

// digest returns the digest under which a browser is stored, so that the rows do not reveal its id.
// The digest of "" is "".
func digest(id string) string {
	if id == "" {
		return ""
	}
	return session.Digest(id)
}
