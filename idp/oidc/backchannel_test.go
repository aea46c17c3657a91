package oidc_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/keys"
)

// An rp is a client that receives back-channel logouts. It records the logout tokens.
type rp struct {
	w      *world
	client idp.Client
	secret string

	mu     sync.Mutex
	status int
	tokens []string
}

// rp registers a client that receives logouts.
func (w *world) rp(change func(*idp.Client)) *rp {
	w.t.Helper()
	r := &rp{w: w, status: http.StatusOK}
	s := httptest.NewServer(r)
	w.t.Cleanup(s.Close)
	r.client, r.secret = w.client(func(c *idp.Client) {
		withLogout(c)
		c.Type, c.AuthMethod, c.BackchannelLogoutURI = idp.Web, idp.AuthPost, s.URL+"/logout?tenant=1"
		if change != nil {
			change(c)
		}
	})
	return r
}

func (r *rp) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	form, ferr := url.ParseQuery(string(body))
	if err != nil || ferr != nil || req.Method != http.MethodPost || req.RequestURI != "/logout?tenant=1" ||
		len(form) != 1 || len(form["logout_token"]) != 1 ||
		req.Header.Get("Content-Type") != "application/x-www-form-urlencoded" ||
		req.Header.Get("Cookie")+req.Header.Get("Authorization") != "" {
		r.w.t.Errorf("the client received %s %s %v %s, want a form with only the logout token", req.Method,
			req.RequestURI, req.Header, body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens = append(r.tokens, form.Get("logout_token"))
	w.Header().Set("Location", "http://127.0.0.1:1/") // must not be followed
	w.WriteHeader(r.status)
}

// answer sets the status of the next responses.
func (r *rp) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// receiveLogouts waits until the client has received want logouts, and its last response has been
// recorded. It returns the tokens.
func (r *rp) receiveLogouts(want int) []string {
	r.w.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		r.mu.Lock()
		tokens, status := slices.Clone(r.tokens), r.status
		r.mu.Unlock()
		noted := !slices.ContainsFunc(r.logouts(), func(l fabric.Logout) bool { return l.Status != status })
		if len(tokens) >= want && noted {
			return tokens
		}
	}
	r.w.t.Fatalf("client %s received %+v, want %d logout tokens", r.client.ID, r.logouts(), want)
	return nil
}

func (r *rp) logouts() []fabric.Logout {
	r.w.t.Helper()
	p, err := r.w.fabric.Deliveries.ListLogouts(context.Background(), r.w.project.ID, r.client.ID, "",
		page.Query{Size: page.MaxSize})
	must(r.w.t, err)
	return p.Items
}

// signIn signs in to the client with a browser, and returns the ID token.
func (r *rp) signIn(b *browser, who string) string {
	r.w.t.Helper()
	got := b.authorize(request(r.client))
	if got.location == nil {
		got = b.logIn(got, who, secret)
	}
	set := r.w.redeem(r.client, got.param("code"), "client_secret", r.secret).json(r.w.t)
	return text(set["id_token"])
}

// deliver runs the delivery of logouts until the test ends.
func (w *world) deliver() {
	d := deliver.New(deliver.Config{
		Queue: w.rows.Logouts.Queue(), Client: egress.Policy{Allow: []string{"127.0.0.1"}}.Client(), Now: w.now,
		Agent:  "test",
		Writer: oidc.LogoutWriter(w.idp), Verdict: oidc.LogoutVerdict, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// wantLogoutToken checks a token against OpenID Connect Back-Channel Logout, section 2.4. It also
// checks it against idToken, the ID token of the login that has ended.
func wantLogoutToken(t *testing.T, w *world, c idp.Client, token, idToken string) {
	t.Helper()

	head, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	must(t, err)
	var h struct{ Alg, Typ, Kid string }
	must(t, json.Unmarshal(raw, &h))
	if h.Alg != string(c.IDTokenAlg) || h.Typ != "logout+jwt" ||
		!strings.Contains(string(w.idp.Ring.JWKS().Body), `"`+h.Kid+`"`) {
		t.Errorf("the header is %s, want logout+jwt and a JWKS key for %s", raw, c.IDTokenAlg)
	}

	if _, ok := w.idp.Ring.VerifyJWS(token, "logout+jwt"); !ok {
		t.Error("the signature is invalid")
	}

	// The token contains the sub and sid that the client knows.
	got, id := payload(t, token), payload(t, idToken)
	for _, name := range []string{"iss", "aud", "sub", "sid"} {
		if got[name] != id[name] || got[name] == "" || got[name] == nil {
			t.Errorf("%s = %v, want %v as in the ID token", name, got[name], id[name])
		}
	}

	// The token was issued just now, and expires soon.
	iat, exp, now := got["iat"].(float64), got["exp"].(float64), float64(w.now().Unix())
	if iat > now || iat < now-60 || exp <= now || exp-iat > 120 {
		t.Errorf("iat = %v, exp = %v at %v, want a token issued now and valid for at most two minutes", iat, exp, now)
	}

	events, _ := json.Marshal(got["events"])
	if string(events) != `{"http://schemas.openid.net/event/backchannel-logout":{}}` || text(got["jti"]) == "" {
		t.Errorf("events = %s, jti = %v, want the event of a back-channel logout and a jti", events, got["jti"])
	}
	if len(got) != 8 { // a nonce is prohibited, and no other claims are needed
		t.Errorf("the claims are %v, want the eight of section 2.4", got)
	}
}

// TestBackchannelLogout shows that each client with tokens from a login is notified once when the
// login ends, whatever the reason. Other clients are not notified.
func TestBackchannelLogout(t *testing.T) {
	w := newWorld(t)
	w.deliver()
	bystander := w.rp(nil)

	ends := []struct {
		name string
		alg  keys.Use
		end  func(b *browser, c idp.Client, s fabric.Subscriber, idToken string) error
	}{
		{"the app signs the browser out", keys.RS256,
			func(b *browser, _ idp.Client, _ fabric.Subscriber, idToken string) error {
				b.get("/oauth/logout?" + url.Values{"id_token_hint": {idToken},
					"post_logout_redirect_uri": {goodbye}}.Encode())
				return nil
			}},
		{"the person signs out on the page", keys.ES256,
			func(b *browser, _ idp.Client, _ fabric.Subscriber, _ string) error {
				b.signOut()
				return nil
			}},
		{"the login is ended by its id", keys.PS256,
			func(_ *browser, _ idp.Client, _ fabric.Subscriber, idToken string) error {
				return w.idp.Logins.End(t.Context(), text(payload(t, idToken)["sid"]))
			}},
		{"the subscriber is disabled", keys.EdDSA, func(_ *browser, _ idp.Client, s fabric.Subscriber, _ string) error {
			_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, s.ID, fabricChange(true))
			return err
		}},
		{"the subscriber has a new password", keys.RS256,
			func(_ *browser, _ idp.Client, s fabric.Subscriber, _ string) error {
				next := "another password"
				_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, s.ID,
					fabric.SubscriberInput{Password: &next})
				return err
			}},
		{"all tokens of the subscriber are revoked", keys.RS256,
			func(_ *browser, _ idp.Client, s fabric.Subscriber, _ string) error {
				return w.fabric.Subscribers.Revoke(t.Context(), w.project.ID, s.ID)
			}},
		{"the subscriber is deleted", keys.RS256, func(_ *browser, _ idp.Client, s fabric.Subscriber, _ string) error {
			return w.fabric.Subscribers.Delete(t.Context(), w.project.ID, s.ID)
		}},
	}

	for i, tt := range ends {
		t.Run(tt.name, func(t *testing.T) {
			one := w.rp(func(c *idp.Client) { c.IDTokenAlg = tt.alg })
			two := w.rp(func(c *idp.Client) {
				c.SubjectType, c.AccessToken, c.BackchannelLogoutSession = idp.Pairwise, idp.JWTToken, true
			})

			who := fmt.Sprintf("s%d@example.com", i)
			s := w.subscriber(who)
			b := w.browser()
			id := one.signIn(b, who)
			idOfTwo := two.signIn(b, who)
			one.signIn(b, who) // another grant from the same login

			must(t, tt.end(b, one.client, s, id))

			// Each client gets one token, with its own subject.
			for _, each := range []struct {
				*rp
				id string
			}{{one, id}, {two, idOfTwo}} {
				tokens := each.receiveLogouts(1)
				if len(tokens) != 1 {
					t.Fatalf("notified %d times, want once", len(tokens))
				}
				wantLogoutToken(t, w, each.client, tokens[0], each.id)
			}

			if a, b := payload(t, id)["sub"], payload(t, idOfTwo)["sub"]; a == b {
				t.Errorf("both clients got the sub %v, want a different one for the pairwise client", a)
			}
			if in := b.signedIn(one.client); in {
				t.Error("the browser is still signed in")
			}
		})
	}

	if got := bystander.logouts(); len(got) != 0 {
		t.Errorf("a client without a grant received %+v", got)
	}
}

// TestBackchannelRetry shows that each retry sends a newly signed token with its own jti.
func TestBackchannelRetry(t *testing.T) {
	w := newWorld(t)
	r := w.rp(nil)
	b := w.browser()
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

	if got := r.logouts(); len(got) != 1 || got[0].State != fabric.Delivered || got[0].Attempts != 3 ||
		got[0].Status != 204 {
		t.Errorf("the logouts are %+v, want one that was delivered at the third attempt", got)
	}
}

// TestBackchannelRefused shows that a 400 response ends the retries. An operator can then redeliver
// the logout.
func TestBackchannelRefused(t *testing.T) {
	w := newWorld(t)
	r := w.rp(nil)
	b := w.browser()
	id := r.signIn(b, email)

	r.answer(http.StatusBadRequest)
	w.deliver()
	b.signOut()
	r.receiveLogouts(1)
	if got := r.logouts(); len(got) != 1 || got[0].State != fabric.Dead || got[0].Status != 400 {
		t.Fatalf("the logouts are %+v, want a dead letter", got)
	}

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
		200: deliver.Delivered, 204: deliver.Delivered, 400: deliver.Dead, 410: deliver.Dead,
		0: deliver.Pending, 201: deliver.Pending, 202: deliver.Pending, 301: deliver.Pending,
		308: deliver.Pending, 401: deliver.Pending, 404: deliver.Pending,
		429: deliver.Pending, 500: deliver.Pending, 504: deliver.Pending,
	} {
		if got := oidc.LogoutVerdict(status); got != want {
			t.Errorf("LogoutVerdict(%d) = %s, want %s", status, got, want)
		}
	}
}

// TestLogoutTokenAlone shows that a logout token is not accepted as another kind of token.
func TestLogoutTokenAlone(t *testing.T) {
	w := newWorld(t)
	r := w.rp(func(c *idp.Client) { c.IDTokenAlg = keys.ES256 }) // this key also signs access tokens
	b := w.browser()
	id := r.signIn(b, email)
	token, err := w.idp.Tokens.LogoutToken(t.Context(), r.client.ID, w.ada.ID, text(payload(t, id)["sid"]))
	must(t, err)

	if got := b.get("/oauth/logout?" +
		url.Values{"id_token_hint": {token}}.Encode()); got.status != http.StatusBadRequest {
		t.Errorf("with the logout token as an id_token_hint = %d, want 400", got.status)
	}
	if got := w.userinfo(token); got.status != http.StatusUnauthorized {
		t.Errorf("with the logout token as an access token = %d, want 401", got.status)
	}

	form := url.Values{"token": {token}, "client_id": {r.client.ID}, "client_secret": {r.secret}}
	if got := b.post("/oauth/introspect", form).json(t); got["active"] != false {
		t.Errorf("introspection of the logout token = %v, want active=false", got)
	}
}

// TestRegisterBackchannel shows which logout URIs a client may register.
func TestRegisterBackchannel(t *testing.T) {
	w := newWorld(t)
	w.idp.CheckURL = egress.Policy{Allow: []string{"rp.internal"}}.Check

	tests := []struct {
		uri    string
		method idp.AuthMethod
		ok     bool
	}{
		{"https://rp.example/logout", idp.AuthBasic, true},
		{"https://rp.example:8443/logout?tenant=1", idp.AuthNone, true},
		{"http://rp.example/logout", idp.AuthBasic, true},
		{"http://rp.internal:81/logout", idp.AuthBasic, true},
		{"http://rp.example/logout", idp.AuthNone, false},
		{"https://rp.example/logout#x", idp.AuthBasic, false},
		{"https://u:p@rp.example/logout", idp.AuthBasic, false},
		{"/logout", idp.AuthBasic, false},
		{"com.example.app://logout", idp.AuthBasic, false},
		{"https://localhost/logout", idp.AuthBasic, false},
		{"https://10.0.0.1/logout", idp.AuthBasic, false},
		{"https://[::ffff:169.254.169.254]/", idp.AuthBasic, false},
		{"https://rp.example:22/logout", idp.AuthBasic, false},
		{"https://rp.example/" + strings.Repeat("x", 2000), idp.AuthBasic, false},
		{"", idp.AuthBasic, false}, // a sid needs a logout URI
	}

	for _, tt := range tests {
		c := idp.Client{ProjectID: w.project.ID, Type: idp.Web, AuthMethod: tt.method,
			RedirectURIs: []string{callback}}
		c.BackchannelLogoutURI, c.BackchannelLogoutSession = tt.uri, true
		if _, _, err := w.idp.Clients.Create(t.Context(), c); (err == nil) != tt.ok {
			t.Errorf("registering %q with %s: %v, want success %v", tt.uri, tt.method, err, tt.ok)
		}
	}

	c, _ := w.client(nil)
	c.BackchannelLogoutURI = "https://127.0.0.1/"
	if err := w.rewrite(c); err == nil {
		t.Error("a client can be updated to receive logouts at 127.0.0.1")
	}
}
