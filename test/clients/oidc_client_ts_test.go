package clients

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// outcome is the state of the app after it handled the address of its page.
type outcome struct {
	User *struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
		Profile      struct {
			Sub string `json:"sub"`
		} `json:"profile"`
	} `json:"user"`
	Error string `json:"error"`
	State string `json:"state"`
}

// app serves the page in page/ at its own origin, as a client of p with the given flags. It returns
// the origin.
func app(t *testing.T, p *harness.Project, flags ...string) string {
	t.Helper()
	needNode(t)
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServer(http.Dir("page")))
	mux.HandleFunc("GET /oidc-client-ts.min.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, "node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js")
	})

	origin := serveBeside(t, p.Issuer(), mux)
	mux.HandleFunc("GET /logged-out", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<script>localStorage.clear(); localStorage.setItem('logout', location.search)</script>")
	})
	for i, flag := range flags {
		flags[i] = strings.ReplaceAll(flag, "{origin}", origin)
	}
	c := p.NewClient(t, "spa", append(flags, "--redirect-uri", origin+"/", "--post-logout-redirect-uri", origin+"/",
		"--access-token", "fabric")...)

	mux.HandleFunc("GET /settings.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer":    p.Issuer(),
			"client_id": c.ID,
			"dpop":      slices.Contains(flags, "--dpop-bound-access-tokens"),
			"monitor":   slices.Contains(flags, "--frontchannel-logout-session-required"),
		})
	})
	return origin
}

// serveBeside serves on another port of the issuer's host. That is another origin of the same site,
// in the same way that app.example.com and id.example.com are different origins of example.com.
func serveBeside(t *testing.T, issuer string, h http.Handler) string {
	t.Helper()
	u, err := url.Parse(issuer)
	if err != nil {
		t.Fatal(err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}}
	srv.Start()
	t.Cleanup(srv.Close)
	return fmt.Sprintf("http://%s:%d", u.Hostname(), l.Addr().(*net.TCPAddr).Port)
}

// arrived waits until the app has handled the address of its page, and returns the outcome.
func (b tab) arrived(origin string) outcome {
	b.Helper()
	b.until("the app", fmt.Sprintf("location.origin === %q && window.outcome", origin))
	return eval[outcome](b, "outcome")
}

// signIn fills in the login page and allows what is requested.
func (b tab) signIn(origin, email, secret string) {
	b.Helper()
	b.until("the login page", "document.querySelector('#login-submit')")
	b.do(chromedp.Clear(chromedp.CSS("#username")), write("#username", email), write("#password", secret),
		chromedp.Click(chromedp.CSS("#login-submit")))
	b.until("an answer to the login", fmt.Sprintf(
		"location.origin === %q || document.querySelector('#consent-allow') || "+
			"document.querySelector('#password')?.value === ''",
		origin))
	if eval[bool](b, "Boolean(document.querySelector('#consent-allow'))") {
		b.do(chromedp.Click(chromedp.CSS("#consent-allow")))
	}
}

// TestOIDCClientTS shows that a browser app with oidc-client-ts can sign in, renew its tokens by
// refresh token and in a frame, sign in silently and sign out.
func TestOIDCClientTS(t *testing.T) {
	harness.NotStorage(t)
	p := harness.Shared(t).NewProject(t)
	sub, origin := p.NewSubscriber(t), app(t, p)
	b := newTab(t)
	b.do(goTo(origin))
	if o := b.arrived(origin); o.User != nil {
		t.Fatalf("the app reports a user before any login: %+v", o)
	}

	b.leave("manager.signinRedirect({ prompt: 'none' })")
	b.until("the callback", "window.outcome?.error")
	if o := b.arrived(origin); o.Error != "login_required" {
		t.Errorf("prompt=none before a login returned %q, want login_required", o.Error)
	}

	b.leave("manager.signinRedirect()")
	b.signIn(origin, sub.Email, "not the password")
	b.until("the login page again",
		"document.querySelector('#login-submit') && document.querySelector('#username').value === "+
			fmt.Sprintf("%q", sub.Email))
	b.signIn(origin, sub.Email, sub.Password)
	first := b.arrived(origin)
	if first.User == nil || first.User.Profile.Sub != sub.ID {
		t.Fatalf("after the login the app has %+v, want subscriber %s", first, sub.ID)
	}
	b.wantInfo(200, sub.Email)

	renewed := eval[outcome](b, "manager.signinSilent().then(user => ({ user }))")
	if renewed.User.RefreshToken == first.User.RefreshToken || renewed.User.AccessToken == first.User.AccessToken {
		t.Errorf("a refresh returned the old tokens")
	}
	b.wantInfo(200, sub.Email)

	renewed = eval[outcome](b, "renewInFrame().then(user => ({ user }))")
	if renewed.User.Profile.Sub != sub.ID {
		t.Errorf("a renewal in a frame returned the subject %q, want %q", renewed.User.Profile.Sub, sub.ID)
	}

	b.leave("(delete window.outcome, manager.signinRedirect({ prompt: 'none' }))")
	if o := b.arrived(origin); o.User == nil || o.User.Profile.Sub != sub.ID {
		t.Errorf("prompt=none after a login returned %+v, want subscriber %s", o, sub.ID)
	}
	b.wantSignOut(p, origin)
}

// TestOIDCClientTSDPoP shows that a browser app with oidc-client-ts can bind its code and its tokens
// to a key that no script can read, and use them from another origin.
func TestOIDCClientTSDPoP(t *testing.T) {
	harness.NotStorage(t)
	p := harness.Shared(t).NewProject(t)
	sub, origin := p.NewSubscriber(t), app(t, p, "--dpop-bound-access-tokens")
	b := newTab(t)
	b.do(goTo(origin))
	b.arrived(origin)
	b.leave("manager.signinRedirect()")
	b.signIn(origin, sub.Email, sub.Password)
	if o := b.arrived(origin); o.User == nil || o.User.Profile.Sub != sub.ID {
		t.Fatalf("after the login the app has %+v, want subscriber %s", o, sub.ID)
	}
	b.wantInfo(200, sub.Email)

	renewed := eval[outcome](b, "manager.signinSilent().then(user => ({ user }))")
	b.wantInfo(200, sub.Email)
	p.Get(t, "/subscriber/info", harness.Bearer(renewed.User.AccessToken)).Want(t, 401)
}

// TestOIDCClientTSPushed shows that a browser app with oidc-client-ts can also push its
// authorization request from another origin. A request that was not pushed is refused.
func TestOIDCClientTSPushed(t *testing.T) {
	harness.NotStorage(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	origin := app(t, p, "--dpop-bound-access-tokens", "--require-pushed-authorization-requests")
	b := newTab(t)
	b.do(goTo(origin))
	b.arrived(origin)
	b.leave("manager.signinRedirect()")
	b.until("the callback", "window.outcome?.error")
	if o := b.arrived(origin); o.Error != "invalid_request" {
		t.Errorf("a request that was not pushed returned %q, want invalid_request", o.Error)
	}

	b.leave("(delete window.outcome, signinPushed())")
	b.signIn(origin, sub.Email, sub.Password)
	o := b.arrived(origin)
	if o.User == nil || o.User.Profile.Sub != sub.ID {
		t.Fatalf("after the login the app has %+v, want subscriber %s", o, sub.ID)
	}
	b.wantInfo(200, sub.Email)
	p.Get(t, "/subscriber/info", harness.Bearer(o.User.AccessToken)).Want(t, 401)
}

// TestOIDCClientTSLogout shows that an open app learns of a logout in another tab. It tests both
// methods of OpenID Connect: the session iframe, and the front-channel logout URI.
func TestOIDCClientTSLogout(t *testing.T) {
	harness.NotStorage(t)
	p := harness.Shared(t).NewProject(t)
	sub := p.NewSubscriber(t)
	origin := app(t, p, "--frontchannel-logout-uri", "{origin}/logged-out", "--frontchannel-logout-session-required")
	b := newTab(t)
	b.do(goTo(origin))
	b.arrived(origin)
	b.leave("manager.signinRedirect()")
	b.signIn(origin, sub.Email, sub.Password)
	if o := b.arrived(origin); o.User == nil {
		t.Fatalf("after the login the app has %+v, want a user", o)
	}

	b.until("the session iframe to say that nothing has changed", "session.said.includes('unchanged')")
	if eval[bool](b, "session.signedOut || session.said.includes('changed')") {
		t.Errorf("before the logout, the session iframe has reported %s", eval[string](b, "session.said.join()"))
	}

	sid := eval[string](b, "manager.getUser().then(user => user.profile.sid)")
	other := b.beside()
	other.do(goTo(p.Issuer() + "logout"))
	other.until("the logout page", "document.querySelector('#logout-confirm')")
	other.do(chromedp.Click(chromedp.CSS("#logout-confirm")))
	other.until("the page after the logout", "document.querySelector('#logged-out')")

	b.until("the app to learn of the logout", "session.signedOut && localStorage.getItem('logout')")
	got, err := url.ParseQuery(strings.TrimPrefix(eval[string](b, "localStorage.getItem('logout')"), "?"))
	if err != nil || got.Get("iss") != p.Issuer() || got.Get("sid") != sid || sid == "" {
		t.Errorf("the front-channel logout has %v (%v), want iss %s and sid %s", got, err, p.Issuer(), sid)
	}
}

// wantInfo requests the subscriber's info from the page and checks the status and the email.
func (b tab) wantInfo(status int, email string) {
	b.Helper()
	type answer struct {
		Status int                    `json:"status"`
		Body   struct{ Email string } `json:"body"`
	}
	got := eval[answer](b, "subscriberInfo()")
	if got.Status != status || got.Body.Email != email {
		b.Errorf("/subscriber/info from the app = %d, %q, want %d, %q", got.Status, got.Body.Email, status, email)
	}
}

// wantSignOut signs out at the provider's logout endpoint, and checks that the tokens and the login
// have ended.
func (b tab) wantSignOut(p *harness.Project, origin string) {
	b.Helper()
	token := eval[string](b, "manager.getUser().then(user => user.access_token)")
	p.Get(b, "/subscriber/info", harness.Bearer(token)).Want(b, 200)

	b.leave("(delete window.outcome, signOut())")
	if o := b.arrived(origin); o.State != "bye" || o.User != nil {
		b.Errorf("after the logout the app has %+v, want no user and the state bye", o)
	}

	b.leave("(delete window.outcome, manager.signinRedirect({ prompt: 'none' }))")
	b.until("the callback", "window.outcome?.error")
	if o := b.arrived(origin); o.Error != "login_required" {
		b.Errorf("prompt=none after the logout returned %q, want login_required", o.Error)
	}

	harness.WithinASecond(b, "the access token of an ended login", func() error {
		return p.Get(b, "/subscriber/info", harness.Bearer(token)).StatusIs(401)
	})
}
