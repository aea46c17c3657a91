package clients

import (
	"fmt"
	"slices"
	"testing"

	"github.com/selvage/selvage/test/firefox"
	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/network"
)

// TestFirefoxCalls shows that subscribers can talk to each other in Firefox, even if UDP is
// blocked. A subscriber in Firefox can also talk to one in Chromium. The test needs its own
// network, because Firefox sends no media to loopback.
func TestFirefoxCalls(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, firefox.Command, headless, "certutil")
	needNode(t)
	if !network.Isolate(t) {
		return
	}

	s := harness.Start(t, "--listen-media", "0.0.0.0:0")
	home := newHome(t)
	profile := firefox.NewProfile(t, home)
	certutil(t, profile, "-N", "--empty-password")
	ca(t, s, home, "install", "--store", "firefox,chromium")
	b := firefox.Start(t, profile, plain(home))
	for _, tt := range []struct {
		version  string
		journeys []string
	}{
		{"3.30.0", []string{"echo", "talk", "mute", "hold", "upgrade", "screen", "reload", "socket"}},
		{"3.27.0", []string{"echo", "talk", "mute"}},
	} {
		t.Run(tt.version, func(t *testing.T) {
			alice, bob := firefoxPhones(t, s, b, tt.version)
			for _, j := range journeys {
				if slices.Contains(tt.journeys, j.name) {
					walkAgain(t, j.name, alice, bob, j.walk)
				}
			}
		})
	}

	t.Run("Chromium", func(t *testing.T) {
		alice, _ := firefoxPhones(t, s, b, "3.30.0")
		carol := newTabPhone(t, alice.project, callTab(t, home), "3.30.0", alice.page, 1000, "blue")
		walkAgain(t, "microphone", alice, carol, callMicrophone)
		walkAgain(t, "to", alice, carol, callTalk)
		walkAgain(t, "from", carol, alice, callTalk)
	})
	t.Run("TCP", func(t *testing.T) {
		if err := s.Stop(t); err != nil {
			t.Fatal(err)
		}
		net, args := network.OpenAt(t, network.Address, network.OtherAddress)
		net.Set(network.Faults{Blocked: true})
		// The same data, and so the same certificate authority.
		s := harness.StartConfig(t, harness.Config{Data: s.Data, Args: args})
		alice, bob := firefoxPhones(t, s, b, "3.30.0")
		callTalk(alice, bob)
		if got := connected(t, s, "tcp"); got != 6 { // each side has audio twice and video once
			t.Errorf("%v media sections are connected over TCP, want 6", got)
		}
	})
}

// firefoxPhones opens a tab of Firefox for each of two subscribers of a new project.
func firefoxPhones(t *testing.T, s *harness.Server, b *firefox.Browser, version string) (alice, bob *phone) {
	t.Helper()
	p, page := s.NewProject(t), serveCalls(t, s, version)
	alice = newPhone(t, p, inFirefox(t, b, version, page), page, 440, "red")
	bob = newPhone(t, p, inFirefox(t, b, version, page), page, 1000, "blue")
	return alice, bob
}

// inFirefox returns a version of the SDK in a new tab of Firefox. The caller must then call reload
// to open the page that loads it.
func inFirefox(t *testing.T, b *firefox.Browser, version, page string) sdk {
	t.Helper()
	window := b.NewTab(t)
	t.Cleanup(func() {
		if t.Failed() {
			var text string
			window.Eval(t, "situation()", &text)
			t.Logf("the page at the end: %s", text)
		}
	})

	return sdk{
		T:       t,
		version: version,
		eval: func(t *testing.T, expression string, value any) {
			t.Helper()
			window.Eval(t, expression, value)
		},
		reload: func(t *testing.T) {
			t.Helper()
			window.Open(t, page)
		},
	}
}

// callMicrophone shows that a caller who dials the echo address hears the browser's own microphone.
func callMicrophone(alice, _ *phone) {
	alice.reload(alice.T) // back to the microphone instead of a tone
	alice.enter(false)
	alice.do("dial('/public/echo')", nil)
	alice.do(fmt.Sprintf("hear(%d)", firefox.FakeTone), nil)
	alice.do("call.hangup()", nil)
}
