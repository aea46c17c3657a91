package store

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

func TestBrowsers(t *testing.T) { EachDatabase(t, testBrowsers) }

func testBrowsers(t *testing.T, c Config) {
	s, g, ahead := grantRows(t, c)
	began := time.Now()
	login := login(g)
	login.Expires = began.Add(time.Hour)
	if err := s.CreateLogin(t.Context(), login, "hash"); err != nil {
		t.Fatal(err)
	}

	holds := map[string]string{"p": login.ID}
	want := func(doing, browser string, logins map[string]string, after time.Duration) {
		t.Helper()
		got, seen, err := s.FindBrowser(t.Context(), browser)
		if logins == nil {
			if !errors.Is(err, problem.NotFound) {
				t.Errorf("%s: FindBrowser(%s) = %v, %v, want not found", doing, browser, got, err)
			}
			return
		}
		if err != nil || !maps.Equal(got, logins) || seen.Before(began.Add(after).Truncate(time.Microsecond)) {
			t.Errorf("%s: FindBrowser(%s) = %v, %v, %v, want %v", doing, browser, got, seen.Sub(began), err, logins)
		}
	}

	move := func(from, to string, logins map[string]string) {
		t.Helper()
		if err := s.MoveBrowser(t.Context(), from, to, logins); err != nil {
			t.Errorf("MoveBrowser = %v", err)
		}
	}
	want("a login of no browser", "", nil, 0)

	move("", "a", map[string]string{"other": login.ID})
	want("a login of another project", "a", nil, 0)
	move("", "a", holds)
	want("given", "a", holds, 0)

	ahead.Store(int64(10 * time.Minute))
	move("a", "b", holds)
	want("moved from", "a", nil, 0)
	want("moved to", "b", holds, 10*time.Minute)

	ahead.Store(int64(20 * time.Minute))
	if err := errors.Join(s.SeeBrowser(t.Context(), "b"), s.SeeBrowser(t.Context(), "a"),
		s.SeeBrowser(t.Context(), "")); err != nil {
		t.Errorf("SeeBrowser = %v", err)
	}
	want("seen", "b", holds, 20*time.Minute)

	ahead.Store(int64(time.Hour))
	want("expired", "b", nil, 0)
	ahead.Store(0)
	move("b", "c", nil)
	want("moved without its logins", "b", nil, 0)
	want("moved without its logins", "c", nil, 0)

	move("", "d", holds)
	move("d", "", nil)
	want("forgotten", "d", nil, 0)
	move("", "e", holds)
	if err := s.EndLogins(t.Context(), time.Now(),
		revocation.Revocation{Kind: revocation.Session, ID: login.ID}); err != nil {
		t.Fatal(err)
	}
	want("ended", "e", nil, 0)

	ids := make(idp.BrowserLogins, 3)
	for i := range ids {
		login.ID = newID()
		ids[i] = login.ID
		if err := s.CreateLogin(t.Context(), login, "hash"); err != nil {
			t.Fatal(err)
		}
	}

	several := func(l ...string) map[string]string { return map[string]string{"p": idp.BrowserLogins(l).String()} }
	move("", "f", several(ids[2], ids[0], ids[1]))
	want("several, in their order", "f", several(ids[2], ids[0], ids[1]), 0)
	move("f", "g", several(ids[1], ids[2]))
	want("another first, one left out", "g", several(ids[1], ids[2]), 0)
	if err := s.EndLogins(t.Context(), time.Now(),
		revocation.Revocation{Kind: revocation.Session, ID: ids[1]}); err != nil {
		t.Fatal(err)
	}
	want("the first has ended", "g", several("", ids[2]), 0)

	move("g", "h", several("", ids[2]))
	want("none is first", "h", several("", ids[2]), 0)
}
