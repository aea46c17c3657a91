package clients

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
	telephone "github.com/selvage/selvage/test/phone"
)

// A transferredCall is a call between the two remaining sides after a phone has called one of them
// and transferred the call to the other. The side that the phone called first is now the caller.
type transferredCall struct {
	server                   *harness.Server
	callerToken, calleeToken string
	caller, callee           *telephone.Call
}

// transfer makes sipp call alice, and transfer the call to carol.
func transfer(t *testing.T) transferredCall {
	t.Helper()
	harness.OneBackend(t)
	harness.Need(t, "sipp")
	s := harness.Start(t, "--listen-sip", "127.0.0.1:0", "--phone-ports", "0", "--phone-digests", "MD5")
	p := s.NewProject(t)
	alice, bob, carol := p.NewSAT(t, "alice"), p.NewSAT(t, "bob"), p.NewSAT(t, "carol")
	desk := newSIPPhone(t, s, p, bob.SubscriberID, "bob", sippUDP)
	c := transferredCall{server: s, callerToken: alice.Token, calleeToken: carol.Token}
	stays := telephone.Connect(t, s, alice.Token, "").G711().Online()
	target := telephone.Connect(t, s, carol.Token, "").G711().Online()

	wait := desk.run("transfer.xml", "alice")
	c.caller = stays.WaitRing()
	c.caller.Answer()
	c.caller.WaitAnswered()
	c.callee = target.WaitRing()
	c.callee.Answer()
	c.callee.WaitAnswered()
	desk.mustEnd(wait)
	return c
}

// wantGood fails the test unless both sides hear each other, and the call ends when the callee
// hangs up.
func (c transferredCall) wantGood(t *testing.T) {
	t.Helper()
	telephone.HearBoth(c.caller, c.callee)
	c.callee.Hangup()
	if cause := c.caller.WaitEnded(); cause != "NORMAL_CLEARING" {
		t.Errorf("the transferred call ended with %s, want NORMAL_CLEARING", cause)
	}
}

// TestSIPPTransfers makes sipp call alice, and transfer the call to carol. Alice and carol then
// hear each other.
func TestSIPPTransfers(t *testing.T) {
	c := transfer(t)
	c.wantGood(t)
}

// TestTransferredCallOutlivesNode kills the server after a phone has transferred a call. Both
// remaining sides attach to the restarted server, and hear each other again.
func TestTransferredCallOutlivesNode(t *testing.T) {
	c := transfer(t)
	c.server.Kill()
	c.server.Restart(t)

	c.caller = telephone.Connect(t, c.server, c.callerToken, "").G711().Attach(c.caller)
	c.callee = telephone.Connect(t, c.server, c.calleeToken, "").G711().Attach(c.callee)
	c.caller.WaitAnswered()
	c.callee.WaitAnswered()
	c.wantGood(t)
}
