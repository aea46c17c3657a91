package rtpengine

import (
	"errors"
	"log/slog"
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

// TestOnlyReceives shows which clients count as connected although they never send: phones that only
// receive, unless their address may be forged.
func TestOnlyReceives(t *testing.T) {
	phone := calls.Terms{Phone: netip.MustParseAddr("192.0.2.1")}
	claimed := phone
	claimed.Claimed = true
	for _, tt := range []struct {
		terms     calls.Terms
		direction sdp.Direction
		want      bool
	}{
		{phone, sdp.ReceiveOnly, true},
		{phone, sdp.Inactive, true},
		{phone, sdp.SendOnly, false},
		{phone, sdp.SendReceive, false},
		{claimed, sdp.ReceiveOnly, false},
		{calls.Terms{}, sdp.ReceiveOnly, false},
	} {
		l := new(Engine).newLeg(nil, nil, tt.terms)
		l.accepted = true
		l.sections = []*section{{kind: calls.Audio, client: sdp.Section{Direction: tt.direction}}}
		if got := l.onlyReceives(); got != tt.want {
			t.Errorf("onlyReceives of a client with %+v and %s = %v, want %v", tt.terms, tt.direction, got, tt.want)
		}
	}
}

// A losing is a watcher that counts how often its media was lost.
type losing struct {
	calls.Watcher
	lost int
}

func (l *losing) Lost() { l.lost++ }

// TestSilentAfterHold shows that a phone is lost if it has only received so far, and then should send but
// does not.
func TestSilentAfterHold(t *testing.T) {
	w := &losing{}
	l := new(Engine).newLeg(nil, w, calls.Terms{Phone: netip.MustParseAddr("192.0.2.1")})
	l.accepted = true
	l.sections = []*section{{kind: calls.Audio, client: sdp.Section{Direction: sdp.ReceiveOnly}}}
	if got := l.noteSilence(connected); got != connected || w.lost > 0 {
		t.Errorf("while it only receives, its state is %d and Lost was called %d times, want %d and 0",
			got, w.lost, connected)
	}

	l.sections[0].client.Direction = sdp.SendReceive
	if got := l.noteSilence(connected); got != unconnected || w.lost != 1 {
		t.Errorf("when it should send, its state is %d and Lost was called %d times, want %d and 1",
			got, w.lost, unconnected)
	}
}

// TestMoveTo shows from which address media may come after a gateway has answered at another of its
// addresses.
func TestMoveTo(t *testing.T) {
	first, second := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")
	l := new(Engine).newLeg(nil, nil, calls.Terms{Phone: first, Gateway: true})
	l.MoveTo(second)
	if got := l.remoteFor(netip.MustParseAddr("10.0.0.1")); got != second {
		t.Errorf("packets are exchanged with %v, want %v", got, second)
	}
	if l.mayComeFrom(first) || !l.mayComeFrom(second) {
		t.Errorf("media may come from %v: %t, from %v: %t, want only the latter",
			first, l.mayComeFrom(first), second, l.mayComeFrom(second))
	}
}

// A failing is a watcher that sends the errors of its media to errs.
type failing struct {
	calls.Watcher
	errs chan error
}

func (f failing) Failed(err error) { f.errs <- err }

// TestApart shows that the media fails if the sides of a call are at different rtpengines. The sides
// could not hear each other.
func TestApart(t *testing.T) {
	e := &Engine{log: slog.New(slog.DiscardHandler), legs: map[*leg]struct{}{}, done: make(chan struct{})}
	w := failing{errs: make(chan error, 2)}
	var sides []*leg
	for range 2 {
		d, err := dial("127.0.0.1:9", e.done)
		if err != nil {
			t.Fatal(err)
		}
		e.daemons = append(e.daemons, d)
		sides = append(sides, e.newLeg(d, w, calls.Terms{}))
	}

	sides[0].Link(calls.Audio, sides[1])
	if err := <-w.errs; !errors.Is(err, errApart) {
		t.Errorf("the media failed with %v, want %v", err, errApart)
	}
	if err := e.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
