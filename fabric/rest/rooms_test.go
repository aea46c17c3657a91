package rest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
)

// TestRoomSessions shows that a project's backends can list its room sessions and their members,
// and end the sessions. They cannot do this for other projects.
func TestRoomSessions(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	started := time.Now().UTC().Truncate(time.Second)
	s := calls.RoomSession{
		ID:        uuid.NewString(),
		ProjectID: w.project.ID,
		RoomID:    uuid.NewString(),
		Address:   "/public/lobby",
		Name:      "Lobby",
		Node:      "n",
		Started:   started,
	}
	if err := w.rows.OpenRoom(ctx, s); err != nil {
		t.Fatal(err)
	}

	member := calls.Record{
		Key:         uuid.NewString(),
		ID:          uuid.NewString(),
		ProjectID:   w.project.ID,
		Node:        "n",
		State:       calls.InCall,
		RoomSession: s.ID,
		Created:     started,
		Answered:    started,
		From:        calls.Party{Name: "Grace", Address: "/private/grace"},
		To:          calls.Party{Address: "/public/lobby"},
	}
	if err := w.rows.SaveCall(ctx, member); err != nil {
		t.Fatal(err)
	}

	const path = "/api/fabric/room_sessions"
	mine, others := w.basic(), w.stranger()
	for query, want := range map[string]int{
		"":                             1,
		"?state=in-progress":           1,
		"?room_id=" + s.RoomID:         1,
		"?room_id=" + uuid.NewString(): 0,
	} {
		got := as[listed[calls.RoomDocument]](t, w.call(mine, "GET", path+query, "")).Data
		if len(got) != want {
			t.Errorf("GET %s lists %+v, want %d sessions", path+query, got, want)
		}
	}

	session := as[calls.RoomDocument](t, w.call(mine, "GET", path+"/"+s.ID, ""))
	if session.ID != s.ID {
		t.Errorf("GET of the session %s returns the session %s", s.ID, session.ID)
	}
	if session.Status != "in-progress" {
		t.Errorf("the session is %s, want in-progress", session.Status)
	}
	if session.Address != s.Address {
		t.Errorf("the session is at %s, want %s", session.Address, s.Address)
	}

	members := as[listed[calls.MemberDocument]](t, w.call(mine, "GET", path+"/"+s.ID+"/members", "")).Data
	if len(members) != 1 {
		t.Fatalf("the members are %+v, want one", members)
	}
	if members[0].ID != member.ID {
		t.Errorf("the member is %s, want %s", members[0].ID, member.ID)
	}
	if members[0].Name != "Grace" {
		t.Errorf("the member is named %q, want Grace", members[0].Name)
	}

	for _, tt := range []struct {
		auth         authorization
		method, path string
		want         int
	}{
		{others, "GET", "/" + s.ID, http.StatusNotFound},
		{others, "GET", "/" + s.ID + "/members", http.StatusNotFound},
		{others, "POST", "/" + s.ID + "/end", http.StatusNotFound},
		{mine, "GET", "/" + uuid.NewString(), http.StatusNotFound},
		{mine, "GET", "/lobby", http.StatusNotFound},
		{mine, "GET", "?state=over", http.StatusUnprocessableEntity},
		{mine, "POST", "/" + s.ID + "/end", http.StatusNoContent},
	} {
		r := w.call(tt.auth, tt.method, path+tt.path, "")
		r.wantStatus(t, tt.method+" "+path+tt.path, tt.want)
	}

	running, err := w.rows.RunningRooms(ctx, "n")
	if err != nil {
		t.Fatal(err)
	}
	if len(running) != 1 {
		t.Fatalf("after the end was requested, the sessions are %v, want one", running)
	}
	if !running[0].Ending {
		t.Error("after the end was requested, the session is not ending")
	}
}
