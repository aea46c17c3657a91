package oidc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/revocation"
	sessions "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/internal/store"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/keys"
)

const (
	email    = "ada@example.com"
	secret   = "correct horse battery"
	callback = "https://app.example/cb"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	// challenge is the S256 of verifier (RFC 7636, appendix B).
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// The library logs to the default logger alone.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// A world is a provider with one project and one subscriber, on real rows and a
// real server, and a clock that tests set.
type world struct {
	t       testing.TB
	dir     string
	handler http.Handler
	url     string
	rows    *store.Store
	fabric  *fabric.Fabric
	idp     *idp.Provider
	project fabric.Project
	ada     fabric.Subscriber

	mu    sync.Mutex
	ahead time.Duration
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	w.ahead += d
	w.mu.Unlock()
	must(w.t, w.idp.Revocations.Sync(context.Background()))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	w := &world{t: t, dir: dir}
	var err error
	w.rows, err = store.Open(ctx, store.Config{Dir: dir, Now: w.now})
	must(t, err)
	t.Cleanup(func() { _ = w.rows.Close() })
	live, err := sessions.Open(ctx, sessions.Config{Dir: dir, Now: w.now})
	must(t, err)
	t.Cleanup(func() { _ = live.Close() })
	master, err := keys.ReadMaster(filepath.Join(dir, "master.key"))
	must(t, err)
	ring, err := keys.Open(ctx, keys.Config{Store: w.rows, Master: master, Now: w.now})
	must(t, err)

	var handler http.Handler
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { handler.ServeHTTP(rw, r) }))
	t.Cleanup(srv.Close)
	w.url = srv.URL
	revoked := revocation.New(w.rows, w.now)
	must(t, revoked.Sync(ctx))
	pass := password.New(2)
	w.fabric = fabric.New(fabric.Config{
		Store: w.rows, Ring: ring, Passwords: pass, Revocations: revoked, Host: "puc.localhost:8443", Issuer: w.url + "/", Now: w.now,
		Live: func(ctx context.Context, sid string) error { return w.idp.Live(ctx, sid) },
	})
	w.idp = idp.New(idp.Config{
		Store: w.rows, Subscribers: w.rows, Sessions: live, Fabric: w.fabric, Passwords: pass, Ring: ring, Revocations: revoked, Issuer: w.url + "/", Now: w.now,
	})
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	api, err := oidc.New(oidc.Config{Provider: w.idp, Sessions: live, AuthURL: w.url, Log: log})
	must(t, err)
	handler = web.Outer(api.Handler(), log, nil)

	w.handler = handler
	w.project, err = w.fabric.CreateProject(ctx, "Acme")
	must(t, err)
	w.ada = w.subscriber(email)
	return w
}

func (w *world) subscriber(email string) fabric.Subscriber {
	w.t.Helper()
	first, pass := "Ada", secret
	s, err := w.fabric.CreateSubscriber(context.Background(), w.project.ID, fabric.SubscriberInput{Email: &email, Password: &pass, Profile: fabric.Profile{FirstName: &first}})
	must(w.t, err)
	return s
}

// client registers a client; a first-party SPA where change says nothing else.
func (w *world) client(change func(*idp.NewClient)) (idp.Client, string) {
	w.t.Helper()
	n := idp.NewClient{ProjectID: w.project.ID, Name: "App", Type: idp.SPA, FirstParty: true, RedirectURIs: []string{callback}}
	if change != nil {
		change(&n)
	}
	c, secret, err := w.idp.CreateClient(context.Background(), n)
	must(w.t, err)
	return c, secret
}

// A browser keeps cookies and follows no redirect beyond the provider.
type browser struct {
	w    *world
	http *http.Client
}

func (w *world) browser() *browser {
	jar, err := cookiejar.New(nil)
	must(w.t, err)
	return &browser{w, &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(r.URL.String(), w.url) {
			return http.ErrUseLastResponse
		}
		return nil
	}}}
}

// A reply is an answer, read whole.
type reply struct {
	status   int
	header   http.Header
	body     string
	location *url.URL // of a redirect, else nil
}

func (r reply) json(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("not JSON: %s", r.body)
	}
	return v
}

// param gives a parameter of the redirect.
func (r reply) param(name string) string {
	if r.location == nil {
		return ""
	}
	return r.location.Query().Get(name)
}

func (b *browser) do(req *http.Request) reply {
	b.w.t.Helper()
	res, err := b.http.Do(req)
	must(b.w.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(b.w.t, err)
	location, _ := res.Location()
	return reply{res.StatusCode, res.Header, string(body), location}
}

func (b *browser) get(path string) reply {
	b.w.t.Helper()
	req, err := http.NewRequest(http.MethodGet, b.w.url+path, nil)
	must(b.w.t, err)
	return b.do(req)
}

func (b *browser) post(path string, form url.Values) reply {
	b.w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.w.url+path, strings.NewReader(form.Encode()))
	must(b.w.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(req)
}

// request gives the parameters of a good authorization request; pairs change
// them, "" takes one out.
func request(c idp.Client, pairs ...string) url.Values {
	v := url.Values{
		"client_id": {c.ID}, "redirect_uri": {c.RedirectURIs[0]}, "response_type": {"code"}, "scope": {"openid"}, "state": {"s"},
		"code_challenge": {challenge}, "code_challenge_method": {"S256"},
	}
	return with(v, pairs...)
}

func with(v url.Values, pairs ...string) url.Values {
	for i := 0; i < len(pairs); i += 2 {
		if v.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			v.Del(pairs[i])
		}
	}
	return v
}

func (b *browser) authorize(v url.Values) reply {
	b.w.t.Helper()
	return b.get("/login/oauth/authorize?" + v.Encode())
}

var hiddenID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// logIn fills in the login page that an answer shows.
func (b *browser) logIn(page reply, email, password string) reply {
	b.w.t.Helper()
	id := hiddenID.FindStringSubmatch(page.body)
	if id == nil {
		b.w.t.Fatalf("no login page: %d %s", page.status, page.body)
	}
	return b.post("/login", url.Values{"id": {id[1]}, "username": {email}, "password": {password}})
}

// code signs ada in and gives the code.
func (b *browser) code(c idp.Client, pairs ...string) string {
	b.w.t.Helper()
	got := b.authorize(request(c, pairs...))
	if got.location == nil {
		got = b.logIn(got, email, secret)
	}
	if got.param("code") == "" {
		b.w.t.Fatalf("no code: %d %v %s", got.status, got.location, got.body)
	}
	return got.param("code")
}

// token posts to the token endpoint.
func (w *world) token(pairs ...string) reply {
	w.t.Helper()
	return w.browser().post("/oauth/token", with(url.Values{}, pairs...))
}

func (w *world) redeem(c idp.Client, code string, pairs ...string) reply {
	w.t.Helper()
	v := url.Values{"grant_type": {"authorization_code"}, "client_id": {c.ID}, "code": {code}, "redirect_uri": {c.RedirectURIs[0]}, "code_verifier": {verifier}}
	return w.browser().post("/oauth/token", with(v, pairs...))
}

// tokens signs ada in and gives the token response.
func (w *world) tokens(c idp.Client, pairs ...string) map[string]any {
	w.t.Helper()
	got := w.redeem(c, w.browser().code(c, pairs...))
	if got.status != http.StatusOK {
		w.t.Fatalf("no tokens: %d %s", got.status, got.body)
	}
	return got.json(w.t)
}

func (w *world) userinfo(token string) reply {
	w.t.Helper()
	req, err := http.NewRequest(http.MethodGet, w.url+"/oauth/userinfo", nil)
	must(w.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	return w.browser().do(req)
}

func text(v any) string { return fmt.Sprint(v) }
