package clients

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/network"
)

// TestCallsByNetwork shows that two subscribers hear and see each other over networks that lose and
// delay packets, that block UDP, or that change clients' addresses during a call.
func TestCallsByNetwork(t *testing.T) {
	harness.OneBackend(t)
	net, args := network.Open(t)
	s := harness.Start(t, args...)
	alice, bob := phones(t, s, "3.30.0")

	for _, tt := range []struct {
		name   string
		faults network.Faults
		by     string // the transport that carries the media
	}{
		{"lossy", network.Faults{
			Lost:   0.05,
			Delay:  30 * time.Millisecond,
			Jitter: 20 * time.Millisecond,
			NoTCP:  true,
		}, "udp"},
		{"blocked", network.Faults{Blocked: true}, "tcp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			net.Set(tt.faults)
			before := connected(t, s, tt.by)
			talkAgain(t, alice, bob)
			if got := connected(t, s, tt.by) - before; got != 4 { // each side has audio and video
				t.Errorf("%v media sections connected by %s, want 4", got, tt.by)
			}
			hangUp(alice, bob)
		})
	}

	net.Set(network.Faults{Blocked: true})
	for _, version := range sdkVersions[1:] {
		t.Run("blocked for "+version, func(t *testing.T) {
			alice, bob := phones(t, s, version)
			before := connected(t, s, "tcp")
			talkAgain(t, alice, bob)
			if got := connected(t, s, "tcp") - before; got != 4 {
				t.Errorf("%v media sections connected over TCP, want 4", got)
			}
			hangUp(alice, bob)
		})
	}

	t.Run("rebound", func(t *testing.T) {
		net.Set(network.Faults{})
		talkAgain(t, alice, bob)
		net.Rebind()
		harness.Eventually(t, patience, "media to the new addresses", func() error {
			if n := net.Returned(); n < 500 { // more packets than address checks alone would cause
				return fmt.Errorf("%d packets arrived", n)
			}
			return nil
		})
		hear(alice, bob)
		alice.do("see('b')", nil)
		hangUp(alice, bob)
	})
}

// talkAgain loads new pages in both phones and connects them.
func talkAgain(t *testing.T, alice, bob *phone) {
	t.Helper()
	for _, f := range []*phone{alice, bob} {
		f.use(t)
		f.load()
	}
	connect(alice, bob, true)
	hear(alice, bob)
	see(alice, bob)
}

func hangUp(alice, bob *phone) {
	bob.do("call.hangup()", nil)
	alice.do("until(() => states.includes('destroy'))", nil)
}

// connected returns how many media sections have connected over a transport.
func connected(t *testing.T, s *harness.Server, by string) int {
	t.Helper()
	return metric(t, s, `selvage_media_connected_total{transport="`+by+`"}`)
}

// metric returns the value of a metric. The name includes the labels.
func metric(t *testing.T, s *harness.Server, name string) (n int) {
	t.Helper()
	for line := range strings.Lines(string(s.Get(t, s.Ops+"/metrics").Want(t, 200).Body)) {
		if _, err := fmt.Sscanf(line, name+" %d", &n); err == nil {
			return n
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
