package oidc_test

import (
	"context"
	"database/sql"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/store"
)

// sessionDB opens the database of the session store.
func (w *world) sessionDB() *sql.DB {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.dir, "sessions.db")+"?_pragma=busy_timeout(5000)")
	must(w.t, err)
	w.t.Cleanup(func() { _ = db.Close() })
	return db
}

// forget removes the entries of this kind from the session store. If kind is "", it removes all
// entries.
func (w *world) forget(kind string) {
	w.t.Helper()
	_, err := w.sessionDB().Exec(`DELETE FROM selvage_sessions WHERE kind = $1 OR $1 = ''`, kind)
	must(w.t, err)
}

// entries returns the contents of the session store.
func (w *world) entries() (values []string) {
	w.t.Helper()
	rows, err := w.sessionDB().Query(`SELECT id || ' ' || CAST(value AS TEXT) FROM selvage_sessions`)
	must(w.t, err)
	defer rows.Close()
	for rows.Next() {
		var value string
		must(w.t, rows.Scan(&value))
		values = append(values, value)
	}
	must(w.t, rows.Err())
	return values
}

// empty removes everything from the session store, like a flush or a restart.
func (w *world) empty() { w.forget("") }

// signedIn reports whether a browser gets a code without a password.
func (b *browser) signedIn(c idp.Client) bool {
	b.w.t.Helper()
	got := b.authorize(request(c, "prompt", "none"))
	if got.param("code") != "" {
		return true
	}
	wantParam(b.w.t, "a request with prompt=none and no code", got, "error", "login_required")
	return false
}

// wantSignedIn checks whether a browser is signed in.
func wantSignedIn(t *testing.T, name string, b *browser, c idp.Client, want bool) {
	t.Helper()
	if got := b.signedIn(c); got != want {
		t.Errorf("%s is signed in: %t, want %t", name, got, want)
	}
}

// copy returns another browser with the same cookies.
func (b *browser) copy() *browser {
	b.w.t.Helper()
	home, err := url.Parse(b.w.url)
	must(b.w.t, err)
	other := b.w.newBrowser()
	other.http.Jar.SetCookies(home, b.http.Jar.Cookies(home))
	return other
}

// TestSessionStoreEmptied shows that emptying the session store signs nobody out, and nobody in.
func TestSessionStoreEmptied(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	stays, leaves := w.newBrowser(), w.newBrowser()
	ends, locked := w.newBrowser(), w.newBrowser()

	// One browser stays signed in. The others are signed out in three different ways.
	stays.code(c)
	leaves.code(c)
	left := leaves.copy()
	leaves.signOut()

	tokens := w.redeem(c, ends.code(c)).json(t)
	sid := text(idClaims(t, tokens)["sid"])
	must(t, w.idp.Logins.End(t.Context(), sid))

	bob := w.subscriber("bob@example.com")
	locked.logIn(locked.authorize(request(c)), bob.Email, secret)
	disable := fabric.SubscriberInput{Disabled: new(true)}
	_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, bob.ID, disable)
	must(t, err)

	// The second round follows a sweep of expired rows.
	for range 2 {
		w.empty()
		wantSignedIn(t, "a browser that stays", stays, c, true)
		wantSignedIn(t, "a browser that signed out", leaves, c, false)
		wantSignedIn(t, "a copy of its cookies from before that", left, c, false)
		wantSignedIn(t, "a browser that is signed out", ends, c, false)
		wantSignedIn(t, "a disabled subscriber", locked, c, false)
		wantSignedIn(t, "a new browser", w.newBrowser(), c, false)
		must(t, w.idp.Sweep(t.Context()))
	}
}

// TestEmptiedStoreKeepsLimits shows that a browser stays signed in for the same time, whether or not the
// session store loses the browser's session.
func TestEmptiedStoreKeepsLimits(t *testing.T) {
	for name, lose := range map[string]func(*world){"kept": func(*world) {}, "emptied": (*world).empty} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c, _ := w.client(nil)

			idle, visits := w.newBrowser(), w.newBrowser()
			idle.code(c)
			visits.code(c)
			for range 16 {
				w.pass(10 * time.Hour)
				lose(w)
				if !visits.signedIn(c) {
					t.Fatal("a browser that visits within the idle limit was signed out")
				}
				w.pass(time.Minute) // visits this soon after the last one are not recorded
			}

			wantSignedIn(t, "a browser that was away for longer than the idle limit", idle, c, false)
			w.pass(8 * time.Hour) // a week since the login
			lose(w)
			wantSignedIn(t, "a browser that signed in a week ago", visits, c, false)
		})
	}
}

// TestEmptiedStoreAndOldID shows that a browser id that a login has replaced remains invalid.
func TestEmptiedStoreAndOldID(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	b.code(c)
	planted := b.copy()
	b.logIn(b.authorize(request(c, "prompt", "login")), email, secret)
	for _, lose := range []func(){func() {}, w.empty} {
		lose()
		wantSignedIn(t, "the id from before the login", planted, c, false)
		wantSignedIn(t, "the id from after the login", b, c, true)
	}
}

// TestEmptiedStoreAndTwoLogins shows that a browser may hold a login in each project, and can lose
// one of them without losing the other.
func TestEmptiedStoreAndTwoLogins(t *testing.T) {
	w := newWorld(t)
	here, _ := w.client(withLogout)
	other, err := w.fabric.Projects.Create(t.Context(), "Other")
	must(t, err)
	w.project = other
	w.subscriber(email)
	there, _ := w.client(withLogout)
	b := w.newBrowser()
	b.code(here)
	b.code(there)

	w.empty()
	wantSignedIn(t, "the first project's login", b, here, true)
	wantSignedIn(t, "the second project's login", b, there, true)

	b.submit(b.endSession("client_id", here.ID))
	w.empty()
	wantSignedIn(t, "after its logout, the first project's login", b, here, false)
	wantSignedIn(t, "after the other's logout, the second project's login", b, there, true)
}

// slowRows calls meanwhile after it has read the logins of a browser, and only then returns the logins.
type slowRows struct {
	*store.Store
	meanwhile func()
}

func (r slowRows) FindBrowser(ctx context.Context, browser string) (map[string]string, time.Time, error) {
	logins, seen, err := r.Store.FindBrowser(ctx, browser)
	r.meanwhile()
	return logins, seen, err
}

// TestEmptiedStoreDuringRenewal shows that a request that has read an old browser id from the
// database does not restore this id if a login replaces it at the same time.
func TestEmptiedStoreDuringRenewal(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()
	b.code(c)
	old := b.copy()
	page := b.authorize(request(c, "prompt", "login"))

	api, err := oidc.New(oidc.Config{
		Provider: idp.New(w.idp.Config),
		Sessions: w.idp.Sessions,
		Browsers: slowRows{Store: w.rows, meanwhile: func() { b.logIn(page, email, secret) }},
		AuthURL:  w.url,
	})
	must(t, err)
	second := httptest.NewServer(api.Handler())
	t.Cleanup(second.Close)

	w.forget("browser")
	res, err := old.http.Get(second.URL + "/login/oauth/authorize?" + request(c).Encode())
	must(t, err)
	must(t, res.Body.Close())
	wantSignedIn(t, "the id from before the login", old, c, false)
	wantSignedIn(t, "the id from after the login", b, c, true)
}

// TestRetiredIDs shows that the mark of a retired browser ID lasts longer than the session entry
// under this ID. If the session store was unreachable when the mark was written, it may still
// contain the entry.
func TestRetiredIDs(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(withLogout)
	b := w.newBrowser()
	b.code(c)
	b.logIn(b.authorize(request(c, "prompt", "login")), email, secret)
	b.signOut()

	var retired int
	var first int64 // expiry in microseconds
	row := w.sessionDB().QueryRow(`SELECT count(*), min(expires) FROM selvage_sessions WHERE kind = 'browser'`)
	must(t, row.Scan(&retired, &first))
	if retired != 2 {
		t.Errorf("%d ids are retired, want 2", retired)
	}
	idle := w.idp.Lifetimes().BrowserIdle
	if left := time.UnixMicro(first).Sub(w.now()); left < idle-time.Minute {
		t.Errorf("the first id is retired for %v, want at least the time that a browser may be idle, %v", left, idle)
	}
}

// submit submits the confirmation page of a logout.
func (b *browser) submit(page reply) reply {
	b.w.t.Helper()
	return b.post("/logout", page.hiddenFields())
}

// pageToken opens a page and returns the token of its form.
func (b *browser) pageToken(path string) string {
	b.w.t.Helper()
	m := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(b.get(path).body)
	if m == nil {
		b.w.t.Fatalf("the page %s has no form token", path)
	}
	return m[1]
}

// signOut ends all of the browser's logins.
func (b *browser) signOut() reply {
	b.w.t.Helper()
	return b.submit(b.get("/logout"))
}
