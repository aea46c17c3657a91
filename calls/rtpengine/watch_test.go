package rtpengine

import (
	"net/netip"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// TestHeld shows which clients may be silent: phones on hold, but not browsers.
func TestHeld(t *testing.T) {
	phone := calls.Terms{Phone: netip.MustParseAddr("192.0.2.1")}
	for _, tt := range []struct {
		terms     calls.Terms
		direction sdp.Direction
		want      bool
	}{
		{phone, sdp.SendReceive, false},
		{phone, sdp.SendOnly, true},
		{phone, sdp.ReceiveOnly, true},
		{phone, sdp.Inactive, true},
		{calls.Terms{}, sdp.Inactive, false},
	} {
		l := &leg{terms: tt.terms}
		l.sections = []*section{{kind: calls.Audio, client: sdp.Section{Direction: tt.direction}}}
		if got := l.isHeld(); got != tt.want {
			t.Errorf("isHeld of a client at %v with %s = %v, want %v", tt.terms.Phone, tt.direction, got, tt.want)
		}
	}
}
