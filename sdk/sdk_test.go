package sdk_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/selvage/selvage/sdk"
)

// TestHandler fetches each format of the SDK as a page of another origin does.
func TestHandler(t *testing.T) {
	h := sdk.Handler()
	ask := func(path, etag string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Origin", "https://app.example.com")
		r.Header.Set("If-None-Match", etag)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}

	for _, tt := range []struct{ path, caching string }{
		{"/sdk/selvage.js", "public, max-age=300"},
		{"/sdk/selvage.mjs", "public, max-age=300"},
		{sdk.Find("selvage.js").URL, "public, max-age=31536000, immutable"},
		{sdk.Find("selvage.mjs").URL, "public, max-age=31536000, immutable"},
	} {
		got := ask(tt.path, "")
		if got.StatusCode != http.StatusOK ||
			got.Header.Get("Content-Type") != "text/javascript; charset=utf-8" ||
			got.Header.Get("Cache-Control") != tt.caching || got.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("GET %s = %d %v, want 200, Cache-Control %q and access from any origin", tt.path,
				got.StatusCode, got.Header, tt.caching)
		}
		if again := ask(tt.path, got.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("GET %s with its ETag = %d, want 304", tt.path, again.StatusCode)
		}
	}

	if got := ask("/sdk/selvage.000000000000.js", ""); got.StatusCode != http.StatusNotFound {
		t.Errorf("GET of another build = %d, want 404", got.StatusCode)
	}
}
