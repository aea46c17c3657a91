package media_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
)

// TestMoveToOtherFamily shows that after a gateway has answered at an address of the other family, it
// learns the address of this machine in that family.
func TestMoveToOtherFamily(t *testing.T) {
	engine := newEngine(t, func(c *media.Config) {
		c.Advertise = []netip.AddrPort{
			netip.MustParseAddrPort("127.0.0.1:0"),
			netip.MustParseAddrPort("[::1]:0"),
		}
	})
	caller, gateway := newPhone(t, "127.0.0.1"), newPhone(t, "127.0.0.1")
	caller.call(engine, caller.description(caller.port(), "sendrecv"))
	leg, offer, err := engine.Offer(gateway.watch, caller.leg, calls.Terms{Phone: loopback, Gateway: true})
	must(t, err)
	if !strings.Contains(offer, "c=IN IP4 127.0.0.1\r\n") {
		t.Fatalf("the offer is\n%s\nwant the address 127.0.0.1", offer)
	}

	leg.MoveTo(netip.IPv6Loopback())
	must(t, leg.Accept(gateway.description(gateway.port(), "sendrecv")))
	answer, err := leg.Update(gateway.description(gateway.port(), "sendrecv"))
	must(t, err)
	if !strings.Contains(answer, "c=IN IP6 ::1\r\n") {
		t.Errorf("the answer to an update is\n%s\nwant the address ::1", answer)
	}
}
