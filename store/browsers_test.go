package store

import (
	"errors"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// A browserStore is a store with the project p, and a clock that tests can set.
type browserStore struct {
	*Store
	t     *testing.T
	grant idp.Grant
	ahead *atomic.Int64
	began time.Time
}

func newBrowserStore(t *testing.T, c Config) browserStore {
	t.Helper()
	s, g, ahead := grantRows(t, c)
	return browserStore{s, t, g, ahead, time.Now()}
}

// newLogin creates a login that lasts an hour, and returns its id.
func (s browserStore) newLogin() string {
	s.t.Helper()
	l := login(s.grant)
	l.ID, l.Expires = newID(), s.began.Add(time.Hour)
	if err := s.CreateLogin(s.t.Context(), l, "hash"); err != nil {
		s.t.Fatal(err)
	}
	return l.ID
}

// want checks which logins a browser holds; nil means that the browser is unknown. It also checks
// that the browser was last seen no earlier than the given time after the start.
func (s browserStore) want(doing, browser string, logins map[string]string, after time.Duration) {
	s.t.Helper()
	got, seen, err := s.FindBrowser(s.t.Context(), browser)
	if logins == nil {
		if !errors.Is(err, problem.NotFound) {
			s.t.Errorf("%s: FindBrowser(%s) = %v, %v, want not found", doing, browser, got, err)
		}
		return
	}
	if err != nil || !maps.Equal(got, logins) || seen.Before(s.began.Add(after).Truncate(time.Microsecond)) {
		s.t.Errorf("%s: FindBrowser(%s) = %v, %v, %v, want %v", doing, browser, got, seen.Sub(s.began), err, logins)
	}
}

func (s browserStore) move(from, to string, logins map[string]string) {
	s.t.Helper()
	if err := s.MoveBrowser(s.t.Context(), from, to, logins); err != nil {
		s.t.Errorf("MoveBrowser = %v", err)
	}
}

func (s browserStore) end(loginID string) {
	s.t.Helper()
	r := revocation.Revocation{Kind: revocation.Session, ID: loginID}
	if err := s.EndLogins(s.t.Context(), time.Now(), r); err != nil {
		s.t.Fatal(err)
	}
}

func TestBrowsers(t *testing.T) { EachDatabase(t, testBrowsers) }

// testBrowsers shows how a browser gets its logins, moves them to a new id, and loses them.
func testBrowsers(t *testing.T, c Config) {
	s := newBrowserStore(t, c)
	id := s.newLogin()
	holds := map[string]string{"p": id}
	s.want("a login of no browser", "", nil, 0)

	s.move("", "a", map[string]string{"other": id})
	s.want("a login of another project", "a", nil, 0)
	s.move("", "a", holds)
	s.want("given", "a", holds, 0)

	s.ahead.Store(int64(10 * time.Minute))
	s.move("a", "b", holds)
	s.want("moved from", "a", nil, 0)
	s.want("moved to", "b", holds, 10*time.Minute)

	s.ahead.Store(int64(20 * time.Minute))
	if err := errors.Join(s.SeeBrowser(t.Context(), "b"), s.SeeBrowser(t.Context(), "a"),
		s.SeeBrowser(t.Context(), "")); err != nil {
		t.Errorf("SeeBrowser = %v", err)
	}
	s.want("seen", "b", holds, 20*time.Minute)

	s.ahead.Store(int64(time.Hour))
	s.want("expired", "b", nil, 0)
	s.ahead.Store(0)
	s.move("b", "c", nil)
	s.want("moved without its logins", "b", nil, 0)
	s.want("moved without its logins", "c", nil, 0)

	s.move("", "d", holds)
	s.move("d", "", nil)
	s.want("forgotten", "d", nil, 0)
	s.move("", "e", holds)
	s.end(id)
	s.want("ended", "e", nil, 0)
}

func TestBrowserLogins(t *testing.T) { EachDatabase(t, testBrowserLogins) }

// testBrowserLogins shows that a browser can hold several logins in a project, in order.
func testBrowserLogins(t *testing.T, c Config) {
	s := newBrowserStore(t, c)
	ids := make(idp.BrowserLogins, 3)
	for i := range ids {
		ids[i] = s.newLogin()
	}

	several := func(l ...string) map[string]string { return map[string]string{"p": idp.BrowserLogins(l).String()} }
	s.move("", "f", several(ids[2], ids[0], ids[1]))
	s.want("several, in their order", "f", several(ids[2], ids[0], ids[1]), 0)
	s.move("f", "g", several(ids[1], ids[2]))
	s.want("another first, one left out", "g", several(ids[1], ids[2]), 0)
	s.end(ids[1])
	s.want("the first has ended", "g", several("", ids[2]), 0)

	s.move("g", "h", several("", ids[2]))
	s.want("none is first", "h", several("", ids[2]), 0)
}
