package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/operator"
)

// TestAddInvited shows that the form for a new subscriber also makes an invitation link, which
// leads to the page that chooses a password.
func TestAddInvited(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	all := "/dashboard/projects/" + w.one.ID + "/subscribers"
	for name, chosen := range map[string]url.Values{
		"a password": {"password": {good}}, "a generated password": {"generate": {"yes"}},
	} {
		chosen.Set("email", adaMail)
		a := b.post(all+"/new", all+"/link", chosen)
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="f-password-fault"`) {
			t.Errorf("an invitation with %s: %s, want 422", name, a.Status)
		}
	}

	a := b.post(all+"/new", all+"/link", url.Values{"email": {adaMail}})
	a.find(t, `id="link"><span class="copy"><code>([^<]+)<`)
	if !strings.Contains(a.body, "\u2069” created.</p>") {
		t.Errorf("the page does not say that the subscriber was created: %s",
			between(a.body, `class="head"`, "<section"))
	}
	found, err := w.fabric.Subscribers.List(t.Context(), w.one.ID, firstPage)
	must(t, err)
	if len(found.Items) != 1 {
		t.Fatalf("there are %d subscribers, want 1", len(found.Items))
	}
	if _, err := w.fabric.Subscribers.FindInvitation(t.Context(), w.one.ID, found.Items[0].ID); err != nil {
		t.Errorf("finding the invitation: %v", err)
	}
}

// TestAddWithoutLink shows that a subscriber remains if the link cannot be made, that the page says
// so, and that the same form cannot add the subscriber again.
func TestAddWithoutLink(t *testing.T) {
	w := newWorld(t)
	o, b := w.operator("ann@example.com", ofAll)
	misleading := "Ann \u202eecila" // a name that earlier versions accepted
	_, err := w.rows.UpdateOperator(t.Context(), o.ID, operator.Change{Name: &misleading}, w.now(), "")
	must(t, err)

	all := "/dashboard/projects/" + w.one.ID + "/subscribers"
	f := shownForm{page: all + "/new", action: all + "/link"}
	sent := url.Values{"form": {b.token(f.page)}, "email": {adaMail}}
	a := b.send(b.submit(f, sent))
	if faults := between(a.body, `id="faults"`, "</div>"); a.StatusCode != http.StatusOK ||
		!strings.Contains(faults, "No invitation link was made.") || strings.Contains(a.body, `id="link"`) {
		t.Errorf("a link from a misleading name: %s %q, want 200 with the reason and no link", a.Status, faults)
	}
	w.pass(afterwards)
	if again := b.send(b.submit(f, sent)); again.StatusCode != http.StatusConflict {
		t.Errorf("the form sent again: %s, want 409", again.Status)
	}
}

// TestAddRoomWithLink shows that the form for a new room also makes a guest link, on a page that
// names the room, and that the room's address is taken from its title.
func TestAddRoomWithLink(t *testing.T) {
	p := newTokenPages(t)
	base := strings.TrimSuffix(p.base, "/tokens")
	kind := base + "/kinds/conference_rooms"
	a := p.post(kind, kind+"/link", url.Values{"display_name": {"Board meeting"}})
	a.find(t, `id="made-link"><span class="copy"><code>([^<]+)<`)
	room := a.find(t, `id="room" href="([^"]+)"><bdi>Board meeting<`)
	if page := p.get(room); !strings.Contains(page.body, "/public/board-meeting<") {
		t.Errorf("the room's page lacks its address: %s", page.Status)
	}
	if strings.Index(a.body, `id="for-apps"`) > strings.Index(a.body, `id="made"`) {
		t.Error("the token is not folded")
	}

	scripts := base + "/kinds/swml_scripts"
	if a := p.post(scripts, scripts+"/link", url.Values{"name": {"Menu"}}); a.StatusCode != http.StatusNotFound {
		t.Errorf("a script with a guest link: %s, want 404", a.Status)
	}
}

// TestJoinedFormsAreFresh shows that a form that makes a link needs a recent confirmation, as the
// button that only makes a link does. Without one, it makes nothing.
func TestJoinedFormsAreFresh(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	w.pass(20 * time.Minute)
	before := w.actions()
	for path, sent := range map[string]url.Values{
		"/subscribers/link":            {"email": {adaMail}},
		"/kinds/conference_rooms/link": {"display_name": {"Board meeting"}},
	} {
		if a := b.post(base, base+path, sent); a.StatusCode != http.StatusForbidden {
			t.Errorf("POST %s without a recent confirmation: %s, want 403", path, a.Status)
		}
	}
	if after := w.actions(); len(after) != len(before) {
		t.Errorf("after the refused forms, the audit trail has %v, want %v as before", after, before)
	}
}

// TestAddTestedWebhook shows that the form for a new webhook also sends a test event, and leads to
// it.
func TestAddTestedWebhook(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	all := "/dashboard/projects/" + w.one.ID + "/webhooks"
	wrong := b.post(all+"/new", all+"/test", url.Values{"url": {"http://10.1.2.3/"}})
	field, _, _ := strings.Cut(wrong.body, `for="f-name"`)
	if wrong.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(field, "to <code>egress.allow</code>") {
		t.Errorf("a private address: %s, without the remedy at the field", wrong.Status)
	}

	a := b.post(all+"/new", all+"/test", url.Values{"url": {"https://hooks.example/crm"}})
	hooks, err := w.fabric.Webhooks.List(t.Context(), w.one.ID, firstPage)
	must(t, err)
	if len(hooks.Items) != 1 {
		t.Fatalf("there are %d webhooks, want 1", len(hooks.Items))
	}
	sent, err := w.fabric.Deliveries.List(t.Context(), w.one.ID, hooks.Items[0].ID, "", firstPage)
	must(t, err)
	if len(sent.Items) != 1 {
		t.Fatalf("there are %d deliveries, want 1", len(sent.Items))
	}
	a.leadsTo(t, all+"/"+hooks.Items[0].ID+"/deliveries/"+sent.Items[0].ID+"?done=webhookaddedtested")
}
