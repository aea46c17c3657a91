package clients

import (
	"fmt"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// sdkVersions lists the versions of the stock SDK that the tests of calls use.
var sdkVersions = []string{"3.30.0", "3.29.2", "3.28.0", "3.27.0"}

// TestCallDetails shows that some features of calls work with each version of the stock SDK. It
// runs on one backend, because they do not depend on it.
func TestCallDetails(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Shared(t)
	for _, version := range sdkVersions {
		t.Run(version, func(t *testing.T) {
			alice, bob := phones(t, s, version)
			walkAgain(t, "digits", alice, bob, callDigits)
			walkAgain(t, "directions", alice, bob, callDirections)
			walkAgain(t, "codecs", alice, bob, callCodecs)
		})
	}
}

// callDigits shows that the other side hears the tones of digits, and then hears the caller again.
func callDigits(alice, bob *phone) {
	connect(alice, bob, false)
	bob.do(fmt.Sprintf("hearAll([%d], [697, 1209])", alice.hz), nil)
	alice.do("call.sendDigits('1'.repeat(40))", nil) // long enough for a page that listens at intervals
	bob.do("hearAll([697, 1209], [])", nil)
	hear(alice, bob)
	hangUp(alice, bob)
}

// callDirections shows that one side of a call with video can stop and restart each direction of
// its audio.
func callDirections(alice, bob *phone) {
	connect(alice, bob, true)
	if !alice.hasInCall("setAudioDirection") {
		hangUp(alice, bob)
		return
	}

	hear(alice, bob)
	alice.do("call.setAudioDirection('sendonly')", nil)
	alice.do("hear(0)", nil)
	bob.do(fmt.Sprintf("hear(%d)", alice.hz), nil)
	alice.do("call.setAudioDirection('recvonly')", nil)
	bob.do("hear(0)", nil)
	alice.do(fmt.Sprintf("hear(%d)", bob.hz), nil)
	alice.do("call.setAudioDirection('sendrecv')", nil)
	hear(alice, bob)
	see(alice, bob)
	hangUp(alice, bob)
}

// hasInCall reports whether the phone's call has a method.
func (f *phone) hasInCall(method string) (has bool) {
	f.Helper()
	f.eval(f.T, "Boolean(call."+method+")", &has)
	return has
}

// callCodecs shows that calls work with G.722 and with PCMU if the caller's browser offers no other
// codec.
func callCodecs(alice, bob *phone) {
	for _, codec := range []string{"audio/G722", "audio/PCMU"} {
		for _, f := range []*phone{alice, bob} {
			f.load()
		}
		alice.eval(alice.T, fmt.Sprintf("(codecs = [%q]) && 0", codec), new(int))
		connect(alice, bob, false)
		hear(alice, bob)
		for _, f := range []*phone{alice, bob} {
			var got string
			if f.do("heardCodec()", &got); got != codec {
				f.Errorf("the codec is %s, want %s", got, codec)
			}
		}
		hangUp(alice, bob)
	}
}

// TestCallRingsLong shows that a call can be answered after it has rung for more than 20 seconds,
// the longest time that the SDK waits for a session description from the server.
func TestCallRingsLong(t *testing.T) {
	harness.OneBackend(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_CALLS__RING=10m"}})
	home := newHome(t)
	ca(t, s, home, "install", "--store", "chromium")
	window, p := callTab(t, home), s.NewProject(t)
	var pairs [][2]*phone
	for i, version := range sdkVersions { // all phones ring at the same time
		page := serveCalls(t, s, version)
		if i > 0 {
			window = window.beside()
		}
		alice := newTabPhone(t, p, window, version, page, 440, "red")
		window = window.beside()
		bob := newTabPhone(t, p, window, version, page, 1000, "blue")
		alice.enter(false)
		bob.enter(true)
		alice.do(fmt.Sprintf("void (dialing = dial(%q))", bob.address()+"?channel=audio"), nil)
		bob.do("until(() => invites[0])", nil)
		alice.do("until(() => states.includes('ringing'))", nil)
		pairs = append(pairs, [2]*phone{alice, bob})
	}

	pairs[len(pairs)-1][0].do("pass(23)", nil)
	for _, pair := range pairs {
		alice, bob := pair[0], pair[1]
		bob.do("accept(0)", nil)
		alice.do("dialing", nil)
		hear(alice, bob)
		hangUp(alice, bob)
	}
}
