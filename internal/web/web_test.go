package web_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/web"
)

func TestBearer(t *testing.T) {
	tests := []struct {
		headers []string
		want    string
	}{
		{[]string{"Bearer abc"}, "abc"},
		{[]string{"bearer abc"}, "abc"},
		{[]string{"Basic abc"}, ""},
		{[]string{"Bearer"}, ""},
		{[]string{"Bearer "}, ""},
		{[]string{"Bearer a b"}, ""},
		{[]string{"Bearer a, Bearer b"}, ""},
		{[]string{"Bearer a", "Bearer b"}, ""},
		{nil, ""},
	}

	for _, tt := range tests {
		r := httptest.NewRequest(http.MethodGet, "/?access_token=abc", nil)
		r.Header["Authorization"] = tt.headers
		if got, ok := web.Bearer(r); got != tt.want || ok != (tt.want != "") {
			t.Errorf("Bearer(%q) = %q, %v, want %q", tt.headers, got, ok, tt.want)
		}
	}
}

func TestBasic(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.SetBasicAuth("a", "b:c")
	if name, secret, ok := web.Basic(r); name != "a" || secret != "b:c" || !ok {
		t.Errorf("Basic = %q, %q, %v, want a and b:c", name, secret, ok)
	}
	r.Header.Add("Authorization", "Basic eDp5")
	if _, _, ok := web.Basic(r); ok {
		t.Error("Basic accepted two headers")
	}
}

// TestOuter shows that each request gets an id, that a handler that panics causes status 500, and
// that TRACE requests are refused. The response writer of the middleware has a ReadFrom method, so
// that the kernel can still send files.
func TestOuter(t *testing.T) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	var seen int
	h := web.Outer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("no")
		case "/sendfile":
			if _, ok := w.(io.ReaderFrom); !ok {
				t.Error("the writer has no ReadFrom")
			}
		}
		if web.RequestID(r.Context()) == "" {
			t.Error("no request id in the context")
		}
	}), quiet, func(_ string, status int, _ time.Duration) { seen = status })

	tests := []struct {
		method, path, encoding string
		want                   int
	}{
		{http.MethodGet, "/sendfile", "", http.StatusOK},
		{http.MethodGet, "/panic", "", http.StatusInternalServerError},
		{http.MethodTrace, "/", "", http.StatusMethodNotAllowed},
		{http.MethodPost, "/", "gzip", http.StatusOK}, // accepted here: each protocol refuses it in its own format
	}

	for _, tt := range tests {
		r := httptest.NewRequest(tt.method, tt.path, nil)
		if tt.encoding != "" {
			r.Header.Set("Content-Encoding", tt.encoding)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != tt.want || rec.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s %s = %d, want %d with a request id", tt.method, tt.path, rec.Code, tt.want)
		}
		if tt.want != http.StatusOK && seen != tt.want {
			t.Errorf("%s %s: the observer saw %d, want %d", tt.method, tt.path, seen, tt.want)
		}
	}
}

// TestFlowCookie shows that cookies are Secure and have names that begin with __Host-, if the
// browser accepts such cookies from the server's URL.
func TestFlowCookie(t *testing.T) {
	const (
		chromium = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " +
			"Chrome/140.0.0.0 Safari/537.36"
		safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) " +
			"Version/18.0 Safari/605.1.15"
	)

	tests := []struct {
		public, agent string
		secure        bool
	}{
		{"https://id.example", safari, true},
		{"https://id.example", "", true},
		{"http://localhost:8080", chromium, true},
		{"http://127.0.0.1:8080", chromium, true},
		{"http://localhost:8080", safari, false},
		{"http://id.example", chromium, false},
	}

	for _, tt := range tests {
		u, err := url.Parse(tt.public)
		if err != nil {
			t.Fatal(err)
		}
		c := web.Cookies{PublicURL: u}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("User-Agent", tt.agent)
		rec := httptest.NewRecorder()
		mark := c.Flow(rec, r)
		set := rec.Result().Cookies()[0]
		if set.Secure != tt.secure || strings.HasPrefix(set.Name, "__Host-") != tt.secure || !set.HttpOnly ||
			set.SameSite != http.SameSiteLaxMode || set.Path != "/" || set.Domain != "" {
			t.Errorf("the cookie at %s with %.20s is %v, want the attributes of a flow cookie",
				tt.public, tt.agent, set)
		}

		r.AddCookie(&http.Cookie{Name: set.Name, Value: set.Value})
		if got := c.FlowOf(r); got != mark {
			t.Errorf("%s: FlowOf = %q, want %q", tt.public, got, mark)
		}

		r.AddCookie(&http.Cookie{Name: set.Name, Value: mark})
		if got := c.FlowOf(r); got != "" {
			t.Errorf("%s: FlowOf of two cookies = %q, want none", tt.public, got)
		}
	}

	secure, err := url.Parse("https://id.example")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.AddCookie(&http.Cookie{Name: "selvage-flow", Value: strings.Repeat("A", 26)})
	if got := (web.Cookies{PublicURL: secure}).FlowOf(r); got != "" {
		t.Errorf("over https, a cookie without the prefix was accepted: %q", got)
	}
}
