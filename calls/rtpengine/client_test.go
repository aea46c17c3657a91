package rtpengine_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/line"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/rtpengine"
	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/servers"
)

// deadline is how long a test waits for the network.
const deadline = time.Minute

// newEngine returns an engine with a new rtpengine, and with the built-in engine for rooms.
func newEngine(t *testing.T) (*rtpengine.Engine, *servers.RTPEngine) {
	t.Helper()
	daemon := servers.OwnRTPEngine(t)
	rooms, err := media.New(media.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}

	e, err := rtpengine.New(rtpengine.Config{
		Addresses: []string{daemon.Address},
		Rooms:     rooms,
		Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		_ = rooms.Close()
		if t.Failed() {
			t.Log(daemon.Log())
		}
	})
	waitUntilUp(t, e, 1)
	return e, daemon
}

// waitUntilUp waits until n daemons answer. On a busy machine, this may be after the start of the
// engine.
func waitUntilUp(t *testing.T, e *rtpengine.Engine, n int) {
	t.Helper()
	harness.Eventually(t, deadline, "rtpengines to answer", func() error {
		if got := e.Up(); got != n {
			return fmt.Errorf("%d answer, want %d", got, n)
		}
		return nil
	})
}

// A watcher stores what the engine reports.
type watcher struct {
	connected, lost chan calls.Path
	failed          chan error
}

func newWatcher() *watcher {
	return &watcher{
		connected: make(chan calls.Path, 8),
		lost:      make(chan calls.Path, 8),
		failed:    make(chan error, 8),
	}
}

func (w *watcher) Connected(p calls.Path) { w.connected <- p }
func (w *watcher) Lost()                  { w.lost <- calls.Path{} }
func (w *watcher) Talking(bool)           {}
func (w *watcher) Pressed(byte)           {}
func (w *watcher) Failed(err error)       { w.failed <- err }

// wait returns the next value from a channel.
func wait[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(deadline):
		t.Fatalf("%s: nothing arrived within %v", what, deadline)
	}
	panic("unreachable")
}

// A browser is a client that sends Opus over a [line.Line].
type browser struct {
	*watcher
	t     *testing.T
	media calls.Media
	heard chan []byte

	mu   sync.Mutex
	line *line.Line
	seq  uint16
}

// frames returns the packets of a tone in Opus.
func frames(t *testing.T) [][]byte {
	t.Helper()
	tone, err := os.ReadFile("../media/beep/opus")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(slices.Chunk(tone, 60))
}

// dial returns a browser whose offer the engine has answered.
func dial(t *testing.T, e *rtpengine.Engine, terms calls.Terms) *browser {
	t.Helper()
	b := &browser{watcher: newWatcher(), t: t, heard: make(chan []byte, 1000)}
	m, answer, err := e.Answer(b, withEvents(), terms)
	if err != nil {
		t.Fatalf("Answer: %v", err)
	}
	b.media = m
	b.open(answer)
	return b
}

// withEvents returns the description of a line that also supports telephone events.
func withEvents() string {
	d := strings.Replace(line.Description(), "SAVPF 111", "SAVPF 111 110", 1)
	return strings.Replace(d, "opus/48000/2\r\n", "opus/48000/2\r\na=rtpmap:110 telephone-event/48000\r\n", 1)
}

// open connects the browser's line.
func (b *browser) open(description string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), deadline)
	defer cancel()
	l, err := line.Open(ctx, description, func(payload []byte) {
		select {
		case b.heard <- slices.Clone(payload):
		default:
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(l.Close)
	b.line = l
}

// renew connects a new line, as a page does after a reload.
func (b *browser) renew(description string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open(description)
}

// say sends one packet.
func (b *browser) say(payload string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.line.Send(b.seq, payload)
	b.seq++
}

// speak sends a packet of a tone every 20 ms until the test ends.
func (b *browser) speak() {
	done := make(chan struct{})
	var group sync.WaitGroup
	tone := frames(b.t)
	group.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-tick.C:
				b.say(string(tone[2+n%(len(tone)-4)]))
			}
		}
	})
	b.t.Cleanup(func() { close(done); group.Wait() })
}

// A phone is a client with a UDP socket, which sends and receives RTP in PCMU.
type phone struct {
	*watcher
	t     *testing.T
	media calls.Media
	conn  *net.UDPConn
	heard chan []byte // received packets
	offer string
	seq   uint16
}

var (
	portOf    = regexp.MustCompile(`m=audio (\d+)`)
	addressOf = regexp.MustCompile(`c=IN IP4 (\S+)`)
)

// newPhone returns a phone that is not in a call.
func newPhone(t *testing.T) *phone {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &phone{watcher: newWatcher(), t: t, conn: conn, heard: make(chan []byte, 1000)}
}

// ring returns a phone that has answered the engine's offer with PCMU.
func ring(t *testing.T, e *rtpengine.Engine, from calls.Media, terms calls.Terms) *phone {
	t.Helper()
	p := newPhone(t)
	m, offer, err := e.Offer(p, from, terms)
	if err != nil {
		t.Fatalf("Offer: %v", err)
	}

	p.media = m
	for _, want := range []string{"RTP/AVP", "PCMU/8000", "telephone-event/8000"} {
		if !strings.Contains(offer, want) {
			t.Fatalf("the offer to the phone is %q, want %s in it", offer, want)
		}
	}

	if err := m.Accept(p.describe()); err != nil {
		t.Fatalf("Accept: %v", err)
	}
	p.offer = offer
	go p.listen()
	return p
}

// describe returns a description of the phone's media.
func (p *phone) describe() string {
	return fmt.Sprintf("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"+
		"m=audio %d RTP/AVP 0 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\n",
		p.conn.LocalAddr().(*net.UDPAddr).Port)
}

// listen passes on the packets that the phone receives, until its socket is closed.
func (p *phone) listen() {
	b := make([]byte, 2000)
	for {
		n, err := p.conn.Read(b)
		if err != nil {
			return
		}
		select {
		case p.heard <- slices.Clone(b[:n]):
		default:
		}
	}
}

// speak sends a packet of a square wave from conn every 20 ms, until conn is closed.
func (p *phone) speak(conn *net.UDPConn) {
	host, port := addressOf.FindStringSubmatch(p.offer)[1], portOf.FindStringSubmatch(p.offer)[1]
	to, err := net.ResolveUDPAddr("udp", net.JoinHostPort(host, port))
	if err != nil {
		p.t.Error(err)
		return
	}

	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		b := []byte{0x80, 0}
		b = binary.BigEndian.AppendUint16(b, p.seq)
		b = binary.BigEndian.AppendUint32(b, uint32(p.seq)*160)
		b = binary.BigEndian.AppendUint32(b, 77)
		for i := range 160 {
			b = append(b, 0x90|byte(i/8%2)<<7^0x80)
		}
		p.seq++
		if _, err := conn.WriteToUDP(b, to); err != nil {
			return
		}
	}
}

// loud reports whether a packet of PCMU is louder than silence.
func loud(packet []byte) bool {
	n := 0
	for _, v := range packet[12:] {
		if v&0x7f < 0x60 { // small inverted values are loud
			n++
		}
	}
	return n > 40
}

// waitFor waits for a packet with a property.
func waitFor(t *testing.T, what string, from <-chan []byte, is func(packet []byte) bool) {
	t.Helper()
	after := time.After(deadline)
	for {
		select {
		case packet := <-from:
			if is(packet) {
				return
			}
		case <-after:
			t.Fatalf("%s: no such packet arrived within %v", what, deadline)
		}
	}
}

// isPCMU, isLoudPCMU and isEvent report what a packet to the phone contains.
func isPCMU(packet []byte) bool     { return packet[1]&0x7f == 0 && len(packet) == 172 }
func isLoudPCMU(packet []byte) bool { return isPCMU(packet) && loud(packet) }
func isEvent(packet []byte) bool    { return packet[1]&0x7f == 101 }

// link connects two legs with each other.
func link(a, b calls.Media) {
	a.Link(calls.Audio, b)
	b.Link(calls.Audio, a)
}

// atLoopback are the terms for a phone on this machine.
var atLoopback = calls.Terms{Phone: netip.MustParseAddr("127.0.0.1")}
