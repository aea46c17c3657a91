package clients

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	telephone "github.com/selvage/selvage/test/phone"
)

// createRoom creates a room with a name and additional settings, and returns the room's address and
// ID.
func createRoom(t *testing.T, p *harness.Project, name string, settings map[string]any) (address, id string) {
	t.Helper()
	members := map[string]any{"name": name, "tone_on_entry_and_exit": false}
	maps.Copy(members, settings)
	created := p.Post(t, "/api/fabric/resources/conference_rooms", p.Basic(), harness.JSON(members)).Want(t, 201)
	return "/public/" + name, created.Object(t)["id"].(string)
}

// TestRoomTimes shows that nobody can join a room outside the times in its settings, and that a
// member is removed after the time in the settings.
func TestRoomTimes(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Shared(t)
	p := s.NewProject(t)
	alice := telephone.Connect(t, s, p.NewSAT(t, "alice").Token, "").G711()
	hourAgo := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	inAnHour := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)

	tests := map[string]struct {
		settings map[string]any
		cause    string
	}{
		"early": {
			settings: map[string]any{"join_from": inAnHour},
			cause:    "SERVICE_UNAVAILABLE",
		},
		"late": {
			settings: map[string]any{"join_until": hourAgo},
			cause:    "SERVICE_UNAVAILABLE",
		},
		"over": {
			settings: map[string]any{"remove_at": hourAgo},
			cause:    "SERVICE_UNAVAILABLE",
		},
		"removed": {
			settings: map[string]any{"join_from": hourAgo, "remove_after_seconds_elapsed": 1},
			cause:    "MEMBER_REMOVED",
		},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			address, _ := createRoom(t, p, name, tt.settings)
			if cause := alice.Dial(address).WaitEnded(); cause != tt.cause {
				t.Errorf("the call ended with %s, want %s", cause, tt.cause)
			}
		})
	}
}

// TestRoomGuests shows that no command of a guest's client can act on other members or on the room.
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
	for _, method := range []string{
		"call.mute", "call.unmute", "call.deaf", "call.undeaf", "call.lowerhand", "call.microphone.volume.set",
		"call.speaker.volume.set", "call.member.remove", "call.lock", "call.unlock", "call.end",
	} {
		for _, member := range []string{host.ID, "all"} {
			target["member_id"] = member
			params := map[string]any{"target": target, "channels": []string{"audio"}, "volume": 10}
			err := guest.TryCommand(method, params)
			if err == nil || !strings.Contains(err.Error(), "moderator") {
				t.Errorf("%s for the member %s, by a guest, returned %v, want an error about moderators",
					method, member, err)
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

// TestRoomSound shows that the members of a room hear a speaker, unless the speaker is muted or has
// left.
func TestRoomSound(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Shared(t)
	p := s.NewProject(t)
	address, _ := createRoom(t, p, "sound", nil)
	join := func(name string) *telephone.Call {
		call := telephone.Connect(t, s, p.NewSAT(t, name).Token, "").G711().Dial(address)
		call.WaitAnswered()
		return call
	}
	speaker, moderator, listener := join("member0"), join("member1"), join("member2")
	speaker.Speak(440)
	moderator.WaitSound(true)
	listener.WaitSound(true)
	speaker.WaitSound(false) // the speaker does not hear its own sound

	speakersAudio := map[string]any{
		"channels": []string{"audio"},
		"target":   map[string]string{"call_id": speaker.ID, "member_id": speaker.ID, "node_id": speaker.Node()},
	}
	moderator.Command("call.mute", speakersAudio)
	listener.WaitSound(false)
	moderator.Command("call.unmute", speakersAudio)
	listener.WaitSound(true)
	speaker.Hangup()
	listener.WaitSound(false)
	moderator.Hangup()
	listener.Hangup()
}

// TestMovedCall shows that a backend can move a recorded call into a room and out again. In the
// room, the call is a single member, and both its sides hear the other members. The call has only
// one recording.
func TestMovedCall(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, "ffmpeg")
	s := harness.Shared(t)
	p := s.NewProject(t)
	address, _ := createRoom(t, p, "moved", nil)
	host := telephone.Connect(t, s, p.NewSAT(t, "host").Token, "").G711().Dial(address)
	host.WaitAnswered()
	callerPhone := telephone.Connect(t, s, p.NewSAT(t, "caller").Token, "").G711()
	calleePhone := telephone.Connect(t, s, p.NewSAT(t, "callee").Token, "").G711().Online()
	caller, callee := telephone.Talk(callerPhone, calleePhone, "/private/callee")
	telephone.HearBoth(caller, callee)
	recordings := p.LaML("/Calls/" + caller.ID + "/Recordings")
	sid := fmt.Sprint(p.Post(t, recordings, p.Basic(), harness.Form(url.Values{})).Want(t, 201).Object(t)["sid"])
	caller.Speak(1000)

	room := "/api/fabric/calls/" + caller.ID + "/room"
	moveTo := func(address string) harness.Answer {
		return p.Do(t, "PUT", room, p.Basic(), harness.JSON(map[string]string{"address": address}))
	}
	moveTo("/private/callee").Want(t, 422)
	moveTo("/public/nowhere").Want(t, 422)
	p.Do(t, "DELETE", room, p.Basic()).Want(t, 422)
	moveTo(address).Want(t, 204)
	moveTo(address).Want(t, 422)
	host.Speak(440)
	caller.WaitSound(true)
	callee.WaitSound(true)
	session := openRoomSession(t, p)
	type member struct{ ID string }
	var members struct{ Data []member }
	p.Get(t, "/api/fabric/room_sessions/"+session+"/members", p.Basic()).Want(t, 200).Read(t, &members)
	if len(members.Data) != 2 {
		t.Errorf("the members are %+v, want the host and the call", members.Data)
	}
	if !slices.Contains(members.Data, member{caller.ID}) {
		t.Errorf("the members are %+v, want the call %s among them", members.Data, caller.ID)
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
	if got := fmt.Sprint(rec["channels"]); got != "2" {
		t.Errorf("the recording has %s channels, want 2", got)
	}
	type recording struct{ Sid string }
	var list struct{ Recordings []recording }
	p.Get(t, recordings+".json", p.Basic()).Want(t, 200).Read(t, &list)
	if want := []recording{{sid}}; !slices.Equal(list.Recordings, want) {
		t.Errorf("the call has the recordings %+v, want %+v", list.Recordings, want)
	}
	wav := p.Get(t, p.LaML("/Recordings/"+sid+".wav"), p.Basic()).Want(t, 200).Body
	left, _ := channels(t, wav)
	wantTone(t, "the recording of the caller", left, 1000, 440)
}
