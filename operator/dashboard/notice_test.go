package dashboard_test

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
)

// shownNotice matches the notice on a page.
const shownNotice = `<p class="notice" role="status">(.*?)</p>`

// isolates removes the characters that keep the writing direction of a name from affecting the text
// around it.
var isolates = strings.NewReplacer("\u2068", "", "\u2069", "")

// TestNoticesName shows that a notice names what was changed, and says what this means or what to do
// next. A URL can only select a known notice.
func TestNoticesName(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID

	// notice follows a redirect, checks the notice there, and returns the redirect's target.
	notice := func(a answer, want ...string) string {
		t.Helper()
		at := a.Header.Get("Location")
		shown := isolates.Replace(b.get(at).find(t, shownNotice))
		for _, part := range want {
			if !strings.Contains(shown, part) {
				t.Errorf("%s leads to the notice %q, want %q in it", a, shown, part)
			}
		}
		return at
	}

	// Create a resource.
	rooms := base + "/kinds/conference_rooms"
	room := notice(b.post(rooms, rooms, url.Values{"name": {"Team Standup"}}),
		"“Team Standup” created", "Its address is /public/team-standup")
	room, _, _ = strings.Cut(room, "?")

	// Create subscribers without and with a password.
	bob := url.Values{"email": {"bob@example.com"}}
	notice(b.post(base+"/subscribers/new", base+"/subscribers", bob),
		"“bob@example.com” is added", "Send an invitation")
	ada := url.Values{"email": {"ada@example.com"}, "password": {good}}
	one := notice(b.post(base+"/subscribers/new", base+"/subscribers", ada),
		"“ada@example.com” is added", "can sign in")
	one, _, _ = strings.Cut(one, "?")

	// Change and delete rows. The name of a deleted row is shown once.
	notice(b.post(one, one+"/disable", nil), "“ada@example.com” is disabled")
	list := notice(b.post(room, room+"/delete", url.Values{"confirm": {"Team Standup"}}),
		"Resource “Team Standup” deleted")
	again := b.get(list)
	again.wantText(t, "Resource deleted")
	again.wantNoText(t, "Team Standup")

	account := url.Values{"remove": {"account"}, "confirm": {"ada@example.com"}}
	notice(b.post(one, one+"/delete", account), "Subscriber “ada@example.com” deleted")
	notice(b.post("/dashboard/projects", "/dashboard/projects", url.Values{"name": {"<b>Three"}}),
		"Project “<b>Three” created", "first steps")

	// Names cannot change the direction of the surrounding text, and a URL cannot supply text of
	// its own.
	turning := "\u2069\u202ekey\u2066"
	k, _, err := w.fabric.APIKeys.Create(t.Context(), w.one.ID,
		fabric.APIKeyInput{Name: &turning, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)
	key := base + "/keys/" + k.ID
	revoked := b.post(key, key+"/revoke", url.Values{"confirm": {turning}})
	shown := b.get(revoked.Header.Get("Location")).find(t, shownNotice)
	if want := "API key “\u2068key\u2069” revoked"; !strings.HasPrefix(shown, want) {
		t.Errorf("the notice about a name that changes directions is %+q, want it to begin with %+q", shown, want)
	}

	b.get(base+"/clients?done="+url.QueryEscape("You were hacked")).wantNoText(t, "hacked")
}

// TestAddressForeseen shows that the form for a new resource shows the address that the resource
// will get, and that the edit form says that the address will not change.
func TestAddressForeseen(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID

	rooms, people := base+"/kinds/conference_rooms", base+"/subscribers/new"
	b.get(rooms).wantText(t, "A room for video calls", "/public/team-standup",
		`data-tells="`+rooms+`/address"`)

	// The address is shown while a name is typed.
	room := b.post(rooms, rooms, url.Values{"name": {"Lobby"}}).Header.Get("Location")
	room, _, _ = strings.Cut(room, "?")
	for name, want := range map[string]string{
		"Team Standup": "Its address will be /public/team-standup,",
		"Größe (2)":    "Its address will be /public/grosse-2,",
		"lobby":        "/public/lobby is already in use",
		"會議":           "address will be /public/video_room-…",
	} {
		hint := b.post(rooms, rooms+"/address", url.Values{"name": {name}})
		hint.wantStatus(t, http.StatusOK)
		hint.wantText(t, want)
	}
	for email, want := range map[string]string{
		"Ada@example.com": "Its address will be /private/ada,",
		"_@example.com":   "/private/subscriber-…",
	} {
		hint := b.post(people, base+"/subscribers/address", url.Values{"email": {email}})
		hint.wantStatus(t, http.StatusOK)
		hint.wantText(t, want)
	}
	for _, none := range []answer{
		b.post(rooms, rooms+"/address", url.Values{"name": {""}}),
		b.post(people, base+"/subscribers/address", url.Values{"email": {"no"}}),
	} {
		none.wantStatus(t, http.StatusOK)
		if none.body != "" {
			t.Errorf("%s returned the hint %q, want none", none, none.body)
		}
	}

	// A renamed room keeps its address.
	b.get(room+"/edit").wantText(t, "Its address, /public/lobby, does not change.")
	kind := w.fabric.Resources.Kinds().ByPath("conference_rooms")
	_, err := w.fabric.Resources.Update(t.Context(), w.one.ID, kind, path.Base(room),
		kinds.Values{"name": []byte(`"Foyer"`)})
	must(t, err)
	b.get(room).wantText(t, "/public/lobby", "Foyer")

	// The filter names each kind by its title and its type. Subscribers are a kind, too.
	b.post(people, base+"/subscribers", url.Values{"email": {"bob@example.com"}})
	subscribers := b.get(base + "/resources?kind=subscribers")
	subscribers.wantText(t, "bob@example.com", "Conference room (video room)")
	subscribers.wantNoText(t, "Foyer")
}
