package clients

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestWeightOfSignIn shows that the login page is small: the page, its headers and all its files
// take at most 30,000 bytes over the wire. The font that all pages share does not count. The page
// does not wait for scripts.
func TestWeightOfSignIn(t *testing.T) {
	harness.OneBackend(t)
	n := harness.StartNodes(t, nil, harness.Config{})
	p := n.NewProject(t)
	p.CLI(t, "", "project", "update", p.ID, "--color", "#c2410c", "--logo", logoFile(t), "--tos-uri",
		"https://acme.example/terms", "--policy-uri", "https://acme.example/privacy")
	c := p.NewClient(t, "spa", "--name", "Acme Dialer")
	page := p.Browser().Open(t, c.NewFlow("openid").URL())

	body := page.Body
	total := len(body) + 1500 // includes its headers and the headers of the redirects
	files := regexp.MustCompile(`(?:href|src)="(/[^"?#]+\.[a-z]+)"`).FindAllStringSubmatch(string(body), -1)
	for _, m := range files {
		got := p.Get(t, m[1]).Want(t, http.StatusOK)
		total += len(got.Body) + 500
	}

	t.Logf("the login page with %d files is %d bytes", len(files), total)
	if len(files) < 2 || total > 30_000 {
		t.Errorf("the login page with %d files is %d bytes, want at most 30,000", len(files), total)
	}

	for _, script := range regexp.MustCompile(`<script[^>]*>`).FindAllString(string(body), -1) {
		if !strings.Contains(script, " defer") {
			t.Errorf("the page waits for %s before it is shown", script)
		}
	}
}
