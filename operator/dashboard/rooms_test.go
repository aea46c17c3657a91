package dashboard_test

import (
	"html"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/operator"
)

// openRoom adds a running session of a room with a member, and returns both.
func (w *world) openRoom() (calls.RoomSession, calls.Record) {
	w.Helper()
	s := calls.RoomSession{ID: uuid.NewString(), ProjectID: w.one.ID, RoomID: uuid.NewString(),
		Address: "/public/lobby", Name: "Lobby <b>", Node: "n", Started: time.Now().Add(-time.Minute)}
	must(w, w.rows.OpenRoom(w.Context(), s))
	return s, w.addCall(func(r *calls.Record) {
		talking(r)
		r.RoomSession, r.To = s.ID, calls.Party{Name: s.Name, Address: s.Address}
	})
}

// TestRoomPage shows that the page of a room session lists its members. Operators with write access
// see buttons; viewers see none.
func TestRoomPage(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	s, member := w.openRoom()
	past := w.addCall(func(r *calls.Record) {
		over(calls.NormalClearing, true)(r)
		r.RoomSession, r.From.Name = s.ID, "Carol"
	})
	at := "/dashboard/projects/" + w.one.ID + "/rooms/" + s.ID

	buttons := []string{`id="end-room"`, "/members/" + member.ID + "/mute", "/members/" + member.ID + "/remove"}
	shown := []string{"Lobby &lt;b&gt;", "/public/lobby", "Alice &lt;b&gt;", "Past members", "Carol", "Live",
		"/calls/" + past.ID, "The room is not recorded."}
	for _, text := range slices.Concat(shown, buttons) {
		if !strings.Contains(b.get(at).body, text) {
			t.Errorf("the page of a room session lacks %q", text)
		}
	}

	body := viewer.get(at).body
	for _, text := range shown {
		if !strings.Contains(body, text) {
			t.Errorf("the page for viewers lacks %q", text)
		}
	}

	for _, text := range buttons {
		if strings.Contains(body, text) {
			t.Errorf("the page for viewers has %q", text)
		}
	}

	if body := b.get("/dashboard/projects/" + w.one.ID + "/calls/" + member.ID).body; !strings.Contains(body, at) {
		t.Error("the page of a member does not link to the room session")
	}
	for _, path := range []string{"/dashboard/projects/" + w.two.ID + "/rooms/" + s.ID,
		"/dashboard/projects/" + w.one.ID + "/rooms/x"} {
		if a := b.get(path); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s = %s, want 404", path, a.Status)
		}
	}
}

// TestRoomChanges shows that operators can mute and remove members and end a session, and that
// viewers cannot.
func TestRoomChanges(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	_, viewer := w.operator("viewer@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Viewer})
	s, member := w.openRoom()
	elsewhere := w.addCall(talking)
	at := "/dashboard/projects/" + w.one.ID + "/rooms/" + s.ID
	changes := []string{"/members/" + member.ID + "/mute", "/members/" + member.ID + "/remove", "/end"}
	for _, path := range changes {
		if a := viewer.post(at, at+path, nil); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s by a viewer = %s, want 403", path, a.Status)
		}
	}

	for _, path := range []string{"/members/" + elsewhere.ID + "/remove", "/members/" + member.ID + "/promote"} {
		if a := b.post(at, at+path, nil); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s = %s, want 404", path, a.Status)
		}
	}

	if asked, err := w.rows.TakeRequests(t.Context(), "n"); err != nil || len(asked) != 0 {
		t.Fatalf("refused requests change %v, %v, want none", asked, err)
	}

	for i, done := range []string{"memberchanged", "memberremoved", "roomended"} {
		a := b.post(at, at+changes[i], nil)
		if a.StatusCode != http.StatusSeeOther || !strings.HasSuffix(a.Header.Get("Location"), "?done="+done) {
			t.Errorf("%s = %s %s, want 303 to done=%s", changes[i], a.Status, a.Header.Get("Location"), done)
		}
	}

	want := []calls.Request{{ProjectID: w.one.ID, CallID: member.ID, HangUp: true, Mute: true}}
	if asked, err := w.rows.TakeRequests(t.Context(), "n"); err != nil || !slices.Equal(asked, want) {
		t.Errorf("the requests are %v, %v, want %v", asked, err, want)
	}

	rooms, err := w.rows.TakeRoomRequests(t.Context(), "n")
	if err != nil || len(rooms) != 1 || !rooms[0].End {
		t.Errorf("the rooms to end are %v, %v, want the session", rooms, err)
	}
	if strings.Contains(b.get(at).body, `id="end-room"`) {
		t.Error("the page of a session that is about to end has a button to end it")
	}

	over(calls.NormalClearing, true)(&member)
	must(t, w.rows.SaveCall(t.Context(), member))
	s.Ended = time.Now()
	must(t, w.rows.EndRoom(t.Context(), s))
	for i, done := range []string{"memberleft", "memberleft", "roomover"} {
		path := changes[i]
		a := b.post("/dashboard/projects/"+w.one.ID+"/calls", at+path, nil)
		if !strings.HasSuffix(a.Header.Get("Location"), "?done="+done) {
			t.Errorf("%s after the end = %s %s, want done=%s", path, a.Status, a.Header.Get("Location"), done)
		}
	}
}

// TestFollowRoom shows that the page of a room session is notified when a member is muted.
func TestFollowRoom(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	s, member := w.openRoom()
	at := "/dashboard/projects/" + w.one.ID + "/rooms/" + s.ID
	f := b.follow(html.UnescapeString(between(b.get(at).body, `data-live="`, `"`)))
	member.CallerControls = calls.AudioMuted
	must(t, w.rows.SaveControls(t.Context(), member))
	if got := f.next(); got != "new" {
		t.Errorf("after a mute the event is %q, want new", got)
	}
	if body := b.get(at).body; !strings.Contains(body, "Unmute") {
		t.Error("a muted member cannot be unmuted")
	}
}
