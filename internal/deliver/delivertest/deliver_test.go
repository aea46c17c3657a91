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
	"hash"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
	"github.com/selvage/selvage/test/servers"
)

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

		if e.ID == "" || e.Event == "" {
			t.Errorf("the event in the body %s is %q with the id %q, want both", body, e.Event, e.ID)
		}

		for name, want := range map[string]string{
			"X-SignalWire-Signature":        sign(sha1.New, url, body),
			"X-SignalWire-SHA256-Signature": sign(sha256.New, url, body),
			"X-Selvage-Delivery":            e.ID,
			"X-Selvage-Event":               e.Event,
			"Content-Type":                  "application/json",
			"User-Agent":                    "test",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("the header %s is %q, want %q", name, got, want)
			}
		}

		if r.Method != http.MethodPost {
			t.Errorf("the method is %s, want POST", r.Method)
		}
		if got, want := r.URL.RequestURI(), "/hook?a=b%20c"; got != want {
			t.Errorf("the request is for %s, want %s", got, want)
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
	if len(ids) != 60 {
		t.Errorf("%d events were delivered, want 60", len(ids))
	}
	if len(want) != 0 {
		t.Errorf("%d events were not delivered, want 0", len(want))
	}
}

// sign returns the signature of a delivery, in hex.
func sign(algorithm func() hash.Hash, url string, body []byte) string {
	mac := hmac.New(algorithm, []byte(key))
	fmt.Fprintf(mac, "%s%s", url, body)
	return hex.EncodeToString(mac.Sum(nil))
}

// TestOrder shows that all events about a subject are sent, beginning with the first.
func TestOrder(t *testing.T) {
	w := newWorld(t, store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	var got log
	hook := w.webhook(func(_ http.ResponseWriter, r *http.Request) { got.add(r.Header.Get("X-Selvage-Event")) })
	s := w.newSubscriber()
	for i := range 20 {
		name := fmt.Sprint(i)
		change := fabric.SubscriberChange{Profile: fabric.Profile{FirstName: &name}}
		_, err := w.rows.UpdateSubscriber(t.Context(), w.project.ID, s.ID, change, time.Now(), nil)
		if err != nil {
			t.Fatal(err)
		}
	}

	w.node()
	w.await(hook, "all to be delivered", delivered)
	events := got.all()
	if len(events) != 21 {
		t.Fatalf("%d events were delivered, want 21: %q", len(events), events)
	}
	if want := string(fabric.SubscriberCreated); events[0] != want {
		t.Errorf("the first event is %s, want %s", events[0], want)
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
	if n, err := w.rows.RedeliverDead(t.Context(), hook.ID, w.now()); err != nil || n != 1 {
		t.Fatalf("RedeliverDead = %d, %v, want 1", n, err)
	}
	w.await(hook, "the redelivery", func(d fabric.Delivery) bool {
		return delivered(d) && d.Attempts == 1 && d.Status == 204
	})
}

// TestAnswers shows that 410 Gone ends a delivery, that redirects are not followed, that a
// requested wait is respected, and that an endless response does not block.
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

	w.await(endless, "the delivery with an endless response", delivered)
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
	w.await(good, "the deliveries to the receiver that answers", delivered)
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
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	d.Shutdown(canceled) // does not wait
	if n := w.countDelivered(hook); n != 0 {
		t.Errorf("%d deliveries succeeded before the receiver responded, want none", n)
	}

	close(answer)
	d.Shutdown(t.Context())
	if n := w.countDelivered(hook); n == 0 || n > 4 {
		t.Errorf("%d deliveries succeeded, want 1 to 4, those in progress", n)
	}

	w.node()
	w.await(hook, "the remaining deliveries", delivered)
	for _, d := range w.deliveries(hook) {
		if d.Attempts != 1 {
			t.Errorf("%s had %d attempts, want one", d.ID, d.Attempts)
		}
	}
}
