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
	ahead *atomic.Int64 // nanoseconds by which the clock is ahead
	began time.Time
}

func newBrowserStore(t *testing.T, c Config) browserStore {
	t.Helper()
	s, g, ahead := grantRows(t, c)
	return browserStore{
		Store: s,
		t:     t,
		grant: g,
		ahead: ahead,
		began: time.Now(),
	}
}

// newLogin creates a login that lasts an hour, and returns its id.
func (s browserStore) newLogin() string {
	s.t.Helper()
	l := login(s.grant)
	l.ID = newID()
	l.Expires = s.began.Add(time.Hour)
	if err := s.CreateLogin(s.t.Context(), l, "hash"); err != nil {
		s.t.Fatal(err)
	}
	return l.ID
}

// want fails the test unless a browser holds these logins, and was last seen when at least the given
// time had passed since the test began.
func (s browserStore) want(doing, browser string, logins map[string]string, passed time.Duration) {
	s.t.Helper()
	got, seen, err := s.FindBrowser(s.t.Context(), browser)
	if err != nil {
		s.t.Fatalf("%s: FindBrowser(%s) = %v", doing, browser, err)
	}
	if !maps.Equal(got, logins) {
		s.t.Errorf("%s: the browser %s holds %v, want %v", doing, browser, got, logins)
	}
	if earliest := s.began.Add(passed).Truncate(time.Microsecond); seen.Before(earliest) {
		s.t.Errorf("%s: the browser %s was seen at %v, want %v or later", doing, browser, seen, earliest)
	}
}

// wantUnknown fails the test unless a browser is unknown.
func (s browserStore) wantUnknown(doing, browser string) {
	s.t.Helper()
	if got, _, err := s.FindBrowser(s.t.Context(), browser); !errors.Is(err, problem.NotFound) {
		s.t.Errorf("%s: FindBrowser(%s) = %v, %v, want not found", doing, browser, got, err)
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
	s.wantUnknown("without an id", "")

	s.move("", "a", map[string]string{"other": id})
	s.wantUnknown("a login of another project", "a")
	s.move("", "a", holds)
	s.want("given", "a", holds, 0)

	s.ahead.Store(int64(10 * time.Minute))
	s.move("a", "b", holds)
	s.wantUnknown("moved from", "a")
	s.want("moved to", "b", holds, 10*time.Minute)

	s.ahead.Store(int64(20 * time.Minute))
	for _, browser := range []string{"b", "a", ""} {
		if err := s.SeeBrowser(t.Context(), browser); err != nil {
			t.Errorf("SeeBrowser(%q) = %v", browser, err)
		}
	}
	s.want("seen", "b", holds, 20*time.Minute)

	s.ahead.Store(int64(time.Hour))
	s.wantUnknown("expired", "b")
	s.ahead.Store(0)
	s.move("b", "c", nil)
	s.wantUnknown("moved without its logins", "b")
	s.wantUnknown("moved without its logins", "c")

	s.move("", "d", holds)
	s.move("d", "", nil)
	s.wantUnknown("forgotten", "d")
	s.move("", "e", holds)
	s.end(id)
	s.wantUnknown("ended", "e")
}

func TestBrowserLogins(t *testing.T) { EachDatabase(t, testBrowserLogins) }

// testBrowserLogins shows that a browser can hold several logins in a project, in order.
func testBrowserLogins(t *testing.T, c Config) {
	s := newBrowserStore(t, c)
	ids := make(idp.BrowserLogins, 3)
	for i := range ids {
		ids[i] = s.newLogin()
	}

	several := func(ids ...string) map[string]string {
		return map[string]string{"p": idp.BrowserLogins(ids).String()}
	}
	s.move("", "f", several(ids[2], ids[0], ids[1]))
	s.want("three, in order", "f", several(ids[2], ids[0], ids[1]), 0)
	s.move("f", "g", several(ids[1], ids[2]))
	s.want("another one first, one left out", "g", several(ids[1], ids[2]), 0)
	s.end(ids[1])
	s.want("the first has ended", "g", several("", ids[2]), 0)

	s.move("g", "h", several("", ids[2]))
	s.want("none is first", "h", several("", ids[2]), 0)
}
