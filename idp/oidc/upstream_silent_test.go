package oidc_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/factor/factortest"
)

// TestUpstreamSilent shows that a login is not enough for changes to the account if the provider
// may only have recognized the browser. This is true even for a very recent login.
func TestUpstreamSilent(t *testing.T) {
	fg := newForger(t)
	f := federateWith(t, fg)
	undated := func(map[string]any) {}
	maxAge, promptLogin := []string{"max_age", "3600"}, []string{"prompt", "login"}

	for _, tt := range []struct {
		name       string
		change     func(claims map[string]any)
		request    []string
		wantRecent bool // whether the login is enough for changes
	}{
		{name: "signed in to the provider just now", change: signedIn(0), wantRecent: true},
		{name: "five minutes ago", change: signedIn(5 * time.Minute)},
		{name: "yesterday", change: signedIn(24 * time.Hour)},
		{name: "five minutes ago, within max_age", change: signedIn(5 * time.Minute), request: maxAge},
		{name: "just now, with prompt=login", change: signedIn(0), request: promptLogin, wantRecent: true},
		{name: "no auth_time", change: undated},
		{name: "no auth_time, within max_age", change: undated, request: maxAge},
		{name: "no auth_time, with prompt=login", change: undated, request: promptLogin, wantRecent: true},
	} {
		b := f.newBrowser()
		wantCode(t, tt.name, f.forgeIn(b, fg, tt.change, tt.request...))

		// The second round follows a loss of the session store.
		for range 2 {
			page := b.get("/account?project=" + f.project.ID)
			wantText(t, tt.name, page, `id="account-page"`)
			const signInAgain = `action="/account/sign-in"`
			if tt.wantRecent {
				wantNoText(t, tt.name, page, signInAgain)
			} else {
				wantText(t, tt.name, page, signInAgain)
			}
			f.empty()
		}
	}
}

// signedIn returns a function that sets the time in a provider's claims at which the person signed in
// to the provider.
func signedIn(ago time.Duration) func(map[string]any) {
	return func(claims map[string]any) { claims["auth_time"] = time.Now().Add(-ago).Unix() }
}

// TestUpstreamSilentMaxAge shows that the max_age of a later request limits the time since the
// sign-in at the provider, however recent the login is. If this time is unknown or too long, the
// person signs in again at the provider, which receives the max_age.
func TestUpstreamSilentMaxAge(t *testing.T) {
	fg := newForger(t)
	f := federateWith(t, fg)
	silent := request(f.site, "prompt", "none", "max_age", "3600")
	maxAge := []string{"max_age", "3600"}

	for _, tt := range []struct {
		name      string
		change    func(claims map[string]any)
		request   []string
		wantError string
	}{
		{name: "signed in to the provider just now", change: signedIn(0)},
		{name: "five minutes ago", change: signedIn(5 * time.Minute)},
		{name: "five minutes ago, within max_age", change: signedIn(5 * time.Minute), request: maxAge},
		{name: "yesterday", change: signedIn(24 * time.Hour), wantError: "login_required"},
		{name: "no auth_time", change: func(map[string]any) {}, wantError: "login_required"},
	} {
		b := f.newBrowser()
		wantCode(t, tt.name, f.forgeIn(b, fg, tt.change, tt.request...))
		f.pass(time.Second)
		wantCode(t, tt.name+", without max_age", b.authorize(request(f.site, "prompt", "none")))

		// The second round follows a loss of the session store.
		for range 2 {
			wantAnswer(t, tt.name, b.authorize(silent), tt.wantError)
			f.empty()
		}
		if tt.wantError == "" {
			continue
		}

		sent := f.begin(b, "max_age", "3600")
		if sent := sent.Get("max_age"); sent != "3600" {
			t.Errorf("%s: the next request to the provider has the max_age %q, want 3600", tt.name, sent)
		}
		fg.change = signedIn(0)
		wantCode(t, tt.name+", then signing in to the provider", f.answer(b, fg, sent))
		f.pass(time.Second)
		wantAnswer(t, tt.name+", then signing in to the provider", b.authorize(silent), "")
	}
}

// TestUpstreamSilentFactor shows that a login is not silent after the person has presented a second factor
// here, whether the factor was needed for the login or has raised it later.
func TestUpstreamSilentFactor(t *testing.T) {
	fg := newForger(t)
	f := federateWith(t, fg)
	yesterday := func(claims map[string]any) {
		signedIn(24 * time.Hour)(claims)
		claims["exp"] = f.now().Add(time.Minute).Unix()
	}
	raised, begun := f.newBrowser(), f.newBrowser()
	f.ada.ID = f.subject(f.forgeIn(raised, fg, yesterday))
	key := f.app()

	page := raised.authorize(request(f.site, "acr_values", "2"))
	wantCode(t, "raising a login", raised.enterCode(page, factortest.Code(key, f.now())))
	f.pass(time.Minute)
	page = f.forgeIn(begun, fg, yesterday)
	wantCode(t, "a login with a factor", begun.enterCode(page, factortest.Code(key, f.now())))
	f.pass(time.Second)

	silent := request(f.site, "prompt", "none", "max_age", "3600")
	for range 2 {
		for name, b := range map[string]*browser{"a raised login": raised, "a login with a factor": begun} {
			wantAnswer(t, name+" with max_age", b.authorize(silent), "")
			wantNoText(t, name, b.get("/account?project="+f.project.ID), `action="/account/sign-in"`)
		}
		f.empty()
	}
}

// TestUpstreamSilentEnrol shows that a person cannot set up a second factor if the provider may
// only have recognized the browser. The person must then sign in at the provider again. Otherwise,
// the provider would only recognize the browser again.
func TestUpstreamSilentEnrol(t *testing.T) {
	fg := newForger(t)
	f := federateWith(t, fg)
	b := f.newBrowser()
	page := f.forgeIn(b, fg, func(map[string]any) {}, "acr_values", "2")
	wantNoText(t, "a silent login", page, "Set up a second factor")

	location, err := url.Parse(f.press(b, page).header.Get("Location"))
	must(t, err)
	sent := location.Query()
	if prompt := sent.Get("prompt"); prompt != "login" {
		t.Fatalf("the second request to the provider has the prompt %q, want login", prompt)
	}
	if maxAge := sent.Get("max_age"); maxAge != "0" {
		t.Fatalf("the second request to the provider has the max_age %q, want 0", maxAge)
	}
	wantText(t, "after signing in to the provider", f.answer(b, fg, sent), "Set up a second factor")
}
