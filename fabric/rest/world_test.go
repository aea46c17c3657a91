package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/rest"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/store"
	"github.com/selvage/selvage/keys"
)

const host = "puc.localhost:8443"

// A world is the API over real rows, with two projects, a key for each, and a
// clock that tests set.
type world struct {
	t       testing.TB
	dir     string
	rows    *store.Store
	fabric  *fabric.Fabric
	revoked *revocation.List
	handler http.Handler
	project fabric.Project
	key     string // Basic password of project
	keyID   string
	other   fabric.Project
	foreign string // Basic password of other

	mu    sync.Mutex
	ahead time.Duration
	ended map[string]bool // sids of logins that have ended
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	w := &world{t: t, dir: dir, ended: make(map[string]bool)}
	w.rows = must[*store.Store](t)(store.Open(ctx, store.Config{Dir: dir}))
	t.Cleanup(func() { _ = w.rows.Close() })
	master := must[[]byte](t)(keys.ReadMaster(filepath.Join(dir, "master.key")))
	ring := must[*keys.Ring](t)(keys.Open(ctx, keys.Config{Store: w.rows, Master: master}))
	w.revoked = revocation.New(w.rows, w.now)
	w.sync()
	w.fabric = fabric.New(fabric.Config{
		Store: w.rows, Ring: ring, Passwords: password.New(2), Revocations: w.revoked,
		Host: host, Issuer: "http://localhost:8080/", Now: w.now, Live: w.live,
	})
	w.handler = rest.New(rest.Config{Fabric: w.fabric, Log: slog.New(slog.DiscardHandler)}).Handler()
	w.project, w.key, w.keyID = w.newProject("one", fabric.Voice)
	w.other, w.foreign, _ = w.newProject("two", fabric.Messaging)
	return w
}

func (w *world) newProject(name string, scopes ...fabric.Scope) (fabric.Project, string, string) {
	w.t.Helper()
	p := must[fabric.Project](w.t)(w.fabric.CreateProject(context.Background(), name))
	k, secret, err := w.fabric.CreateAPIKey(context.Background(), p.ID, "key", scopes)
	if err != nil {
		w.t.Fatal(err)
	}
	return p, secret, k.ID
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
	w.sync()
}

func (w *world) sync() {
	w.t.Helper()
	if err := w.revoked.Sync(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) live(_ context.Context, sid string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended[sid] {
		return problem.NoCredentials()
	}
	return nil
}

// A reply is an answer of the API.
type reply struct {
	status int
	header http.Header
	text   string
}

// as reads the reply's JSON.
func as[T any](t testing.TB, r reply) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.text), &v); err != nil {
		t.Fatalf("reading %d %s: %v", r.status, r.text, err)
	}
	return v
}

// faults gives the codes of a 422 as "attribute:code", in order.
func (r reply) faults(t testing.TB) string {
	t.Helper()
	if r.status != http.StatusUnprocessableEntity {
		t.Fatalf("got %d %s, want 422", r.status, r.text)
	}
	body := as[struct {
		Errors []struct{ Type, Code, Message, Attribute, URL string }
	}](t, r)
	var all []string
	for _, e := range body.Errors {
		if e.Type != "validation_error" || e.Message == "" || e.URL != "https://signalwire.com/docs/apis/error-codes" {
			t.Errorf("error %+v lacks a member", e)
		}
		all = append(all, e.Attribute+":"+e.Code)
	}
	return strings.Join(all, " ")
}

// An authorization changes a request so that it carries credentials.
type authorization func(*http.Request)

func nobody(*http.Request) {}

func bearer(token string) authorization {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// basic gives the credentials of the world's first project.
func (w *world) basic() authorization {
	return func(r *http.Request) { r.SetBasicAuth(w.project.ID, w.key) }
}

func (w *world) stranger() authorization {
	return func(r *http.Request) { r.SetBasicAuth(w.other.ID, w.foreign) }
}

// call sends a request, with a body as JSON if there is one.
func (w *world) call(auth authorization, method, path, body string) reply {
	w.t.Helper()
	return w.callAs(auth, method, path, "application/json", body)
}

func (w *world) callAs(auth authorization, method, path, kind, body string) reply {
	w.t.Helper()
	got := w.do(auth, method, path, kind, body)
	if got.status >= 500 {
		w.t.Errorf("%s %s with %.100q: got %d %s", method, path, body, got.status, got.text)
	}
	return got
}

// do sends a request which may even fail.
func (w *world) do(auth authorization, method, path, kind, body string) reply {
	r := httptest.NewRequest(method, path, bytes.NewBufferString(body))
	if body != "" {
		r.Header.Set("Content-Type", kind)
	}
	auth(r)
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return reply{rec.Code, rec.Header(), rec.Body.String()}
}

type tokens struct {
	SubscriberID string `json:"subscriber_id"`
	Token        string `json:"token"`
	RefreshToken string `json:"refresh_token"`
}

// tokens asks for a subscriber's tokens.
func (w *world) tokens(body string) tokens {
	w.t.Helper()
	r := w.call(w.basic(), "POST", "/api/fabric/subscribers/tokens", body)
	if r.status != http.StatusOK {
		w.t.Fatalf("asking tokens for %s: got %d %s, want 200", body, r.status, r.text)
	}
	return as[tokens](w.t, r)
}

type address struct {
	ID          string            `json:"id"`
	ResourceID  string            `json:"resource_id"`
	Name        string            `json:"name"`
	DisplayName string            `json:"display_name"`
	Type        string            `json:"type"`
	Channels    map[string]string `json:"channels"`
}

type info struct {
	ID              string    `json:"id"`
	FabricAddresses []address `json:"fabric_addresses"`
}

// address gives the private address of the subscriber who holds a SAT.
func (w *world) address(sat string) address {
	w.t.Helper()
	r := w.call(bearer(sat), "GET", "/api/fabric/subscriber/info", "")
	got := as[info](w.t, r)
	if r.status != http.StatusOK || len(got.FabricAddresses) != 1 {
		w.t.Fatalf("subscriber info: got %d %s, want one address", r.status, r.text)
	}
	return got.FabricAddresses[0]
}
