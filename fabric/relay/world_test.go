package relay_test

import (
	"cmp"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/relay"
	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/revocation"
	sessionsql "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// deadline is the maximum time that these tests wait for anything.
const deadline = time.Minute

// A world holds the stores that nodes share and a clock that tests set.
type world struct {
	t        *testing.T
	rows     *store.Store
	sessions *sessionsql.Store
	ring     *keys.Ring
	project  fabric.Project
	ahead    atomic.Int64
}

// A node is a relay and its dependencies.
type node struct {
	*world
	fabric  *fabric.Fabric
	revoked *revocation.List
	relay   *relay.Relay
	url     string
	ends    context.CancelFunc // stops the background work
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

// embedLimit is how many sockets per minute an embed key may open in these tests.
const embedLimit = 3

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	dir := storetest.Dir(t)
	w := &world{t: t, rows: storetest.Open(t, dir, nil)}
	w.sessions = must[*sessionsql.Store](t)(sessionsql.Open(t.Context(), sessionsql.Config{Dir: dir}))
	t.Cleanup(func() { _ = w.sessions.Close() })
	w.ring = storetest.Ring(t, dir, w.rows, nil)
	return w
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// node starts a node and stops it when the test ends. Time limits that are zero in limits become so
// long that they never expire during the test.
func (w *world) node(limits relay.Limits) *node {
	w.t.Helper()
	limits.Authenticate = cmp.Or(limits.Authenticate, deadline)
	limits.Silence = cmp.Or(limits.Silence, 2*deadline)
	n := &node{world: w, revoked: revocation.New(w.rows, w.now)}
	if err := n.revoked.Sync(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}

	n.fabric = fabric.New(fabric.Config{
		Stores:      w.rows.Fabric(),
		Ring:        w.ring,
		Revocations: n.revoked,
		Sessions:    w.sessions,
		Host:        "puc.localhost",
		Issuer:      "http://localhost/",
		Now:         w.now,
		EmbedLimits: fabric.EmbedLimits{Sockets: embedLimit},
	})

	if w.project.ID == "" {
		w.project = must[fabric.Project](w.t)(n.fabric.Projects.Create(w.t.Context(), "one"))
	}

	proofs := dpop.New(dpop.Config{Sessions: w.sessions, Key: w.ring.Derive, Now: w.now})
	n.relay = relay.New(relay.Config{
		Fabric:  n.fabric,
		Limits:  limits,
		Confirm: proofs.ConfirmRPC,
		Log:     slog.New(slog.DiscardHandler),
	})
	srv := httptest.NewServer(web.Outer(n.relay, slog.New(slog.DiscardHandler), nil))
	n.url = "ws" + strings.TrimPrefix(srv.URL, "http")
	ctx, cancel := context.WithCancel(context.Background())
	n.ends = cancel
	stopped := make(chan struct{})
	go n.revoked.Run(ctx)
	go func() {
		defer close(stopped)
		n.relay.Run(ctx)
	}()

	w.t.Cleanup(func() {
		soon, done := context.WithTimeout(context.Background(), time.Second)
		defer done()
		n.relay.Shutdown(soon)
		cancel()
		<-stopped
		srv.Close()
	})

	return n
}

// token returns a subscriber's SAT after change has modified it.
func (w *world) token(change func(*fabric.Token)) fabric.Token {
	t := fabric.Token{
		Kind:         fabric.SAT,
		ID:           uuidOf("7"),
		ProjectID:    w.project.ID,
		SubscriberID: uuidOf("5"),
		ClientID:     uuidOf("c"),
		ExpiresAt:    w.now().Add(time.Hour).Truncate(time.Second),
	}
	if change != nil {
		change(&t)
	}
	return t
}

// uuidOf returns a UUID in which all digits are the given one.
func uuidOf(digit string) string {
	four := strings.Repeat(digit, 4)
	return strings.Repeat(digit, 8) + "-" + four + "-" + four + "-" + four + "-" + strings.Repeat(digit, 12)
}

// seal returns a sealed SAT after change has modified it.
func (n *node) seal(change func(*fabric.Token)) string {
	n.t.Helper()
	return must[string](n.t)(n.fabric.Tokens.Seal(n.token(change)))
}

// eventually waits until ready returns true.
func eventually(t *testing.T, what string, ready func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(deadline); !ready(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", deadline, what)
		}
	}
}
