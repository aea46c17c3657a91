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

// attempted returns the only delivery of a webhook whose receiver is h, after an attempt.
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
	for body, want := range map[string]string{
		"":                              "",
		" {\"error\":\n\t\"<b>\"} \r\n": "{\"error\":\n\t\"<b>\"}",
		"a\x00b\x1b[31mc\x7f\u0085d\u202ee\xff\xfe": "ab[31mcde",
		"x" + long: "x" + long[:2046], // the last character would be cut in two
	} {
		d := w.attempted(func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(http.StatusTeapot)
			_, _ = rw.Write([]byte(body))
		})
		if d.Response != want || !utf8.ValidString(d.Response) || d.Status != http.StatusTeapot || d.Took <= 0 ||
			d.Refused != "" {
			t.Errorf("the response %.40q is kept as %q, %+v, want its beginning as plain text",
				body, d.Response, d.Progress)
		}
	}
}

// TestNoResponse shows that a delivery keeps no body if the receiver answers with a redirect or its
// address is not allowed. The delivery keeps the address that was refused, but does not reveal it
// in the reason.
func TestNoResponse(t *testing.T) {
	w := newWorld(t, store.Config{Audit: storetest.Key(), Dir: t.TempDir()})
	w.node()
	var asked atomic.Int64
	d := w.attempted(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		rw.Header().Set("Location", "http://"+r.Host+"/secret")
		rw.WriteHeader(http.StatusFound)
		_, _ = rw.Write([]byte("secret"))
	})
	if n := asked.Load(); d.Status != http.StatusFound || d.Response != "" || d.Took <= 0 || n != 1 {
		t.Errorf("a redirect: %q, %+v after %d requests, want 302 without a body after 1", d.Response, d.Progress, n)
	}

	// The name 127.0.0.1 is allowed, localhost is not.
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
	d = w.deliveries(hook)[0]
	at, err := netip.ParseAddrPort(d.Refused)
	if err != nil || !at.Addr().IsLoopback() || d.Status != 0 || d.Response != "" || reached.Load() {
		t.Errorf("a refused address: %q, %+v, reached: %v, want a loopback address, no response and false",
			d.Refused, d.Progress, reached.Load())
	}
	if strings.Contains(d.Error, at.Addr().String()) {
		t.Errorf("the reason %q reveals the address", d.Error)
	}
}
