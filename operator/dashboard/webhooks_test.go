package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
)

// TestWebhookPages shows that an operator can create, change and delete a webhook.
func TestWebhookPages(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("owner@example.com", ofAll)
	list := "/dashboard/projects/" + w.one.ID + "/webhooks"
	b.get(list).wantText(t, "Create the first one")

	made := b.post(list+"/new", list, url.Values{
		"url":    {"https://hooks.example/crm"},
		"name":   {"CRM"},
		"events": {"call.ended", "call.created"},
	})
	hook := w.onlyWebhook()
	one := list + "/" + hook.ID
	made.leadsTo(t, one+"?done=webhookadded")
	if hook.Name != "CRM" {
		t.Errorf("the webhook is named %q, want CRM", hook.Name)
	}
	if !hook.Enabled {
		t.Error("the webhook is disabled, want it enabled")
	}
	if n := len(hook.Events); n != 2 {
		t.Errorf("the webhook has %d events, want 2", n)
	}

	// Changing the URL keeps another operator's change of the name.
	seen := b.marks(one + "/edit")
	theirs := "Theirs"
	_, err := w.fabric.Webhooks.Update(t.Context(), w.one.ID, hook.ID, fabric.WebhookInput{Name: &theirs})
	must(t, err)
	b.post(one+"/edit", one+"/edit", url.Values{
		"url":    {"https://hooks.example/new"},
		"name":   {"CRM"},
		"events": {"call.created", "call.ended"},
		"seen":   {seen},
	}).leadsTo(t, one+"?done=changed")
	hook = w.onlyWebhook()
	if hook.Name != theirs {
		t.Errorf("the changed webhook is named %q, want %q", hook.Name, theirs)
	}
	if hook.URL != "https://hooks.example/new" {
		t.Errorf("the changed webhook has the URL %q, want https://hooks.example/new", hook.URL)
	}
	if hook.Enabled {
		t.Error("the changed webhook is enabled, want it disabled")
	}

	b.post(one, one+"/delete", url.Values{"confirm": {"CRM"}}).wantRefused(t) // an old name
	b.post(one, one+"/delete", url.Values{"confirm": {theirs}}).leadsTo(t, list+"?done=webhookdeleted")
}

// onlyWebhook returns the webhook of the first project, which must have just one.
func (w *world) onlyWebhook() fabric.Webhook {
	w.Helper()
	hooks := webhooksOf(w)
	if len(hooks) != 1 {
		w.Fatalf("there are %d webhooks, want 1", len(hooks))
	}
	return hooks[0]
}

// onlyDelivery returns the delivery of a webhook of the first project. It must be the only one.
func (w *world) onlyDelivery(hook fabric.Webhook) fabric.Delivery {
	w.Helper()
	found, err := w.fabric.Deliveries.List(w.Context(), w.one.ID, hook.ID, "", firstPage)
	must(w, err)
	if len(found.Items) != 1 {
		w.Fatalf("there are %d deliveries, want 1", len(found.Items))
	}
	return found.Items[0]
}

// TestWebhookFaults shows that the form for a webhook explains wrong URLs and keeps what was typed.
// The form names the setting that permits private addresses only if that setting would help.
func TestWebhookFaults(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("owner@example.com", ofAll)
	list := "/dashboard/projects/" + w.one.ID + "/webhooks"

	empty := b.post(list+"/new", list, url.Values{"url": {" "}, "name": {"CRM"}, "events": {"call.ended"}})
	empty.wantRefused(t, `value="CRM"`, `id="f-url-fault"`, `value="call.ended" checked`)
	empty.wantNoText(t, `id="egress"`)

	local := b.post(list+"/new", list, url.Values{"url": {"http://10.1.2.3:9000/x"}, "name": {"CRM"}})
	local.wantRefused(t, "add <code>10.1.2.3</code> to <code>egress.allow</code>", `id="egress"`)

	number := b.post(list+"/new", list, url.Values{"url": {"http://0x7f000001/"}, "name": {"CRM"}})
	number.wantText(t, "must not have a number as its host")
	number.wantNoText(t, "egress.allow")
}

// TestTestEvent shows that operators can inspect and follow the delivery of a test event, and can queue
// it again.
func TestTestEvent(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("owner@example.com", ofAll)
	list, target := "/dashboard/projects/"+w.one.ID+"/webhooks", "https://hooks.example/crm"
	hook, err := w.fabric.Webhooks.Create(t.Context(), w.one.ID, fabric.WebhookInput{URL: &target})
	must(t, err)

	one := list + "/" + hook.ID
	tested := b.post(one, one+"/test", nil)
	sent := w.onlyDelivery(hook)
	delivery := one + "/deliveries/" + sent.ID
	tested.leadsTo(t, delivery+"?done=webhooktested")
	shown := b.get(delivery)
	shown.wantText(t, "&#34;event&#34;: &#34;webhook.test&#34;")

	// While a delivery is pending, its page follows the attempts.
	live := shown.find(t, `data-live="([^"]*)"`)
	if event := b.follow(strings.Replace(live, "pending-0", "pending-1", 1)).next(); event != "new" {
		t.Errorf("an attempt is announced by %q at %s, want new", event, live)
	}
	if b.follow(list+"/other/deliveries/"+sent.ID+"/live").next() == "new" {
		t.Error("a delivery can be followed under another webhook")
	}

	b.post(delivery, delivery+"/redeliver", nil).leadsTo(t, delivery+"?done=redelivered")
	b.get(one+"?state=dead").wantNoText(t, sent.ID) // it is pending
}

// TestSigningKeyPage shows that only operators who may change the project see its signing key, and
// that rotating it shows the next key.
func TestSigningKeyPage(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("owner@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	base := "/dashboard/projects/" + w.one.ID
	target := "https://hooks.example/"
	_, err := w.fabric.Webhooks.Create(t.Context(), w.one.ID, fabric.WebhookInput{URL: &target})
	must(t, err)

	keys, err := w.fabric.Webhooks.SigningKeys(t.Context(), w.one.ID)
	must(t, err)
	b.post(base+"/webhooks", base+"/signing-key", nil).wantText(t, keys.CurrentSecret)
	refused := viewer.post("/dashboard/account", base+"/signing-key", nil)
	refused.wantStatus(t, http.StatusForbidden)
	refused.wantNoText(t, keys.CurrentSecret)
	viewer.get(base+"/webhooks").wantNoText(t, "signing-key")

	rotated := b.post(base+"/webhooks", base+"/signing-key/rotate", url.Values{"overlap": {"day"}})
	keys, err = w.fabric.Webhooks.SigningKeys(t.Context(), w.one.ID)
	must(t, err)
	if keys.Next == nil {
		t.Fatal("after the rotation, the project has no next signing key")
	}
	rotated.wantText(t, keys.NextSecret, keys.CurrentSecret)

	// The first overlap is refused because a rotation is pending, the second one because it is unknown.
	for _, overlap := range []string{"day", "year"} {
		form := url.Values{"overlap": {overlap}}
		b.post(base+"/webhooks", base+"/signing-key/rotate", form).wantRefused(t)
	}
}
