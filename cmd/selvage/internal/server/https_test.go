package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// TestStrictTransport shows which hosts get the Strict-Transport-Security header.
func TestStrictTransport(t *testing.T) {
	for _, tt := range []struct {
		public, auth config.BaseURL
		host         string
		want         bool
	}{
		{"https://pbx.example.org", "", "pbx.example.org", true},
		{"https://pbx.example.org:8443", "", "pbx.example.org:8443", true},
		{"http://pbx.example.org", "https://id.example.org", "id.example.org", true},
		{"http://pbx.example.org", "https://id.example.org", "pbx.example.org", false},
		{"https://pbx.example.org", "", "localhost", false},
		{"https://localhost:8443", "", "localhost:8443", false}, // it would apply to all ports of this machine
		{"https://id.localhost:8443", "", "id.localhost:8443", false},
		{"https://192.0.2.1", "", "192.0.2.1", false},
		{"", "", "pbx.example.org", false},
	} {
		c := config.Config{PublicURL: tt.public, AuthURL: tt.auth}

		r := httptest.NewRequest("GET", "/", nil)
		r.Host = tt.host
		w := httptest.NewRecorder()
		strictTransport(c, http.NotFoundHandler()).ServeHTTP(w, r)
		got := w.Header().Get("Strict-Transport-Security") != ""
		if got != tt.want {
			t.Errorf("with %q and %q, the response to %s has the header: %v, want %v",
				tt.public, tt.auth, tt.host, got, tt.want)
		}
	}
}
