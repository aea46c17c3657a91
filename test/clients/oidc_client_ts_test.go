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

// An outcome is the state of the app after it has handled the address of its page.
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

// app serves the app in page/ at an origin of its own, as a client of p with the given flags. It
// returns the origin.
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
	flags = append(flags, "--access-token", "fabric")
	flags = append(flags, "--redirect-uri", origin+"/", "--post-logout-redirect-uri", origin+"/")
	c := p.NewClient(t, "spa", flags...)

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

// serveBeside serves on a different port of the issuer's host, and returns the origin. Like those
// of app.example.com and id.example.com, the two origins differ but belong to the same site.
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

// arrivedAs waits until the app has handled the address of its page, and fails the test unless the
// subscriber is then signed in.
func (b tab) arrivedAs(origin string, sub harness.Subscriber) outcome {
	b.Helper()
	o := b.arrived(origin)
	if o.User == nil {
		b.Fatalf("the app has no user, want subscriber %s: %+v", sub.ID, o)
	}
	if got := o.User.Profile.Sub; got != sub.ID {
		b.Fatalf("the app's user is %q, want subscriber %q", got, sub.ID)
	}
	return o
}

// signIn fills in the login page. If the server then asks for consent, signIn allows the request.
func (b tab) signIn(origin, email, secret string) {
	b.Helper()
	b.until("the login page", "document.querySelector('#login-submit')")
	b.do(
		chromedp.Clear(chromedp.CSS("#username")),
		write("#username", email),
		write("#password", secret),
		chromedp.Click(chromedp.CSS("#login-submit")),
	)
	atApp := fmt.Sprintf("location.origin === %q", origin)
	const atConsent = "document.querySelector('#consent-allow')"
	const atLogin = "document.querySelector('#password')?.value === ''"
	b.until("an answer to the login", atApp+" || "+atConsent+" || "+atLogin)
	if eval[bool](b, "Boolean(document.querySelector('#consent-allow'))") {
		b.do(chromedp.Click(chromedp.CSS("#consent-allow")))
	}
}

// TestOIDCClientTS shows that a browser app with oidc-client-ts can sign in, renew its tokens (with
// a refresh token or in a frame), sign in silently and sign out.
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
	const form = "document.querySelector('#login-submit')"
	emailIsKept := fmt.Sprintf("document.querySelector('#username').value === %q", sub.Email)
	b.until("the login page again", form+" && "+emailIsKept)
	b.signIn(origin, sub.Email, sub.Password)
	first := b.arrivedAs(origin, sub)
	b.wantInfo(200, sub.Email)

	renewed := eval[outcome](b, "manager.signinSilent().then(user => ({ user }))")
	if renewed.User.RefreshToken == first.User.RefreshToken {
		t.Error("a refresh returned the old refresh token, want a new one")
	}
	if renewed.User.AccessToken == first.User.AccessToken {
		t.Error("a refresh returned the old access token, want a new one")
	}
	b.wantInfo(200, sub.Email)

	renewed = eval[outcome](b, "renewInFrame().then(user => ({ user }))")
	if renewed.User.Profile.Sub != sub.ID {
		t.Errorf("a renewal in a frame returned the subject %q, want %q", renewed.User.Profile.Sub, sub.ID)
	}

	b.leave("(delete window.outcome, manager.signinRedirect({ prompt: 'none' }))")
	b.arrivedAs(origin, sub)
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
	b.arrivedAs(origin, sub)
	b.wantInfo(200, sub.Email)

	renewed := eval[outcome](b, "manager.signinSilent().then(user => ({ user }))")
	b.wantInfo(200, sub.Email)
	p.Get(t, "/subscriber/info", harness.Bearer(renewed.User.AccessToken)).Want(t, 401)
}

// TestOIDCClientTSPushed shows that a browser app with oidc-client-ts can push its authorization
// request from another origin, and that a request that was not pushed is refused.
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
	token := b.arrivedAs(origin, sub).User.AccessToken
	b.wantInfo(200, sub.Email)
	p.Get(t, "/subscriber/info", harness.Bearer(token)).Want(t, 401)
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
		t.Fatalf("after the login, the app has %+v, want a user", o)
	}

	b.until("the session iframe to say that nothing has changed", "session.said.includes('unchanged')")
	if eval[bool](b, "session.signedOut") {
		t.Error("before the logout, the app was told of a logout")
	}
	if reports := eval[[]string](b, "session.said"); slices.Contains(reports, "changed") {
		t.Errorf("before the logout, the session iframe reported %q, want no \"changed\"", reports)
	}

	sid := eval[string](b, "manager.getUser().then(user => user.profile.sid)")
	if sid == "" {
		t.Error("the ID token has no sid")
	}
	other := b.beside()
	other.do(goTo(p.Issuer() + "logout"))
	other.until("the logout page", "document.querySelector('#logout-confirm')")
	other.do(chromedp.Click(chromedp.CSS("#logout-confirm")))
	other.until("the page after the logout", "document.querySelector('#logged-out')")

	b.until("the app to learn of the logout", "session.signedOut && localStorage.getItem('logout')")
	search := eval[string](b, "localStorage.getItem('logout')")
	query, err := url.ParseQuery(strings.TrimPrefix(search, "?"))
	if err != nil {
		t.Fatalf("the front-channel logout has the query %q: %v", search, err)
	}
	if got := query.Get("iss"); got != p.Issuer() {
		t.Errorf("the front-channel logout has iss %q, want %q", got, p.Issuer())
	}
	if got := query.Get("sid"); got != sid {
		t.Errorf("the front-channel logout has sid %q, want %q", got, sid)
	}
}

// wantInfo requests the subscriber's info from the page and checks the status and the email.
func (b tab) wantInfo(status int, email string) {
	b.Helper()
	answer := eval[struct {
		Status int
		Body   struct{ Email string }
	}](b, "subscriberInfo()")
	if answer.Status != status {
		b.Errorf("/subscriber/info from the app returned the status %d, want %d", answer.Status, status)
	}
	if answer.Body.Email != email {
		b.Errorf("/subscriber/info from the app returned the email %q, want %q", answer.Body.Email, email)
	}
}

// wantSignOut signs out at the provider's logout endpoint, and checks that the tokens and the login
// have ended.
func (b tab) wantSignOut(p *harness.Project, origin string) {
	b.Helper()
	token := eval[string](b, "manager.getUser().then(user => user.access_token)")
	p.Get(b, "/subscriber/info", harness.Bearer(token)).Want(b, 200)

	b.leave("(delete window.outcome, signOut())")
	o := b.arrived(origin)
	if o.State != "bye" {
		b.Errorf("after the logout, the app has the state %q, want bye", o.State)
	}
	if o.User != nil {
		b.Errorf("after the logout, the app has the user %+v, want none", o.User)
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
