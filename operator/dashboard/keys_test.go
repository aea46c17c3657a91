package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
)

// TestKeys shows that an operator can create an API key, see its secret only once, rotate the key
// and revoke it.
func TestKeys(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID + "/keys"

	withoutScopes := b.post(base+"/new", base, url.Values{"name": {"back"}})
	withoutScopes.wantRefused(t, `value="back"`)
	form := b.get(base + "/new") // it offers the scopes that have an effect
	form.wantText(t, `value="Management"`)
	form.wantNoText(t, `value="Datasphere"`)

	created := b.post(base+"/new", base, url.Values{"name": {"back"}, "scope": {"Voice", "Video"}, "expires": {"30d"}})
	secret := created.find(t, `id="secret"><span class="copy"><code>(PT[0-9a-f]{64})<`)
	k, err := w.fabric.APIKeys.Authenticate(t.Context(), w.one.ID, secret)
	must(t, err)
	if len(k.Scopes) != 2 {
		t.Fatalf("the new key has the scopes %v, want two", k.Scopes)
	}
	if k.Expires.IsZero() {
		t.Fatal("the new key does not expire")
	}

	page := base + "/" + k.ID
	shown := b.get(page)
	shown.wantText(t, secret[:8])
	shown.wantNoText(t, secret)

	next := b.post(page, page+"/rotate", url.Values{"overlap": {"now"}}).find(t, `<code>(PT[0-9a-f]{64})<`)
	if _, err := w.fabric.APIKeys.Authenticate(t.Context(), w.one.ID, secret); err == nil {
		t.Error("the old secret is accepted after a rotation without overlap")
	}

	next = endOldSecret(t, w, b, page, next)
	b.post(page, page+"/revoke", url.Values{"confirm": {"other"}}).wantRefused(t)
	b.post(page, page+"/revoke", url.Values{"confirm": {"back"}}).leadsTo(t, base+"?done=revoked")
	if _, err := w.fabric.APIKeys.Authenticate(t.Context(), w.one.ID, next); err == nil {
		t.Error("a revoked key is accepted")
	}
}

// TestKeysNeedConfirmation shows that rotating and creating keys, and creating clients, need a
// recent confirmation.
func TestKeysNeedConfirmation(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	w.pass(operator.Freshness)
	name := "second"
	k, _, err := w.fabric.APIKeys.Create(t.Context(), w.one.ID,
		fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)

	project := "/dashboard/projects/" + w.one.ID
	page := project + "/keys/" + k.ID
	b.post(page, page+"/rotate", url.Values{"overlap": {"now"}}).asksToConfirm(t, page)
	for _, list := range []string{project + "/keys", project + "/clients"} {
		b.get(list+"/new").leadsTo(t, "/dashboard/confirm?next="+url.QueryEscape(list+"/new"))
		b.post(page, list, url.Values{"name": {"third"}, "scope": {"Voice"}}).asksToConfirm(t, page)
	}

	before := b.cookie()
	confirm := "/dashboard/confirm?next=" + url.QueryEscape(page)
	b.post(confirm, "/dashboard/confirm", url.Values{"password": {"wrong"}}).wantRefused(t)
	b.post(confirm, "/dashboard/confirm", url.Values{"password": {good}, "next": {page}}).leadsTo(t, page)
	if b.cookie() == before {
		t.Error("confirming the password does not change the cookie")
	}
	b.post(page, page+"/rotate", url.Values{"overlap": {"day"}}).find(t, `<code>(PT[0-9a-f]{64})<`)
}

// endOldSecret rotates a key, ends the old secret, and returns the new one. It checks that the page
// keeps showing the new secret.
func endOldSecret(t *testing.T, w *world, b browser, page, old string) string {
	t.Helper()
	shown := b.post(page, page+"/rotate", url.Values{"overlap": {"day"}})
	shown.wantText(t, `id="rotate"`, `id="end-old"`, `id="revoke"`)
	if strings.Index(shown.body, `id="end-old"`) > strings.Index(shown.body, `id="revoke"`) {
		t.Error("after a rotation, the page offers to revoke the key before it offers to end the old secret")
	}

	present := shown.find(t, shownSecret)
	ended := b.post(page, page+"/old-secret", url.Values{"secret": {present}})
	ended.wantNoText(t, `id="end-old"`)
	if kept := ended.find(t, shownSecret); kept != present {
		t.Errorf("after the end of the old secret, the page shows %q, want %q", kept, present)
	}

	if _, err := w.fabric.APIKeys.Authenticate(t.Context(), w.one.ID, old); err == nil {
		t.Error("the old secret is accepted after its end")
	}
	if _, err := w.fabric.APIKeys.Authenticate(t.Context(), w.one.ID, present); err != nil {
		t.Errorf("the new secret is refused after the end of the old one: %v", err)
	}
	again := b.post(page, page+"/old-secret", url.Values{"secret": {old}})
	again.wantRefused(t)
	again.wantNoText(t, old)
	return present
}
