package nodes

import (
	"fmt"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
	"github.com/selvage/selvage/test/servers"
)

// people holds two subscribers of a project.
type people struct {
	*harness.Project
	alice, bob harness.SAT
}

func newPeople(t *testing.T, n *harness.Nodes) people {
	t.Helper()
	p := n.NewProject(t)
	return people{Project: p, alice: p.NewSAT(t, "alice"), bob: p.NewSAT(t, "bob")}
}

// phones connects a phone for alice at the first node, and a phone for bob at the second.
func (p people) phones(t *testing.T, n *harness.Nodes) (here, there *phone.Phone) {
	t.Helper()
	return phone.Connect(t, n.Each[0], p.alice.Token, ""), phone.Connect(t, n.Each[1], p.bob.Token, "").Online()
}

// TestCallElsewhere shows that a call between clients on two nodes works like a call on a single
// node. Both clients learn the caller's node, and each can end the call.
func TestCallElsewhere(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	here, there := p.phones(t, n)

	for name, end := range map[string]func(alice, bob *phone.Call) (other *phone.Call){
		"the caller hangs up": func(alice, bob *phone.Call) *phone.Call { alice.Hangup(); return bob },
		"the callee hangs up": func(alice, bob *phone.Call) *phone.Call { bob.Hangup(); return alice },
	} {
		t.Run(name, func(t *testing.T) {
			alice, bob := phone.Talk(here, there, "/private/bob")
			phone.HearBoth(alice, bob)
			if alice.Node() == "" || alice.Node() != bob.Node() {
				t.Errorf("the call is on node %q for alice and on %q for bob, want one node", alice.Node(), bob.Node())
			}
			bob.Hold(true)
			bob.Hold(false)
			phone.HearBoth(alice, bob)
			if cause := end(alice, bob).WaitEnded(); cause != "NORMAL_CLEARING" {
				t.Errorf("the call ended with %s, want NORMAL_CLEARING", cause)
			}
		})
	}
}

// TestRejectElsewhere shows that a callee at another node can reject a call.
func TestRejectElsewhere(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	here, there := p.phones(t, n)
	alice := here.Dial("/private/bob")
	there.WaitRing().Reject()
	if cause := alice.WaitEnded(); cause != "USER_BUSY" {
		t.Errorf("the call ended with %s, want USER_BUSY", cause)
	}
}

// TestCallMovesElsewhere shows that a client whose socket breaks can control its call through
// another node.
func TestCallMovesElsewhere(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	here, there := p.phones(t, n)
	alice, bob := phone.Talk(here, there, "/private/bob")
	phone.HearBoth(alice, bob)

	for _, m := range []struct {
		who   *phone.Phone
		token string
		to    *harness.Server
	}{{here, p.alice.Token, n.Each[1]}, {there, p.bob.Token, n.Each[0]}} {
		m.who.Drop()
		phone.Connect(t, m.to, m.token, m.who.Protocol).Take(m.who)
	}

	phone.HearBoth(alice, bob)
	alice.Hold(true)
	alice.Hold(false)
	phone.HearBoth(alice, bob)
	alice.Hangup()
	if cause := bob.WaitEnded(); cause != "NORMAL_CLEARING" {
		t.Errorf("the call ended with %s, want NORMAL_CLEARING", cause)
	}
}

// TestEndCallElsewhere shows that a call ends within a second of the revocation of a token, and
// that a backend can end a call. Either node may receive the request.
func TestEndCallElsewhere(t *testing.T) {
	for i := range 2 {
		n := two(t)
		p := newPeople(t, n)
		here, there := p.phones(t, n)

		t.Run(fmt.Sprintf("a backend at node %d", i), func(t *testing.T) {
			alice, bob := phone.Talk(here, there, "/private/bob")
			n.Each[i].Post(t, p.LaML("/Calls/"+alice.ID), p.Basic(),
				harness.Form(map[string][]string{"Status": {"completed"}})).Want(t, 200)
			if a, b := alice.WaitEnded(), bob.WaitEnded(); a != b {
				t.Errorf("the call ended with %s for alice and %s for bob, want the same cause", a, b)
			}
		})

		t.Run(fmt.Sprintf("a revocation at node %d", i), func(t *testing.T) {
			alice, bob := phone.Talk(here, there, "/private/bob")
			n.Each[i].Command(t, p.bob.Token, "token", "revoke")
			harness.WithinASecond(t, "the call of a revoked token to end", func() error {
				return alice.Ended("TOKEN_REVOKED")
			})
			bob.Close()
		})
	}
}

// TestNodeOfCallDies kills the node that carries a call. The record of the call must then show that
// it has ended, and the other side must receive the reason.
func TestNodeOfCallDies(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	here, there := p.phones(t, n)
	alice, bob := phone.Talk(here, there, "/private/bob")
	phone.HearBoth(alice, bob)
	n.Each[0].Kill()

	harness.Eventually(t, soon, "the record of the call", func() error {
		var call struct{ Status string }
		n.Each[1].Get(t, p.LaML("/Calls/"+alice.ID+".json"), p.Basic()).Want(t, 200).Read(t, &call)
		if call.Status != "completed" {
			return fmt.Errorf("the call's status is %s, want completed", call.Status)
		}
		return nil
	})
	if cause := bob.WaitEnded(); cause != "NODE_LOST" {
		t.Errorf("bob's call ended with %s, want NODE_LOST", cause)
	}
}

// TestDrain shows that a call continues while its node drains. Its clients connect to the other
// node, and the draining node stops after the call has ended.
func TestDrain(t *testing.T) {
	patient := harness.Config{Args: []string{"--drain", "10m"}}
	n := harness.StartNodes(t, nil, patient, patient)
	p := newPeople(t, n)
	here, there := p.phones(t, n)
	alice, bob := phone.Talk(here, there, "/private/bob")
	phone.HearBoth(alice, bob)

	n.Each[0].Terminate()
	here.WaitClosed()
	phone.Connect(t, n.Each[1], p.alice.Token, here.Protocol).Take(here)
	phone.HearBoth(alice, bob)
	alice.Hold(true)
	alice.Hold(false)
	phone.HearBoth(alice, bob)

	alice.Hangup()
	if cause := bob.WaitEnded(); cause != "NORMAL_CLEARING" {
		t.Errorf("the call ended with %s, want NORMAL_CLEARING", cause)
	}
	if err := n.Each[0].Wait(t); err != nil {
		t.Errorf("the drained node ended with %v", err)
	}
}

// TestSessionsLost shows that a call continues while Redis repeatedly loses its contents, which
// include the entries that show that nodes are alive.
func TestSessionsLost(t *testing.T) {
	r := servers.OwnRedis(t)
	forgetful := harness.Config{Env: []string{"SELVAGE_SESSIONS=" + r.URL}}
	n := harness.StartNodes(t, nil, forgetful, forgetful)
	p := newPeople(t, n)
	here, there := p.phones(t, n)
	alice, bob := phone.Talk(here, there, "/private/bob")

	for end := time.Now().Add(9 * time.Second); time.Now().Before(end); {
		r.CLI(t, "FLUSHALL")
		phone.HearBoth(alice, bob)
	}
	bob.Hold(true)
	bob.Hold(false)
	alice.Hangup()
	if cause := bob.WaitEnded(); cause != "NORMAL_CLEARING" {
		t.Errorf("the call ended with %s, want NORMAL_CLEARING", cause)
	}
}
