package media

import (
	"net"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// A videoLeg is a leg with one section of video, whose media is not encrypted.
type videoLeg struct {
	*leg
	video  *section
	client *net.UDPConn // receives what the engine sends
}

// newVideoLegs returns n legs of an engine.
func newVideoLegs(t *testing.T, n int) (e *Engine, legs []videoLeg) {
	t.Helper()
	e, err := New(Config{Listen: "127.0.0.1:0", NoTCP: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	for range n {
		l := e.newLeg(nil, calls.Terms{})
		s := l.newSection(sdp.Section{Kind: "video", Mid: "0", Direction: sdp.SendReceive,
			Codecs: []sdp.Codec{{Type: 96, Name: sdp.VP8, Clock: 90000}}}, nil)
		l.sections = []*section{s}
		s.transport.in.ctx = &plain{}
		s.transport.in.rtp = bucket{rate: 1e12, burst: 1e12}
		s.out.setKeys(s.transport, &plain{})
		client, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		s.transport.path.Store(&path{udp: e.udp, remote: client.LocalAddr().(*net.UDPAddr).AddrPort()})
		legs = append(legs, videoLeg{l, s, client})
	}
	return e, legs
}

// TestShowMany shows that the work of showing another source grows with the viewers, not with their
// square: each route is an allocation.
func TestShowMany(t *testing.T) {
	const n = 100
	e, legs := newVideoLegs(t, n)
	m := e.NewMixer()
	defer m.Close()
	var viewers []calls.Media
	for _, l := range legs[2:] {
		viewers = append(viewers, l.leg)
	}

	next := 0
	allocations := testing.AllocsPerRun(10, func() {
		m.Show(legs[next].leg, viewers...)
		next = 1 - next
	})
	if allocations > 10*n {
		t.Errorf("showing another source to %d viewers takes %v allocations, want at most %d", n, allocations, 10*n)
	}
	fan := legs[1-next].video.fan.Load()
	if fan == nil || len(*fan) != len(viewers) {
		t.Errorf("the source that is shown has the routes %v, want %d", fan, len(viewers))
	}
	if fan := legs[next].video.fan.Load(); fan != nil {
		t.Errorf("the source that was shown before has %d routes, want none", len(*fan))
	}

	legs[5].Close()
	if fan := legs[1-next].video.fan.Load(); len(*fan) != len(viewers)-1 {
		t.Errorf("after a viewer has left, the source has %d routes, want %d", len(*fan), len(viewers)-1)
	}
}
