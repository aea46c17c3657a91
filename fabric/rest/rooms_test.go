package rest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
)

// TestRoomSessions shows that a project's backends can list its room sessions and their members,
// and end the sessions. They cannot do this for other projects.
func TestRoomSessions(t *testing.T) {
	w := newWorld(t)
	ctx, started := context.Background(), time.Now().UTC().Truncate(time.Second)
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
	type sessions struct{ Data []calls.RoomDocument }
	for query, want := range map[string]int{
		"":                             1,
		"?state=in-progress":           1,
		"?room_id=" + s.RoomID:         1,
		"?room_id=" + uuid.NewString(): 0,
	} {
		if got := as[sessions](t, w.call(mine, "GET", path+query, "")); len(got.Data) != want {
			t.Errorf("GET %s lists %+v, want %d sessions", path+query, got.Data, want)
		}
	}

	if got := as[calls.RoomDocument](t, w.call(mine, "GET", path+"/"+s.ID, "")); got.ID != s.ID ||
		got.Status != "in-progress" || got.Address != s.Address {
		t.Errorf("GET of the session returns %+v, want it in progress", got)
	}

	members := as[struct{ Data []calls.MemberDocument }](t, w.call(mine, "GET", path+"/"+s.ID+"/members", ""))
	if len(members.Data) != 1 || members.Data[0].ID != member.ID || members.Data[0].Name != "Grace" {
		t.Errorf("the members are %+v, want Grace", members.Data)
	}

	for _, tt := range []struct {
		by           authorization
		method, path string
		want         int
	}{
		{others, "GET", "/" + s.ID, 404}, {others, "GET", "/" + s.ID + "/members", 404},
		{others, "POST", "/" + s.ID + "/end", 404}, {mine, "GET", "/" + uuid.NewString(), 404},
		{mine, "GET", "/lobby", 404}, {mine, "GET", "?state=over", 422}, {mine, "POST", "/" + s.ID + "/end", 204},
	} {
		if got := w.call(tt.by, tt.method, path+tt.path, ""); got.status != tt.want {
			t.Errorf("%s %s = %d %s, want %d", tt.method, path+tt.path, got.status, got.text, tt.want)
		}
	}

	if all, err := w.rows.RunningRooms(ctx, "n"); err != nil || len(all) != 1 || !all[0].Ending {
		t.Errorf("after the end was requested, the sessions are %v, %v, want one ending", fmt.Sprint(all), err)
	}
}
