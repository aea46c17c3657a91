package nodes

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
	"github.com/selvage/selvage/test/servers"
)

// TestCallTakenOver kills the node that carries a call. Both sides are notified, and attach to
// their legs again, in either order. They then hear each other. The call and its legs keep their
// IDs, and there is only one record of the call.
func TestCallTakenOver(t *testing.T) {
	for _, first := range []string{"caller", "callee"} {
		t.Run(first+" first", func(t *testing.T) {
			n := two(t)
			p := newPeople(t, n)
			here, there := p.phones(t, n)
			alice, bob := phone.Talk(here, there, "/private/bob")
			phone.HearBoth(alice, bob)
			n.Each[0].Kill()

			again := phone.Connect(t, n.Each[1], p.alice.Token, here.Protocol)
			again.Take(here)
			alice.WaitLost()
			bob.WaitLost()
			if first == "caller" {
				alice = again.Attach(alice)
				bob = there.Attach(bob)
			} else {
				bob = there.Attach(bob)
				alice = again.Attach(alice)
			}

			alice.WaitAnswered()
			bob.WaitAnswered()
			phone.HearBoth(alice, bob)
			bob.Hold(true)
			bob.Hold(false)
			phone.HearBoth(alice, bob)

			p.wantStatus(t, n.Each[1], alice.ID, "in-progress")
			alice.Hangup()
			if cause := bob.WaitEnded(); cause != "NORMAL_CLEARING" {
				t.Errorf("the call ended with %s, want NORMAL_CLEARING", cause)
			}
			p.wantStatus(t, n.Each[1], alice.ID, "completed")
		})
	}
}

// wantStatus fails the test unless the project has one call, with this id and status.
func (p people) wantStatus(t *testing.T, at *harness.Server, id, status string) {
	t.Helper()
	var list struct {
		Calls []struct{ Sid, Status string }
	}
	at.Get(t, p.LaML("/Calls.json"), p.Basic()).Want(t, 200).Read(t, &list)
	if got := fmt.Sprint(list.Calls); got != fmt.Sprintf("[{%s %s}]", id, status) {
		t.Errorf("the calls are %s, want only %s with the status %s", got, id, status)
	}
}

// TestCallTakenFromSilentNode pauses the node that carries a call, and another node takes the call
// over. When the first node runs again, it does not end the call.
func TestCallTakenFromSilentNode(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	here, there := p.phones(t, n)
	alice, bob := phone.Talk(here, there, "/private/bob")
	phone.HearBoth(alice, bob)

	signal := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(n.Each[0].PID(), s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	bob.WaitLost()
	bob = there.Attach(bob)
	again := phone.Connect(t, n.Each[1], p.alice.Token, here.Protocol)
	alice = again.Attach(alice)
	alice.WaitAnswered()
	bob.WaitAnswered()
	phone.HearBoth(alice, bob)

	signal(syscall.SIGCONT)
	n.Each[0].Terminate() // also ends the calls that the node still considers its own
	if err := n.Each[0].Wait(t); err != nil {
		t.Errorf("the first node ended with %v", err)
	}
	phone.HearBoth(alice, bob)
	p.wantStatus(t, n.Each[1], alice.ID, "in-progress")
	alice.Hangup()
	if cause := bob.WaitEnded(); cause != "NORMAL_CLEARING" {
		t.Errorf("the call ended with %s, want NORMAL_CLEARING", cause)
	}
}

// TestGuestTakenOver shows that a guest, like a subscriber, is notified when the node of a call is
// lost, and that the guest's call continues.
func TestGuestTakenOver(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	guest := p.NewGuest(t, p.Address(t, p.bob.SubscriberID)).Token
	here, there := phone.Connect(t, n.Each[0], guest, ""), phone.Connect(t, n.Each[1], p.bob.Token, "").Online()
	visitor, bob := phone.Talk(here, there, "/private/bob")
	phone.HearBoth(visitor, bob)
	n.Each[0].Kill()

	again := phone.Connect(t, n.Each[1], guest, here.Protocol)
	again.Take(here)
	visitor.WaitLost()
	visitor = again.Attach(visitor)
	bob.WaitLost()
	bob = there.Attach(bob)
	visitor.WaitAnswered()
	bob.WaitAnswered()
	phone.HearBoth(visitor, bob)
	visitor.Hangup()
	if cause := bob.WaitEnded(); cause != "NORMAL_CLEARING" {
		t.Errorf("the call ended with %s, want NORMAL_CLEARING", cause)
	}
}

// TestControlsTakenOver shows that a muted caller remains muted after another node has taken the
// call over, until the caller unmutes.
func TestControlsTakenOver(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	here, there := p.phones(t, n)
	alice, bob := phone.Talk(here, there, "/private/bob")
	phone.HearBoth(alice, bob)
	sound := map[string]any{"channels": []string{"audio"}}
	alice.Command("call.mute", sound)
	harness.Eventually(t, soon, "the record of the mute", func() error {
		muted := servers.SQL(t, n.Database(), "SELECT caller_controls FROM calls WHERE ended = 0")
		if strings.TrimSpace(muted) != fmt.Sprint(int64(calls.AudioMuted)) {
			return fmt.Errorf("the caller's controls are %q", muted)
		}
		return nil
	})
	n.Each[0].Kill()

	again := phone.Connect(t, n.Each[1], p.alice.Token, here.Protocol)
	again.Take(here)
	bob.WaitLost()
	bob = there.Attach(bob)
	alice.WaitLost()
	alice = again.Attach(alice)
	alice.WaitAnswered()
	bob.WaitAnswered()

	const secret = "what nobody should hear"
	for range 10 {
		alice.Say(secret)
		phone.Hear(bob, alice)
	}
	alice.Command("call.unmute", sound)
	if heard := phone.Hear(alice, bob); slices.Contains(heard, secret) {
		t.Errorf("bob heard what alice said while she was muted")
	}
	alice.Hangup()
	bob.WaitEnded()
}
