package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

// TestWebhookPages shows that an operator can create, change, test and delete a webhook.
func TestWebhookPages(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	_, b := w.operator("owner@example.com", ofAll)
	all := "/dashboard/projects/" + w.one.ID + "/webhooks"
	if got := b.get(all); !strings.Contains(got.body, "Create the first one") {
		t.Fatalf("the empty list: %s, want a link to create the first webhook", got.Status)
	}

	wrong := b.post(all+"/new", all, url.Values{"url": {" "}, "name": {"CRM"},
		"events": {"call.ended"}})
	if wrong.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(wrong.body, `value="CRM"`) ||
		!strings.Contains(wrong.body, `id="f-url-fault"`) ||
		!strings.Contains(wrong.body, `value="call.ended" checked`) {
		t.Errorf("an empty URL: %s, want 422 with the values and an error at the URL", wrong.Status)
	}

	local := b.post(all+"/new", all, url.Values{"url": {"http://10.1.2.3:9000/x"}, "name": {"CRM"}})
	if local.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(local.body, "add <code>10.1.2.3</code> to <code>egress.allow</code>") ||
		!strings.Contains(local.body, `id="egress"`) || strings.Contains(wrong.body, `id="egress"`) {
		t.Errorf("a private address: %s, want 422 that names the setting", local.Status)
	}
	number := b.post(all+"/new", all, url.Values{"url": {"http://0x7f000001/"}, "name": {"CRM"}})
	if !strings.Contains(number.body, "must not have a number as its host") ||
		strings.Contains(number.body, "egress.allow") {
		t.Errorf("a number as the host: %s, want the reason without the setting", number.Status)
	}

	made := b.post(all+"/new", all, url.Values{"url": {"https://hooks.example/crm"}, "name": {"CRM"},
		"events": {"call.ended", "call.created"}})
	found, err := w.fabric.Webhooks.List(ctx, w.one.ID, page.Query{Size: 10})
	must(t, err)
	if len(found.Items) != 1 {
		t.Fatalf("there are %d webhooks, want 1", len(found.Items))
	}
	hook := found.Items[0]
	one := all + "/" + hook.ID
	made.leadsTo(t, one+"?done=webhookadded")
	if hook.Name != "CRM" || !hook.Enabled || len(hook.Events) != 2 {
		t.Errorf("the webhook is %+v, want CRM, enabled, with two events", hook)
	}

	// A test event can be inspected, and is queued again on request.
	tested := b.post(one, one+"/test", nil)
	sent, err := w.fabric.Deliveries.List(ctx, w.one.ID, hook.ID, "", page.Query{Size: 10})
	must(t, err)
	if len(sent.Items) != 1 {
		t.Fatalf("there are %d deliveries, want 1", len(sent.Items))
	}
	delivery := one + "/deliveries/" + sent.Items[0].ID
	tested.leadsTo(t, delivery+"?done=webhooktested")
	got := b.get(delivery)
	if !strings.Contains(got.body, "&#34;event&#34;: &#34;webhook.test&#34;") {
		t.Errorf("the delivery's page lacks the body: %s", got.Status)
	}

	// While a delivery is pending, its page follows the attempts.
	live := strings.ReplaceAll(between(got.body, `data-live="`, `"`), "&amp;", "&")
	if event := b.follow(strings.Replace(live, "pending-0", "pending-1", 1)).next(); event != "new" {
		t.Errorf("an attempt is announced by %q at %s, want new", event, live)
	}
	if a := b.follow(all + "/other/deliveries/" + sent.Items[0].ID + "/live"); a.next() == "new" {
		t.Error("a delivery can be followed under another webhook")
	}
	b.post(delivery, delivery+"/redeliver", nil).leadsTo(t, delivery+"?done=redelivered")
	if got := b.get(one + "?state=dead"); strings.Contains(got.body, sent.Items[0].ID) {
		t.Error("the list of dead deliveries has one that is pending")
	}

	// Changing the URL keeps another operator's change of the name.
	seen := strings.ReplaceAll(b.get(one+"/edit").find(t, `name="seen" value="([^"]*)"`), "&amp;", "&")
	theirs := "Theirs"
	_, err = w.fabric.Webhooks.Update(ctx, w.one.ID, hook.ID, fabric.WebhookInput{Name: &theirs})
	must(t, err)
	b.post(one+"/edit", one+"/edit", url.Values{"url": {"https://hooks.example/new"}, "name": {"CRM"},
		"events": {"call.created", "call.ended"}, "seen": {seen}}).leadsTo(t, one+"?done=changed")
	hook, err = w.fabric.Webhooks.Find(ctx, w.one.ID, hook.ID)
	must(t, err)
	if hook.Name != theirs || hook.URL != "https://hooks.example/new" || hook.Enabled {
		t.Errorf("the changed webhook is %+v, want both changes", hook)
	}

	if got := b.post(one, one+"/delete", url.Values{"confirm": {"CRM"}}); got.StatusCode != 422 {
		t.Errorf("deleting by an old name: %s, want 422", got.Status)
	}
	b.post(one, one+"/delete", url.Values{"confirm": {theirs}}).leadsTo(t, all+"?done=webhookdeleted")
}

// TestSigningKeyPage shows that only operators who may change the project see its signing key, and
// that rotating it shows the next key.
func TestSigningKeyPage(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	_, b := w.operator("owner@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	all := "/dashboard/projects/" + w.one.ID
	to := "https://hooks.example/"
	_, err := w.fabric.Webhooks.Create(ctx, w.one.ID, fabric.WebhookInput{URL: &to})
	must(t, err)

	keys, err := w.fabric.Webhooks.SigningKeys(ctx, w.one.ID)
	must(t, err)
	if got := b.post(all+"/webhooks", all+"/signing-key", nil); !strings.Contains(got.body, keys.CurrentSecret) {
		t.Errorf("the page lacks the key: %s", got.Status)
	}
	got := viewer.post("/dashboard/account", all+"/signing-key", nil)
	if got.StatusCode != http.StatusForbidden || strings.Contains(got.body, keys.CurrentSecret) {
		t.Errorf("a viewer's answer: %s, want 403 without the key", got.Status)
	}
	if got := viewer.get(all + "/webhooks"); strings.Contains(got.body, "signing-key") {
		t.Error("a viewer is offered the signing key")
	}

	rotated := b.post(all+"/webhooks", all+"/signing-key/rotate", url.Values{"overlap": {"day"}})
	if keys, err = w.fabric.Webhooks.SigningKeys(ctx, w.one.ID); err != nil || keys.Next == nil {
		t.Fatalf("after the rotation: %v, want a next key", err)
	}
	if !strings.Contains(rotated.body, keys.NextSecret) || !strings.Contains(rotated.body, keys.CurrentSecret) {
		t.Errorf("the page lacks a key: %s", rotated.Status)
	}
	for _, overlap := range []string{"day", "year"} { // a rotation is pending; the overlap is unknown
		form := url.Values{"overlap": {overlap}}
		if got := b.post(all+"/webhooks", all+"/signing-key/rotate", form); got.StatusCode != 422 {
			t.Errorf("rotating again with overlap %s: %s, want 422", overlap, got.Status)
		}
	}
}
