package media

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// A videoLeg is a leg with one section of video, whose media is not encrypted.
type videoLeg struct {
	*leg
	video  *section
	client *net.UDPConn // receives the engine's packets
}

// newVideoLegs returns n legs of an engine.
func newVideoLegs(t *testing.T, n int) (e *Engine, legs []videoLeg) {
	t.Helper()
	e, err := open(Config{Listen: "127.0.0.1:0", NoTCP: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })

	for range n {
		l := e.newLeg(nil, calls.Terms{})
		s := l.newSection(sdp.Section{
			Kind:      "video",
			Mid:       "0",
			Direction: sdp.SendReceive,
			Codecs:    []sdp.Codec{{Type: 96, Name: sdp.VP8, Clock: 90000}},
		}, nil)
		l.sections = []*section{s}
		s.transport.in.ctx = &plainCipher{}
		s.transport.in.rtp = bucket{rate: 1e12, burst: 1e12}
		s.out.setKeys(s.transport, &plainCipher{})
		client, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		s.transport.path.Store(&path{udp: e.udp, remote: client.LocalAddr().(*net.UDPAddr).AddrPort()})
		legs = append(legs, videoLeg{leg: l, video: s, client: client})
	}
	return e, legs
}

// sendVideo makes the leg's client send the packets from first to last. Each packet is a key frame.
func (l videoLeg) sendVideo(t *testing.T, w *worker, first, last uint16) {
	t.Helper()
	payload := append([]byte{0x10, 0}, make([]byte, 50)...)
	for seq := first; seq <= last; seq++ {
		header := rtp.Header{
			Version:        2,
			PayloadType:    96,
			SSRC:           7,
			SequenceNumber: seq,
			Timestamp:      uint32(seq) * 3000,
		}
		b, err := (&rtp.Packet{Header: header, Payload: payload}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		w.receiveRTP(l.video.transport, b, time.Now())
	}
}

// sendRTCP makes the leg's client send a packet at the given time.
func (l videoLeg) sendRTCP(t *testing.T, w *worker, p rtcp.Packet, now time.Time) {
	t.Helper()
	b, err := rtcp.Marshal([]rtcp.Packet{p})
	if err != nil {
		t.Fatal(err)
	}
	w.receiveRTCP(l.video.transport, b, now)
}

// sendNACK makes the leg's client request packets of the stream that it receives.
func (l videoLeg) sendNACK(t *testing.T, w *worker, now time.Time, numbers ...uint16) {
	t.Helper()
	pairs := rtcp.NackPairsFromSequenceNumbers(numbers)
	l.sendRTCP(t, w, &rtcp.TransportLayerNack{MediaSSRC: l.video.out.ssrc, Nacks: pairs}, now)
}

// received returns the RTCP packets that the engine has sent to the leg's client so far. It sends
// one more packet to mark their end, because sockets on loopback keep the order.
func (l videoLeg) received(t *testing.T) (packets []rtcp.Packet) {
	t.Helper()
	const end = "end"
	address := l.client.LocalAddr().(*net.UDPAddr).AddrPort()
	if _, err := l.engine.udp.WriteToUDPAddrPort([]byte(end), address); err != nil {
		t.Fatal(err)
	}

	_ = l.client.SetReadDeadline(time.Now().Add(20 * time.Second))
	b := make([]byte, 4096)
	for {
		n, err := l.client.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return packets
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(b[:n]) == end {
			return packets
		}
		if more, err := rtcp.Unmarshal(b[:n]); err == nil {
			packets = append(packets, more...)
		}
	}
}

// requested counts the packets that NACKs ask for.
func requested(packets []rtcp.Packet) (n int) {
	for _, p := range packets {
		if nack, ok := p.(*rtcp.TransportLayerNack); ok {
			for _, pair := range nack.Nacks {
				n += len(pair.PacketList())
			}
		}
	}
	return n
}

// TestShowMany shows that the work of showing a different source is proportional to the number of
// viewers, and not to the square of this number. It counts allocations, because each route needs
// one.
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
		t.Errorf("showing a different source to %d viewers takes %v allocations, want at most %d",
			n, allocations, 10*n)
	}

	shown, hidden := legs[1-next].video, legs[next].video
	fan := shown.fan.Load()
	if fan == nil {
		t.Fatal("the source that is shown has no routes")
	}
	if len(*fan) != len(viewers) {
		t.Errorf("the source that is shown has %d routes, want %d", len(*fan), len(viewers))
	}
	if fan := hidden.fan.Load(); fan != nil {
		t.Errorf("the source that was shown before has %d routes, want none", len(*fan))
	}

	legs[5].Close()
	if fan := shown.fan.Load(); len(*fan) != len(viewers)-1 {
		t.Errorf("after a viewer has left, the source has %d routes, want %d", len(*fan), len(viewers)-1)
	}
}

// TestOldRequests shows that clients cannot make a source repeat packets that have arrived.
func TestOldRequests(t *testing.T) {
	e, legs := newVideoLegs(t, 3)
	m, w, now := e.NewMixer(), e.newWorker(), time.Now()
	defer m.Close()
	source, guest := legs[0], legs[1]
	m.Show(source.leg, guest.leg, legs[2].leg)
	source.sendVideo(t, w, 1, 500)
	source.received(t)

	var old []uint16
	for i := range uint16(100) {
		old = append(old, guest.video.out.epoch.base+i)
	}
	for range 20 {
		guest.sendNACK(t, w, now, old...)
	}
	if n := requested(source.received(t)); n != 0 {
		t.Errorf("requests for old packets ask the source for %d packets, want none", n)
	}
}

// TestSharedRequests shows that a packet that was lost on its way to the engine is requested once,
// no matter how many clients miss it.
func TestSharedRequests(t *testing.T) {
	e, legs := newVideoLegs(t, 3)
	m, w, now := e.NewMixer(), e.newWorker(), time.Now()
	defer m.Close()
	source := legs[0]
	m.Show(source.leg, legs[1].leg, legs[2].leg)
	source.sendVideo(t, w, 1, 10)
	source.sendVideo(t, w, 12, 20)
	source.received(t)

	ask := func(at time.Time) {
		for range 5 {
			for _, l := range legs[1:] {
				l.sendNACK(t, w, at, l.video.out.epoch.base+10)
			}
		}
	}

	ask(now)
	if n := requested(source.received(t)); n != 1 {
		t.Errorf("the source is asked for %d packets, want 1", n)
	}

	ask(now.Add(requestAfter))
	if n := requested(source.received(t)); n != 1 {
		t.Errorf("after %v, the source is asked for %d packets, want 1", requestAfter, n)
	}
}

// TestLowBandwidth shows that a client that claims to have almost no bandwidth does not spoil the
// video for other clients.
func TestLowBandwidth(t *testing.T) {
	e, legs := newVideoLegs(t, 3)
	m, w, now := e.NewMixer(), e.newWorker(), time.Now()
	defer m.Close()
	source := legs[0]
	m.Show(source.leg, legs[1].leg, legs[2].leg)
	source.sendVideo(t, w, 1, 1)
	source.received(t)

	for _, tt := range []struct {
		viewer    int
		estimated float32
		want      float32 // the bitrate that the source is asked for
	}{
		{viewer: 1, estimated: 1, want: minBitrate},
		{viewer: 2, estimated: 1_500_000, want: 1_500_000},
		{viewer: 1, estimated: 1, want: 1_500_000},
		{viewer: 1, estimated: 400_000, want: 400_000},
		{viewer: 2, estimated: 1_500_000, want: 400_000},
	} {
		viewer := legs[tt.viewer]
		estimate := &rtcp.ReceiverEstimatedMaximumBitrate{
			Bitrate: tt.estimated,
			SSRCs:   []uint32{viewer.video.out.ssrc},
		}
		viewer.sendRTCP(t, w, estimate, now)
		var bitrates []float32
		for _, p := range source.received(t) {
			if r, ok := p.(*rtcp.ReceiverEstimatedMaximumBitrate); ok {
				bitrates = append(bitrates, r.Bitrate)
			}
		}
		if len(bitrates) != 1 {
			t.Fatalf("after client %d has estimated %v bit/s, the source is asked for the bitrates %v, want one value",
				tt.viewer, tt.estimated, bitrates)
		}
		if got := bitrates[0]; got < 0.99*tt.want || got > 1.01*tt.want {
			t.Errorf("after client %d has estimated %v bit/s, the source is asked for %v bit/s, want about %v",
				tt.viewer, tt.estimated, got, tt.want)
		}
	}
}
