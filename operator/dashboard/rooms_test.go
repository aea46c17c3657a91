package dashboard_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/operator"
)

// openRoom adds a running room session with one member. It returns the session and the member's call.
func (w *world) openRoom() (calls.RoomSession, calls.Record) {
	w.Helper()
	s := calls.RoomSession{
		ID:        uuid.NewString(),
		ProjectID: w.one.ID,
		RoomID:    uuid.NewString(),
		Address:   "/public/lobby",
		Name:      "Lobby <b>",
		Node:      "n",
		Started:   time.Now().Add(-time.Minute),
	}
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

	facts := []string{"Lobby &lt;b&gt;", "/public/lobby", "Alice &lt;b&gt;", "Past members", "Carol", "Live",
		"/calls/" + past.ID, "The room is not recorded."}
	buttons := []string{`id="end-room"`, "/members/" + member.ID + "/mute", "/members/" + member.ID + "/remove"}
	page := b.get(at)
	page.wantText(t, facts...)
	page.wantText(t, buttons...)
	page = viewer.get(at)
	page.wantText(t, facts...)
	page.wantNoText(t, buttons...)

	b.get("/dashboard/projects/"+w.one.ID+"/calls/"+member.ID).wantText(t, at)
	b.get("/dashboard/projects/"+w.two.ID+"/rooms/"+s.ID).wantStatus(t, http.StatusNotFound)
	b.get("/dashboard/projects/"+w.one.ID+"/rooms/x").wantStatus(t, http.StatusNotFound)
}

// TestLongRoom shows that operators can remove a member who is present, even if many others have
// joined and left since.
func TestLongRoom(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	s, member := w.openRoom()
	for range 100 {
		w.addCall(func(r *calls.Record) {
			over(calls.NormalClearing, true)(r)
			r.RoomSession = s.ID
		})
	}
	b.get("/dashboard/projects/"+w.one.ID+"/rooms/"+s.ID).wantText(t, "/members/"+member.ID+"/remove")
}

// TestFullRoom shows that operators can remove the oldest of many members who are present.
func TestFullRoom(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	s, member := w.openRoom()
	for range 150 {
		w.addCall(func(r *calls.Record) {
			talking(r)
			r.RoomSession = s.ID
		})
	}
	b.get("/dashboard/projects/"+w.one.ID+"/rooms/"+s.ID).wantText(t, "/members/"+member.ID+"/remove")
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
	mute, remove := "/members/"+member.ID+"/mute", "/members/"+member.ID+"/remove"
	for _, path := range []string{mute, remove, "/end"} {
		viewer.post(at, at+path, nil).wantStatus(t, http.StatusForbidden)
	}
	for _, path := range []string{"/members/" + elsewhere.ID + "/remove", "/members/" + member.ID + "/promote"} {
		b.post(at, at+path, nil).wantStatus(t, http.StatusNotFound)
	}
	requests, err := w.rows.TakeRequests(t.Context(), "n")
	must(t, err)
	if len(requests) != 0 {
		t.Fatalf("the refused forms request the changes %v, want none", requests)
	}

	for _, tt := range []struct{ path, done string }{
		{path: mute, done: "memberchanged"},
		{path: remove, done: "memberremoved"},
		{path: "/end", done: "roomended"},
	} {
		a := b.post(at, at+tt.path, nil)
		a.wantStatus(t, http.StatusSeeOther)
		if location := a.Header.Get("Location"); !strings.HasSuffix(location, "?done="+tt.done) {
			t.Errorf("%s leads to %s, want done=%s", a, location, tt.done)
		}
	}

	requests, err = w.rows.TakeRequests(t.Context(), "n")
	must(t, err)
	want := []calls.Request{{ProjectID: w.one.ID, CallID: member.ID, HangUp: true, Mute: true}}
	if !slices.Equal(requests, want) {
		t.Errorf("the requests for calls are %v, want %v", requests, want)
	}
	roomRequests, err := w.rows.TakeRoomRequests(t.Context(), "n")
	must(t, err)
	if len(roomRequests) != 1 {
		t.Fatalf("there are %d requests for rooms, want 1", len(roomRequests))
	}
	if !roomRequests[0].End {
		t.Errorf("the request for the room is %+v, want a request to end it", roomRequests[0])
	}
	b.get(at).wantNoText(t, `id="end-room"`)

	// After the end of the session, the same forms report that it has ended.
	over(calls.NormalClearing, true)(&member)
	must(t, w.rows.SaveCall(t.Context(), member))
	s.Ended = time.Now()
	must(t, w.rows.EndRoom(t.Context(), s))
	for _, tt := range []struct{ path, done string }{
		{path: mute, done: "memberleft"},
		{path: remove, done: "memberleft"},
		{path: "/end", done: "roomover"},
	} {
		a := b.post("/dashboard/projects/"+w.one.ID+"/calls", at+tt.path, nil)
		if location := a.Header.Get("Location"); !strings.HasSuffix(location, "?done="+tt.done) {
			t.Errorf("%s after the end leads to %s, want done=%s", a, location, tt.done)
		}
	}
}

// TestFollowRoom shows that the page of a room session is notified when a member is muted.
func TestFollowRoom(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	s, member := w.openRoom()
	at := "/dashboard/projects/" + w.one.ID + "/rooms/" + s.ID
	stream := b.follow(b.get(at).find(t, `data-live="([^"]*)"`))
	member.CallerControls = calls.AudioMuted
	must(t, w.rows.SaveControls(t.Context(), member))
	if got := stream.next(); got != "new" {
		t.Errorf("after a mute the event is %q, want new", got)
	}
	b.get(at).wantText(t, "Unmute")
}
