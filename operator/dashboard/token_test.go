package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
)

// TestTokens shows that tokens are created manually, shown once, inspected and revoked. Each
// creation is in the audit trail.
func TestTokens(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base, ctx := "/dashboard/projects/"+w.one.ID+"/tokens", context.Background()

	// One subscriber in each project.
	mail := "ada@example.com"
	s, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &mail})
	must(t, err)
	all, err := w.fabric.Subscribers.ListAddresses(ctx, w.one.ID, s.ID, firstPage)
	must(t, err)
	address := all.Items[0].ID
	foreign, err := w.fabric.Subscribers.Create(ctx, w.two.ID, fabric.SubscriberInput{Email: &mail})
	must(t, err)
	theirs, err := w.fabric.Subscribers.ListAddresses(ctx, w.two.ID, foreign.ID, firstPage)
	must(t, err)

	mint := func(what string, form url.Values) answer {
		return b.post(base+"/make/"+what, base+"/make/"+what, form)
	}

	// Errors, such as addresses of the other project, are shown at their fields.
	for what, wrong := range map[string]url.Values{
		"subscriber": {"reference": {" "}},
		"guest":      {"allowed_addresses": {address + "\n" + theirs.Items[0].ID}},
		"invite":     {"address_id": {theirs.Items[0].ID}},
		"embed":      {"address_id": {theirs.Items[0].ID}},
	} {
		if a := mint(what, wrong); a.StatusCode != http.StatusUnprocessableEntity ||
			!strings.Contains(a.body, `aria-invalid="true"`) || strings.Contains(a.body, `id="made"`) {
			t.Errorf("an invalid %s token: %s", what, a.Status)
		}
	}

	// Each kind of token is shown once, then inspected and revoked, but only in its project.
	for what, right := range map[string]url.Values{
		"subscriber": {"reference": {mail}, "expires": {"15m"}}, "guest": {"allowed_addresses": {address}},
		"invite": {"address_id": {address}, "expires": {"24h"}},
		"embed":  {"address_id": {address}, "name": {"page"}},
	} {
		a := mint(what, right)
		secret := a.find(t, `id="made"><span class="copy"><code>([^<]+)<`)
		if strings.Contains(b.get(base).body, secret) {
			t.Errorf("the list shows the %s token again", what)
		}

		seen := b.post(base, base+"/inspect", url.Values{"token": {"Bearer " + secret}})
		if !strings.Contains(seen.body, `status good">Active`) || !strings.Contains(seen.body, `id="found-revoke"`) {
			t.Errorf("an inspected %s token: %s %s", what, seen.Status, between(seen.body, `id="found"`, "</form>"))
		}

		if other := b.post("/dashboard/projects/"+w.two.ID+"/tokens",
			"/dashboard/projects/"+w.two.ID+"/tokens/inspect",
			url.Values{"token": {secret}}); other.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("a %s token in another project: %s", what, other.Status)
		}
		if other := b.post("/dashboard/projects/"+w.two.ID+"/tokens",
			"/dashboard/projects/"+w.two.ID+"/tokens/revoke",
			url.Values{"token": {secret}}); other.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("revoking a %s token in another project: %s", what, other.Status)
		}

		b.post(base, base+"/revoke", url.Values{"token": {secret}}).leadsTo(t, base+"?done=tokenrevoked")
		if seen := b.post(base, base+"/inspect", url.Values{"token": {secret}}); !strings.Contains(seen.body,
			`status bad">Revoked`) {
			t.Errorf("a revoked %s token: %s", what, between(seen.body, `id="found"`, "</dl>"))
		}
	}

	// Existing subscribers and addresses are offered.
	if page := b.get(base + "/make/subscriber").body; !strings.Contains(page, `<option value="ada@example.com">`) {
		t.Error("subscribers are not offered")
	}
	if found := b.post(base+"/make/subscriber", "/dashboard/projects/"+w.one.ID+"/subscribers/find",
		url.Values{"text": {"ADA"}}); found.body != "[[\"ada@example.com\",\"\"]]\n" &&
		found.body != `[["ada@example.com",""]]` {
		t.Errorf("searching for ADA found %s %q", found.Status, found.body)
	}

	if page := b.get(base + "/make/invite").body; !strings.Contains(page, `<option value="/private/ada">`) {
		t.Error("addresses are not offered")
	}

	// An unknown reference creates a subscriber only after a question.
	slip := url.Values{"reference": {"adda@example.com"}}
	asked := mint("subscriber", slip)
	if asked.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(asked.body, "adda@example.com</bdi></strong> yet, so a new one will be created") ||
		strings.Contains(asked.body, `id="made"`) {
		t.Errorf("a mistyped reference: %s", asked.Status)
	}

	if found, err := w.fabric.Subscribers.List(ctx, w.one.ID, firstPage); err != nil || len(found.Items) != 1 {
		t.Errorf("after the question there are %d subscribers, %v", len(found.Items), err)
	}
	// The answer must be for the reference that is typed now.
	slip.Set("new", "another@example.com")
	if a := mint("subscriber", slip); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("another mistyped reference: %s", a.Status)
	}

	slip.Set("new", "adda@example.com")
	fresh := mint("subscriber", slip)
	look := b.post(base, base+"/inspect", url.Values{"token": {fresh.find(t, `name="token" value="([^"]+)"`)}}).body
	if !strings.Contains(look, "<bdi>adda@example.com</bdi>") || !strings.Contains(look, "ann@example.com") {
		t.Errorf("the new token: %s", between(look, `id="found"`, "</dl>"))
	}

	// A guest token takes a limited number of addresses, which must exist.
	guest := mint("guest", url.Values{"allowed_addresses": {"/private/ada\r\n/private/adda"}})
	if look = b.post(base, base+"/inspect",
		url.Values{"token": {guest.find(t,
			`id="made"><span class="copy"><code>([^<]+)<`)}}).body; !strings.Contains(look,
		"<bdi>/private/adda</bdi>") {
		t.Errorf("a guest token: %s", between(look, `id="found"`, "</dl>"))
	}

	if a := mint("guest",
		url.Values{"allowed_addresses": {"/private/nobody"}}); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "/private/nobody is not an address of this project") {
		t.Errorf("an unknown address: %s", a.Status)
	}
	many := strings.Repeat("/private/ada\n",
		fabric.MaxAllowed) + "/private/nobody" // only as many as allowed are looked up
	if a := mint("guest", url.Values{"allowed_addresses": {many}}); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "maximum is 10") || strings.Contains(a.body, "is not an address") {
		t.Errorf("too many addresses: %s", a.Status)
	}

	trail := b.get("/dashboard/projects/" + w.one.ID + "/audit?action=token.issued")
	for _, kind := range []string{"kind: sat", "kind: guest", "kind: invite"} {
		if !strings.Contains(trail.body, kind) {
			t.Errorf("the trail has no %s", kind)
		}
	}

	embed := "01a20292-11ce-79c1-8010-9ab89446cd8f"
	if a := b.post(base, base+"/revoke", url.Values{"embed": {embed}}); a.StatusCode != http.StatusNotFound {
		t.Errorf("revoking an unknown embed key: %s", a.Status)
	}
}

// TestLeakedKey shows that a leaked key is recognized, with a link to the page that revokes it.
// Inspecting it does not count as a use.
func TestLeakedKey(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	ctx, base, name := context.Background(), "/dashboard/projects/"+w.one.ID, "backend"

	k, secret, err := w.fabric.APIKeys.Create(
		ctx, w.one.ID, fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)
	_, theirs, err := w.fabric.APIKeys.Create(
		ctx, w.two.ID, fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)

	a := b.post(base+"/tokens", base+"/tokens/inspect", url.Values{"token": {` "` + secret + `" `}})
	if !strings.Contains(a.body, "This is an API key") || !strings.Contains(a.body, base+"/keys/"+k.ID) ||
		strings.Contains(a.body, secret) || !strings.Contains(a.body, "never") {
		t.Errorf("inspecting a leaked key: %s %s", a.Status, between(a.body, `id="found"`, "</div>"))
	}

	if a := b.post(base+"/tokens", base+"/tokens/inspect",
		url.Values{"token": {theirs}}); a.StatusCode != http.StatusUnprocessableEntity ||
		strings.Contains(a.body, "This is an API key") {
		t.Errorf("inspecting another project's key: %s", a.Status)
	}

	// After the key is revoked, the page says so.
	page := base + "/keys/" + k.ID
	b.post(page, page+"/revoke", url.Values{"confirm": {name}}).leadsTo(t, base+"/keys?done=revoked")
	if a := b.post(base+"/tokens", base+"/tokens/inspect", url.Values{"token": {secret}}); !strings.Contains(a.body,
		`status bad">Revoked`) {
		t.Errorf("inspecting a revoked key: %s", a.Status)
	}

	if list := b.get(base + "/keys").body; !strings.Contains(list, `Revoked</span> <time class="quiet"`) ||
		!strings.Contains(list, base+"/tokens#look") {
		t.Error("the list of keys does not show when one was revoked, or does not link to the other's page")
	}

	again, err := w.fabric.APIKeys.Find(ctx, w.one.ID, k.ID)
	if err != nil || !again.LastUsed.IsZero() {
		t.Errorf("inspecting a key counts as a use: %v, %v", again.LastUsed, err)
	}
}
