package dashboard_test

import (
	"net/url"
	"strings"
	"testing"
)

// What a page says was done names the thing and what comes next; an address alone can have it
// say nothing else.
func TestNoticesName(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	says := func(what string, a answer, want ...string) string {
		t.Helper()
		at := a.Header.Get("Location")
		page := strings.NewReplacer("\u2068", "", "\u2069", "").Replace(b.get(at).find(t, `<p class="notice" role="status">(.*?)</p>`))
		for _, part := range want {
			if !strings.Contains(page, part) {
				t.Errorf("%s: the page says %q, want %q in it", what, page, part)
			}
		}
		return at
	}
	rooms := base + "/kinds/conference_rooms"
	room := says("a room", b.post(rooms, rooms, url.Values{"name": {"Team Standup"}}), "“Team Standup” is made", "reached at /public/team-standup")
	room, _, _ = strings.Cut(room, "?")
	says("a person without a password", b.post(base+"/subscribers/new", base+"/subscribers", url.Values{"email": {"bob@example.com"}}), "“bob@example.com” is added", "Send an invitation")
	ada := says("a person with one", b.post(base+"/subscribers/new", base+"/subscribers", url.Values{"email": {"ada@example.com"}, "password": {good}}), "“ada@example.com” is added", "can sign in")
	ada, _, _ = strings.Cut(ada, "?")
	says("disabling", b.post(ada, ada+"/disable", nil), "“ada@example.com” is disabled")
	list := says("deleting", b.post(room, room+"/delete", url.Values{"confirm": {"Team Standup"}}), "Resource “Team Standup” deleted")
	if again := b.get(list).body; !strings.Contains(again, "Resource deleted") || strings.Contains(again, "Team Standup") {
		t.Error("the name of what was deleted is told twice")
	}
	says("deleting a person", b.post(ada, ada+"/delete", url.Values{"confirm": {"ada@example.com"}}), "Subscriber “ada@example.com” deleted")
	says("a project", b.post("/dashboard/projects", "/dashboard/projects", url.Values{"name": {"<b>Three"}}), "Project “<b>Three” is made", "first steps")
	if page := b.get(base + "/clients?done=" + url.QueryEscape("You were hacked")).body; strings.Contains(page, "hacked") {
		t.Error("an address has the page say what it likes")
	}
}
