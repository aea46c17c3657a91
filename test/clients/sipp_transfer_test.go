package clients

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
	telephone "github.com/selvage/selvage/test/phone"
)

// TestSIPPTransfers makes sipp call alice and transfer her to carol. Alice and carol then hear each
// other.
func TestSIPPTransfers(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, "sipp")
	s := harness.Start(t, "--listen-sip", "127.0.0.1:0", "--phone-ports", "0", "--phone-digests", "MD5")
	p := s.NewProject(t)
	alice, bob, carol := p.NewSAT(t, "alice"), p.NewSAT(t, "bob"), p.NewSAT(t, "carol")
	desk := newSIPPhone(t, s, p, bob.SubscriberID, "bob", "u1")
	stays := telephone.Connect(t, s, alice.Token, "").G711().Online()
	target := telephone.Connect(t, s, carol.Token, "").G711().Online()

	wait := desk.run("transfer.xml", "alice")
	caller := stays.WaitRing()
	caller.Answer()
	caller.WaitAnswered()
	callee := target.WaitRing()
	callee.Answer()
	callee.WaitAnswered()
	desk.mustEnd(wait)
	telephone.HearBoth(caller, callee)
	callee.Hangup()
	if cause := caller.WaitEnded(); cause != "NORMAL_CLEARING" {
		t.Errorf("the transferred call ends with %s, want NORMAL_CLEARING", cause)
	}
}
