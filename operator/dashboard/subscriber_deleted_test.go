package dashboard_test

import (
	"net/http"
	"net/url"
	"path"
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
	id := path.Base(one)
	b.post(one, one+"/delete", url.Values{"remove": {"account"}, "confirm": {"ada@example.com"}}).
		leadsTo(t, base+"?done=subscriberdeleted")

	audit := "/dashboard/projects/" + w.one.ID + "/audit"
	b.get(audit).wantText(t, `href="`+one+`" title="`+id+`"><bdi>ada@example.com</bdi>`)
	shown := viewer.get(one)
	shown.wantStatus(t, http.StatusOK)
	shown.wantNoText(t, one+"/erase")

	named := func() url.Values { return url.Values{"confirm": {"ada@example.com"}} }
	viewer.post(one, one+"/erase", named()).wantStatus(t, http.StatusForbidden)
	inOtherProject := strings.Replace(one, w.one.ID, w.two.ID, 1)
	b.post(one, inOtherProject+"/erase", named()).wantStatus(t, http.StatusNotFound)
	b.post(one, one+"/erase", url.Values{"confirm": {"ada"}}).wantRefused(t)
	name, err := w.fabric.Subscribers.DeletedName(t.Context(), w.one.ID, id)
	must(t, err)
	if name != "ada@example.com" {
		t.Fatalf("refused erasures leave the name %q, want ada@example.com", name)
	}

	w.pass(operator.Freshness)
	b.post(one, one+"/erase", named()).asksToConfirm(t, one)
	b.post("/dashboard/confirm", "/dashboard/confirm", url.Values{"password": {good}, "next": {one}}).leadsTo(t, one)
	b.get(one).wantText(t, "These remain: recordings on hold, and names, phone numbers")
	twice := named()
	twice.Set("form", b.token(one))
	for _, a := range b.sendTogether(shownForm{page: one, action: one + "/erase"}, twice, 2) {
		a.leadsTo(t, base+"?done=remainserased")
	}
	b.get(base+"?done=remainserased").wantText(t, "Recordings on hold remain, as do names")
	b.get(one).wantStatus(t, http.StatusNotFound)
	b.get(audit).wantNoText(t, "ada@example.com</bdi>")
}

// TestEraseRestored shows that the page of a deleted subscriber does not erase the account if the
// subscriber was imported again after the page was opened.
func TestEraseRestored(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one := w.ada(t, b)
	id := path.Base(one)
	b.post(one, one+"/delete", url.Values{"remove": {"account"}, "confirm": {"ada@example.com"}})
	erase := url.Values{"form": {b.token(one)}, "confirm": {"ada@example.com"}}

	email := "ada@example.com"
	_, err := w.fabric.Subscribers.Import(t.Context(), w.one.ID, fabric.SubscriberImport{
		Identity:        fabric.Identity{ID: id},
		SubscriberInput: fabric.SubscriberInput{Email: &email},
	}, false)
	must(t, err)
	b.send(b.submit(shownForm{page: one, action: one + "/erase"}, erase)).leadsTo(t, one+"?done=noterased")
	b.get(one+"?done=noterased").wantText(t, "exists again, since it was imported")
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

	base, id := "/dashboard/projects/"+w.one.ID, path.Base(first)
	trail := b.get(base + "/audit")
	trail.wantText(t, `<a href="`+first+`" title="`+id+`">Subscriber</a> (deleted)`)
	trail.wantNoText(t, `href="`+second+`"`)
	shown := b.get(first)
	shown.wantStatus(t, http.StatusOK)
	shown.wantNoText(t, "ada@example.com")
	b.post(first, first+"/erase", url.Values{"confirm": {id}}).leadsTo(t, base+"/subscribers?done=remainserased")
	b.get(first).wantStatus(t, http.StatusNotFound)
}
