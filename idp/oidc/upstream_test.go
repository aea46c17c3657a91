package oidc_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
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
	_, err := f.fabric.Projects.Update(context.Background(), f.project.ID,
		fabric.ProjectChange{Registration: new(fabric.RegistrationOpen)})
	must(f.t, err)
}

// press presses the button of the provider on a login page, and returns the redirect to the provider.
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
	path, found := strings.CutPrefix(to.header.Get("Location"), f.up.url)
	if to.status != http.StatusSeeOther || !found {
		f.t.Fatalf("status %d to %v, want a redirect to the provider", to.status, to.location)
	}
	b := f.up.newBrowser()
	got := b.logIn(b.get(path), email, secret)
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

// begin presses the button of the provider, and returns the request to the provider. params
// contains additional parameters for the app's request.
func (f federation) begin(b *browser, params ...string) url.Values {
	f.t.Helper()
	sent, err := url.Parse(f.press(b, b.authorize(request(f.site, params...))).header.Get("Location"))
	must(f.t, err)
	return sent.Query()
}

// TestUpstreamSignUp shows that a person without an account gets an account. The person signs in to the
// same account the next time, even with a different email address.
func TestUpstreamSignUp(t *testing.T) {
	f := federate(t, func(in *idp.UpstreamInput) { in.SignUp = new(true) })
	other := f.up.subscriber("new@example.com")
	f.verify(other, true)
	wantText(t, "without open registration", f.signIn(f.newBrowser(), other.Email), "You have no account here")

	f.openRegistration()
	f.pass(time.Second) // the cached project expires
	first := f.subject(f.signIn(f.newBrowser(), other.Email))
	sub, err := f.fabric.Subscribers.Find(context.Background(), f.project.ID, first)
	must(t, err)
	if sub.Email != other.Email {
		t.Errorf("the new account has the email %q, want %q", sub.Email, other.Email)
	}
	if !sub.Verified {
		t.Error("the email of the new account is not verified, want it verified")
	}
	if sub.FirstName != "Ada" {
		t.Errorf("the new account has the first name %q, want Ada", sub.FirstName)
	}
	if sub.PasswordHash != "" {
		t.Error("the new account has a password, want none")
	}

	const renamed = "renamed@example.com"
	_, err = f.up.fabric.Subscribers.Update(context.Background(), other.ProjectID, other.ID,
		fabric.SubscriberInput{Email: new(renamed)})
	must(t, err)
	if again := f.subject(f.signIn(f.newBrowser(), renamed)); again != first {
		t.Errorf("the second login signs in %q, want %q", again, first)
	}

	_, err = f.fabric.Subscribers.Update(context.Background(), f.project.ID, first,
		fabric.SubscriberInput{Disabled: new(true)})
	must(t, err)
	got := f.signIn(f.newBrowser(), renamed)
	wantStatus(t, "a disabled subscriber", got, http.StatusUnprocessableEntity)
	wantParam(t, "a disabled subscriber", got, "code", "")
}

// leavingLinks calls leave before it creates a link.
type leavingLinks struct {
	*store.Store
	leave func()
}

func (l leavingLinks) CreateUpstreamLink(ctx context.Context, link idp.UpstreamLink) error {
	l.leave()
	return l.Store.CreateUpstreamLink(ctx, link)
}

// TestUpstreamSignUpAfterHangUp shows that a new account is linked even if the browser disconnects
// meanwhile. Without the link, nobody could sign in to the account.
func TestUpstreamSignUpAfterHangUp(t *testing.T) {
	f := federate(t, func(in *idp.UpstreamInput) { in.SignUp = new(true) })
	f.openRegistration()
	ctx, leave := context.WithCancel(t.Context())
	node := f.idp.Config
	node.Store.Upstreams = leavingLinks{f.rows, leave}
	identity := idp.Identity{
		UpstreamID: f.u.ID,
		Issuer:     f.u.Issuer,
		Subject:    "new",
		Email:      "new@example.com",
		Verified:   true,
	}
	_, err := idp.New(node).Upstreams.LogIn(ctx, f.u, identity, idp.Visitor{})
	must(t, err)
	_, err = f.rows.FindUpstreamLink(t.Context(), f.u.ID, identity.Issuer, identity.Subject)
	must(t, err)
}

// failingLinks fails to create links.
type failingLinks struct{ *store.Store }

func (failingLinks) CreateUpstreamLink(context.Context, idp.UpstreamLink) error {
	return problem.New(problem.Unavailable, "unavailable", "the database is down")
}

// TestUpstreamSignUpAgain shows that a person can sign up again if the link of the first account could
// not be stored. The first account does not keep the email address.
func TestUpstreamSignUpAgain(t *testing.T) {
	f := federate(t, func(in *idp.UpstreamInput) { in.SignUp = new(true) })
	f.openRegistration()
	node := f.idp.Config
	node.Store.Upstreams = failingLinks{f.rows}
	identity := idp.Identity{
		UpstreamID: f.u.ID,
		Issuer:     f.u.Issuer,
		Subject:    "new",
		Email:      "new@example.com",
		Verified:   true,
	}
	_, err := idp.New(node).Upstreams.LogIn(t.Context(), f.u, identity, idp.Visitor{})
	if !errors.Is(err, problem.Unavailable) {
		t.Errorf("signing up while links cannot be stored: %v, want Unavailable", err)
	}
	_, err = f.idp.Upstreams.LogIn(t.Context(), f.u, identity, idp.Visitor{})
	must(t, err)
}

// TestUpstreamLink shows that an existing account is linked only after its owner has signed in to
// it and agreed.
func TestUpstreamLink(t *testing.T) {
	f := federate(t, nil)
	eve := f.subscriber("eve@example.com")
	logIn := func(b *browser, email string) reply {
		page := f.signIn(b, f.ada.Email)
		wantText(t, "signing in with the provider", page, "You already have an account with this email")
		return b.logIn(page, email, secret)
	}

	if got := f.subject(logIn(f.newBrowser(), eve.Email)); got != eve.ID {
		t.Errorf("after signing in to another account, the subscriber is %q, want %q", got, eve.ID)
	}
	for _, answer := range []string{"no", "yes"} { // after no, the account is still not linked
		b := f.newBrowser()
		page := logIn(b, f.ada.Email)
		wantText(t, "after signing in to the account", page, "Link your account")
		form := page.hiddenFields()
		form.Set("answer", answer)
		if got := f.subject(b.post("/login/link", form)); got != f.ada.ID {
			t.Errorf("after the answer %s, the subscriber is %q, want %q", answer, got, f.ada.ID)
		}
	}
	if got := f.subject(f.signIn(f.newBrowser(), f.up.ada.Email)); got != f.ada.ID {
		t.Errorf("with the link, the subscriber is %q, want %q", got, f.ada.ID)
	}
}

// TestUpstreamLinkNeedsLogin shows that the page that links an account does not answer a request with
// an older login, even if the person has chosen that login. A request with prompt=login would
// otherwise be answered although nobody has signed in to the account.
func TestUpstreamLinkNeedsLogin(t *testing.T) {
	f := federate(t, nil)
	eve := f.subscriber("eve@example.com")
	b := f.newBrowser()
	wantCode(t, "eve's first login", b.logIn(b.authorize(request(f.site)), eve.Email, secret))
	f.pass(10 * time.Second)

	page := b.authorize(request(f.site, "prompt", "login"))
	id := hiddenID.FindStringSubmatch(page.body)[1]
	page = b.choose(b.get("/accounts?id="+id), eve.Email)
	page = b.get(f.confirm(f.press(b, page), f.ada.Email))
	wantText(t, "signing in with the provider", page, "You already have an account with this email")

	got := b.get("/login/link?id=" + id)
	wantStatus(t, "the link page without a new login", got, http.StatusBadRequest)
	wantParam(t, "the link page without a new login", got, "code", "")
}

// TestUpstreamLimit shows that the number of attempts that a browser can begin with one
// authorization request is limited.
func TestUpstreamLimit(t *testing.T) {
	f := federate(t, nil)
	b := f.newBrowser()
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
	f := federate(t, func(in *idp.UpstreamInput) { in.SignUp = new(true) })
	f.openRegistration()
	f.verify(f.up.ada, false)
	got := f.signIn(f.newBrowser(), f.up.ada.Email)
	wantStatus(t, "a login with an unverified email", got, http.StatusUnprocessableEntity)
	wantText(t, "a login with an unverified email", got, "did not confirm an email", `name="password"`)

	claims := map[string]string{"email_verified": "phone_number_verified"}
	_, err := f.idp.Upstreams.Update(context.Background(), f.project.ID, f.u.ID, idp.UpstreamInput{Claims: &claims})
	must(t, err)
	f.verify(f.up.ada, true)
	got = f.signIn(f.newBrowser(), f.up.ada.Email)
	wantText(t, "with another claim for email_verified", got, "did not confirm an email")
}

// TestUpstreamState shows that a response is accepted only once, and only in the browser that began the
// login.
func TestUpstreamState(t *testing.T) {
	f := federate(t, nil)
	b := f.newBrowser()
	path := f.confirm(f.press(b, b.authorize(request(f.site))), f.up.ada.Email)
	wantStatus(t, "another browser", f.newBrowser().get(path), http.StatusBadRequest)
	wantStatus(t, "a state that another browser has used", b.get(path), http.StatusBadRequest)

	const loginPage = `name="password"`
	for name, tt := range map[string]struct {
		change     func(url.Values)
		wantStatus int
		wantTexts  []string
	}{
		"an error": {
			change:     func(v url.Values) { v.Set("error", "access_denied") },
			wantStatus: http.StatusUnprocessableEntity,
			wantTexts:  []string{"did not sign you in", loginPage},
		},
		"a different issuer": {
			change:     func(v url.Values) { v.Set("iss", f.url+"/"); v.Set("code", "x") },
			wantStatus: http.StatusBadGateway,
			wantTexts:  []string{"failed", loginPage},
		},
		"no issuer": {
			change:     func(v url.Values) { v.Del("iss"); v.Set("code", "x") },
			wantStatus: http.StatusBadGateway,
			wantTexts:  []string{"failed", loginPage},
		},
		"a made-up code": {
			change:     func(v url.Values) { v.Set("code", "x") },
			wantStatus: http.StatusBadGateway,
			wantTexts:  []string{"failed", loginPage},
		},
		"a made-up state": {
			change:     func(v url.Values) { v.Set("state", strings.Repeat("A", 52)) },
			wantStatus: http.StatusBadRequest,
		},
		"a repeated state": {
			change:     func(v url.Values) { v.Add("state", v.Get("state")) },
			wantStatus: http.StatusBadRequest,
		},
		"no parameters": {
			change:     func(v url.Values) { clear(v) },
			wantStatus: http.StatusBadRequest,
		},
	} {
		sent := f.begin(b)
		if method := sent.Get("code_challenge_method"); method != "S256" {
			t.Errorf("the code_challenge_method sent to the provider is %q, want S256", method)
		}
		if sent.Get("nonce") == "" {
			t.Errorf("the request to the provider is %v, want it to contain a nonce", sent)
		}

		response := url.Values{"state": {sent.Get("state")}, "iss": {f.up.url + "/"}}
		tt.change(response)
		got := b.get(f.callback() + "?" + response.Encode())
		wantStatus(t, name, got, tt.wantStatus)
		wantText(t, name, got, tt.wantTexts...)
	}
}

// TestUpstreamLogout shows that signing out also signs out at the provider, and then returns to the
// app.
func TestUpstreamLogout(t *testing.T) {
	f := federate(t, func(in *idp.UpstreamInput) { in.SignUp, in.Logout = new(true), new(true) })
	f.openRegistration()
	other := f.up.subscriber("new@example.com")
	f.verify(other, true)
	b, upBrowser := f.newBrowser(), f.up.newBrowser()
	toProvider := f.press(b, b.authorize(request(f.site))).header.Get("Location")
	page := upBrowser.get(strings.TrimPrefix(toProvider, f.up.url))
	back := upBrowser.logIn(page, other.Email, secret)
	if f.subject(b.get(strings.TrimPrefix(back.location.String(), f.url))) == "" {
		t.Fatal("the login at the provider failed")
	}

	back = upBrowser.get(wantLeads(t, b.submit(b.get("/logout")), f.up.url))
	if back.location == nil || !strings.HasPrefix(back.location.String(), f.url+"/logout/upstream?state=") {
		t.Fatalf("the provider does not return: %d %v %s", back.status, back.location, back.body)
	}
	page = b.get(strings.TrimPrefix(back.location.String(), f.url))
	wantText(t, "after returning from the provider", page, "You are signed out")

	ours := idp.Client{ID: f.u.ClientID, RedirectURIs: []string{f.url + f.callback()}}
	silent := upBrowser.authorize(request(ours, "prompt", "none"))
	wantParam(t, "the provider after signing out", silent, "error", "login_required")
}

// TestUpstreamACR shows that a login with a provider has no acr. It therefore does not satisfy a
// request with an essential acr, until the person presents a second factor or the password.
func TestUpstreamACR(t *testing.T) {
	f := federate(t, nil)
	f.link()
	b := f.newBrowser()
	signIn := func(claims string, prompts ...string) reply {
		prompt := strings.Join(append(prompts, "login"), " ")
		page := b.authorize(request(f.site, "prompt", prompt, "claims", claims))
		return b.get(f.confirm(f.press(b, page), f.up.ada.Email))
	}

	voluntary := signIn(`{"id_token":{"acr":{"value":"1"}}}`)
	wantCode(t, "a voluntary acr", voluntary)
	tokens := f.redeem(f.site, voluntary.param("code")).json(t)
	if acr := idClaims(t, tokens)["acr"]; acr != nil {
		t.Errorf("a voluntary acr: the ID token has the acr %v, want none", acr)
	}
	for _, values := range []string{`["1"]`, `["2","1"]`} {
		claims := `{"id_token":{"acr":{"essential":true,"values":` + values + `}}}`
		got := signIn(claims)
		wantParam(t, "an essential acr of "+values, got, "error", "unmet_authentication_requirements")
		wantParam(t, "an essential acr of "+values, got, "code", "")
		got = signIn(claims, "consent")
		wantParam(t, "an essential acr of "+values+" with consent", got, "error", "unmet_authentication_requirements")
		silent := b.authorize(request(f.site, "prompt", "none", "claims", claims))
		wantParam(t, "a silent request for "+values, silent, "error", "unmet_authentication_requirements")

		page := b.authorize(request(f.site, "claims", claims))
		wantText(t, "an old login for "+values, page, `id="login-submit"`)
		chooser := b.authorize(request(f.site, "prompt", "select_account", "claims", claims))
		wantText(t, "choosing an old login for "+values, b.choose(chooser, email), `id="login-submit"`)
	}

	one := request(f.site, "claims", `{"id_token":{"acr":{"essential":true,"value":"1"}}}`)
	wantOne := func(when string, got reply) {
		t.Helper()
		tokens := f.redeem(f.site, got.param("code")).json(t)
		if acr := idClaims(t, tokens)["acr"]; acr != "1" {
			t.Errorf("an essential acr with %s: the ID token has the acr %v, want 1", when, acr)
		}
	}
	other := f.newBrowser()
	f.signIn(other, f.up.ada.Email)
	wantOne("a password", other.logIn(other.authorize(one), email, secret))
	key := f.app()
	wantOne("a second factor", b.enterCode(b.authorize(one), factortest.Code(key, f.now())))
}

// link links ada with ada's account at the provider.
func (f federation) link() {
	f.t.Helper()
	identity := idp.Identity{
		UpstreamID: f.u.ID,
		Issuer:     f.u.Issuer,
		Subject:    f.up.ada.ID,
		Email:      f.ada.Email,
		Verified:   true,
	}
	login := idp.Login{ProjectID: f.project.ID, SubscriberID: f.ada.ID}
	must(f.t, f.idp.Upstreams.Link(context.Background(), f.u, identity, login))
}

// TestUpstreamFactor shows that a login with a provider does not replace the second factor. Signing
// out of such a login also signs out at the provider.
func TestUpstreamFactor(t *testing.T) {
	f := federate(t, func(in *idp.UpstreamInput) { in.Logout = new(true) })
	f.link()
	key := f.app()
	b := f.newBrowser()
	got := f.signIn(b, f.up.ada.Email)
	wantParam(t, "a subscriber with a second factor", got, "code", "")
	wantText(t, "a subscriber with a second factor", got, "/login/factor")

	if sub := f.subject(b.enterCode(got, factortest.Code(key, f.now()))); sub != f.ada.ID {
		t.Errorf("after the second factor: %q, want %q", sub, f.ada.ID)
	}
	wantLeads(t, b.submit(b.get("/logout")), f.up.url)
}

// wantLeads checks that the page after a logout leads to the provider with this URL. It returns the
// path and query of the URL at the provider.
func wantLeads(t *testing.T, page reply, provider string) (rest string) {
	t.Helper()
	_, rest, ok := strings.Cut(page.header.Get("Refresh"), "url="+provider)
	if !ok {
		t.Fatalf("the page does not lead to the provider: %d %v", page.status, page.header)
	}
	return rest
}
