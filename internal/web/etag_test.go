package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/selvage/selvage/internal/web"
)

func TestServeDocument(t *testing.T) {
	body := []byte(`{"a":1}`)
	etag := web.ETag(body)

	tests := []struct {
		name, method string
		header       http.Header
		status       int
		body         string
	}{
		{"first", "GET", http.Header{}, 200, string(body)},
		{"its head", "HEAD", http.Header{}, 200, ""},
		{"again", "GET", http.Header{"If-None-Match": {etag}}, 304, ""},
		{"through a cache that made the tag weak", "GET", http.Header{"If-None-Match": {"W/" + etag}}, 304, ""},
		{"by one of several tags", "GET", http.Header{"If-None-Match": {`"other", ` + etag}}, 304, ""},
		{"after a change", "GET", http.Header{"If-None-Match": {`"other"`}}, 200, string(body)},
		{"a range", "GET", http.Header{"Range": {"bytes=0-1"}}, 200, string(body)},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, "/", nil)
			r.Header = tt.header
			rec := httptest.NewRecorder()
			web.ServeDocument(rec, r, "application/json", etag, body)
			if rec.Code != tt.status {
				t.Errorf("the status is %d, want %d", rec.Code, tt.status)
			}
			if got := rec.Body.String(); got != tt.body {
				t.Errorf("the body is %q, want %q", got, tt.body)
			}
			if got := rec.Header().Get("ETag"); got != etag {
				t.Errorf("the ETag is %s, want %s", got, etag)
			}
			if got := rec.Header().Get("Content-Type"); tt.status == 200 && got != "application/json" {
				t.Errorf("the Content-Type is %q, want application/json", got)
			}
		})
	}
}
