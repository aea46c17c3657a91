package clients

import (
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	telephone "github.com/selvage/selvage/test/phone"
)

// createRoom creates a room with a name and further settings, and returns the address and the ID of
// the room.
func createRoom(t *testing.T, p *harness.Project, name string, settings map[string]any) (address, id string) {
	t.Helper()
	members := map[string]any{"name": name, "tone_on_entry_and_exit": false}
	maps.Copy(members, settings)
	created := p.Post(t, "/api/fabric/resources/conference_rooms", p.Basic(), harness.JSON(members)).Want(t, 201)
	return "/public/" + name, created.Object(t)["id"].(string)
}

// TestRoomTimes shows that rooms are closed outside their times, and that members are removed when
// the settings say so.
func TestRoomTimes(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Shared(t)
	p := s.NewProject(t)
	alice := telephone.Connect(t, s, p.NewSAT(t, "alice").Token, "").G711()
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	for name, tt := range map[string]struct {
		settings map[string]any
		cause    string
	}{
		"early":   {map[string]any{"join_from": in(time.Hour)}, "SERVICE_UNAVAILABLE"},
		"late":    {map[string]any{"join_until": in(-time.Hour)}, "SERVICE_UNAVAILABLE"},
		"over":    {map[string]any{"remove_at": in(-time.Hour)}, "SERVICE_UNAVAILABLE"},
		"removed": {map[string]any{"join_from": in(-time.Hour), "remove_after_seconds_elapsed": 1}, "MEMBER_REMOVED"},
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := createRoom(t, p, name, tt.settings)
			if cause := alice.Dial(address).WaitEnded(); cause != tt.cause {
				t.Errorf("the call ended with %s, want %s", cause, tt.cause)
			}
		})
	}
}

// TestRoomGuests shows that guests cannot act on others or on the room, whatever their client sends.
func TestRoomGuests(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Shared(t)
	p := s.NewProject(t)
	address, id := createRoom(t, p, "guests", nil)
	host := telephone.Connect(t, s, p.NewSAT(t, "host").Token, "").G711().Dial(address)
	host.WaitAnswered()
	var addresses struct{ Data []struct{ ID string } }
	p.Get(t, "/api/fabric/resources/conference_room/"+id+"/addresses", p.Basic()).Want(t, 200).Read(t, &addresses)
	token := p.NewGuest(t, addresses.Data[0].ID).Token
	guest := telephone.Connect(t, s, token, "").G711().Dial(address)
	guest.WaitAnswered()

	target := map[string]string{"call_id": host.ID, "member_id": host.ID, "node_id": host.Node()}
	for _, method := range []string{"call.mute", "call.unmute", "call.deaf", "call.undeaf", "call.lowerhand",
		"call.microphone.volume.set", "call.speaker.volume.set", "call.member.remove", "call.lock", "call.unlock",
		"call.end"} {
		for _, member := range []string{host.ID, "all"} {
			target["member_id"] = member
			params := map[string]any{"target": target, "channels": []string{"audio"}, "volume": 10}
			if err := guest.TryCommand(method, params); err == nil || !strings.Contains(err.Error(), "moderator") {
				t.Errorf("%s of a guest for %s returns %v, want an error about moderators", method, member, err)
			}
		}
	}

	guest.Command("call.mute", map[string]any{"channels": []string{"audio"}})
	guest.Hangup()
	host.Command("call.end", map[string]any{})
	if cause := host.WaitEnded(); cause != "NORMAL_CLEARING" {
		t.Errorf("the room ended with %s, want NORMAL_CLEARING", cause)
	}
}

// TestRoomSound shows that a member hears the others, even after a moderator has muted the member.
// A member whose token is revoked leaves the room.
func TestRoomSound(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Shared(t)
	p := s.NewProject(t)
	address, _ := createRoom(t, p, "sound", nil)
	var all []*telephone.Call
	for i := range 3 {
		c := telephone.Connect(t, s, p.NewSAT(t, fmt.Sprintf("member%d", i)).Token, "").G711().Dial(address)
		c.WaitAnswered()
		all = append(all, c)
	}
	all[0].Speak(440)
	all[1].WaitSound(true)
	all[2].WaitSound(true)
	all[0].WaitSound(false) // the speaker does not hear itself

	all[1].Command("call.mute", map[string]any{"channels": []string{"audio"},
		"target": map[string]string{"call_id": all[0].ID, "member_id": all[0].ID, "node_id": all[0].Node()}})
	all[2].WaitSound(false)
	all[1].Command("call.unmute", map[string]any{"channels": []string{"audio"},
		"target": map[string]string{"call_id": all[0].ID, "member_id": all[0].ID, "node_id": all[0].Node()}})
	all[2].WaitSound(true)
	all[0].Hangup()
	all[2].WaitSound(false)
	all[1].Hangup()
	all[2].Hangup()
}

// TestMovedCall shows that a backend can move a recorded call into a room and out again. The sides
// hear the members of the room, and the call has one record and one recording.
func TestMovedCall(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, "ffmpeg")
	s := harness.Shared(t)
	p := s.NewProject(t)
	address, _ := createRoom(t, p, "moved", nil)
	host := telephone.Connect(t, s, p.NewSAT(t, "host").Token, "").G711().Dial(address)
	host.WaitAnswered()
	from := telephone.Connect(t, s, p.NewSAT(t, "from").Token, "").G711()
	at := telephone.Connect(t, s, p.NewSAT(t, "at").Token, "").G711().Online()
	caller, callee := telephone.Talk(from, at, "/private/at")
	telephone.HearBoth(caller, callee)
	list, room := p.LaML("/Calls/"+caller.ID+"/Recordings"), "/api/fabric/calls/"+caller.ID+"/room"
	sid := fmt.Sprint(p.Post(t, list, p.Basic(), harness.Form(url.Values{})).Want(t, 201).Object(t)["sid"])
	caller.Speak(1000)

	for _, wrong := range []string{"/private/at", "/public/nowhere"} {
		p.Do(t, "PUT", room, p.Basic(), harness.JSON(map[string]string{"address": wrong})).Want(t, 422)
	}
	p.Do(t, "DELETE", room, p.Basic()).Want(t, 422)
	p.Do(t, "PUT", room, p.Basic(), harness.JSON(map[string]string{"address": address})).Want(t, 204)
	p.Do(t, "PUT", room, p.Basic(), harness.JSON(map[string]string{"address": address})).Want(t, 422)
	host.Speak(440)
	caller.WaitSound(true)
	callee.WaitSound(true)
	session := openRoomSession(t, p)
	var members struct {
		Data []struct{ ID string }
	}
	p.Get(t, "/api/fabric/room_sessions/"+session+"/members", p.Basic()).Want(t, 200).Read(t, &members)
	if len(members.Data) != 2 || members.Data[0].ID != caller.ID && members.Data[1].ID != caller.ID {
		t.Errorf("the members are %+v, want the host and the call", members.Data)
	}

	p.Do(t, "DELETE", room, p.Basic()).Want(t, 204)
	telephone.HearBoth(caller, callee)
	callee.Hangup()
	caller.WaitEnded()
	host.Hangup()

	var rec map[string]any
	harness.Eventually(t, time.Minute, "the recording", func() error {
		rec = p.Get(t, p.LaML("/Recordings/"+sid+".json"), p.Basic()).Want(t, 200).Object(t)
		if rec["status"] != "completed" {
			return fmt.Errorf("the recording's status is %v, want completed", rec["status"])
		}
		return nil
	})
	var all struct{ Recordings []struct{ Sid string } }
	p.Get(t, list+".json", p.Basic()).Want(t, 200).Read(t, &all)
	if len(all.Recordings) != 1 || all.Recordings[0].Sid != sid || fmt.Sprint(rec["channels"]) != "2" {
		t.Errorf("the call has the recordings %+v, want one with both sides", all.Recordings)
	}
	left, _ := channels(t, p.Get(t, p.LaML("/Recordings/"+sid+".wav"), p.Basic()).Want(t, 200).Body)
	wantTone(t, "the recording of the caller", left, 1000, 440)
}
