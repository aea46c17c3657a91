package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/page"
)

// TestUpstreamPages shows that an operator can create, change and delete an upstream provider, and
// that its secret is never shown.
func TestUpstreamPages(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("owner@example.com", ofAll)
	all := "/dashboard/projects/" + w.one.ID + "/upstreams"
	if got := b.get(all); !strings.Contains(got.body, "There are no upstream providers yet") {
		t.Fatalf("the empty list: %s, want a sentence that says so", got.Status)
	}

	fill := func(pairs ...string) url.Values {
		form := url.Values{"name": {"Acme ID"}, "issuer": {"https://id.example/"}, "client_id": {"selvage"},
			"client_secret": {"hunter2"}, "scopes": {"openid email"}, "enabled": {"on"}}
		for i := 0; i < len(pairs); i += 2 {
			form[pairs[i]] = []string{pairs[i+1]}
		}
		return form
	}

	wrong := b.post(all+"/new", all, fill("issuer", "http://id.example/"))
	if wrong.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(wrong.body, "must be https") ||
		strings.Contains(wrong.body, "hunter2") {
		t.Errorf("a wrong issuer: %s, want 422 with the reason and no secret", wrong.Status)
	}
	b.post(all+"/new", all, fill()).leadsTo(t, all+"?done=upstreamadded")

	link := regexp.MustCompile(`href="(` + all + `/[0-9a-f-]{36})"`).FindStringSubmatch(b.get(all).body)
	if link == nil {
		t.Fatal("the list does not link to the provider")
	}

	shown := b.get(link[1])
	if strings.Contains(shown.body, "hunter2") || !strings.Contains(shown.body, "/login/upstream/callback/id.example") {
		t.Errorf("the form shows the secret, or lacks the redirect URI")
	}

	seen := regexp.MustCompile(`name="seen" value="([^"]*)"`).FindStringSubmatch(shown.body)
	b.post(link[1], link[1], fill("name", "New", "client_secret", "", "claim_email", "mail", "seen",
		strings.ReplaceAll(seen[1], "&amp;", "&"))).leadsTo(t, all+"?done=changed")
	found, err := w.idp.Upstreams.List(context.Background(), w.one.ID, page.Query{Size: 10})
	must(t, err)
	u := found.Items[0]
	secret, err := w.idp.Upstreams.OpenSecret(u)
	if u.Name != "New" || u.Claims["email"] != "mail" || secret != "hunter2" {
		t.Errorf("the provider is %+v with the secret %q, %v, want the changes and the old secret", u, secret, err)
	}

	if got := b.post(link[1], link[1]+"/delete", url.Values{"confirm": {"Acme ID"}}); got.StatusCode != 422 {
		t.Errorf("deleting without its name: %s, want 422", got.Status)
	}
	b.post(link[1], link[1]+"/delete", url.Values{"confirm": {"New"}}).leadsTo(t, all+"?done=upstreamdeleted")
}
