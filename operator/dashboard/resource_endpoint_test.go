package dashboard_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// TestEndpointPassword shows that the page of a new SIP endpoint shows its password once, that the
// button replaces the password, and that other kinds have no such button.
func TestEndpointPassword(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	const passwordShown = `id="secret"(?s:.*?)<code[^>]*>([^<]*)</code>`
	valid := func(password string) bool {
		t.Helper()
		accounts, err := w.fabric.SIP.FindAccounts(t.Context(), "desk-12")
		must(t, err)
		return len(accounts) == 1 && accounts[0].Password == password
	}

	kind := base + "/kinds/sip_endpoints"
	made := b.post(kind, kind, url.Values{"username": {"desk-12"}})
	made.wantStatus(t, http.StatusOK)
	first := made.find(t, passwordShown)
	if !valid(first) {
		t.Fatalf("the password of the new SIP endpoint differs from the shown %q", first)
	}

	endpoints := w.fabric.Resources.Kinds().ByType(fabric.EndpointKind)
	found, err := w.fabric.Resources.List(t.Context(), w.one.ID, endpoints, page.Query{Size: 10})
	must(t, err)
	at := base + "/resources/" + found.Items[0].ID
	b.get(at).wantNoText(t, first)

	second := b.post(at, at+"/password", nil).find(t, passwordShown)
	if second == first {
		t.Errorf("the new password is %q again, want another one", second)
	}
	if !valid(second) {
		t.Errorf("the password of the SIP endpoint differs from the shown %q", second)
	}

	room := base + "/resources/" + w.room("lobby").ID
	b.post(room, room+"/password", nil).wantStatus(t, http.StatusNotFound)
}
