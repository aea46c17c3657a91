package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/operator"
)

// TestAddInvited shows that the form for a new subscriber also makes an invitation link, unless the
// form sets a password.
func TestAddInvited(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	list := "/dashboard/projects/" + w.one.ID + "/subscribers"
	for _, chosen := range []url.Values{{"password": {good}}, {"generate": {"yes"}}} {
		chosen.Set("email", adaMail)
		b.post(list+"/new", list+"/link", chosen).wantRefused(t, `id="f-password-fault"`)
	}

	added := b.post(list+"/new", list+"/link", url.Values{"email": {adaMail}})
	added.find(t, `id="link"><span class="copy"><code>([^<]+)<`)
	added.wantText(t, "\u2069” created.</p>")
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

	list := "/dashboard/projects/" + w.one.ID + "/subscribers"
	f := shownForm{page: list + "/new", action: list + "/link"}
	sent := url.Values{"form": {b.token(f.page)}, "email": {adaMail}}
	added := b.send(b.submit(f, sent))
	added.wantStatus(t, http.StatusOK)
	added.wantNoText(t, `id="link"`)
	faults := between(added.body, `id="faults"`, "</div>")
	if want := "No invitation link was made."; !strings.Contains(faults, want) {
		t.Errorf("a link from a misleading name has the errors %q, want %q", faults, want)
	}

	w.pass(afterwards)
	b.send(b.submit(f, sent)).wantStatus(t, http.StatusConflict)
}

// TestAddRoomWithLink shows that the form for a new room also makes a guest link, on a page that
// names the room, and that the room's address is taken from its title.
func TestAddRoomWithLink(t *testing.T) {
	p := newTokenPages(t)
	base := strings.TrimSuffix(p.base, "/tokens")
	kind := base + "/kinds/conference_rooms"
	made := p.post(kind, kind+"/link", url.Values{"display_name": {"Board meeting"}})
	made.find(t, `id="made-link"><span class="copy"><code>([^<]+)<`)
	room := made.find(t, `id="room" href="([^"]+)"><bdi>Board meeting<`)
	p.get(room).wantText(t, "/public/board-meeting<")
	if strings.Index(made.body, `id="for-apps"`) > strings.Index(made.body, `id="made"`) {
		t.Error("the token is not folded")
	}

	// A script has no guest link.
	scripts := base + "/kinds/swml_scripts"
	p.post(scripts, scripts+"/link", url.Values{"name": {"Menu"}}).wantStatus(t, http.StatusNotFound)
}

// TestJoinedFormsAreFresh shows that a form that makes a link needs a recent confirmation, as the
// button that only makes a link does. Without a recent confirmation, the form creates nothing.
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
		b.post(base, base+path, sent).wantStatus(t, http.StatusForbidden)
	}
	if after := w.actions(); len(after) != len(before) {
		t.Errorf("after the refused forms, the audit trail has %v, want %v as before", after, before)
	}
}

// TestAddTestedWebhook shows that the form for a new webhook also sends a test event, and leads to
// the delivery of this event.
func TestAddTestedWebhook(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	list := "/dashboard/projects/" + w.one.ID + "/webhooks"
	wrong := b.post(list+"/new", list+"/test", url.Values{"url": {"http://10.1.2.3/"}})
	wrong.wantRefused(t)
	field, _, _ := strings.Cut(wrong.body, `for="f-name"`)
	if want := "to <code>egress.allow</code>"; !strings.Contains(field, want) {
		t.Errorf("the field with a private address lacks the remedy %q", want)
	}

	tested := b.post(list+"/new", list+"/test", url.Values{"url": {"https://hooks.example/crm"}})
	hook := w.onlyWebhook()
	sent := w.onlyDelivery(hook)
	tested.leadsTo(t, list+"/"+hook.ID+"/deliveries/"+sent.ID+"?done=webhookaddedtested")
}
