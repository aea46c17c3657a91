package rest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// bench serves the same request repeatedly and checks each response.
func bench(b *testing.B, w *world, auth authorization, method, path, body string, want int) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		auth(r)
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, r)
		if rec.Code != want {
			b.Fatalf("got %d %s, want %d", rec.Code, rec.Body, want)
		}
	}
	w.sync()
}

func BenchmarkSubscriberToken(b *testing.B) {
	w := newWorld(b)
	go w.revoked.Run(b.Context())
	w.tokens(`{"reference":"ada"}`)
	bench(b, w, w.basic(), "POST", "/api/fabric/subscribers/tokens", `{"reference":"ada"}`, http.StatusOK)
}

func BenchmarkSubscriberInfo(b *testing.B) {
	w := newWorld(b)
	go w.revoked.Run(b.Context())
	sat := w.tokens(`{"reference":"ada"}`).Token
	bench(b, w, bearer(sat), "GET", "/api/fabric/subscriber/info", "", http.StatusOK)
}

func BenchmarkGuestToken(b *testing.B) {
	w := newWorld(b)
	go w.revoked.Run(b.Context())
	id := w.address(w.tokens(`{"reference":"ada"}`).Token).ID
	bench(b, w, w.basic(), "POST", "/api/fabric/guests/tokens", `{"allowed_addresses":["`+id+`"]}`,
		http.StatusCreated)
}
