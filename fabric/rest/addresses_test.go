package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const addresses = "/api/fabric/addresses"

func TestAddressNames(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ reference, name string }{
		{"Ada.Lovelace@example.com", "ada.lovelace"},
		{"Grace Hopper", "grace-hopper"},
		{"../../etc/passwd", "etc-passwd"},
		{"Jürgen Groß", "jurgen-gross"},
		{"ada+calls@example.com", "ada-calls"},
		{strings.Repeat("long", 60), strings.Repeat("long", 13)[:50]},
	} {
		got := w.address(w.tokens(`{"reference":"` + tt.reference + `"}`).Token)
		if got.Name != tt.name {
			t.Errorf("the address of %q is named %q, want %q", tt.reference, got.Name, tt.name)
		}
		if audio, want := got.Channels["audio"], "/private/"+tt.name+"?channel=audio"; audio != want {
			t.Errorf("the audio channel of %q is %q, want %q", tt.reference, audio, want)
		}
	}

	taken := w.address(w.tokens(`{"reference":"ada.lovelace@example.org"}`).Token)
	suffix, ok := strings.CutPrefix(taken.Name, "ada.lovelace--")
	if !ok {
		t.Errorf("a name that is taken became %q, want ada.lovelace--…", taken.Name)
	}
	if len(suffix) != 6 {
		t.Errorf("a name that is taken became %q, want six characters appended", taken.Name)
	}

	none := w.address(w.tokens(`{"reference":"Ада"}`).Token)
	if !strings.HasPrefix(none.Name, "subscriber-") {
		t.Errorf("a reference without ASCII letters became %q, want subscriber-…", none.Name)
	}
}

func TestAddress(t *testing.T) {
	w := newWorld(t)
	got := w.tokens(`{"reference":"ada","display_name":"Ada"}`)
	id := w.address(got.Token).ID
	r := w.call(bearer(got.Token), "GET", addresses+"/"+id, "")
	object := as[map[string]any](t, r)
	want := map[string]any{
		"id":           id,
		"resource_id":  got.SubscriberID,
		"name":         "ada",
		"display_name": "Ada",
		"type":         "subscriber",
		"cover_url":    nil,
		"preview_url":  nil,
		"locked":       false,
		"created_at":   object["created_at"],
		"channels": map[string]any{
			"audio":     "/private/ada?channel=audio",
			"messaging": "/private/ada?channel=messaging",
			"video":     "/private/ada?channel=video",
		},
	}

	r.wantStatus(t, "GET", http.StatusOK)
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("GET (-want +got):\n%s", diff)
	}

	eve := as[tokens](t, w.call(w.stranger(), "POST", issue, `{"reference":"eve"}`))
	for _, id := range []string{id, "nonsense", "%00", "00000000-0000-0000-0000-000000000000"} {
		r := w.call(bearer(eve.Token), "GET", addresses+"/"+id, "")
		r.wantStatus(t, "GET of "+id+" by another project", http.StatusNotFound)
	}
}

// threeAddresses creates the subscribers carl, ada and bob, and returns a token of one of them.
func (w *world) threeAddresses() (sat string) {
	w.t.Helper()
	for _, name := range []string{"carl", "ada", "bob"} {
		sat = w.tokens(`{"reference":"` + name + `","display_name":"Dr ` + name + `"}`).Token
	}
	return sat
}

func TestListAddresses(t *testing.T) {
	w := newWorld(t)
	sat := w.threeAddresses()
	w.call(w.stranger(), "POST", issue, `{"reference":"eve"}`)

	for _, tt := range []struct{ query, want string }{
		{"", "carl ada bob"},
		{"?sort_by=name", "ada bob carl"},
		{"?sort_by=name&sort_order=desc", "carl bob ada"},
		{"?sort_by=created_at&sort_order=desc", "bob ada carl"},
		{"?type=subscriber", "carl ada bob"},
		{"?type=room", ""},
		{"?name=ada", "ada"},
		{"?name=nobody", ""},
		{"?display_name=dr+A", "ada"},
		{"?display_name=%25", ""},
		{"?unknown=1", "carl ada bob"},
	} {
		got := as[listed[address]](t, w.call(bearer(sat), "GET", addresses+tt.query, ""))
		names := make([]string, len(got.Data))
		for i, a := range got.Data {
			names[i] = a.Name
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("GET %s%s: got %q, want %q", addresses, tt.query, got, tt.want)
		}
	}
}

// TestAddressPages shows that the links to other pages keep the order and the filter.
func TestAddressPages(t *testing.T) {
	w := newWorld(t)
	sat := w.threeAddresses()
	var names []string
	for path := addresses + "?page_size=1&sort_by=name&type=subscriber"; path != ""; {
		got := as[listed[address]](t, w.call(bearer(sat), "GET", path, ""))
		names = append(names, got.Data[0].Name)
		path = got.Links["next"]
		if path != "" && !strings.Contains(path, "sort_by=name&type=subscriber") {
			t.Errorf("the next link is %s, want one with the order and the filter", path)
		}
	}
	if got := strings.Join(names, " "); got != "ada bob carl" {
		t.Errorf("all pages by name: got %q, want ada bob carl", got)
	}
}

func TestAddressFaults(t *testing.T) {
	w := newWorld(t)
	sat := w.threeAddresses()
	for _, tt := range []struct{ query, want string }{
		{"sort_order=desc", "sort_order:sort_order_validations"},
		{"sort_by=color", "sort_by:invalid_parameter"},
		{"sort_by=name&sort_order=up", "sort_order:invalid_parameter"},
		{"type=cat&page_size=0", "page_size:invalid_parameter type:invalid_parameter"},
		{"name=%00", "name:invalid_parameter"},
		{"display_name=%ff", "display_name:invalid_parameter"},
		{
			"sort_by=name&page_number=1&page_token=PA00000000-0000-0000-0000-000000000000",
			"page_token:page_token_is_invalid",
		},
	} {
		if got := w.call(bearer(sat), "GET", addresses+"?"+tt.query, "").faults(t); got != tt.want {
			t.Errorf("GET %s?%s: got %s, want %s", addresses, tt.query, got, tt.want)
		}
	}
}
