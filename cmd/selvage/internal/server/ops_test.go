package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestOpsOfOtherSites shows that the ops listener serves operators and monitoring, but
// rejects requests from pages of other sites.
func TestOpsOfOtherSites(t *testing.T) {
	h := ownPages(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	tests := []struct {
		name   string
		header string // a header, or "" for none
		value  string
		want   int
	}{
		{"a program", "", "", http.StatusOK},
		{"typed by an operator", "Sec-Fetch-Site", "none", http.StatusOK},
		{"a link on its own page", "Referer", "http://127.0.0.1:9090/debug/pprof/", http.StatusOK},
		{"a page of a different site", "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		{"a page of the same site", "Sec-Fetch-Site", "same-site", http.StatusForbidden},
		{"a script", "Origin", "https://evil.example", http.StatusForbidden},
		{"a sandboxed page", "Origin", "null", http.StatusForbidden},
		{"an image", "Referer", "http://evil.example/", http.StatusForbidden},
	}

	for _, tt := range tests {
		for _, path := range []string{"/debug/pprof/cmdline", "/debug/pprof/", "/healthz"} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "http://127.0.0.1:9090"+path, nil)
			if tt.header != "" {
				r.Header.Set(tt.header, tt.value)
			}
			h.ServeHTTP(w, r)
			if w.Code != tt.want {
				t.Errorf("%s: GET %s = %d, want %d", tt.name, path, w.Code, tt.want)
			}
		}
	}
}
