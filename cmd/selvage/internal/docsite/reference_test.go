package docsite_test

import (
	"net/http/httptest"
	"net/url"
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
		if page.Code != 200 {
			t.Errorf("GET %s = %d, want 200", path, page.Code)
		}
		const strict = "default-src 'none'; script-src 'self'"
		if !strings.Contains(csp, strict) || strings.Contains(csp, "unsafe") {
			t.Errorf("%s has the policy %q, want %q and nothing unsafe", path, csp, strict)
		}
		if strings.Contains(body, "style=") {
			t.Errorf("%s has inline styles, want none", path)
		}

		for _, m := range fetched.FindAllStringSubmatch(body, -1) {
			link := m[1]
			if !strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "#") && link != "data:," {
				t.Errorf("the page %s fetches or links to %s, want only this host", path, link)
			}
		}

		for _, m := range anyID.FindAllStringSubmatch(body, -1) {
			shown[m[1]] = body
		}
	}

	for path, item := range openapitest.Ours().Paths.Map() {
		for method, op := range item.Operations() {
			body := shown[op.OperationID]
			if body == "" {
				t.Errorf("%s %s is on no page", method, path)
			}
			if !strings.Contains(index.Body.String(), "#"+op.OperationID+`"`) {
				t.Errorf("/docs has no link to %s %s", method, path)
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
		{query: "guest POST", has: "#createGuestToken", hasNot: "#createInvite"},
		{query: "sip_addresses", has: "#createSipAddress", hasNot: "#createGuestToken"},
		{query: "guest", has: "#createGuestToken", hasNot: "Before the first request"},
		{query: "nothing-like-it", has: "No results", hasNot: `class="operations"`},
		{query: "redis", has: "/docs/guides/redis", hasNot: "No results"},
		{query: "backup restore", has: "/docs/guides/backup", hasNot: "No results"},
		{query: "oidc", has: "/docs/guides/", hasNot: "No results"},
		{query: "selvage WEBHOOK deliveries", has: "/docs/guides/guide#webhooks", hasNot: "No results"},
		{query: `"><b>`, has: "&#34;&gt;&lt;b&gt;", hasNot: "<b>"},
		{query: "", has: "#createInvite", hasNot: "No results"},
		{query: strings.Repeat("ä", 90), has: "No results", hasNot: `class="hits"`},
	}

	for _, tt := range tests {
		body := get(t, s, "/docs?q="+url.QueryEscape(tt.query)).Body.String()
		if !strings.Contains(body, tt.has) {
			t.Errorf("the results for %q lack %q", tt.query, tt.has)
		}
		if strings.Contains(body, tt.hasNot) {
			t.Errorf("the results for %q contain %q", tt.query, tt.hasNot)
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

	loaded, err := kinds.Load(dir)
	if err != nil {
		t.Fatal(err)
	}

	s := docsite.New(docsite.Config{Config: openapi.Config{
		Kinds:     loaded,
		PublicURL: "https://calls.example.org",
		AuthURL:   "https://id.example.org",
	}})
	text := get(t, s, "/docs/openapi.yaml")
	doc, err := openapitest.Load(text.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Valid(); err != nil {
		t.Fatal(err)
	}

	if doc.Paths.Find("/api/fabric/resources/recordings_/{id}") == nil {
		t.Error("the document lacks the paths of the kind")
	}
	if got := doc.Servers[0].URL; got != "https://calls.example.org" {
		t.Errorf("the server of the document = %s, want https://calls.example.org", got)
	}

	if got := doc.Paths.Find("/oauth/token").Servers[0].URL; got != "https://id.example.org" {
		t.Errorf("the server of /oauth/token = %s, want https://id.example.org", got)
	}
	if strings.Contains(text.Body.String(), "localhost") {
		t.Error("the document contains localhost")
	}

	again := get(t, s, "/docs/openapi.yaml", "If-None-Match", text.Header().Get("ETag"))
	if again.Code != 304 {
		t.Errorf("the request with the ETag = %d, want 304", again.Code)
	}
	if again.Body.Len() > 0 {
		t.Errorf("the response with status 304 has a body of %d bytes, want none", again.Body.Len())
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
