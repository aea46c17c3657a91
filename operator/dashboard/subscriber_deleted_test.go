package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
)

// TestEraseDeleted shows that the page of a deleted subscriber erases the person, if the operator may
// change the project and enters the name.
func TestEraseDeleted(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	one, base := w.ada(t, b), "/dashboard/projects/"+w.one.ID+"/subscribers"
	id := one[strings.LastIndexByte(one, '/')+1:]
	b.post(one, one+"/delete", url.Values{"remove": {"account"}, "confirm": {"ada@example.com"}}).
		leadsTo(t, base+"?done=subscriberdeleted")

	audit := "/dashboard/projects/" + w.one.ID + "/audit"
	if a := b.get(audit); !strings.Contains(a.body, `href="`+one+`" title="`+id+`"><bdi>ada@example.com</bdi>`) {
		t.Error("the audit trail does not link to the page of a deleted subscriber")
	}
	if a := viewer.get(one); a.StatusCode != http.StatusOK || strings.Contains(a.body, one+"/erase") {
		t.Errorf("a viewer's page of a deleted subscriber: %s, want 200 without the form", a.Status)
	}
	named := func() url.Values { return url.Values{"confirm": {"ada@example.com"}} }
	if a := viewer.post(one, one+"/erase", named()); a.StatusCode != http.StatusForbidden {
		t.Errorf("erasing by a viewer: %s, want 403", a.Status)
	}
	elsewhere := strings.Replace(one, w.one.ID, w.two.ID, 1)
	if a := b.post(one, elsewhere+"/erase", named()); a.StatusCode != http.StatusNotFound {
		t.Errorf("erasing through another project: %s, want 404", a.Status)
	}
	if a := b.post(one, one+"/erase", url.Values{"confirm": {"ada"}}); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("erasing with a wrong name: %s, want 422", a.Status)
	}
	if name, err := w.fabric.Subscribers.DeletedName(t.Context(), w.one.ID, id); name != "ada@example.com" {
		t.Fatalf("refused erasures leave the name %q, %v, want ada@example.com", name, err)
	}

	w.pass(operator.Freshness)
	b.post(one, one+"/erase", named()).asksToConfirm(t, one)
	b.post("/dashboard/confirm", "/dashboard/confirm", url.Values{"password": {good}, "next": {one}}).leadsTo(t, one)
	if a := b.get(one); !strings.Contains(a.body, "These remain: recordings on hold, and names, phone numbers") {
		t.Errorf("the page does not say what remains: %s", a.body)
	}
	twice := named()
	twice.Set("form", b.token(one))
	for _, a := range b.sendTogether(shownForm{page: one, action: one + "/erase"}, twice, 2) {
		a.leadsTo(t, base+"?done=remainserased")
	}
	if a := b.get(base + "?done=remainserased"); !strings.Contains(a.body, "Recordings on hold remain, as do names") {
		t.Errorf("the notice does not say what remains: %s", a.body)
	}
	if a := b.get(one); a.StatusCode != http.StatusNotFound {
		t.Errorf("the page of an erased subscriber returned %s, want 404", a.Status)
	}
	if a := b.get(audit); strings.Contains(a.body, "ada@example.com</bdi>") {
		t.Errorf("the audit trail still names an erased subscriber: %s", a.body)
	}
}

// TestEraseRestored shows that a page of a deleted subscriber that was opened before the subscriber
// was imported again does not erase the account.
func TestEraseRestored(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := w.ada(t, b)
	id := one[strings.LastIndexByte(one, '/')+1:]
	b.post(one, one+"/delete", url.Values{"remove": {"account"}, "confirm": {"ada@example.com"}})
	erase := url.Values{"form": {b.token(one)}, "confirm": {"ada@example.com"}}

	email := "ada@example.com"
	_, err := w.fabric.Subscribers.Import(t.Context(), w.one.ID, fabric.SubscriberImport{
		Identity: fabric.Identity{ID: id}, SubscriberInput: fabric.SubscriberInput{Email: &email}}, false)
	must(t, err)
	b.send(b.submit(shownForm{page: one, action: one + "/erase"}, erase)).leadsTo(t, one+"?done=noterased")
	if a := b.get(one + "?done=noterased"); !strings.Contains(a.body, "exists again, since it was imported") {
		t.Errorf("the page of the restored subscriber: %s %s, want the notice", a.Status, a.body)
	}
	if _, err := w.fabric.Subscribers.Find(t.Context(), w.one.ID, id); err != nil {
		t.Errorf("finding the restored subscriber: %v", err)
	}
}

// TestEraseEarlierAccount shows that an earlier account of an erased person can still be erased, on a
// page without the name.
func TestEraseEarlierAccount(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	first := w.ada(t, b)
	b.post(first, first+"/delete", url.Values{"remove": {"account"}, "confirm": {"ada@example.com"}})
	second := w.ada(t, b)
	b.post(second, second+"/delete", url.Values{"remove": {"person"}, "confirm": {"ada@example.com"}})

	base, id := "/dashboard/projects/"+w.one.ID, first[strings.LastIndexByte(first, '/')+1:]
	trail := b.get(base + "/audit").body
	if !strings.Contains(trail, `<a href="`+first+`" title="`+id+`">Subscriber</a> (deleted)`) ||
		strings.Contains(trail, `href="`+second+`"`) {
		t.Errorf("the audit trail does not link to the earlier account alone: %s", trail)
	}
	if a := b.get(first); a.StatusCode != http.StatusOK || strings.Contains(a.body, "ada@example.com") {
		t.Errorf("the page of the earlier account: %s %s, want 200 without the name", a.Status, a.body)
	}
	b.post(first, first+"/erase", url.Values{"confirm": {id}}).leadsTo(t, base+"/subscribers?done=remainserased")
	if a := b.get(first); a.StatusCode != http.StatusNotFound {
		t.Errorf("the page of the erased earlier account: %s, want 404", a.Status)
	}
}
