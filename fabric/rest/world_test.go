package rest_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/rest"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/openapi/openapitest"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

const (
	host   = "puc.localhost:8443"
	issuer = "http://localhost:8080/"
)

// A world is the API on real storage, with two projects, an API key for each, and a clock that
// tests set.
type world struct {
	factors *factor.Factors
	t       testing.TB
	dir     string
	rows    *store.Store
	ring    *keys.Ring
	fabric  *fabric.Fabric
	revoked *revocation.List
	deafen  func() // stops poll from reading revocations
	api     *rest.API
	handler http.Handler
	project fabric.Project
	key     string // password of project for HTTP Basic
	keyID   string
	other   fabric.Project
	foreign string // password of other for HTTP Basic

	mu    sync.Mutex
	ahead time.Duration
	ended map[string]bool // sids of logins that have ended, and clients whose consent was revoked
}

// embedLimit is the number of tokens that an embed key issues per minute in these tests.
const embedLimit = 5

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
	return openWorld(t, storetest.Dir(t))
}

// openWorld opens a world in a directory. It creates new keys if the directory is empty.
func openWorld(t testing.TB, dir string) *world {
	t.Helper()
	ctx := context.Background()
	w := &world{t: t, dir: dir, ended: make(map[string]bool)}
	w.rows = storetest.Open(t, dir, nil)
	w.ring = storetest.Ring(t, dir, w.rows, nil)
	w.revoked = revocation.New(w.rows, w.now)
	w.sync()
	w.poll()
	sessions := must[*sessionsql.Store](t)(sessionsql.Open(ctx, sessionsql.Config{Dir: dir}))
	t.Cleanup(func() { _ = sessions.Close() })
	w.factors = must[*factor.Factors](t)(factor.New(factor.Config{
		Store:    w.rows,
		Sessions: sessions,
		Ring:     w.ring,
		AuthURL:  "http://localhost:8080",
		Now:      w.now,
	}))
	w.fabric = fabric.New(fabric.Config{
		Stores:        w.rows.Fabric(),
		Ring:          w.ring,
		Passwords:     password.Weak(2),
		Revocations:   w.revoked,
		Factors:       w.factors,
		Host:          host,
		Issuer:        issuer,
		Now:           w.now,
		Live:          w.live,
		EndLogin:      w.endLogin,
		RevokeConsent: w.revokeConsent,
		Sessions:      sessions,
		EmbedLimits:   fabric.EmbedLimits{Tokens: embedLimit},
		CheckURL:      egress.Policy{}.Check,
	})

	w.api = rest.New(rest.Config{
		Fabric: w.fabric,
		Clients: idp.New(idp.Config{
			Issuer: issuer,
			Now:    w.now,
			Store:  idp.Stores{Clients: w.rows, Upstreams: w.rows},
		}),
		Rooms: calls.NewRooms(w.rows, w.rows),
		Chat:  chat.New(chat.Config{Fabric: w.fabric, Store: w.rows, Now: w.now}),
		Log:   slog.New(slog.DiscardHandler),
	})
	w.handler = w.api.Handler()
	w.project, w.key, w.keyID = w.newProject("one", fabric.Voice)
	w.other, w.foreign, _ = w.newProject("two", fabric.Messaging)
	return w
}

// deafNode returns the fabric of another node, which reads no revocations.
func (w *world) deafNode() *fabric.Fabric {
	w.t.Helper()
	revoked := revocation.New(deafLog{w.rows}, w.now)
	if err := revoked.Sync(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	return fabric.New(fabric.Config{
		Stores:      w.rows.Fabric(),
		Ring:        w.ring,
		Passwords:   password.Weak(2),
		Revocations: revoked,
		Host:        host,
		Issuer:      issuer,
		Now:         w.now,
	})
}

// A deafLog is a revocation log that returns no revocations.
type deafLog struct{ revocation.Log }

func (deafLog) RevocationsSince(context.Context, int64) ([]revocation.Revocation, int64, error) {
	return nil, 0, nil
}

// newProject creates a project and an API key with the given scopes.
func (w *world) newProject(name string, scopes ...fabric.Scope) (p fabric.Project, secret, keyID string) {
	w.t.Helper()
	ctx := context.Background()
	p = must[fabric.Project](w.t)(w.fabric.Projects.Create(ctx, name))
	key, secret, err := w.fabric.APIKeys.Create(ctx, p.ID, fabric.APIKeyInput{Scopes: scopes}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return p, secret, key.ID
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

// pass advances the clock by d.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	w.ahead += d
	w.mu.Unlock()
	w.sync()
}

// giveUp records that a pending delivery was given up, so that it is a dead letter.
func (w *world) giveUp(q deliver.Queue, receiver, id string, attempts, status int) {
	w.t.Helper()
	ctx := context.Background()
	jobs := must[[]deliver.Job](w.t)(q.DueJobs(ctx, receiver, w.now(), 100))
	i := slices.IndexFunc(jobs, func(j deliver.Job) bool { return j.ID == id })
	if i < 0 {
		w.t.Fatalf("delivery %s is not pending for receiver %s", id, receiver)
	}
	result := deliver.Result{
		ReceiverID: receiver,
		JobID:      id,
		Queued:     jobs[i].Queued,
		State:      deliver.Dead,
		Attempts:   attempts,
		Status:     status,
		Ended:      w.now(),
		Took:       214 * time.Millisecond,
		Response:   "<unknown>",
		Refused:    "10.9.8.7:80",
	}
	if err := q.Settle(ctx, result); err != nil {
		w.t.Fatal(err)
	}
}

// poll reads revocations regularly, as a server does, until deafen is called. On a slow machine, a
// test can take longer than the age at which revocations become stale.
func (w *world) poll() {
	ctx, stop := context.WithCancel(context.Background())
	var polls sync.WaitGroup
	polls.Go(func() { w.revoked.Run(ctx) })
	w.deafen = func() { stop(); polls.Wait() }
	w.t.Cleanup(w.deafen)
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

func (w *world) endLogin(_ context.Context, sid string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended[sid] = true
	return nil
}

func (w *world) revokeConsent(_ context.Context, subscriberID, clientID string) error {
	if _, err := w.rows.FindConsent(context.Background(), subscriberID, clientID); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended[clientID] = true
	return nil
}

// call sends a request. If body is not empty, it is sent as JSON.
func (w *world) call(auth authorization, method, path, body string) reply {
	w.t.Helper()
	return w.callAs(auth, method, path, "application/json", body)
}

// callAs sends a request with a body of any content type. No request may cause a server error.
func (w *world) callAs(auth authorization, method, path, kind, body string) reply {
	w.t.Helper()
	got := w.do(auth, method, path, kind, body)
	if got.status >= 500 {
		w.t.Errorf("%s %s with %.100q: got %d %s", method, path, body, got.status, got.text)
	}
	return got
}

// do sends a request like callAs, but permits server errors. It checks the request and its response
// against the API's schema.
func (w *world) do(auth authorization, method, path, kind, body string) reply {
	r := httptest.NewRequest(method, path, bytes.NewBufferString(body))
	if body != "" {
		r.Header.Set("Content-Type", kind)
	}
	auth(r)
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	if err := openapitest.CheckRecorded(r, rec); err != nil {
		w.t.Error(err)
	}
	return reply{status: rec.Code, header: rec.Header(), text: rec.Body.String()}
}

type tokens struct {
	SubscriberID string `json:"subscriber_id"`
	Token        string `json:"token"`
	RefreshToken string `json:"refresh_token"`
}

// tokens requests tokens for a subscriber.
func (w *world) tokens(body string) tokens {
	w.t.Helper()
	r := w.call(w.basic(), "POST", "/api/fabric/subscribers/tokens", body)
	if r.status != http.StatusOK {
		w.t.Fatalf("requesting tokens for %s: got %d %s, want 200", body, r.status, r.text)
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

// address returns the private address of the subscriber holding a SAT.
func (w *world) address(sat string) address {
	w.t.Helper()
	r := w.call(bearer(sat), "GET", "/api/fabric/subscriber/info", "")
	got := as[info](w.t, r)
	if r.status != http.StatusOK || len(got.FabricAddresses) != 1 {
		w.t.Fatalf("subscriber info: got %d %s, want one address", r.status, r.text)
	}
	return got.FabricAddresses[0]
}
