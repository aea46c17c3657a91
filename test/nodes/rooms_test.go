package nodes

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
)

// TestRoomElsewhere shows that clients of two nodes meet in one room, which is on the node of the
// first, and that the next room session may be on the other node.
func TestRoomElsewhere(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	p.Post(t, "/api/fabric/resources/conference_rooms", p.Basic(),
		harness.JSON(map[string]any{"name": "hall"})).Want(t, 201)
	here, there := p.phones(t, n)
	here, there = here.G711(), there.G711()

	meet := func(first, second *phone.Phone) (one, other *phone.Call) {
		t.Helper()
		one = first.Dial("/public/hall")
		one.WaitAnswered()
		other = second.Dial("/public/hall")
		other.WaitAnswered()
		if one.Node() == "" || one.Node() != other.Node() {
			t.Errorf("the room is on node %q for one member and on %q for the other", one.Node(), other.Node())
		}
		return one, other
	}
	alice, bob := meet(here, there)
	first := alice.Node()
	alice.Speak(440)
	bob.WaitSound(true)
	bob.Command("call.mute", map[string]any{"channels": []string{"audio"},
		"target": map[string]string{"call_id": alice.ID, "member_id": alice.ID, "node_id": alice.Node()}})
	bob.WaitSound(false)
	bob.Command("call.end", map[string]any{})
	for _, c := range []*phone.Call{alice, bob} {
		if cause := c.WaitEnded(); cause != "NORMAL_CLEARING" {
			t.Errorf("the room ended with %s, want NORMAL_CLEARING", cause)
		}
	}

	bob, alice = meet(there, here)
	if alice.Node() == first {
		t.Errorf("the second room session is on node %s, want the node of its first member", first)
	}
	bob.Hangup()
	alice.Hangup()
}

// TestRoomLost shows that a room whose node was killed can be entered at another node.
func TestRoomLost(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	p.Post(t, "/api/fabric/resources/conference_rooms", p.Basic(),
		harness.JSON(map[string]any{"name": "hall"})).Want(t, 201)
	here, there := p.phones(t, n)
	alice := here.G711().Dial("/public/hall")
	alice.WaitAnswered()
	n.Each[0].Kill()

	bob := there.G711().Dial("/public/hall")
	bob.WaitAnswered()
	if bob.Node() == alice.Node() {
		t.Errorf("the room is on node %s, which was killed", bob.Node())
	}
	bob.Hangup()
}
