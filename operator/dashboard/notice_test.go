package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
)

// TestNoticesName shows that a notice names what was changed and explains the consequences. A URL
// can only select a known notice.
func TestNoticesName(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID

	says := func(what string, a answer, want ...string) string {
		t.Helper()
		at := a.Header.Get("Location")
		page := strings.NewReplacer("\u2068", "", "\u2069",
			"").Replace(b.get(at).find(t, `<p class="notice" role="status">(.*?)</p>`))
		for _, part := range want {
			if !strings.Contains(page, part) {
				t.Errorf("%s: the page says %q, want %q in it", what, page, part)
			}
		}
		return at
	}

	// Create a resource.
	rooms := base + "/kinds/conference_rooms"
	room := says("a room", b.post(rooms, rooms, url.Values{"name": {"Team Standup"}}),
		"“Team Standup” created", "Its address is /public/team-standup")
	room, _, _ = strings.Cut(room, "?")

	says("a person without a password", b.post(base+"/subscribers/new", base+"/subscribers",
		url.Values{"email": {"bob@example.com"}}), "“bob@example.com” is added", "Send an invitation")
	ada := says("a person with a password", b.post(base+"/subscribers/new", base+"/subscribers",
		url.Values{"email": {"ada@example.com"}, "password": {good}}), "“ada@example.com” is added", "can sign in")
	ada, _, _ = strings.Cut(ada, "?")

	// Change and delete rows. The name of a deleted row is shown once.
	says("disabling", b.post(ada, ada+"/disable", nil), "“ada@example.com” is disabled")
	list := says("deleting", b.post(room, room+"/delete", url.Values{"confirm": {"Team Standup"}}),
		"Resource “Team Standup” deleted")

	if again := b.get(list).body; !strings.Contains(again, "Resource deleted") ||
		strings.Contains(again, "Team Standup") {
		t.Error("the name of a deleted row is shown twice")
	}

	account := url.Values{"remove": {"account"}, "confirm": {"ada@example.com"}}
	says("deleting a person", b.post(ada, ada+"/delete", account),
		"Subscriber “ada@example.com” deleted")
	says("a project", b.post("/dashboard/projects", "/dashboard/projects", url.Values{"name": {"<b>Three"}}),
		"Project “<b>Three” created", "first steps")

	// Names cannot change the direction of the surrounding text, and a URL cannot supply text of
	// its own.
	turning := "\u2069\u202ekey\u2066"
	k, _, err := w.fabric.APIKeys.Create(t.Context(), w.one.ID,
		fabric.APIKeyInput{Name: &turning, Scopes: []fabric.Scope{fabric.Voice}}, nil)
	must(t, err)

	list = b.post(base+"/keys/"+k.ID, base+"/keys/"+k.ID+"/revoke",
		url.Values{"confirm": {turning}}).Header.Get("Location")
	if said := b.get(list).find(t, `<p class="notice" role="status">(.*?)</p>`); !strings.HasPrefix(said,
		"API key “\u2068key\u2069” revoked") {
		t.Errorf("a name changes the direction of the text after it: %+q", said)
	}

	if page := b.get(base + "/clients?done=" + url.QueryEscape("You were hacked")).body; strings.Contains(page,
		"hacked") {
		t.Error("a URL can choose the text of a notice")
	}
}

// TestAddressForeseen shows that the form for a new resource shows the address that the resource
// will get, and that the edit form says that the address will not change.
func TestAddressForeseen(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID

	rooms, people := base+"/kinds/conference_rooms", base+"/subscribers/new"
	if page := b.get(rooms).body; !strings.Contains(page, "A room for video calls") ||
		!strings.Contains(page, "/public/team-standup") || !strings.Contains(page, `data-tells="`+rooms+`/address"`) {
		t.Errorf("the form of a room does not show its address")
	}

	// The address is shown while a name is typed.
	room := b.post(rooms, rooms, url.Values{"name": {"Lobby"}}).Header.Get("Location")
	room, _, _ = strings.Cut(room, "?")
	for name, want := range map[string]string{
		"Team Standup": "Its address will be /public/team-standup,",
		"Größe (2)":    "Its address will be /public/grosse-2,",
		"lobby":        "/public/lobby is already in use", "會議": "address will be /public/video_room-…", "": "",
	} {
		if a := b.post(rooms, rooms+"/address", url.Values{"name": {name}}); a.StatusCode != 200 ||
			!strings.Contains(a.body, want) || want == "" && a.body != "" {
			t.Errorf("a room named %q: %s %q, want %q", name, a.Status, a.body, want)
		}
	}

	for mail, want := range map[string]string{"Ada@example.com": "Its address will be /private/ada,",
		"_@example.com": "/private/subscriber-…", "no": ""} {
		if a := b.post(people, base+"/subscribers/address", url.Values{"email": {mail}}); a.StatusCode != 200 ||
			!strings.Contains(a.body, want) || want == "" && a.body != "" {
			t.Errorf("a subscriber named %q: %s %q, want %q", mail, a.Status, a.body, want)
		}
	}

	// A renamed room keeps its address.
	if page := b.get(room + "/edit").body; !strings.Contains(page, "Its address, /public/lobby, does not change.") {
		t.Error("an edit form does not say that the address stays")
	}
	_, err := w.fabric.Resources.Update(t.Context(), w.one.ID, w.fabric.Resources.Kinds().ByPath("conference_rooms"),
		room[strings.LastIndex(room, "/")+1:], kinds.Values{"name": []byte(`"Foyer"`)})
	must(t, err)
	if page := b.get(room).body; !strings.Contains(page, "/public/lobby") || !strings.Contains(page, "Foyer") {
		t.Error("a renamed room has another address")
	}

	// A kind is found by its title or the name of its type, and subscribers are a kind.
	b.post(people, base+"/subscribers", url.Values{"email": {"bob@example.com"}})
	if page := b.get(base + "/resources?kind=subscribers").body; !strings.Contains(page, "bob@example.com") ||
		strings.Contains(page, "Foyer") || !strings.Contains(page, "Conference room (video room)") {
		t.Error("the list of subscribers lacks a subscriber, shows a room, or does not name the kinds")
	}
}
