package delivertest

import (
	"context"
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
)

const key = "PSK0123"

// A world is a queue with a project, and a clock that tests can set.
type world struct {
	t       *testing.T
	rows    *store.Store
	project fabric.Project
	ahead   atomic.Int64 // how far its clock is ahead, in nanoseconds
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func newWorld(t *testing.T, c store.Config) *world {
	t.Helper()
	rows, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rows.Close() })
	project := fabric.Project{ID: newID(), Name: "p", Created: time.Now(), Updated: time.Now()}
	if err := rows.CreateProject(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	return &world{t: t, rows: rows, project: project}
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// node runs a deliverer until the test ends.
func (w *world) node() *deliver.Deliverer {
	d := deliver.New(deliver.Config{
		Queue:  w.rows.Webhooks.Queue(),
		Client: egress.Policy{Allow: []string{"127.0.0.1"}}.Client(),
		Writer: deliver.Signed(func(context.Context, string) (string, error) { return key, nil }),
		Agent:  "test",
		Log:    slog.New(slog.DiscardHandler),
		Now:    w.now,
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
		ID:        newID(),
		ProjectID: w.project.ID,
		URL:       s.URL + "/hook?a=b%20c",
		Events:    []fabric.EventName{fabric.AnyEvent},
		Enabled:   true,
		Created:   time.Now(),
		Updated:   time.Now(),
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
		w.newSubscriber()
	}
}

func (w *world) newSubscriber() fabric.Subscriber {
	w.t.Helper()
	s := fabric.Subscriber{ID: newID(), ProjectID: w.project.ID, Created: time.Now(), Updated: time.Now()}
	address := fabric.Address{
		ID:         newID(),
		ProjectID:  w.project.ID,
		ResourceID: s.ID,
		Type:       fabric.TypeSubscriber,
		Context:    fabric.Private,
		Name:       s.ID,
		Created:    time.Now(),
	}
	if err := w.rows.CreateSubscriber(w.t.Context(), s, address); err != nil {
		w.t.Fatal(err)
	}
	return s
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
	isNot := func(d fabric.Delivery) bool { return !is(d) }
	deadline := time.Now().Add(time.Minute)
	for {
		deliveries := w.deliveries(hook)
		if !slices.ContainsFunc(deliveries, isNot) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("timed out waiting for %s: the deliveries are %+v", what, deliveries)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// countDelivered returns how many deliveries the receiver of hook has accepted.
func (w *world) countDelivered(hook fabric.Webhook) (n int) {
	w.t.Helper()
	for _, d := range w.deliveries(hook) {
		if delivered(d) {
			n++
		}
	}
	return n
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
