package oidc_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/revocation"
	sessions "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

const (
	email    = "ada@example.com"
	secret   = "correct horse battery"
	callback = "https://app.example/cb"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	// challenge is the S256 challenge for verifier (RFC 7636, appendix B).
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// TestMain silences the default logger, which only a library uses.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// A world is a provider with one project and one subscriber, a real database and server, and a
// clock that tests control.
type world struct {
	t       testing.TB
	dir     string
	handler http.Handler
	url     string
	rows    *store.Store
	fabric  *fabric.Fabric
	idp     *idp.Provider
	limits  *limit.Limiter // enforces no limits until a test sets their rates
	project fabric.Project
	ada     fabric.Subscriber

	mu sync.Mutex
	at time.Time // see now
}

// now returns the time of a clock that advances a millisecond whenever it is read, so that nothing
// expires early on a slow machine.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(time.Millisecond)
	return w.at
}

// pass advances the clock by d.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	w.at = w.at.Add(d)
	w.mu.Unlock()
	must(w.t, w.idp.Revocations.Sync(context.Background()))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newWorld returns a world with the project Acme and the subscriber ada.
func newWorld(t testing.TB) *world {
	t.Helper()
	ctx := context.Background()
	dir := storetest.Dir(t)
	w := &world{t: t, dir: dir, at: time.Now()}
	w.rows = storetest.Open(t, dir, w.now)
	live, err := sessions.Open(ctx, sessions.Config{Dir: dir, Now: w.now})
	must(t, err)
	t.Cleanup(func() { _ = live.Close() })
	ring := storetest.Ring(t, dir, w.rows, w.now)

	// Start the server before its handler exists, because its URL is part of the configuration.
	var handler http.Handler
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(srv.Close)
	w.url = srv.URL

	revoked := revocation.New(w.rows, w.now)
	must(t, revoked.Sync(ctx))
	polling, stop := context.WithCancel(ctx)
	var polls sync.WaitGroup
	// On a slow machine, a test may take longer than the default maximum age of the revocation
	// list.
	polls.Go(func() { revoked.Run(polling) })
	t.Cleanup(func() { stop(); polls.Wait() })

	passwords := password.Weak(2)
	w.fabric = fabric.New(fabric.Config{
		Stores:      w.rows.Fabric(),
		Ring:        ring,
		Passwords:   passwords,
		Revocations: revoked,
		Host:        "puc.localhost:8443",
		Issuer:      w.url + "/",
		Now:         w.now,
		Live:        func(ctx context.Context, sid string) error { return w.idp.Logins.Live(ctx, sid) },
	})

	w.limits = limit.New(live, nil)
	factors, err := factor.New(factor.Config{
		Store:    w.rows,
		Sessions: live,
		Ring:     ring,
		AuthURL:  strings.Replace(w.url, "127.0.0.1", "localhost", 1),
		Now:      w.now,
	})
	must(t, err)
	local := egress.Policy{Allow: []string{"127.0.0.1"}}
	w.idp = idp.New(idp.Config{
		Factors: factors,
		Limits:  w.limits,
		Store: idp.Stores{
			Clients:       w.rows,
			Logins:        w.rows,
			Grants:        w.rows,
			Consents:      w.rows,
			Letters:       w.rows,
			Uses:          w.rows,
			Registrations: w.rows,
			Upstreams:     w.rows,
		},
		Subscribers: w.rows,
		Sessions:    live,
		Fabric:      w.fabric,
		Passwords:   passwords,
		Ring:        ring,
		Revocations: revoked,
		Issuer:      w.url + "/",
		Now:         w.now,
		Fetch:       local.Fetcher(),
	})

	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	proofs := dpop.New(dpop.Config{Sessions: live, Key: ring.Derive, Origins: []string{w.url}, Now: w.now})
	api, err := oidc.New(oidc.Config{
		Provider: w.idp,
		Proofs:   proofs,
		Sessions: live,
		Browsers: w.rows,
		AuthURL:  w.url,
		Log:      log,
		HTTP:     local.Client(),
	})
	must(t, err)
	handler = web.Outer(proofs.Offer(api.Handler()), log, nil)
	w.handler = handler

	w.project, err = w.fabric.Projects.Create(ctx, "Acme")
	must(t, err)
	w.ada = w.subscriber(email)
	return w
}

// subscriber creates a subscriber with the first name Ada.
func (w *world) subscriber(email string) fabric.Subscriber {
	w.t.Helper()
	firstName, typed := "Ada", secret
	sub, err := w.fabric.Subscribers.Create(context.Background(), w.project.ID, fabric.SubscriberInput{
		Email:    &email,
		Password: &typed,
		Profile:  fabric.Profile{FirstName: &firstName},
	})
	must(w.t, err)
	return sub
}

// client registers a client, and returns it with its secret. It is a first-party SPA unless change
// sets other values.
func (w *world) client(change func(*idp.Client)) (idp.Client, string) {
	w.t.Helper()
	settings := idp.Client{
		ProjectID:    w.project.ID,
		Name:         "App",
		Type:         idp.SPA,
		FirstParty:   true,
		RedirectURIs: []string{callback},
	}
	if change != nil {
		change(&settings)
	}
	c, clientSecret, err := w.idp.Clients.Create(context.Background(), settings)
	must(w.t, err)
	return c, clientSecret
}

// rewrite replaces the stored settings of the client c with the settings in c.
func (w *world) rewrite(c idp.Client) error {
	return w.idp.Clients.Change(context.Background(), c.ID, func(to *idp.Client) { *to = c })
}

// request returns the parameters of a valid authorization request. pairs are names and values that
// replace parameters. The value "" removes a parameter.
func request(c idp.Client, pairs ...string) url.Values {
	v := url.Values{
		"client_id":             {c.ID},
		"redirect_uri":          {c.RedirectURIs[0]},
		"response_type":         {"code"},
		"scope":                 {"openid"},
		"state":                 {"s"},
		"code_challenge":        {challenge},
		"code_challenge_method": {"S256"},
	}
	return with(v, pairs...)
}

// with sets parameters in v, and returns v. The value "" removes a parameter.
func with(v url.Values, pairs ...string) url.Values {
	for pair := range slices.Chunk(pairs, 2) {
		name, value := pair[0], pair[1]
		v.Set(name, value)
		if value == "" {
			v.Del(name)
		}
	}
	return v
}

// token posts to the token endpoint.
func (w *world) token(pairs ...string) reply {
	w.t.Helper()
	return w.newBrowser().post("/oauth/token", with(url.Values{}, pairs...))
}

// redemption returns the form that redeems a code with the verifier for [request].
func redemption(c idp.Client, code string) url.Values {
	return url.Values{
		"grant_type":    {"authorization_code"},
		"client_id":     {c.ID},
		"code":          {code},
		"redirect_uri":  {c.RedirectURIs[0]},
		"code_verifier": {verifier},
	}
}

// redeem redeems a code. pairs are names and values that replace fields of its [redemption].
func (w *world) redeem(c idp.Client, code string, pairs ...string) reply {
	w.t.Helper()
	return w.newBrowser().post("/oauth/token", with(redemption(c, code), pairs...))
}

// refresh exchanges a public client's refresh token.
func (w *world) refresh(c idp.Client, token string, pairs ...string) reply {
	w.t.Helper()
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {c.ID}, "refresh_token": {token}}
	return w.newBrowser().post("/oauth/token", with(form, pairs...))
}

// second returns the provider of another node. It shares the database, session store and clock, but
// has its own key ring.
func (w *world) second() *idp.Provider {
	w.t.Helper()
	node := w.idp.Config
	node.Ring = storetest.Ring(w.t, w.dir, w.rows, w.now)
	return idp.New(node)
}

// tokens signs ada in, and returns the token response.
func (w *world) tokens(c idp.Client, pairs ...string) map[string]any {
	w.t.Helper()
	got := w.redeem(c, w.newBrowser().code(c, pairs...))
	if got.status != http.StatusOK {
		w.t.Fatalf("no tokens: %d %s, want 200", got.status, got.body)
	}
	return got.json(w.t)
}

// userinfo sends a userinfo request with an access token.
func (w *world) userinfo(token string) reply {
	w.t.Helper()
	req, err := http.NewRequest(http.MethodGet, w.url+"/oauth/userinfo", nil)
	must(w.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	return w.newBrowser().do(req)
}

// text returns a value of a JSON object as text.
func text(v any) string { return fmt.Sprint(v) }
