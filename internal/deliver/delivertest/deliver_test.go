// Package delivertest tests package deliver with a queue in the store; see docs/testing.md.
package delivertest

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
	"github.com/selvage/selvage/test/servers"
)

const key = "PSK0123"

// A world is a queue with a project, and a clock that tests can set.
type world struct {
	t       *testing.T
	rows    *store.Store
	project fabric.Project
	ahead   atomic.Int64
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func newWorld(t *testing.T, c store.Config) *world {
	t.Helper()
	w := &world{t: t, project: fabric.Project{ID: newID(), Name: "p", Created: time.Now(), Updated: time.Now()}}
	var err error
	if w.rows, err = store.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.rows.Close() })
	if err := w.rows.CreateProject(t.Context(), w.project); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// node runs a deliverer until the test ends.
func (w *world) node() *deliver.Deliverer {
	d := deliver.New(deliver.Config{
		Queue: w.rows.Webhooks.Queue(), Client: egress.Policy{Allow: []string{"127.0.0.1"}}.Client(), Now: w.now,
		Agent: "test", Log: slog.New(slog.DiscardHandler),
		Writer: deliver.Signed(func(context.Context, string) (string, error) { return key, nil }),
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
	return d
}

// webhook creates a webhook whose receiver is h.
func (w *world) webhook(h http.HandlerFunc) fabric.Webhook {
	w.t.Helper()
	s := httptest.NewServer(h)
	w.t.Cleanup(s.Close)
	hook := fabric.Webhook{
		ID: newID(), ProjectID: w.project.ID, URL: s.URL + "/hook?a=b%20c",
		Events: []fabric.EventName{fabric.AnyEvent}, Enabled: true,
		Created: time.Now(), Updated: time.Now(),
	}
	if err := w.rows.CreateWebhook(w.t.Context(), hook, 50); err != nil {
		w.t.Fatal(err)
	}
	return hook
}

// happen creates n subscribers, each of which causes an event.
func (w *world) happen(n int) {
	w.t.Helper()
	for range n {
		s := fabric.Subscriber{ID: newID(), ProjectID: w.project.ID, Created: time.Now(), Updated: time.Now()}
		a := fabric.Address{ID: newID(), ProjectID: w.project.ID, ResourceID: s.ID,
			Type: fabric.TypeSubscriber, Context: fabric.Private, Name: s.ID, Created: time.Now()}
		if err := w.rows.CreateSubscriber(w.t.Context(), s, a); err != nil {
			w.t.Fatal(err)
		}
	}
}

// deliveries returns the deliveries of a webhook, the oldest first.
func (w *world) deliveries(hook fabric.Webhook) []fabric.Delivery {
	w.t.Helper()
	p, err := w.rows.ListDeliveries(w.t.Context(), hook.ID, "", page.Query{Size: page.MaxSize})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(p.Items)
	return p.Items
}

// await waits until is(d) is true for every delivery d to hook.
func (w *world) await(hook fabric.Webhook, what string, is func(fabric.Delivery) bool) {
	w.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		all := w.deliveries(hook)
		if !slices.ContainsFunc(all, func(d fabric.Delivery) bool { return !is(d) }) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("timed out waiting for %s: the deliveries are %+v", what, all)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// delivered returns how many deliveries hook has accepted.
func (w *world) delivered(hook fabric.Webhook) int {
	w.t.Helper()
	return len(slices.DeleteFunc(w.deliveries(hook), func(d fabric.Delivery) bool { return !delivered(d) }))
}

func delivered(d fabric.Delivery) bool { return d.State == fabric.Delivered }

// A log records the received deliveries.
type log struct {
	mu  sync.Mutex
	ids []string
}

func (l *log) add(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = append(l.ids, id)
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ids)
}

// TestDeliver shows that two nodes together send many events to a webhook, each event once and
// signed.
func TestDeliver(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testDeliver(t, store.Config{Audit: storetest.Key(), Dir: t.TempDir()}) })
	t.Run("postgres", func(t *testing.T) {
		testDeliver(t, store.Config{Audit: storetest.Key(), URL: servers.Postgres(t), Patience: time.Minute})
	})
}

func testDeliver(t *testing.T, c store.Config) {
	w := newWorld(t, c)
	var got log
	var url string
	hook := w.webhook(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e struct{ ID, Event string }
		if err := json.Unmarshal(body, &e); err != nil {
			t.Errorf("decoding the body %s: %v", body, err)
		}

		one, two := hmac.New(sha1.New, []byte(key)), hmac.New(sha256.New, []byte(key))
		for _, h := range []io.Writer{one, two} {
			fmt.Fprintf(h, "%s%s", url, body)
		}

		for name, want := range map[string]string{
			"X-SignalWire-Signature":        hex.EncodeToString(one.Sum(nil)),
			"X-SignalWire-SHA256-Signature": hex.EncodeToString(two.Sum(nil)),
			"X-Selvage-Delivery":            e.ID, "X-Selvage-Event": e.Event, "Content-Type": "application/json",
			"User-Agent": "test",
		} {
			if r.Header.Get(name) != want || want == "" {
				t.Errorf("header %s = %q, want %q", name, r.Header.Get(name), want)
			}
		}

		if r.Method != http.MethodPost || r.URL.RequestURI() != "/hook?a=b%20c" {
			t.Errorf("the request is %s %s, want POST /hook?a=b%%20c", r.Method, r.URL.RequestURI())
		}

		got.add(e.ID)
		rw.WriteHeader(http.StatusAccepted)
	})

	url = hook.URL
	w.happen(30)
	w.node()
	w.node()
	w.happen(30)
	w.await(hook, "all to be delivered", delivered)
	want := make(map[string]bool)
	for _, d := range w.deliveries(hook) {
		want[d.ID] = true
	}

	ids := got.all()
	for _, id := range ids {
		if !want[id] {
			t.Errorf("%s was delivered twice, or is unknown", id)
		}
		delete(want, id)
	}
	if len(ids) != 60 || len(want) != 0 {
		t.Errorf("%d events were delivered, and %d of 60 were not, want each delivered once", len(ids), len(want))
	}
}

// TestOrder shows that events about the same subject are sent in order.
func TestOrder(t *testing.T) {
	w := newWorld(t, store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	var got log
	hook := w.webhook(func(_ http.ResponseWriter, r *http.Request) { got.add(r.Header.Get("X-Selvage-Event")) })
	s := fabric.Subscriber{ID: newID(), ProjectID: w.project.ID, Created: time.Now(), Updated: time.Now()}
	if err := w.rows.CreateSubscriber(t.Context(), s, fabric.Address{
		ID: newID(), ProjectID: w.project.ID, ResourceID: s.ID, Name: s.ID,
	}); err != nil {
		t.Fatal(err)
	}

	for i := range 20 {
		name := fmt.Sprint(i)
		if _, err := w.rows.UpdateSubscriber(t.Context(), w.project.ID, s.ID,
			fabric.SubscriberChange{Profile: fabric.Profile{FirstName: &name}}, time.Now(), nil); err != nil {
			t.Fatal(err)
		}
	}

	w.node()
	w.await(hook, "all to be delivered", delivered)
	if ids := got.all(); len(ids) != 21 || ids[0] != string(fabric.SubscriberCreated) {
		t.Errorf("delivered %v, want the creation first", ids)
	}
}

// TestRetries shows that a delivery to a failing receiver is attempted nine times and is then dead,
// and that a dead delivery can be redelivered.
func TestRetries(t *testing.T) {
	w := newWorld(t, store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	var status atomic.Int64
	status.Store(500)
	var tries atomic.Int64
	hook := w.webhook(func(rw http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		rw.WriteHeader(int(status.Load()))
	})

	w.happen(1)
	w.node()
	for n := 1; n < 9; n++ {
		w.await(hook, fmt.Sprintf("attempt %d", n), func(d fabric.Delivery) bool {
			// On a slow machine, the next attempts may come before the clock is advanced.
			return d.Attempts >= n && d.State == fabric.Pending && d.Status == 500 && d.Due.After(w.now())
		})
		w.ahead.Add(int64(15 * time.Hour))
	}

	w.await(hook, "the last attempt", func(d fabric.Delivery) bool {
		return d.State == fabric.Dead && d.Attempts == 9
	})
	if got := tries.Load(); got != 9 {
		t.Errorf("%d attempts, want 9", got)
	}

	status.Store(204)
	if n, err := w.rows.RedeliverDead(t.Context(), hook.ID, w.now()); n != 1 || err != nil {
		t.Fatalf("RedeliverDead = %d, %v, want 1", n, err)
	}
	w.await(hook, "the redelivery", func(d fabric.Delivery) bool {
		return delivered(d) && d.Attempts == 1 && d.Status == 204
	})
}

// TestAnswers shows that a delivery that is answered with 410 Gone is not attempted again, and that
// redirects are not followed.
func TestAnswers(t *testing.T) {
	w := newWorld(t, store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	var followed atomic.Bool
	gone := w.webhook(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusGone) })
	away := w.webhook(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			followed.Store(true)
		}
		http.Redirect(rw, r, "/elsewhere", http.StatusTemporaryRedirect)
	})

	busy := w.webhook(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "7200")
		rw.WriteHeader(http.StatusServiceUnavailable)
	})

	endless := w.webhook(func(rw http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := rw.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})

	w.happen(1)
	w.node()
	w.await(gone, "the delivery to be given up", func(d fabric.Delivery) bool {
		return d.State == fabric.Dead && d.Status == 410 && d.Attempts == 1
	})

	w.await(away, "the redirect", func(d fabric.Delivery) bool {
		return d.State == fabric.Pending && d.Status == 307
	})

	w.await(busy, "the requested wait", func(d fabric.Delivery) bool {
		return d.Status == 503 && d.Due.After(w.now().Add(time.Hour))
	})

	w.await(endless, "an endless response", delivered)
	if followed.Load() {
		t.Error("the redirect was followed")
	}
}

// TestHangingReceiver shows that a receiver that never responds does not delay other receivers.
func TestHangingReceiver(t *testing.T) {
	w := newWorld(t, store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	hang := make(chan struct{})
	w.webhook(func(http.ResponseWriter, *http.Request) { <-hang })
	defer close(hang)
	good := w.webhook(func(http.ResponseWriter, *http.Request) {})
	w.happen(40)
	w.node()
	w.await(good, "the receiver that answers", delivered)
}

// TestShutdown shows that if a node is shut down during an attempt, the attempt completes and the
// next node sends the rest.
func TestShutdown(t *testing.T) {
	w := newWorld(t, store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	began, answer := make(chan struct{}, 100), make(chan struct{})
	hook := w.webhook(func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-answer
	})

	w.happen(20)
	d := w.node()
	<-began
	over, cancel := context.WithCancel(t.Context())
	cancel()
	d.Shutdown(over) // over is already done, so Shutdown does not wait
	if n := w.delivered(hook); n != 0 {
		t.Errorf("%d deliveries succeeded before the receiver responded, want none", n)
	}

	close(answer)
	d.Shutdown(t.Context())
	if n := w.delivered(hook); n == 0 || n > 4 {
		t.Errorf("%d deliveries succeeded, want only those in progress", n)
	}

	w.node()
	w.await(hook, "the remaining deliveries", delivered)
	for _, d := range w.deliveries(hook) {
		if d.Attempts != 1 {
			t.Errorf("%s had %d attempts, want one", d.ID, d.Attempts)
		}
	}
}
