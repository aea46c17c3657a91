package docsite

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/docs"
)

// TestGuides shows that every document is served and every served document exists. Each link
// between them must lead to an existing page and heading.
func TestGuides(t *testing.T) {
	var names []string
	for _, g := range contents {
		for _, d := range g.documents {
			names = append(names, d.name)
		}
	}

	files, err := fs.Glob(docs.Files, "*.md")
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range files {
		if !slices.Contains(names, strings.TrimSuffix(f, ".md")) {
			t.Errorf("%s is missing from the contents", f)
		}
	}

	for _, name := range names {
		p, err := guides[name]()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, link := range p.links {
			if fault := follow(name, link); fault != "" {
				t.Errorf("%s links to %s, %s", name, link, fault)
			}
		}
	}
}

// follow checks a link on the page named from. It returns the fault, or "".
func follow(from, link string) string {
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return err.Error()
	case u.IsAbs():
		return ""
	case u.Path == "/docs/openapi.yaml" || u.Path == "/docs":
		return ""
	case u.Path == "":
		u.Path = guidePrefix + from
	}

	find, ok := guides[strings.TrimPrefix(u.Path, guidePrefix)]
	if !ok || !strings.HasPrefix(u.Path, guidePrefix) {
		return "which is not a page"
	}

	p, err := find()
	if err != nil {
		return err.Error()
	}
	if u.Fragment != "" && !p.anchors[u.Fragment] {
		return "which has no such heading"
	}

	return ""
}

// TestRender shows that headings get the same IDs as on GitHub, that links lead to the served
// documents, and that scripts are omitted.
func TestRender(t *testing.T) {
	r, err := render([]byte("# A\n\n## What `x` is, now\n\n" +
		"[b](security.md#now) <script>alert(1)</script> [x](javascript:alert(1))\n\n" +
		"## What x is now\n\n| key | meaning |\n|---|---|\n| `listen` | the address |\n"))
	if err != nil {
		t.Fatal(err)
	}

	html := string(r.html)
	for _, want := range []string{`<h2 id="what-x-is-now">What <code>x</code> is, now</h2>`,
		`id="what-x-is-now-1"`, `href="/docs/guides/security#now"`, "<table>",
		`<td data-label="key" class="whole"><code>listen</code></td>`,
		`<td data-label="meaning">the address</td>`} {
		if !strings.Contains(html, want) {
			t.Errorf("%s is not in %s", want, html)
		}
	}

	for _, bad := range []string{"<script", "javascript:"} {
		if strings.Contains(html, bad) {
			t.Errorf("%s is in %s", bad, html)
		}
	}

	if len(r.headings) != 2 || r.headings[0].Summary != "What x is, now" {
		t.Errorf(`headings = %+v, want two, the first of them "What x is, now"`, r.headings)
	}
}

// TestGuidePages shows that pages run only our scripts and load nothing from other hosts.
func TestGuidePages(t *testing.T) {
	h := New(Config{}).Handler()
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}

	w := get(guidePrefix + "https")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `aria-current="page"`) ||
		!strings.Contains(w.Body.String(), `<a href="#acme">`) {
		t.Errorf("GET of the page https = %d, want 200, marked as current and with its headings", w.Code)
	}

	if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
		strings.Contains(csp, "unsafe") {
		t.Errorf("Content-Security-Policy = %q, want default-src 'none' and nothing unsafe", csp)
	}

	if w := get(guidePrefix + "nothing"); w.Code != http.StatusNotFound ||
		!strings.Contains(w.Body.String(), `href="/docs"`) {
		t.Errorf("GET of an unknown page = %d, want 404 with a link to the contents:\n%s", w.Code, w.Body)
	}
}
