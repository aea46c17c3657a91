package clients

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// lostNodes starts nodes, and opens two phones whose calls continue after a node is lost. callers
// and callees are the SDK versions of the two phones.
func lostNodes(t *testing.T, nodes int, callers, callees string) (n *harness.Nodes, alice, bob *phone) {
	t.Helper()
	if servers.BackendName(t) == "sqlite" {
		t.Skip("nodes cannot share files")
	}
	harness.NotStorage(t)
	n = harness.StartNodes(t, nil, make([]harness.Config, nodes)...)
	alice, bob = mixedPhones(t, n.Server, callers, callees)
	alice.kept, bob.kept = true, true
	return n, alice, bob
}

// meet connects alice to the first node with token, and bob to the second node, and makes alice
// call bob.
func meet(n *harness.Nodes, alice, bob *phone, token string, video bool) (id string) {
	alice.Helper()
	n.Prefer(0)
	alice.enterWith(token, false)
	n.Prefer(1)
	bob.enter(true)
	id = talk(alice, bob, video)
	hear(alice, bob)
	return id
}

// renew reloads the pages of phones, and makes the phones report failures to t.
func renew(t *testing.T, all ...*phone) {
	for _, f := range all {
		f.use(t)
		f.load()
	}
}

// wantMoved waits until the phone's call is on another node. id is the ID of the call, or "" if it
// is unknown.
func (f *phone) wantMoved(id string) {
	f.Helper()
	f.do("until(() => states.includes('media.reconnecting') && states.lastIndexOf('media.connected') > "+
		"states.lastIndexOf('media.reconnecting'))", nil)
	f.wantSame(id)
	var ended bool
	if f.do("states.includes('destroy')", &ended); ended {
		f.Errorf("the app saw its call end, want no change")
	}
}

// wantSame fails the test unless the phone's call has this ID.
func (f *phone) wantSame(id string) {
	f.Helper()
	var now string
	if f.do("call.callId", &now); id != "" && now != id {
		f.Errorf("the phone has the call %s, want %s as before", now, id)
	}
}

// wantOne fails the test unless the node has exactly one record of the call, with the given status.
func (f *phone) wantOne(at *harness.Server, id, status string) {
	f.Helper()
	var list struct {
		Calls []struct{ Sid, Status string }
	}
	at.Get(f.T, f.project.LaML("/Calls.json"), f.project.Basic()).Want(f.T, 200).Read(f.T, &list)
	var records []string
	for _, c := range list.Calls {
		if c.Sid == id {
			records = append(records, c.Status)
		}
	}
	if !slices.Equal(records, []string{status}) {
		f.Errorf("the records of the call have the statuses %v, want one record, with %s", records, status)
	}
}

// TestCallsOutliveTheirNode repeatedly kills the node of a call. With our SDK, the call continues
// on the other node with the same ID and record, and each side hears the other. With only the stock
// SDK, the call ends.
func TestCallsOutliveTheirNode(t *testing.T) {
	n, alice, bob := lostNodes(t, 2, "3.30.0", "3.30.0")
	p := alice.project
	app := p.NewClient(t, "web", "--first-party", "--access-token", "fabric")

	t.Run("recording and logout", func(t *testing.T) {
		renew(t, alice, bob)
		tokens, _ := app.SignIn(t, alice.person, "openid")
		record := func(value string) { p.Command(t, "", "project", "update", p.ID, "--record-calls", value) }
		record("on")
		id := meet(n, alice, bob, tokens.AccessToken, false)
		record("off") // for later calls
		alice.do("until(() => rooms.at(-1)?.recording)", nil)
		alice.do("pass(1)", nil)
		alice.eval(t, "rooms.length = 0", new(int))
		n.Each[0].Kill()
		killed := time.Now()
		alice.wantMoved(id)
		bob.wantMoved("")
		hear(alice, bob)
		t.Logf("the call continued after %v", time.Since(killed))
		alice.wantOne(n.Each[1], id, "in-progress")
		alice.do("until(() => rooms.at(-1)?.recording)", nil)
		alice.do("pass(1)", nil)

		n.Each[0].Restart(t)
		sessions := "/api/fabric/resources/subscribers/" + alice.person.ID + "/sessions/"
		n.Each[0].Do(t, "DELETE", sessions+tokens.SessionOf(t), p.Basic()).Want(t, 204)
		harness.Eventually(t, patience, "the call of an ended login to end", func() error {
			var cause string
			bob.eval(t, "messages.find((m) => m.method === 'verto.bye')?.params.cause ?? ''", &cause)
			if cause != "TOKEN_REVOKED" {
				return fmt.Errorf("the call ended with %q, want TOKEN_REVOKED", cause)
			}
			return nil
		})
		bob.do("until(() => states.includes('destroy'))", nil)
		alice.wantOne(n.Each[1], id, "completed")
		alice.wantRecordings(n.Each[1], id, 2, bob)
	})

	t.Run("guest", func(t *testing.T) {
		renew(t, alice, bob)
		id := meet(n, alice, bob, p.NewGuest(t, p.Address(t, bob.person.ID)).Token, false)
		n.Each[0].Kill()
		alice.wantMoved(id)
		bob.wantMoved("")
		hear(alice, bob)
		alice.do("call.hangup()", nil)
		bob.do("until(() => states.includes('destroy'))", nil)
		alice.wantOne(n.Each[1], id, "completed")
		n.Each[0].Restart(t)
	})

	t.Run("reload", func(t *testing.T) {
		renew(t, alice, bob)
		id := meet(n, alice, bob, p.NewSAT(t, alice.person.Email).Token, false)
		address := bob.address()
		n.Each[0].Kill()
		alice.load()
		alice.enterWith(alice.token, false)
		alice.do(fmt.Sprintf("reattach(%q)", address), nil)
		alice.wantSame(id)
		bob.wantMoved("")
		hear(alice, bob)
		alice.do("call.hangup()", nil)
		bob.do("until(() => states.includes('destroy'))", nil)
		n.Each[0].Restart(t)
	})

	t.Run("stock SDK", func(t *testing.T) {
		renew(t, alice, bob)
		alice.kept, bob.kept = false, false
		for _, f := range []*phone{alice, bob} { // use the SDK's own pool size; see page/socket.js
			f.eval(t, "(restriction = { iceCandidatePoolSize: 10 }) && 0", new(int))
		}
		id := meet(n, alice, bob, p.NewSAT(t, alice.person.Email).Token, false)
		n.Each[0].Kill()
		killed := time.Now()
		bob.wantBye("NODE_LOST")
		for _, f := range []*phone{alice, bob} {
			f.do("until(() => states.includes('destroy'))", nil)
		}
		t.Logf("the call ended after %v", time.Since(killed))
		alice.wantOne(n.Each[1], id, "completed")
	})
}

// TestVideoCallsOutliveTwoNodes kills two of three nodes in turn, each while it carries a video call
// between two older versions of the stock SDK. With our SDK, both sides continue to hear and see
// each other.
func TestVideoCallsOutliveTwoNodes(t *testing.T) {
	n, alice, bob := lostNodes(t, 3, "3.28.0", "3.29.2")
	id := meet(n, alice, bob, alice.project.NewSAT(t, alice.person.Email).Token, true)
	see(alice, bob)

	for i := range 2 {
		for _, f := range []*phone{alice, bob} {
			f.eval(t, "states.length = 0", new(int))
		}
		n.Each[i].Kill()
		alice.wantMoved(id)
		bob.wantMoved("")
		hear(alice, bob)
		see(alice, bob)
		alice.wantOne(n.Each[2], id, "in-progress")
	}
	bob.do("call.hangup()", nil)
	alice.do("until(() => states.includes('destroy'))", nil)
	alice.wantOne(n.Each[2], id, "completed")
}

// TestCallsOutliveTheirServer kills the only server during a recorded call, and starts it again.
// With each version of the stock SDK that can attach, the call continues, and a second recording
// continues the first.
func TestCallsOutliveTheirServer(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Start(t)
	for _, version := range sdkVersions {
		t.Run(version, func(t *testing.T) {
			if version == "3.27.0" {
				return // this version cannot attach; see callReload
			}
			outliveServer(t, s, version)
		})
	}
}

func outliveServer(t *testing.T, s *harness.Server, version string) {
	t.Helper()
	alice, bob := phones(t, s, version)
	p := alice.project
	p.Command(t, "", "project", "update", p.ID, "--record-calls", "on")
	alice.kept, bob.kept = true, true
	id := connect(alice, bob, false)
	hear(alice, bob)
	alice.do("until(() => rooms.at(-1)?.recording)", nil)
	alice.do("pass(1)", nil)

	alice.eval(t, "rooms.length = 0", new(int))
	s.Kill()
	s.Restart(t)
	alice.wantMoved(id)
	bob.wantMoved("")
	hear(alice, bob)
	alice.do("until(() => rooms.at(-1)?.recording)", nil)
	alice.do("pass(1)", nil)
	alice.do("call.hangup()", nil)
	bob.do("until(() => states.includes('destroy'))", nil)
	alice.wantOne(s, id, "completed")
	alice.wantRecordings(s, id, 2, bob)
}

// wantRecordings waits until a call has this many recordings. It fails the test unless each
// contains both sides.
func (f *phone) wantRecordings(at *harness.Server, call string, want int, callee *phone) {
	f.Helper()
	p := f.project
	var list struct {
		Recordings []struct{ Sid, Status string }
	}
	harness.Eventually(f.T, time.Minute, "the recordings", func() error {
		at.Get(f.T, p.LaML("/Calls/"+call+"/Recordings.json"), p.Basic()).Want(f.T, 200).Read(f.T, &list)
		done := 0
		for _, rec := range list.Recordings {
			if rec.Status == "completed" {
				done++
			}
		}
		if done != want || len(list.Recordings) != want {
			return fmt.Errorf("the recordings are %v, want %d", list.Recordings, want)
		}
		return nil
	})
	for _, rec := range list.Recordings {
		left, right := channels(f.T, at.Get(f.T, p.LaML("/Recordings/"+rec.Sid+".wav"), p.Basic()).Want(f.T, 200).Body)
		wantTone(f.T, "the caller's channel", left, f.hz, callee.hz)
		wantTone(f.T, "the callee's channel", right, callee.hz, f.hz)
	}
}

// TestRoomsOutliveTheirNode kills the node of a room. With our SDK, the members meet again on the
// other node, in the same session.
func TestRoomsOutliveTheirNode(t *testing.T) {
	n, alice, bob := lostNodes(t, 2, "3.30.0", "3.30.0")
	renew(t, alice, bob)
	address := newRoom(alice, "kept", nil) + "?channel=audio"
	n.Prefer(0)
	enterRoom(address, false, alice)
	n.Prefer(1)
	enterRoom(address, false, bob)
	hear(alice, bob)
	session := openRoomSession(t, alice.project)

	n.Each[0].Kill()
	for _, f := range []*phone{alice, bob} {
		f.wantMoved("")
	}
	hear(alice, bob)
	if now := openRoomSession(t, alice.project); now != session {
		t.Errorf("the room's session is %s, want %s as before", now, session)
	}
	alice.do("call.end()", nil)
	bob.do("until(() => states.includes('destroy'))", nil)
}
