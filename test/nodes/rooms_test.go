package nodes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
)

// TestRoomElsewhere shows that clients of two nodes meet in the same room. Each session of the room
// is on the node of its first client, so the next session may be on the other node.
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
			t.Errorf("the room is on node %q for one member and on %q for the other, want one node",
				one.Node(), other.Node())
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

	harness.Eventually(t, soon, "the room session to end", func() error {
		if ids := p.runningRooms(t, n.Each[1]); len(ids) > 0 {
			return fmt.Errorf("the sessions %v are still running", ids)
		}
		return nil
	})
	bob, alice = meet(there, here)
	if alice.Node() == first {
		t.Errorf("the second room session is also on node %s, want the node of its first member", first)
	}
	bob.Hangup()
	alice.Hangup()
}

// TestRoomTakenOver kills the node of a room. The other node takes over the room when a member
// attaches there or when somebody calls the room there. Members that attach return to the same
// session. A locked session stays locked. The session's recording ends with the node, and a new
// recording starts. A member that does not attach leaves the session.
func TestRoomTakenOver(t *testing.T) {
	for _, first := range []string{"member", "caller"} {
		t.Run(first+" first", func(t *testing.T) {
			n := two(t)
			p := newPeople(t, n)
			p.Post(t, "/api/fabric/resources/conference_rooms", p.Basic(),
				harness.JSON(map[string]any{"name": "hall", "record_on_start": true})).Want(t, 201)
			here, there := p.phones(t, n)
			here, there = here.G711(), there.G711()
			alice, bob := here.Dial("/public/hall"), there.Dial("/public/hall")
			gone := phone.Connect(t, n.Each[1], p.NewSAT(t, "carol").Token, "").G711().Dial("/public/hall")
			for _, c := range []*phone.Call{alice, bob, gone} {
				c.WaitAnswered()
			}

			session := p.runningRoom(t, n.Each[1])
			p.wantRecordings(t, n.Each[1], session, "in-progress")
			if first == "member" {
				bob.Command("call.lock", map[string]any{})
			}
			n.Each[0].Kill()
			bob.WaitLost()

			if first == "caller" {
				dave := phone.Connect(t, n.Each[1], p.NewSAT(t, "dave").Token, "").G711().Dial("/public/hall")
				dave.WaitAnswered()
				dave.Hangup()
			}

			bob = there.Attach(bob)
			bob.WaitAnswered()
			again := phone.Connect(t, n.Each[1], p.alice.Token, here.Protocol).G711()
			again.Take(here)
			alice = again.Attach(alice)
			alice.WaitAnswered()
			alice.Speak(440)
			bob.WaitSound(true)
			if now := p.runningRoom(t, n.Each[1]); now != session {
				t.Errorf("the session is %s, want %s as before", now, session)
			}

			p.wantRecordings(t, n.Each[1], session, "in-progress", "stopped")
			if first == "member" {
				late := phone.Connect(t, n.Each[1], p.NewSAT(t, "late").Token, "").G711().Dial("/public/hall")
				if cause := late.WaitEnded(); cause != "CALL_REJECTED" {
					t.Errorf("a call to the locked room ended with %s, want CALL_REJECTED", cause)
				}
			}

			if cause := gone.WaitEnded(); cause != "NODE_LOST" {
				t.Errorf("the member that did not come back left with %s, want NODE_LOST", cause)
			}
			bob.Command("call.end", map[string]any{})
			alice.WaitEnded()
		})
	}
}

// runningRoom returns the ID of the project's only running room session.
func (p people) runningRoom(t *testing.T, at *harness.Server) string {
	t.Helper()
	ids := p.runningRooms(t, at)
	if len(ids) != 1 {
		t.Fatalf("the room sessions %v are running, want one", ids)
	}
	return ids[0]
}

// runningRooms returns the IDs of the project's running room sessions.
func (p people) runningRooms(t *testing.T, at *harness.Server) (ids []string) {
	t.Helper()
	var page struct{ Data []struct{ ID string } }
	at.Get(t, "/api/fabric/room_sessions?state=in-progress", p.Basic()).Want(t, 200).Read(t, &page)
	for _, session := range page.Data {
		ids = append(ids, session.ID)
	}
	return ids
}

// wantRecordings waits until the recordings of a room session have these statuses, newest first.
func (p people) wantRecordings(t *testing.T, at *harness.Server, session string, want ...string) {
	t.Helper()
	harness.Eventually(t, soon, "the recordings of the room", func() error {
		var list struct{ Recordings []struct{ Status string } }
		at.Get(t, p.LaML("/Conferences/"+session+"/Recordings.json"), p.Basic()).Want(t, 200).Read(t, &list)
		var got []string
		for _, r := range list.Recordings {
			got = append(got, r.Status)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("the recordings have the statuses %q, want %q", got, want)
		}
		return nil
	})
}

// TestRoomRecordedElsewhere shows that a backend can record a room through any node.
func TestRoomRecordedElsewhere(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	p.Post(t, "/api/fabric/resources/conference_rooms", p.Basic(),
		harness.JSON(map[string]any{"name": "hall"})).Want(t, 201)
	here, _ := p.phones(t, n)
	alice := here.G711().Dial("/public/hall")
	alice.WaitAnswered()
	alice.Speak(440)
	session := p.runningRoom(t, n.Each[1])
	list := p.LaML("/Conferences/" + session + "/Recordings")
	n.Each[1].Post(t, list, p.Basic(), harness.Form(nil)).Want(t, 201)
	p.wantRecordings(t, n.Each[0], session, "in-progress")
	const second = 8000 // bytes per second in the recording of alice, who uses G.711
	harness.Eventually(t, soon, "a second of the recording at the other node", func() error {
		if size := sizeOf(t, filepath.Join(n.Each[0].Data, "spool")); size < second {
			return fmt.Errorf("the recording has only %d bytes, so it would count as silent", size)
		}
		return nil
	})
	alice.Hangup()
	p.wantRecordings(t, n.Each[0], session, "completed")
}

// sizeOf returns the number of bytes in the files of a directory.
func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		// Info fails if the file has been deleted.
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	return size
}
