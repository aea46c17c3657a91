package oidc_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/keys"
)

// wantLogoutToken checks a logout token (OpenID Connect Back-Channel Logout, section 2.4). Its iss,
// aud, sub and sid must equal those of idToken, the ID token of the login that has ended.
func wantLogoutToken(t *testing.T, w *world, c idp.Client, token, idToken string) {
	t.Helper()
	head := headerOf(t, token)
	if head["typ"] != "logout+jwt" {
		t.Errorf("the typ is %v, want logout+jwt", head["typ"])
	}
	if head["alg"] != string(c.IDTokenAlg) {
		t.Errorf("the alg is %v, want %s", head["alg"], c.IDTokenAlg)
	}
	if published := string(w.idp.Ring.JWKS().Body); !strings.Contains(published, strconv.Quote(text(head["kid"]))) {
		t.Errorf("the kid is %v, want one in the published keys: %s", head["kid"], published)
	}
	if _, ok := w.idp.Ring.VerifyJWS(token, "logout+jwt"); !ok {
		t.Error("the signature is invalid")
	}

	// The token contains the sub and sid that the client knows.
	got, id := payload(t, token), payload(t, idToken)
	for _, name := range []string{"iss", "aud", "sub", "sid"} {
		if got[name] == "" || got[name] == nil {
			t.Errorf("the token has no %s, want %v", name, id[name])
		}
		if got[name] != id[name] {
			t.Errorf("%s is %v, want %v as in the ID token", name, got[name], id[name])
		}
	}

	// The token was issued just now, and expires soon.
	iat, exp, now := got["iat"].(float64), got["exp"].(float64), float64(w.now().Unix())
	if iat > now || iat < now-60 {
		t.Errorf("iat is %v, want the current time %v", iat, now)
	}
	if exp <= now || exp-iat > 120 {
		t.Errorf("exp is %v, want at most two minutes after iat, %v", exp, iat)
	}

	events, err := json.Marshal(got["events"])
	must(t, err)
	if want := `{"http://schemas.openid.net/event/backchannel-logout":{}}`; string(events) != want {
		t.Errorf("events is %s, want %s", events, want)
	}
	if text(got["jti"]) == "" {
		t.Error("the jti is empty")
	}
	if len(got) != 8 { // a nonce is prohibited, and no other claims are needed
		t.Errorf("the claims are %v, want the eight claims of section 2.4", got)
	}
}

// TestBackchannelLogout shows that each client with tokens from a login is notified only once when
// the login ends, whatever the reason. Other clients are not notified.
func TestBackchannelLogout(t *testing.T) {
	w := newWorld(t)
	w.deliver()
	bystander := w.newRP(nil)

	// An ending is a login that is about to end.
	type ending struct {
		b       *browser
		sub     fabric.Subscriber
		idToken string
	}
	update := func(sub fabric.Subscriber, in fabric.SubscriberInput) error {
		_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, sub.ID, in)
		return err
	}

	for _, tt := range []struct {
		name string
		alg  keys.Use
		end  func(ending) error
	}{
		{"the app signs the browser out", keys.RS256, func(e ending) error {
			e.b.endSession("id_token_hint", e.idToken, "post_logout_redirect_uri", goodbye)
			return nil
		}},
		{"the person signs out on the page", keys.ES256, func(e ending) error {
			e.b.signOut()
			return nil
		}},
		{"the login is ended by its id", keys.PS256, func(e ending) error {
			return w.idp.Logins.End(t.Context(), text(payload(t, e.idToken)["sid"]))
		}},
		{"the subscriber is disabled", keys.EdDSA, func(e ending) error {
			return update(e.sub, fabric.SubscriberInput{Disabled: new(true)})
		}},
		{"the subscriber has a new password", keys.RS256, func(e ending) error {
			return update(e.sub, fabric.SubscriberInput{Password: new("another password")})
		}},
		{"all tokens of the subscriber are revoked", keys.RS256, func(e ending) error {
			return w.fabric.Subscribers.Revoke(t.Context(), w.project.ID, e.sub.ID)
		}},
		{"the subscriber is deleted", keys.RS256, func(e ending) error {
			return w.fabric.Subscribers.Delete(t.Context(), w.project.ID, e.sub.ID)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one := w.newRP(func(c *idp.Client) { c.IDTokenAlg = tt.alg })
			two := w.newRP(func(c *idp.Client) {
				c.SubjectType, c.AccessToken, c.BackchannelLogoutSession = idp.Pairwise, idp.JWTToken, true
			})

			sub := w.subscriber(strings.ReplaceAll(tt.name, " ", "-") + "@example.com")
			b := w.newBrowser()
			idOfOne := one.signIn(b, sub.Email)
			idOfTwo := two.signIn(b, sub.Email)
			one.signIn(b, sub.Email) // another grant from the same login

			must(t, tt.end(ending{b: b, sub: sub, idToken: idOfOne}))

			// Each client gets one token, with its own subject.
			for _, notified := range []struct {
				*rp
				idToken string
			}{{one, idOfOne}, {two, idOfTwo}} {
				tokens := notified.receiveLogouts(1)
				if len(tokens) != 1 {
					t.Fatalf("notified %d times, want once", len(tokens))
				}
				wantLogoutToken(t, w, notified.client, tokens[0], notified.idToken)
			}

			if public, pairwise := payload(t, idOfOne)["sub"], payload(t, idOfTwo)["sub"]; public == pairwise {
				t.Errorf("both clients got the sub %v, want a different one for the pairwise client", public)
			}
			if b.signedIn(one.client) {
				t.Error("the browser is still signed in")
			}
		})
	}

	if got := bystander.logouts(); len(got) != 0 {
		t.Errorf("a client without a grant received %+v, want no logouts", got)
	}
}

// TestBackchannelRetry shows that each retry sends a newly signed token with its own jti.
func TestBackchannelRetry(t *testing.T) {
	w := newWorld(t)
	r := w.newRP(nil)
	b := w.newBrowser()
	id := r.signIn(b, email)

	r.answer(http.StatusServiceUnavailable)
	w.deliver()
	b.signOut()
	first := r.receiveLogouts(1)[0]
	wantLogoutToken(t, w, r.client, first, id)

	// A redirect is not followed and counts as a failure.
	w.pass(10 * time.Minute)
	r.answer(http.StatusFound)
	second := r.receiveLogouts(2)[1]
	wantLogoutToken(t, w, r.client, second, id)

	// Success ends the retries.
	w.pass(10 * time.Minute)
	r.answer(http.StatusNoContent)
	third := r.receiveLogouts(3)[2]
	wantLogoutToken(t, w, r.client, third, id)

	seen := make(map[string]bool)
	for _, token := range []string{first, second, third} {
		seen[text(payload(t, token)["jti"])] = true
	}
	if len(seen) != 3 {
		t.Errorf("three tokens have %d ids, want 3", len(seen))
	}

	r.wantLogout(fabric.Delivered, http.StatusNoContent, 3)
}

// TestBackchannelRefused shows that a 400 response ends the retries. An operator can then redeliver
// the logout.
func TestBackchannelRefused(t *testing.T) {
	w := newWorld(t)
	r := w.newRP(nil)
	b := w.newBrowser()
	id := r.signIn(b, email)

	r.answer(http.StatusBadRequest)
	w.deliver()
	b.signOut()
	r.receiveLogouts(1)
	r.wantLogout(fabric.Dead, http.StatusBadRequest, 1)

	w.pass(48 * time.Hour)
	r.answer(http.StatusOK)
	_, err := w.fabric.Deliveries.RedeliverLogout(t.Context(), w.project.ID, r.client.ID,
		text(payload(t, id)["sid"]))
	must(t, err)
	wantLogoutToken(t, w, r.client, r.receiveLogouts(2)[1], id)
}

// TestLogoutVerdict shows which responses to a logout end the retries.
func TestLogoutVerdict(t *testing.T) {
	for status, want := range map[int]deliver.State{
		200: deliver.Delivered,
		204: deliver.Delivered,
		400: deliver.Dead,
		410: deliver.Dead,
		0:   deliver.Pending,
		201: deliver.Pending,
		202: deliver.Pending,
		301: deliver.Pending,
		308: deliver.Pending,
		401: deliver.Pending,
		404: deliver.Pending,
		429: deliver.Pending,
		500: deliver.Pending,
		504: deliver.Pending,
	} {
		if got := oidc.LogoutVerdict(status); got != want {
			t.Errorf("LogoutVerdict(%d) = %s, want %s", status, got, want)
		}
	}
}

// TestLogoutTokenAlone shows that a logout token is not accepted as another kind of token.
func TestLogoutTokenAlone(t *testing.T) {
	w := newWorld(t)
	r := w.newRP(func(c *idp.Client) { c.IDTokenAlg = keys.ES256 }) // this key also signs access tokens
	b := w.newBrowser()
	id := r.signIn(b, email)
	token, err := w.idp.Tokens.LogoutToken(t.Context(), r.client.ID, w.ada.ID, text(payload(t, id)["sid"]))
	must(t, err)

	hint := b.endSession("id_token_hint", token)
	wantStatus(t, "the logout token as an id_token_hint", hint, http.StatusBadRequest)
	wantStatus(t, "the logout token as an access token", w.userinfo(token), http.StatusUnauthorized)

	form := url.Values{"token": {token}, "client_id": {r.client.ID}, "client_secret": {r.secret}}
	if got := b.post("/oauth/introspect", form).json(t); got["active"] != false {
		t.Errorf("introspection of the logout token = %v, want active=false", got)
	}
}

// TestRegisterBackchannel shows which logout URIs a client may register.
func TestRegisterBackchannel(t *testing.T) {
	w := newWorld(t)
	w.idp.CheckURL = egress.Policy{Allow: []string{"rp.internal"}}.Check

	register := func(uri string, method idp.AuthMethod) error {
		_, _, err := w.idp.Clients.Create(t.Context(), idp.Client{
			ProjectID:    w.project.ID,
			Type:         idp.Web,
			AuthMethod:   method,
			RedirectURIs: []string{callback},
			Metadata:     idp.Metadata{BackchannelLogoutURI: uri, BackchannelLogoutSession: true},
		})
		return err
	}

	for uri, method := range map[string]idp.AuthMethod{
		"https://rp.example/logout":               idp.AuthBasic,
		"https://rp.example:8443/logout?tenant=1": idp.AuthNone,
		"http://rp.example/logout":                idp.AuthBasic,
		"http://rp.internal:81/logout":            idp.AuthBasic,
	} {
		if err := register(uri, method); err != nil {
			t.Errorf("registering %q with %s: %v, want success", uri, method, err)
		}
	}

	for uri, method := range map[string]idp.AuthMethod{
		"http://rp.example/logout":                        idp.AuthNone,
		"https://rp.example/logout#x":                     idp.AuthBasic,
		"https://u:p@rp.example/logout":                   idp.AuthBasic,
		"/logout":                                         idp.AuthBasic,
		"com.example.app://logout":                        idp.AuthBasic,
		"https://localhost/logout":                        idp.AuthBasic,
		"https://10.0.0.1/logout":                         idp.AuthBasic,
		"https://[::ffff:169.254.169.254]/":               idp.AuthBasic,
		"https://rp.example:22/logout":                    idp.AuthBasic,
		"https://rp.example/" + strings.Repeat("x", 2000): idp.AuthBasic,
		"": idp.AuthBasic, // a sid needs a logout URI
	} {
		if err := register(uri, method); err == nil {
			t.Errorf("registering %q with %s succeeds, want an error", uri, method)
		}
	}

	c, _ := w.client(nil)
	c.BackchannelLogoutURI = "https://127.0.0.1/"
	if err := w.rewrite(c); err == nil {
		t.Error("a client can be updated to receive logouts at 127.0.0.1")
	}
}
