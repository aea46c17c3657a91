package dashboard_test

import (
	"net/url"
	"testing"

	"github.com/selvage/selvage/internal/page"
)

// TestUpstreamPages shows that an operator can create, change and delete an upstream provider, and
// that the provider's secret is never shown.
func TestUpstreamPages(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("owner@example.com", ofAll)
	list := "/dashboard/projects/" + w.one.ID + "/upstreams"
	b.get(list).wantText(t, "There are no upstream providers yet")

	// fill returns a valid form with some fields replaced.
	fill := func(pairs ...string) url.Values {
		form := url.Values{
			"name":          {"Acme ID"},
			"issuer":        {"https://id.example/"},
			"client_id":     {"selvage"},
			"client_secret": {"hunter2"},
			"scopes":        {"openid email"},
			"enabled":       {"on"},
		}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		return form
	}

	unencrypted := b.post(list+"/new", list, fill("issuer", "http://id.example/"))
	unencrypted.wantRefused(t, "must be https")
	unencrypted.wantNoText(t, "hunter2")
	b.post(list+"/new", list, fill()).leadsTo(t, list+"?done=upstreamadded")

	one := b.get(list).find(t, `href="(`+list+`/[0-9a-f-]{36})"`)
	shown := b.get(one)
	shown.wantText(t, "/login/upstream/callback/id.example")
	shown.wantNoText(t, "hunter2")

	changed := fill("name", "New", "client_secret", "", "claim_email", "mail", "seen", b.marks(one))
	b.post(one, one, changed).leadsTo(t, list+"?done=changed")
	found, err := w.idp.Upstreams.List(t.Context(), w.one.ID, page.Query{Size: 10})
	must(t, err)
	u := found.Items[0]
	if u.Name != "New" {
		t.Errorf("the changed provider is named %q, want New", u.Name)
	}
	if u.Claims["email"] != "mail" {
		t.Errorf("the changed provider has the email in the claim %q, want mail", u.Claims["email"])
	}
	secret, err := w.idp.Upstreams.OpenSecret(u)
	must(t, err)
	if secret != "hunter2" {
		t.Errorf("the changed provider has the secret %q, want hunter2 as before", secret)
	}

	b.post(one, one+"/delete", url.Values{"confirm": {"Acme ID"}}).wantRefused(t) // an old name
	b.post(one, one+"/delete", url.Values{"confirm": {"New"}}).leadsTo(t, list+"?done=upstreamdeleted")
}
