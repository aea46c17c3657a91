package delivertest

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// attempted creates a webhook with the receiver h and an event, and returns the delivery of the event
// after an attempt.
func (w *world) attempted(h http.HandlerFunc) fabric.Delivery {
	w.t.Helper()
	hook := w.webhook(h)
	w.happen(1)
	w.await(hook, "an attempt", func(d fabric.Delivery) bool { return d.Attempts > 0 })
	return w.deliveries(hook)[0]
}

// TestResponse shows that a delivery keeps the duration of the last attempt and the beginning of the
// response's body, as plain text, whatever the receiver sends.
func TestResponse(t *testing.T) {
	w := newWorld(t, store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	w.node()
	long := strings.Repeat("ä", 40<<10)
	tests := []struct{ name, body, want string }{
		{name: "empty", body: "", want: ""},
		{name: "spaces", body: " {\"error\":\n\t\"<b>\"} \r\n", want: "{\"error\":\n\t\"<b>\"}"},
		{name: "control characters", body: "a\x00b\x1b[31mc\x7f\u0085d\u202ee\xff\xfe", want: "ab[31mcde"},
		{name: "long", body: "x" + long, want: "x" + long[:2046]}, // the last character would be cut in two
	}

	for _, tt := range tests {
		d := w.attempted(func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(http.StatusTeapot)
			_, _ = rw.Write([]byte(tt.body))
		})
		if d.Response != tt.want {
			t.Errorf("%s: the response is kept as %q, want %q", tt.name, d.Response, tt.want)
		}
		if !utf8.ValidString(d.Response) {
			t.Errorf("%s: the response is kept as %q, want valid UTF-8", tt.name, d.Response)
		}
		if d.Status != http.StatusTeapot {
			t.Errorf("%s: the status is %d, want 418", tt.name, d.Status)
		}
		if d.Took <= 0 {
			t.Errorf("%s: the attempt took %v, want more than 0", tt.name, d.Took)
		}
		if d.Refused != "" {
			t.Errorf("%s: the address %s was refused, want it allowed", tt.name, d.Refused)
		}
	}
}

// TestRedirect shows that a delivery does not follow a redirect, and keeps nothing of its body.
func TestRedirect(t *testing.T) {
	w := newWorld(t, store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	w.node()
	var requests atomic.Int64
	d := w.attempted(func(rw http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		rw.Header().Set("Location", "http://"+r.Host+"/secret")
		rw.WriteHeader(http.StatusFound)
		_, _ = rw.Write([]byte("secret"))
	})
	if n := requests.Load(); n != 1 {
		t.Errorf("the receiver got %d requests, want 1", n)
	}
	if d.Status != http.StatusFound {
		t.Errorf("the status is %d, want 302", d.Status)
	}
	if d.Response != "" {
		t.Errorf("the response is kept as %q, want nothing", d.Response)
	}
	if d.Took <= 0 {
		t.Errorf("the attempt took %v, want more than 0", d.Took)
	}
}

// TestRefusedAddress shows that nothing is sent to an address that is not allowed. The delivery keeps
// the address, but does not reveal it in the reason.
func TestRefusedAddress(t *testing.T) {
	w := newWorld(t, store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	w.node()

	// The name 127.0.0.1 is allowed, but localhost is not.
	var reached atomic.Bool
	hook := w.webhook(func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	u, err := url.Parse(hook.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = "localhost:" + u.Port()
	old := hook.Updated
	hook.URL, hook.Updated = u.String(), w.now()
	if err := w.rows.UpdateWebhook(t.Context(), hook, old); err != nil {
		t.Fatal(err)
	}
	w.happen(1)
	w.await(hook, "an attempt", func(d fabric.Delivery) bool { return d.Attempts > 0 })
	if reached.Load() {
		t.Error("the receiver got a request")
	}

	d := w.deliveries(hook)[0]
	refused, err := netip.ParseAddrPort(d.Refused)
	if err != nil || !refused.Addr().IsLoopback() {
		t.Errorf("the refused address is %q, %v, want a loopback address", d.Refused, err)
	}
	if strings.Contains(d.Error, refused.Addr().String()) {
		t.Errorf("the reason %q reveals the address", d.Error)
	}
	if d.Status != 0 {
		t.Errorf("the status is %d, want 0", d.Status)
	}
	if d.Response != "" {
		t.Errorf("the response is kept as %q, want nothing", d.Response)
	}
}
