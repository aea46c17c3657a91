package clients

import (
	"fmt"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestRooms shows that three subscribers meet in a room with each version of the stock browser SDK.
func TestRooms(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Shared(t)
	for _, version := range sdkVersions {
		t.Run(version, func(t *testing.T) {
			alice, bob := phones(t, s, version)
			carol := newTabPhone(t, alice.project, alice.window.beside(), version, alice.page, 1600, "lime")

			for _, j := range []struct {
				name string
				walk func(alice, bob, carol *phone)
			}{{"tones", roomTones}, {"video", roomVideo}, {"moderator", roomModerator},
				{"recorded", roomRecorded}, {"moved", roomMoved}} {
				t.Run(j.name, func(t *testing.T) {
					if j.name == "moderator" && version == "3.27.0" {
						return // this version changes only members who joined earlier
					}
					for _, p := range []*phone{alice, bob, carol} {
						p.use(t)
						p.load()
					}
					j.walk(alice, bob, carol)
				})
			}
		})
	}
}

// newRoom creates a room and returns its address. more adds or replaces members of the resource.
func newRoom(p *phone, name string, more map[string]any) (address string) {
	p.Helper()
	members := map[string]any{"name": name, "tone_on_entry_and_exit": false}
	for key, value := range more {
		members[key] = value
	}
	p.project.Post(p.T, "/api/fabric/resources/conference_rooms", p.project.Basic(),
		harness.JSON(members)).Want(p.T, 201)
	return "/public/" + name
}

// enterRoom makes phones join a room, one after the other.
func enterRoom(address string, video bool, all ...*phone) {
	for _, p := range all {
		p.Helper()
		p.enter(false)
		p.do(fmt.Sprintf("dial(%q, { video: %v, rootElement: root })", address, video), nil)
	}
}

// roomTones shows that each of three members hears the other two but not itself.
func roomTones(alice, bob, carol *phone) {
	address := newRoom(alice, "tones", nil)
	enterRoom(address+"?channel=audio", false, alice, bob, carol)
	all := []*phone{alice, bob, carol}
	for i, p := range all {
		one, other := all[(i+1)%3], all[(i+2)%3]
		p.do(fmt.Sprintf("hearAll([%d, %d], [%d])", one.hz, other.hz, p.hz), nil)
	}

	bob.do("call.audioMute()", nil)
	alice.do(fmt.Sprintf("hearAll([%d], [%d, %d])", carol.hz, bob.hz, alice.hz), nil)
	carol.do("call.hangup()", nil)
	alice.do("until(() => states.includes('member.left'))", nil)
	alice.do("hear(0)", nil)
	bob.do("call.hangup()", nil)
	alice.do("call.hangup()", nil)
}

// roomVideo shows that members see each other, and the screen that one of them shares.
func roomVideo(alice, bob, carol *phone) {
	address := newRoom(alice, "pictures", nil)
	enterRoom(address+"?channel=video", true, alice, bob)
	alice.do("see('b', inRoot())", nil)
	bob.do("see('r')", nil)
	alice.do("until(() => states.includes('layout.changed'))", nil)

	enterRoom(address+"?channel=audio", false, carol)
	bob.do("call.startScreenShare({ audio: false, video: true }).then(s => { window.screen_ = s })", nil)
	alice.do("see('g')", nil)
	bob.do("screen_.leave ? screen_.leave() : screen_.hangup()", nil)
	alice.do("see('b')", nil)
	for _, p := range []*phone{alice, bob, carol} {
		p.do("call.hangup()", nil)
	}
}

// roomModerator shows that a member can mute and remove another member, lock the room, and end the
// session for all. Nobody can join a room that is full or locked.
func roomModerator(alice, bob, carol *phone) {
	address := newRoom(alice, "moderated", map[string]any{"max_members": 2})
	enterRoom(address+"?channel=audio", false, alice, bob)
	hear(alice, bob)
	alice.do("call.getMembers().then(m => call.audioMute({ memberId: m.members.at(-1).member_id }))", nil)
	bob.do("until(() => microphone() === 0)", nil)
	alice.do("hear(0)", nil)

	carol.enter(false)
	carol.do(fmt.Sprintf("void (dialing = causeOf(%q))", address+"?channel=audio"), nil)
	carol.wantCause("USER_BUSY")
	carol.load()

	bob.do("call.hangup()", nil)
	alice.do("call.lock()", nil)
	alice.do("until(() => rooms.at(-1).locked)", nil)
	carol.enter(false)
	carol.do(fmt.Sprintf("void (dialing = causeOf(%q))", address+"?channel=audio"), nil)
	carol.wantCause("CALL_REJECTED")
	carol.load()
	alice.do("call.unlock()", nil)
	enterRoom(address+"?channel=audio", false, carol)
	alice.do("until(() => states.includes('member.joined'))", nil)
	alice.do("call.getMembers().then(m => call.removeMember({ memberId: m.members.at(-1).member_id }))", nil)
	carol.do("until(() => states.includes('destroy'))", nil)
	alice.do("call.end ? call.end() : call.hangup()", nil) // 3.28 has no end
	alice.do("until(() => states.includes('destroy'))", nil)
}

// roomMoved shows that a call can move into a room and out again, and keeps its ID. While the call
// is in the room, its two sides and the other members hear each other.
func roomMoved(alice, bob, carol *phone) {
	address := newRoom(alice, "moved", nil)
	enterRoom(address+"?channel=audio", false, carol)
	id := connect(alice, bob, false)
	hear(alice, bob)

	alice.do(fmt.Sprintf("Selvage.moveCall(call, %q)", address), nil)
	all := []*phone{alice, bob, carol}
	for i, p := range all {
		one, other := all[(i+1)%3], all[(i+2)%3]
		p.do(fmt.Sprintf("hearAll([%d, %d], [%d])", one.hz, other.hz, p.hz), nil)
	}
	alice.do("until(() => rooms.at(-1).members.length === 3)", nil)
	alice.do("call.audioMute()", nil)
	bob.do(fmt.Sprintf("hearAll([%d], [%d, %d])", carol.hz, alice.hz, bob.hz), nil)
	alice.do("call.audioUnmute()", nil)

	bob.do("Selvage.moveCall(call, null)", nil)
	hear(alice, bob)
	carol.do("hear(0)", nil)
	bob.do("void Selvage.moveCall(call, null).catch((e) => { window.refused = e.code })", nil)
	bob.do("until(() => window.refused === 'not_movable')", nil)
	var same string
	if alice.do("call.callId", &same); same != id {
		alice.Errorf("after the moves, the call has the id %s, want %s", same, id)
	}
	bob.do("call.hangup()", nil)
	alice.do("until(() => states.includes('destroy'))", nil)
	carol.do("call.hangup()", nil)
}
