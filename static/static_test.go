package static

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
)

// maxFonts is the maximum size of all fonts together, in bytes.
const maxFonts = 60_000

// TestFonts shows that the fonts in stylesheets exist and may be cached, that they are small, and that
// their licenses are served, too.
func TestFonts(t *testing.T) {
	named := regexp.MustCompile(`url\((.*?)\)`)
	total := make(map[string]int)
	for _, sheet := range []string{"pages.css", "dashboard.css"} {
		urls := named.FindAllSubmatch(get(t, URL(sheet)).Body.Bytes(), -1)
		if len(urls) != len(fonts) {
			t.Fatalf("%s loads %d files, want %d fonts", sheet, len(urls), len(fonts))
		}

		for _, u := range urls {
			answer := get(t, string(u[1]))
			total[string(u[1])] = answer.Body.Len()
			if !bytes.HasPrefix(answer.Body.Bytes(), []byte("wOF2")) {
				t.Errorf("%s is not a font for the web", u[1])
			}
			for name, want := range map[string]string{"Content-Type": "font/woff2", "Access-Control-Allow-Origin": "*",
				"Cache-Control": "public, max-age=31536000, immutable"} {
				if got := answer.Header().Get(name); got != want {
					t.Errorf("%s of %s is %q, want %q", name, u[1], got, want)
				}
			}
		}
	}

	sum := 0
	for _, n := range total {
		sum += n
	}
	if sum > maxFonts {
		t.Errorf("the fonts have %d bytes, want at most %d", sum, maxFonts)
	}
	if !bytes.Contains(get(t, URL("fonts.txt")).Body.Bytes(), []byte("SIL Open Font License, Version 1.1")) {
		t.Error("the license of the fonts is not served")
	}
}

// get serves a URL, which must exist.
func get(t *testing.T, url string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("GET %s = %d, want 200", url, w.Code)
	}
	return w
}
