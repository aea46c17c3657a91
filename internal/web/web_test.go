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
	bearer := func(headers ...string) (token string, ok bool) {
		r := httptest.NewRequest(http.MethodGet, "/?access_token=abc", nil)
		r.Header["Authorization"] = headers
		return web.Bearer(r)
	}

	for _, header := range []string{"Bearer abc", "bearer abc"} {
		if got, ok := bearer(header); !ok || got != "abc" {
			t.Errorf("Bearer with %q = %q, %t, want abc", header, got, ok)
		}
	}
	for _, headers := range [][]string{
		nil,
		{"Basic abc"},
		{"Bearer"},
		{"Bearer "},
		{"Bearer a b"},
		{"Bearer a, Bearer b"},
		{"Bearer a", "Bearer b"},
	} {
		if got, ok := bearer(headers...); ok || got != "" {
			t.Errorf("Bearer with %q = %q, %t, want no token", headers, got, ok)
		}
	}
}

func TestBasic(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.SetBasicAuth("a", "b:c")
	name, secret, ok := web.Basic(r)
	if !ok {
		t.Fatal("Basic finds no credentials")
	}
	if name != "a" {
		t.Errorf("the name is %q, want a", name)
	}
	if secret != "b:c" {
		t.Errorf("the secret is %q, want b:c", secret)
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
	var observed int
	observe := func(_ string, status int, _ time.Duration) { observed = status }
	handle := func(w http.ResponseWriter, r *http.Request) {
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
	}
	h := web.Outer(http.HandlerFunc(handle), slog.New(slog.DiscardHandler), observe)

	tests := []struct {
		method, path string
		encoding     string // the Content-Encoding header
		want         int
	}{
		{method: http.MethodGet, path: "/sendfile", want: http.StatusOK},
		{method: http.MethodGet, path: "/panic", want: http.StatusInternalServerError},
		{method: http.MethodTrace, path: "/", want: http.StatusMethodNotAllowed},
		// A compressed body is accepted here, because each protocol refuses it in its own format.
		{method: http.MethodPost, path: "/", encoding: "gzip", want: http.StatusOK},
	}

	for _, tt := range tests {
		t.Run(tt.method+tt.path, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.path, nil)
			if tt.encoding != "" {
				r.Header.Set("Content-Encoding", tt.encoding)
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if rec.Code != tt.want {
				t.Errorf("the status is %d, want %d", rec.Code, tt.want)
			}
			if rec.Header().Get("X-Request-Id") == "" {
				t.Error("the response has no request id")
			}
			if tt.want != http.StatusOK && observed != tt.want {
				t.Errorf("the observed status is %d, want %d", observed, tt.want)
			}
		})
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
		t.Run(tt.public+" with "+tt.agent, func(t *testing.T) {
			u, err := url.Parse(tt.public)
			if err != nil {
				t.Fatal(err)
			}
			testFlowCookie(t, web.Cookies{PublicURL: u}, tt.agent, tt.secure)
		})
	}
}

func testFlowCookie(t *testing.T, cookies web.Cookies, userAgent string, secure bool) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("User-Agent", userAgent)
	rec := httptest.NewRecorder()
	mark := cookies.Flow(rec, r)

	cookie := rec.Result().Cookies()[0]
	type attributes struct {
		Secure, HTTPOnly bool
		SameSite         http.SameSite
		Path, Domain     string
	}
	got := attributes{
		Secure:   cookie.Secure,
		HTTPOnly: cookie.HttpOnly,
		SameSite: cookie.SameSite,
		Path:     cookie.Path,
		Domain:   cookie.Domain,
	}
	want := attributes{Secure: secure, HTTPOnly: true, SameSite: http.SameSiteLaxMode, Path: "/"}
	if got != want {
		t.Errorf("the cookie has the attributes %+v, want %+v", got, want)
	}
	if prefixed := strings.HasPrefix(cookie.Name, "__Host-"); prefixed != secure {
		t.Errorf("the name %s begins with __Host-: %t, want %t", cookie.Name, prefixed, secure)
	}

	r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
	if got := cookies.FlowOf(r); got != mark {
		t.Errorf("FlowOf = %q, want %q", got, mark)
	}
	r.AddCookie(&http.Cookie{Name: cookie.Name, Value: mark})
	if got := cookies.FlowOf(r); got != "" {
		t.Errorf("FlowOf with two cookies = %q, want none", got)
	}
}

// TestFlowCookiePrefix shows that over HTTPS, a cookie without the prefix __Host- is ignored.
func TestFlowCookiePrefix(t *testing.T) {
	c := web.Cookies{PublicURL: &url.URL{Scheme: "https", Host: "id.example"}}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.AddCookie(&http.Cookie{Name: "selvage-flow", Value: strings.Repeat("A", 26)})
	if got := c.FlowOf(r); got != "" {
		t.Errorf("FlowOf = %q, want none", got)
	}
}
