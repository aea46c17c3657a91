package oidc_test

import (
	"context"
	"crypto"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A federation is a world whose subscribers sign in with another world.
type federation struct {
	*world
	up   *world // the upstream provider
	u    idp.Upstream
	site idp.Client // the app, a client in world
}

// federate returns a federation. change changes the settings of the upstream provider; it may be
// nil.
func federate(t *testing.T, change func(*idp.UpstreamInput)) federation {
	t.Helper()
	f := federation{world: newWorld(t), up: newWorld(t)}
	ours, secret := f.up.client(func(n *idp.Client) {
		n.Type, n.Scopes = idp.Web, []string{"openid", "email", "profile"}
		n.RedirectURIs = []string{f.url + f.callback()}
		n.LogoutURIs = []string{f.url + "/logout/upstream"}
	})
	f.verify(f.up.ada, true)

	name, issuer := "Acme ID", f.up.url+"/"
	in := idp.UpstreamInput{Name: &name, Issuer: &issuer, ClientID: &ours.ID, Secret: &secret}
	if change != nil {
		change(&in)
	}
	var err error
	f.u, err = f.idp.Upstreams.Create(context.Background(), f.project.ID, in)
	must(t, err)
	f.site, _ = f.client(nil)
	return f
}

// callback returns the path to which the upstream provider redirects.
func (f federation) callback() string { return idp.Upstream{Issuer: f.up.url + "/"}.Callback() }

// verify sets whether the upstream provider has verified a subscriber's email.
func (f federation) verify(sub fabric.Subscriber, verified bool) {
	f.t.Helper()
	_, err := f.up.fabric.Subscribers.Update(context.Background(), sub.ProjectID, sub.ID,
		fabric.SubscriberInput{Verified: &verified})
	must(f.t, err)
}

// openRegistration lets people create their own accounts.
func (f federation) openRegistration() {
	f.t.Helper()
	open := fabric.RegistrationOpen
	_, err := f.fabric.Projects.Update(context.Background(), f.project.ID, fabric.ProjectChange{Registration: &open})
	must(f.t, err)
}

// press presses the button of the provider on a login page, and returns the redirect to it.
func (f federation) press(b *browser, page reply) reply {
	f.t.Helper()
	id := hiddenID.FindStringSubmatch(page.body)
	if id == nil || !strings.Contains(page.body, "Continue with Acme ID") {
		f.t.Fatalf("the page has no button: %d %s", page.status, page.body)
	}
	return b.post("/login/upstream", url.Values{"id": {id[1]}, "upstream": {f.u.ID}})
}

// confirm signs a subscriber in at the upstream provider, and returns the callback's path.
func (f federation) confirm(to reply, email string) string {
	f.t.Helper()
	if to.status != http.StatusSeeOther || !strings.HasPrefix(to.header.Get("Location"), f.up.url) {
		f.t.Fatalf("no redirect to the provider: %d %s", to.status, to.body)
	}
	b := f.up.browser()
	got := b.logIn(b.get(strings.TrimPrefix(to.header.Get("Location"), f.up.url)), email, secret)
	if got.location == nil || got.param("code") == "" {
		f.t.Fatalf("the provider sent no code: %d %s", got.status, got.body)
	}
	return strings.TrimPrefix(got.location.String(), f.url)
}

// signIn signs in to the app with an account at the upstream provider.
func (f federation) signIn(b *browser, email string) reply {
	f.t.Helper()
	return b.get(f.confirm(f.press(b, b.authorize(request(f.site))), email))
}

// subject returns the subscriber who signed in to the app, or "".
func (f federation) subject(got reply) string {
	f.t.Helper()
	if got.param("code") == "" {
		return ""
	}
	tokens := f.redeem(f.site, got.param("code")).json(f.t)
	return text(idClaims(f.t, tokens)["sub"])
}

// TestUpstreamSignUp shows that a person without an account gets one. The person signs in to the
// same account the next time, even with a different email address.
func TestUpstreamSignUp(t *testing.T) {
	yes := true
	f := federate(t, func(in *idp.UpstreamInput) { in.SignUp = &yes })
	other := f.up.subscriber("new@example.com")
	f.verify(other, true)
	if got := f.signIn(f.browser(), other.Email); !strings.Contains(got.body, "You have no account here") {
		t.Fatalf("without open registration: %d %s", got.status, got.body)
	}

	f.openRegistration()
	f.pass(time.Second) // the cached project expires
	first := f.subject(f.signIn(f.browser(), other.Email))
	sub, err := f.fabric.Subscribers.Find(context.Background(), f.project.ID, first)
	if err != nil || sub.Email != other.Email || !sub.Verified || sub.FirstName != "Ada" || sub.PasswordHash != "" {
		t.Fatalf("the account is %+v, %v", sub, err)
	}

	renamed := "renamed@example.com"
	_, err = f.up.fabric.Subscribers.Update(context.Background(), other.ProjectID, other.ID,
		fabric.SubscriberInput{Email: &renamed})
	must(t, err)
	if again := f.subject(f.signIn(f.browser(), renamed)); again != first {
		t.Errorf("the second login signs in %q, want %q", again, first)
	}

	disabled := true
	_, err = f.fabric.Subscribers.Update(context.Background(), f.project.ID, first,
		fabric.SubscriberInput{Disabled: &disabled})
	must(t, err)
	if got := f.signIn(f.browser(), renamed); got.param("code") != "" || got.status != 422 {
		t.Errorf("a disabled subscriber: %d %v, want 422 and no code", got.status, got.parameters())
	}
}

// TestUpstreamLink shows that an existing account is linked only after its owner has signed in to
// it and agreed.
func TestUpstreamLink(t *testing.T) {
	f := federate(t, nil)
	eve := f.subscriber("eve@example.com")
	answer := func(b *browser, email, answer string) reply {
		page := f.signIn(b, f.ada.Email)
		if !strings.Contains(page.body, "You already have an account with this email") {
			t.Fatalf("the page does not ask for the login: %d %s", page.status, page.body)
		}
		page = b.logIn(page, email, secret)
		if id := hiddenID.FindStringSubmatch(page.body); id != nil && strings.Contains(page.body, "Link your account") {
			return b.post("/login/link", url.Values{"id": {id[1]}, "answer": {answer}})
		}
		return page
	}

	if got := f.subject(answer(f.browser(), eve.Email, "yes")); got != eve.ID {
		t.Errorf("signing in to another account: %q, want %q", got, eve.ID)
	}
	for _, said := range []string{"no", "yes"} { // after no, the account is still not linked
		if got := f.subject(answer(f.browser(), f.ada.Email, said)); got != f.ada.ID {
			t.Errorf("answering %s: %q, want %q", said, got, f.ada.ID)
		}
	}
	if got := f.subject(f.signIn(f.browser(), f.up.ada.Email)); got != f.ada.ID {
		t.Errorf("with the link: %q, want %q", got, f.ada.ID)
	}
}

// TestUpstreamLimit shows that the number of attempts that a browser can begin with one
// authorization request is limited.
func TestUpstreamLimit(t *testing.T) {
	f := federate(t, nil)
	b := f.browser()
	page := b.authorize(request(f.site))
	f.limits.Set(limit.Rates{limit.AuthorizePerNetwork: {Burst: 2, Every: time.Hour}})
	for range 2 {
		if got := f.press(b, page); got.status != http.StatusSeeOther {
			t.Fatalf("an attempt within the limit: %d %s, want 303", got.status, got.body)
		}
	}
	if got := f.press(b, page); got.status != http.StatusTooManyRequests {
		t.Errorf("an attempt above the limit: %d %s, want 429", got.status, got.body)
	}
}

// TestUpstreamEmail shows that an email address that the provider has not verified has no effect.
func TestUpstreamEmail(t *testing.T) {
	yes := true
	f := federate(t, func(in *idp.UpstreamInput) { in.SignUp = &yes })
	f.openRegistration()
	f.verify(f.up.ada, false)
	got := f.signIn(f.browser(), f.up.ada.Email)
	if got.status != 422 || !strings.Contains(got.body, "did not confirm an email") ||
		!strings.Contains(got.body, `name="password"`) {
		t.Errorf("a login with an unverified email: %d %s, want 422 and the login page", got.status, got.body)
	}

	claims := map[string]string{"email_verified": "phone_number_verified"}
	_, err := f.idp.Upstreams.Update(context.Background(), f.project.ID, f.u.ID, idp.UpstreamInput{Claims: &claims})
	must(t, err)
	f.verify(f.up.ada, true)
	if got := f.signIn(f.browser(), f.up.ada.Email); !strings.Contains(got.body, "did not confirm an email") {
		t.Errorf("with another claim for email_verified: %d %s, want it refused", got.status, got.body)
	}
}

// TestUpstreamState shows that a response is accepted once, and only in the browser that began the
// login.
func TestUpstreamState(t *testing.T) {
	f := federate(t, nil)
	b := f.browser()
	callback := f.confirm(f.press(b, b.authorize(request(f.site))), f.up.ada.Email)
	if got := f.browser().get(callback); got.status != http.StatusBadRequest {
		t.Errorf("another browser: %d, want 400", got.status)
	}
	if got := b.get(callback); got.status != http.StatusBadRequest {
		t.Errorf("a state that another browser has used: %d, want 400", got.status)
	}

	begin := func() url.Values {
		to := f.press(b, b.authorize(request(f.site)))
		sent, err := url.Parse(to.header.Get("Location"))
		must(t, err)
		if q := sent.Query(); q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" {
			t.Errorf("the request is %v", q)
		}
		return url.Values{"state": {sent.Query().Get("state")}, "iss": {f.up.url + "/"}}
	}

	for name, tt := range map[string]struct {
		change func(url.Values)
		status int
		text   string
	}{
		"an error":           {func(v url.Values) { v.Set("error", "access_denied") }, 422, "did not sign you in"},
		"a different issuer": {func(v url.Values) { v.Set("iss", f.url+"/"); v.Set("code", "x") }, 502, "failed"},
		"no issuer":          {func(v url.Values) { v.Del("iss"); v.Set("code", "x") }, 502, "failed"},
		"a made-up code":     {func(v url.Values) { v.Set("code", "x") }, 502, "failed"},
		"a made-up state":    {func(v url.Values) { v.Set("state", strings.Repeat("A", 52)) }, 400, ""},
		"a repeated state":   {func(v url.Values) { v.Add("state", v.Get("state")) }, 400, ""},
		"no parameters":      {func(v url.Values) { clear(v) }, 400, ""},
	} {
		v := begin()
		tt.change(v)
		got := b.get(f.callback() + "?" + v.Encode())
		if got.status != tt.status || !strings.Contains(got.body, tt.text) ||
			tt.status != 400 && !strings.Contains(got.body, `name="password"`) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// TestUpstreamLogout shows that signing out also signs out at the provider, and then returns to the
// app.
func TestUpstreamLogout(t *testing.T) {
	yes := true
	f := federate(t, func(in *idp.UpstreamInput) { in.SignUp, in.Logout = &yes, &yes })
	f.openRegistration()
	other := f.up.subscriber("new@example.com")
	f.verify(other, true)
	b, ub := f.browser(), f.up.browser()
	to := f.press(b, b.authorize(request(f.site)))
	got := ub.logIn(ub.get(strings.TrimPrefix(to.header.Get("Location"), f.up.url)), other.Email, secret)
	if f.subject(b.get(strings.TrimPrefix(got.location.String(), f.url))) == "" {
		t.Fatal("the login at the provider failed")
	}

	page := b.get("/logout")
	form := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(page.body, -1) {
		form.Set(m[1], m[2])
	}

	page = b.post("/logout", form)
	_, rest, ok := strings.Cut(page.header.Get("Refresh"), "url="+f.up.url)
	if !ok {
		t.Fatalf("the page does not lead to the provider: %d %v", page.status, page.header)
	}

	back := ub.get(rest)
	if back.location == nil || !strings.HasPrefix(back.location.String(), f.url+"/logout/upstream?state=") {
		t.Fatalf("the provider does not return: %d %v %s", back.status, back.location, back.body)
	}

	page = b.get(strings.TrimPrefix(back.location.String(), f.url))
	if got := page; !strings.Contains(got.body, "You are signed out") {
		t.Errorf("after returning: %d %s, want the page that confirms the logout", got.status, got.body)
	}

	ours := idp.Client{ID: f.u.ClientID, RedirectURIs: []string{f.url + f.callback()}}
	if got := ub.authorize(request(ours, "prompt", "none")); got.param("error") != "login_required" {
		t.Errorf("after signing out, the provider answers %v, want login_required", got.parameters())
	}
}

// A forger is a provider that signs invalid ID tokens.
type forger struct {
	url    string
	key    crypto.Signer
	signer crypto.Signer
	nonce  string
	change func(claims map[string]any)

	redeemed atomic.Int32 // number of codes sent to it
}

// newForger starts a provider. Without a change, its ID tokens are valid.
func newForger(t *testing.T) *forger {
	f := &forger{key: newKey(t, jose.ES256)}
	f.signer = f.key
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	f.url = srv.URL
	answer := func(path string, body func() any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(body())
		})
	}

	answer("/.well-known/openid-configuration", func() any {
		return map[string]any{"issuer": f.url, "authorization_endpoint": f.url + "/auth",
			"token_endpoint": f.url + "/token", "jwks_uri": f.url + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256"}}
	})
	answer("/keys", func() any {
		return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: f.key.Public(), KeyID: "k", Algorithm: "ES256"}}}
	})
	answer("/token", func() any {
		f.redeemed.Add(1)
		now := time.Now().Unix()
		claims := map[string]any{"iss": f.url, "sub": "1", "aud": "me", "iat": now, "exp": now + 60, "nonce": f.nonce,
			"email": "mallory@example.com", "email_verified": true}
		f.change(claims)
		p := party{key: f.signer, kid: "k", alg: jose.ES256}
		return map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.sign(t, claims)}
	})
	return f
}

// forge signs in to the app with an ID token of fg whose claims are changed. params contains
// additional parameters for the app's request.
func (f federation) forge(fg *forger, change func(map[string]any), params ...string) reply {
	f.t.Helper()
	return f.forgeIn(f.browser(), fg, change, params...)
}

// forgeIn is like forge, in the browser b.
func (f federation) forgeIn(b *browser, fg *forger, change func(map[string]any), params ...string) reply {
	f.t.Helper()
	fg.change = change
	return f.answer(b, fg, f.begin(b, params...))
}

// answer sends the browser back with fg's response to the request sent.
func (f federation) answer(b *browser, fg *forger, sent url.Values) reply {
	f.t.Helper()
	fg.nonce = sent.Get("nonce")
	answer := url.Values{"state": {sent.Get("state")}, "code": {"c"}}
	return b.get(idp.Upstream{Issuer: fg.url}.Callback() + "?" + answer.Encode())
}

// begin presses the button of the provider, and returns the request to the provider. params
// contains additional parameters for the app's request.
func (f federation) begin(b *browser, params ...string) url.Values {
	f.t.Helper()
	sent, err := url.Parse(f.press(b, b.authorize(request(f.site, params...))).header.Get("Location"))
	must(f.t, err)
	return sent.Query()
}

// TestUpstreamMixUp shows that selvage refuses an honest provider's code in the response to an
// attempt at a hostile provider. Otherwise, the hostile provider could send the browser to the
// honest provider and receive its code from selvage (RFC 9700, section 4.4).
func TestUpstreamMixUp(t *testing.T) {
	hostile := newForger(t)
	hostile.change = func(map[string]any) {}
	none, me := "", "me"
	f := federate(t, func(in *idp.UpstreamInput) { in.Issuer, in.ClientID, in.Secret = &hostile.url, &me, &none })

	for _, path := range []string{f.callback(), idp.CallbackPath, f.callback() + "/", "/login/upstream/callback"} {
		b := f.browser()
		sent := f.begin(b)
		if uri := sent.Get("redirect_uri"); uri != f.url+f.u.Callback() || strings.HasPrefix(f.url+path, uri) {
			t.Fatalf("the redirect URI is %q, want that of the attempt's provider", uri)
		}
		answer := url.Values{"state": {sent.Get("state")}, "code": {"honest"}}
		if got := b.get(path + "?" + answer.Encode()); got.status < 400 || got.param("code") != "" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if n := hostile.redeemed.Load(); n != 0 {
		t.Errorf("the hostile provider got %d codes", n)
	}
}

// federateWith returns a federation in which anyone may sign up with the provider fg.
func federateWith(t *testing.T, fg *forger) federation {
	t.Helper()
	yes, none, me := true, "", "me"
	f := federate(t, func(in *idp.UpstreamInput) {
		in.SignUp, in.Issuer = &yes, &fg.url
		in.ClientID, in.Secret = &me, &none
	})
	f.openRegistration()
	return f
}

// TestUpstreamMaxAge shows that an app's max_age and prompt=login also apply to the login at the
// provider. A provider that does not report the time of its login is trusted.
func TestUpstreamMaxAge(t *testing.T) {
	fg := newForger(t)
	f := federateWith(t, fg)

	for _, tt := range []struct {
		asked []string
		ago   time.Duration
		ok    bool
	}{
		{nil, 24 * time.Hour, true},
		{[]string{"max_age", "3600"}, 30 * time.Minute, true},
		{[]string{"max_age", "3600"}, 2 * time.Hour, false},
		{[]string{"prompt", "login"}, 0, true},
		{[]string{"prompt", "login"}, 5 * time.Minute, false},
	} {
		got := f.forge(fg, func(c map[string]any) { c["auth_time"] = time.Now().Add(-tt.ago).Unix() }, tt.asked...)
		if (got.param("code") != "") != tt.ok || !tt.ok && got.status != http.StatusBadGateway {
			t.Errorf("%v, signed in %s ago: %d %v", tt.asked, tt.ago, got.status, got.parameters())
		}
	}

	if got := f.forge(fg, func(map[string]any) {}, "prompt", "login"); got.param("code") == "" {
		t.Errorf("without auth_time: %d %s, want a code", got.status, got.body)
	}

	for _, tt := range []struct{ name, value, want string }{
		{"max_age", "3600", "3600"}, {"prompt", "login", "0"}, {"state", "x", ""},
	} {
		if sent := f.begin(f.browser(), tt.name, tt.value); sent.Get("max_age") != tt.want {
			t.Errorf("%s=%s: the request to the provider is %v", tt.name, tt.value, sent)
		}
	}
}

// TestUpstreamToken shows which ID tokens of a provider are rejected.
func TestUpstreamToken(t *testing.T) {
	fg := newForger(t)
	f := federateWith(t, fg)
	ask := func(change func(map[string]any)) reply { return f.forge(fg, change) }
	if got := ask(func(map[string]any) {}); got.param("code") == "" {
		t.Fatalf("a valid token: %d %s, want a code", got.status, got.body)
	}

	for name, change := range map[string]func(map[string]any){
		"a different nonce":     func(c map[string]any) { c["nonce"] = "x" },
		"no nonce":              func(c map[string]any) { delete(c, "nonce") },
		"a different issuer":    func(c map[string]any) { c["iss"] = f.up.url + "/" },
		"a different audience":  func(c map[string]any) { c["aud"] = "you" },
		"two audiences":         func(c map[string]any) { c["aud"] = []string{"me", "you"} },
		"a different party":     func(c map[string]any) { c["azp"] = "you" },
		"expired":               func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() },
		"no subject":            func(c map[string]any) { delete(c, "sub") },
		"a wrong at_hash":       func(c map[string]any) { c["at_hash"] = "x" },
		"a different signature": func(map[string]any) { fg.signer = newKey(t, jose.ES256) },
	} {
		if got := ask(change); got.status != http.StatusBadGateway || got.param("code") != "" {
			t.Errorf("a token with %s: %d %v, want 502", name, got.status, got.parameters())
		}
		fg.signer = fg.key
	}
}

// TestUpstreamIssuerChanged shows that a link is valid only for the issuer that confirmed the
// account. Another issuer may use the same subject for another person.
func TestUpstreamIssuerChanged(t *testing.T) {
	fg, other := newForger(t), newForger(t)
	f := federateWith(t, fg)
	mallory := f.subject(f.forge(fg, func(map[string]any) {}))
	if mallory == "" {
		t.Fatal("the login failed")
	}

	_, err := f.idp.Upstreams.Update(context.Background(), f.project.ID, f.u.ID, idp.UpstreamInput{Issuer: &other.url})
	must(t, err)
	eve := f.subject(f.forge(other, func(c map[string]any) { c["email"] = "eve@example.com" }))
	if eve == "" || eve == mallory {
		t.Errorf("the same subject at another issuer signs in to %q, want a new account", eve)
	}

	_, err = f.idp.Upstreams.Update(context.Background(), f.project.ID, f.u.ID, idp.UpstreamInput{Issuer: &fg.url})
	must(t, err)
	if again := f.subject(f.forge(fg, func(map[string]any) {})); again != mallory {
		t.Errorf("with the first issuer again, the login signs in %q, want %q", again, mallory)
	}
}

// TestUpstreamSecretStays shows that a stored secret is never sent to a new issuer. A change of the
// issuer must include the secret again, or it removes the secret.
func TestUpstreamSecretStays(t *testing.T) {
	f, other := federate(t, nil), newForger(t)
	ctx, none := context.Background(), ""

	_, err := f.idp.Upstreams.Update(ctx, f.project.ID, f.u.ID, idp.UpstreamInput{Issuer: &other.url})
	if p := problem.First(err); p == nil || p.Param != "client_secret" {
		t.Fatalf("a new issuer without the secret: %v", err)
	}
	if u, err := f.idp.Upstreams.Find(ctx, f.project.ID, f.u.ID); err != nil || u.Issuer != f.u.Issuer {
		t.Errorf("the issuer is %q after an error: %v", u.Issuer, err)
	}

	_, err = f.idp.Upstreams.Update(ctx, f.project.ID, f.u.ID, idp.UpstreamInput{Issuer: &f.u.Issuer})
	must(t, err) // the same issuer
	u, err := f.idp.Upstreams.Update(ctx, f.project.ID, f.u.ID, idp.UpstreamInput{Issuer: &other.url, Secret: &none})
	must(t, err)
	if u.Secret != "" {
		t.Error("the secret was not removed")
	}
}

// TestUpstreamFactor shows that a login with a provider does not replace the second factor.
func TestUpstreamFactor(t *testing.T) {
	f := federate(t, nil)
	must(t, f.idp.Upstreams.Link(context.Background(), f.u, idp.Identity{UpstreamID: f.u.ID, Issuer: f.u.Issuer,
		Subject: f.up.ada.ID, Email: f.ada.Email, Verified: true},
		idp.Login{ProjectID: f.project.ID, SubscriberID: f.ada.ID}))
	f.app()
	got := f.signIn(f.browser(), f.up.ada.Email)
	if got.param("code") != "" || !strings.Contains(got.body, "/login/factor") {
		t.Errorf("a subscriber with a second factor: %d %v %s, want the page for it",
			got.status, got.parameters(), got.body)
	}
}

// TestUpstreamSettings shows which settings an upstream provider may not have. It also shows that
// its secret is sealed.
func TestUpstreamSettings(t *testing.T) {
	f := federate(t, nil)
	ctx := context.Background()
	secret, err := f.idp.Upstreams.OpenSecret(f.u)
	if err != nil || secret == "" || strings.Contains(f.u.Secret, secret) {
		t.Errorf("the secret is not sealed: %v", err)
	}
	text := func(s string) *string { return &s }

	for _, issuer := range []string{"https://id.example/a//b", "https://id.example/../a", "https://id.example//a"} {
		_, err := f.idp.Upstreams.Update(ctx, f.project.ID, f.u.ID, idp.UpstreamInput{Issuer: &issuer, Secret: &secret})
		if p := problem.First(err); p == nil || p.Param != "issuer" {
			t.Errorf("the issuer %s: %v, want an error about the issuer", issuer, err)
		}
	}

	for param, in := range map[string]idp.UpstreamInput{
		"name":          {Name: text(" ")},
		"issuer":        {Issuer: text("http://id.example/")},
		"client_id":     {ClientID: text("")},
		"client_secret": {Secret: text("ä")},
		"scopes":        {Scopes: &[]string{"email"}},
		"claims":        {Claims: &map[string]string{"password": "x"}},
	} {
		_, err := f.idp.Upstreams.Update(ctx, f.project.ID, f.u.ID, in)
		if p := problem.First(err); p == nil || p.Param != param {
			t.Errorf("an invalid %s: %v, want an error about it", param, err)
		}
	}

	_, err = f.idp.Upstreams.Create(ctx, f.project.ID, idp.UpstreamInput{Name: &f.u.Name, Issuer: &f.u.Issuer,
		ClientID: text("x")})
	if p := problem.First(err); p == nil || p.Param != "name" {
		t.Errorf("the same name: %v, want an error about the name", err)
	}
	must(t, f.idp.Upstreams.Delete(ctx, f.project.ID, f.u.ID))
	if all, err := f.idp.Upstreams.List(ctx, f.project.ID, page.Query{Size: 10}); err != nil || len(all.Items) != 0 {
		t.Errorf("after deleting the provider: %v, %v", all, err)
	}
}
