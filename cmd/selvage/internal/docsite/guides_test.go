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
	for _, file := range files {
		if !slices.Contains(names, strings.TrimSuffix(file, ".md")) {
			t.Errorf("%s is missing from the contents", file)
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

// follow checks a link on a page. It returns the fault, or "".
func follow(page, link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	if u.IsAbs() || u.Path == "/docs/openapi.yaml" || u.Path == "/docs" {
		return ""
	}

	target := page
	if u.Path != "" {
		name, ok := strings.CutPrefix(u.Path, guidePrefix)
		if !ok || guides[name] == nil {
			return "which is not a page"
		}
		target = name
	}
	p, err := guides[target]()
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
	const markdown = "# A\n\n" +
		"## What `x` is, now\n\n" +
		"[b](security.md#now) <script>alert(1)</script> [x](javascript:alert(1))\n\n" +
		"## What x is now\n\n" +
		"| key | meaning |\n|---|---|\n| `listen` | the address |\n"
	r, err := render([]byte(markdown))
	if err != nil {
		t.Fatal(err)
	}

	html := string(r.html)
	wanted := []string{
		`<h2 id="what-x-is-now">What <code>x</code> is, now</h2>`,
		`id="what-x-is-now-1"`,
		`href="/docs/guides/security#now"`,
		"<table>",
		`<td data-label="key" class="whole"><code>listen</code></td>`,
		`<td data-label="meaning">the address</td>`,
	}
	for _, want := range wanted {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s:\n%s", want, html)
		}
	}

	for _, bad := range []string{"<script", "javascript:"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page contains %s:\n%s", bad, html)
		}
	}

	if len(r.headings) != 2 {
		t.Fatalf("headings = %+v, want two", r.headings)
	}
	if got := r.headings[0].Summary; got != "What x is, now" {
		t.Errorf(`the first heading = %q, want "What x is, now"`, got)
	}
}

// TestGuidePages checks the navigation and the content security policy of a page, and the page that is
// shown for an unknown path.
func TestGuidePages(t *testing.T) {
	h := New(Config{}).Handler()
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}

	shown := get(guidePrefix + "https")
	if shown.Code != http.StatusOK {
		t.Errorf("GET of the page https = %d, want 200", shown.Code)
	}
	if !strings.Contains(shown.Body.String(), `aria-current="page"`) {
		t.Error("the navigation does not mark the page https as current")
	}
	if !strings.Contains(shown.Body.String(), `<a href="#acme">`) {
		t.Error("the navigation does not show the headings of the page https")
	}

	csp := shown.Header().Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("Content-Security-Policy = %q, want default-src 'none' and nothing unsafe", csp)
	}

	unknown := get(guidePrefix + "nothing")
	if unknown.Code != http.StatusNotFound {
		t.Errorf("GET of an unknown page = %d, want 404", unknown.Code)
	}
	if !strings.Contains(unknown.Body.String(), `href="/docs"`) {
		t.Errorf("the page for status 404 has no link to the contents:\n%s", unknown.Body)
	}
}
