package docsite_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/docsite"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/openapi"
	"github.com/selvage/selvage/openapi/openapitest"
)

// get requests a path. header lists pairs of header names and values.
func get(t *testing.T, s *docsite.Site, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, r)
	return rec
}

var (
	areaLink = regexp.MustCompile(`href="(/docs/[a-z0-9-]+)"`)
	anyID    = regexp.MustCompile(`<section class="operation" id="([^"]+)"`)
	fetched  = regexp.MustCompile(`(?:src|href|action)="([^"]+)"`)
)

// TestPages shows that every operation of the document is on a page, and that pages load nothing
// from other hosts.
func TestPages(t *testing.T) {
	s := docsite.New(docsite.Config{Config: openapi.Config{PublicURL: "https://calls.example.org"}})
	index := get(t, s, "/docs")
	if index.Code != 200 {
		t.Fatalf("GET /docs = %d, want 200: %s", index.Code, index.Body)
	}

	shown := make(map[string]string)
	pages := map[string]bool{"/docs": true}
	for _, m := range areaLink.FindAllStringSubmatch(index.Body.String(), -1) {
		pages[m[1]] = true
	}

	for path := range pages {
		page := get(t, s, path)
		body := page.Body.String()
		csp := page.Header().Get("Content-Security-Policy")
		if page.Code != 200 || strings.Contains(csp, "unsafe") ||
			!strings.Contains(csp, "default-src 'none'; script-src 'self'") || strings.Contains(body, "style=") {
			t.Errorf("GET %s = %d with the policy %q, want 200, a strict policy and no inline styles",
				path, page.Code, csp)
		}

		for _, m := range fetched.FindAllStringSubmatch(body, -1) {
			if !strings.HasPrefix(m[1], "/") && !strings.HasPrefix(m[1], "#") && m[1] != "data:," {
				t.Errorf("the page %s fetches or links to %s, want only this host", path, m[1])
			}
		}

		for _, m := range anyID.FindAllStringSubmatch(body, -1) {
			shown[m[1]] = body
		}
	}

	for path, item := range openapitest.Ours().Paths.Map() {
		for method, op := range item.Operations() {
			body := shown[op.OperationID]
			if body == "" || !strings.Contains(index.Body.String(), "#"+op.OperationID+`"`) {
				t.Errorf("%s %s is on no page", method, path)
			}
			for status := range op.Responses.Map() {
				if !strings.Contains(body, ">"+status+"</dt>") {
					t.Errorf("%s %s: the page does not mention %s", method, path, status)
				}
			}
		}
	}
}

// TestFind shows which operations a search finds, and that the query is escaped.
func TestFind(t *testing.T) {
	s := docsite.New(docsite.Config{})
	tests := []struct{ query, has, hasNot string }{
		{"guest+POST", "#createGuestToken", "#createInvite"},
		{"sip_addresses", "#createSipAddress", "#createGuestToken"},
		{"guest", "#createGuestToken", "Before the first request"},
		{"nothing-like-it", "No results", `class="operations"`},
		{"redis", "/docs/guides/redis", "No results"},
		{"backup+restore", "/docs/guides/backup", "No results"},
		{"oidc", "/docs/guides/", "No results"},
		{"selvage+WEBHOOK+deliveries", "/docs/guides/guide#webhooks", "No results"},
		{`"><b>`, "&#34;&gt;&lt;b&gt;", "<b>"},
		{"", "#createInvite", "No results"},
		{strings.Repeat("%C3%A4", 90), "No results", "class=\"hits\""},
	}

	for _, tt := range tests {
		body := get(t, s, "/docs?q="+strings.NewReplacer(
			`"`, "%22", ">", "%3E", "<", "%3C").Replace(tt.query)).Body.String()
		if !strings.Contains(body, tt.has) || strings.Contains(body, tt.hasNot) {
			t.Errorf("q=%s: the page lacks %q, or contains %q", tt.query, tt.has, tt.hasNot)
		}
	}

	if got := get(t, s, "/docs/no-such-area"); got.Code != 404 {
		t.Errorf("GET /docs/no-such-area = %d, want 404", got.Code)
	}
}

// hostile is a kind with markup in its texts, and with names that other kinds already use.
const hostile = `{"title":"<b>Recording</b>","description":"<script>alert(1)</script> ` + "`<i>`" +
	`","type":"object","required":["name"],
	"x-kind":{"type":"recording","path":"recordings_","key":"recording","update":"PUT","name":["name"],
		"address":"app","channels":["audio"]},
	"properties":{"name":{"type":"string","description":"{{.}} <u>'\"","enum":["<a>","b"]},
		"price":{"type":["integer","null"]}}}`

// TestOperatorsKinds shows that a kind of resource defined by an operator is in the OpenAPI document
// and on the pages, and that the pages escape its texts.
func TestOperatorsKinds(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "recordings.json"), []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}

	all, err := kinds.Load(dir)
	if err != nil {
		t.Fatal(err)
	}

	s := docsite.New(docsite.Config{Config: openapi.Config{
		Kinds:     all,
		PublicURL: "https://calls.example.org",
		AuthURL:   "https://id.example.org",
	}})
	text := get(t, s, "/docs/openapi.yaml")
	doc, err := openapitest.Load(text.Body.Bytes())
	if err == nil {
		err = doc.Valid()
	}
	if err != nil {
		t.Fatal(err)
	}

	if doc.Paths.Find("/api/fabric/resources/recordings_/{id}") == nil ||
		doc.Servers[0].URL != "https://calls.example.org" {
		t.Errorf("the document lacks the kind, or has an unexpected server: %v", doc.Servers)
	}

	if got := doc.Paths.Find("/oauth/token").Servers[0].URL; got != "https://id.example.org" {
		t.Errorf("the server of /oauth/token = %s, want https://id.example.org", got)
	}
	if strings.Contains(text.Body.String(), "localhost") {
		t.Error("the document contains localhost")
	}

	if again := get(t, s, "/docs/openapi.yaml", "If-None-Match",
		text.Header().Get("ETag")); again.Code != 304 || again.Body.Len() != 0 {
		t.Errorf("the same request again = %d, want 304 without a body", again.Code)
	}

	body := ""
	for _, m := range areaLink.FindAllStringSubmatch(get(t, s, "/docs").Body.String(), -1) {
		body += get(t, s, m[1]).Body.String()
	}

	for _, bad := range []string{"<b>Rec", "<script>alert", "<i>", "<u>", "<a>"} {
		if strings.Contains(body, bad) {
			t.Errorf("the pages contain %s unescaped", bad)
		}
	}

	if !strings.Contains(body, "&lt;script&gt;alert(1)") {
		t.Error("the description of the kind is on no page")
	}
}
