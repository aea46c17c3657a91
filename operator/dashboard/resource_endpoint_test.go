package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
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
	passwordIn := func(body string) string {
		t.Helper()
		_, after, ok := strings.Cut(body, `id="secret"`)
		if !ok {
			return ""
		}
		text := between(after, `<code`, "</code>")
		return text[strings.IndexByte(text, '>')+1:]
	}

	valid := func(password string) bool {
		t.Helper()
		all, err := w.fabric.SIP.FindAccounts(context.Background(), "desk-12")
		must(t, err)
		return len(all) == 1 && all[0].Password == password
	}

	kind := base + "/kinds/sip_endpoints"
	made := b.post(kind, kind, url.Values{"username": {"desk-12"}})
	first := passwordIn(made.body)
	if made.StatusCode != http.StatusOK || first == "" || !valid(first) {
		t.Fatalf("creating a SIP endpoint returned %s with the password %q, want its password", made.Status, first)
	}
	all, err := w.fabric.Resources.List(context.Background(), w.one.ID,
		w.fabric.Resources.Kinds().ByType(fabric.EndpointKind), page.Query{Size: 10})
	must(t, err)
	at := base + "/resources/" + all.Items[0].ID
	if strings.Contains(b.get(at).body, first) {
		t.Error("the page of the SIP endpoint shows the password again")
	}

	second := passwordIn(b.post(at, at+"/password", nil).body)
	if second == "" || second == first || !valid(second) {
		t.Errorf("replacing the password %q returned %q, want another valid one", first, second)
	}

	rooms := base + "/kinds/conference_rooms"
	room := strings.TrimSuffix(b.post(rooms, rooms, url.Values{"name": {"Lobby"}}).Header.Get("Location"),
		"?done=resourceadded")
	if a := b.post(room, room+"/password", nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("making a password for a room returned %s, want 404", a.Status)
	}
}
