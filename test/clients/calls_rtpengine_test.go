package clients

import (
	"fmt"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// TestCallsByRTPEngine repeats the journeys of TestCalls with rtpengine as the media engine. It
// also calls a phone that supports only PCMU, for which rtpengine transcodes the Opus that Chromium
// sends.
func TestCallsByRTPEngine(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, "sipp")
	engine := servers.OwnRTPEngine(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_CALLS__RTPENGINE=" + engine.Address},
		Args: []string{"--listen-sip", "127.0.0.1:0", "--phone-ports", "0", "--phone-digests", "MD5"}})
	alice, bob := phones(t, s, sdkVersions[0])
	t.Run("phone", func(t *testing.T) {
		alice.use(t)
		bob.use(t)
		callPhoneInOpus(alice, bob)
	})
	for _, j := range journeys {
		if j.name == "screen" {
			j.name, j.walk = "screen refused", callScreenRefused
		}
		walkAgain(t, j.name, alice, bob, j.walk)
	}
}

// callScreenRefused shows that sharing a screen fails, but the call continues.
func callScreenRefused(alice, bob *phone) {
	connect(alice, bob, true)
	var failed bool
	alice.do("call.startScreenShare({ audio: false, video: true }).then(() => false, () => true)", &failed)
	if !failed {
		alice.Error("sharing a screen succeeded, but rtpengine does not support shared screens")
	}
	hear(alice, bob)
	see(alice, bob)
	alice.do("call.hangup()", nil)
}

// callPhoneInOpus calls bob's desk phone from a browser that sends Opus. The phone uses PCMU, and
// sends back all audio that it receives. The recording contains both sides.
func callPhoneInOpus(alice, bob *phone) {
	t, p := alice.T, alice.project
	t.Helper()
	p.Command(t, "", "project", "update", p.ID, "--record-calls", "on")
	desk := newSIPPhone(t, p.Server, p, bob.person.ID, "bob", sippUDP)
	desk.mustEnd(desk.run("register.xml", ""))
	wait := desk.run("uas", "")
	alice.enter(false)
	alice.do(fmt.Sprintf("dial(%q)", bob.address()+"?channel=audio"), nil)
	var codec string
	if alice.do("codecSent()", &codec); codec != "audio/opus" {
		t.Errorf("the browser sends %s, want audio/opus", codec)
	}

	alice.do(fmt.Sprintf("hear(%d)", alice.hz), nil)
	alice.do("pass(2)", nil)
	alice.do("call.hangup()", nil)
	desk.mustEnd(wait)

	p.Command(t, "", "project", "update", p.ID, "--record-calls", "off")
	var list struct {
		Recordings []struct{ Sid, Status string }
	}
	harness.Eventually(t, time.Minute, "the recording", func() error {
		p.Get(t, p.LaML("/Recordings.json"), p.Basic()).Want(t, 200).Read(t, &list)
		if len(list.Recordings) != 1 || list.Recordings[0].Status != "completed" {
			return fmt.Errorf("the recordings are %v, want one that is completed", list.Recordings)
		}
		return nil
	})
	wav := p.Get(t, p.LaML("/Recordings/"+list.Recordings[0].Sid+".wav"), p.Basic()).Want(t, 200).Body
	left, right := channels(t, wav)
	wantTone(t, "the browser's channel", left, alice.hz, bob.hz)
	wantTone(t, "the phone's channel", right, alice.hz, bob.hz)
}
