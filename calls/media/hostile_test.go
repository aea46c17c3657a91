package media_test

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pion/stun/v4"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
)

// echo returns a connected light client that hears itself.
func echo(t *testing.T, e *media.Engine) *light {
	t.Helper()
	before := e.Stats().ConnectedUDP
	c := newLight(t, e, lightOffer(""))
	t.Cleanup(c.close)
	c.leg.Link(calls.Audio, c.leg)
	if err := c.connect(); err != nil {
		t.Fatalf("connecting: %v", err)
	}
	waitFor(t, "the leg to be connected", func() bool { return e.Stats().ConnectedUDP > before })
	return c
}

// waitFor polls until holds returns true.
func waitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s", what)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}

// arrived returns how many packets the engine has received from its clients.
func arrived(e *media.Engine) uint64 {
	stats := e.Stats()
	return stats.Received + stats.Dropped
}

// stranger returns a socket that has proved nothing to the engine.
func stranger(t *testing.T, e *media.Engine) *net.UDPConn {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: e.Port()})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestSpoofedAndReplayed(t *testing.T) {
	e := newEngine(t)
	c := echo(t, e)
	c.write(c.packet("one"))
	if got := c.hear(); got != "one" {
		t.Fatalf("heard %q, want one", got)
	}

	// A stranger sends the client's packet before the client does.
	two, other := c.packet("two"), stranger(t, e)
	_, err := other.Write(two)
	must(t, err)
	waitFor(t, "the stranger's packet", func() bool { return e.Stats().Unknown == 1 })
	c.write(two)
	if got := c.hear(); got != "two" {
		t.Fatalf("heard %q, want two", got)
	}

	// The client's packet arrives again, first changed and then unchanged.
	changed := append([]byte(nil), c.packet("three")...)
	changed[len(changed)-1] ^= 1
	c.write(two)
	c.write(changed)
	waitFor(t, "the packets to be dropped", func() bool { return e.Stats().Dropped == 2 })
	c.write(c.packet("four"))
	if got := c.hear(); got != "four" {
		t.Fatalf("heard %q, want four", got)
	}
}

func TestGarbageSTUN(t *testing.T) {
	e := newEngine(t)
	c := newLight(t, e, lightOffer(""))
	t.Cleanup(c.close)
	long := c.request(c.ufrag, c.password)
	binary.BigEndian.PutUint16(long[2:], 0xffff)
	withoutEnd := stun.MustBuild(stun.BindingRequest, stun.TransactionID, stun.NewUsername(c.ufrag))
	for name, b := range map[string][]byte{
		"an unknown user":       c.request("unknown", c.password),
		"a wrong password":      c.request(c.ufrag, "wrong"),
		"a wrong length":        long,
		"a header alone":        long[:20],
		"a response":            stun.MustBuild(stun.BindingSuccess, stun.TransactionID).Raw,
		"no credentials":        stun.MustBuild(stun.BindingRequest, stun.TransactionID).Raw,
		"a name without an end": withoutEnd.Raw,
	} {
		c.write(b)
		if n := len(c.stun); n > 0 {
			t.Errorf("%s got %d answers, want none", name, n)
		}
		if n := e.Stats().Sent; n > 0 {
			t.Errorf("after %s, the engine has sent %d media packets, want none", name, n)
		}
	}

	// The first response belongs to the valid request, which was sent last.
	c.completeICE()
	if got := e.Stats().BadSTUN; got != 2 {
		t.Errorf("BadSTUN = %d, want 2", got)
	}
	if n := len(c.stun); n > 0 {
		t.Errorf("after the response to the valid request, %d more responses came, want none", n)
	}
}

func TestRoleConflict(t *testing.T) {
	e := newEngine(t)
	c := newLight(t, e, lightOffer(""))
	t.Cleanup(c.close)
	c.write(c.request(c.ufrag, c.password, attr{stun.AttrICEControlled, make([]byte, 8)}))
	var got stun.ErrorCodeAttribute
	must(t, got.GetFrom(c.response()))
	if got.Code != stun.CodeRoleConflict {
		t.Errorf("the answer to a controlled client is the error %d, want %d", got.Code, stun.CodeRoleConflict)
	}
}

func TestWrongFingerprint(t *testing.T) {
	e := newEngine(t)
	c := newLight(t, e, lightOffer(strings.TrimSuffix(strings.Repeat("AB:", 32), ":")))
	t.Cleanup(c.close)
	if err := c.connect(); err == nil {
		t.Error("a client with a different certificate was connected")
	}
	waitFor(t, "the handshake to fail", func() bool { return e.Stats().HandshakeFailures > 0 })
	if n := e.Stats().ConnectedUDP; n != 0 {
		t.Errorf("%d clients are connected, want none", n)
	}
}

func TestFloods(t *testing.T) {
	e := newEngine(t)
	c := echo(t, e)
	other := stranger(t, e)
	buffer := make([]byte, 1200)
	for i := range 2000 {
		_, err := rand.Read(buffer[:40])
		must(t, err)
		buffer[0] = []byte{22, 0x80, 0x90, 0, 255}[i%5] // DTLS, RTP, RTP, STUN, other
		junk := buffer[:40+i%1000]
		_, err = other.Write(junk)
		must(t, err)
		if i%4 == 0 {
			c.write(junk)
		}
		if i%50 == 0 { // let the engine catch up, because full sockets drop packets
			c.completeICE()
		}
	}

	c.write(c.packet("still here"))
	if got := c.hear(); got != "still here" {
		t.Errorf("heard %q, want still here", got)
	}
	stats := e.Stats()
	if stats.Unknown < 500 {
		t.Errorf("%d packets belong to no leg, want at least 500", stats.Unknown)
	}
	if stats.Dropped < 100 {
		t.Errorf("%d packets of the client were dropped, want at least 100", stats.Dropped)
	}
	if stats.Legs != 1 {
		t.Errorf("%d legs are open, want 1", stats.Legs)
	}
}

func TestTooManyPackets(t *testing.T) {
	e := newEngine(t)
	c := echo(t, e)
	const rate, atOnce = 200, 400
	began, sent := time.Now(), uint64(0)
	for ; e.Stats().Limited < 100; sent++ {
		c.write(c.packet("much"))
		if sent%100 == 0 {
			c.completeICE()
		}
	}

	waitFor(t, "the last packet", func() bool { return arrived(e) == sent })
	limit := atOnce + 1 + uint64(rate*time.Since(began).Seconds())
	if got := e.Stats().Received; got < atOnce || got > limit {
		t.Errorf("%d packets were accepted, want %d to %d", got, atOnce, limit)
	}
}

func TestTooManySources(t *testing.T) {
	e := newEngine(t)
	c := echo(t, e)
	for i := range 20 {
		c.ssrc++
		c.write(c.packet("a new source"))
		waitFor(t, "the packet", func() bool { return arrived(e) == uint64(i+1) })
	}
	if got := e.Stats().Received; got != 8 {
		t.Errorf("packets of %d sources were accepted, want 8", got)
	}
}

func TestUnprovenTCP(t *testing.T) {
	e := newEngine(t)
	for name, b := range map[string][]byte{
		"a web request":  []byte("GET / HTTP/1.1\r\n\r\n"),
		"an empty frame": {0, 0},
		"DTLS":           append([]byte{0, 13, 22}, make([]byte, 12)...),
	} {
		conn, err := net.Dial("tcp", e.TCP())
		must(t, err)
		_, err = conn.Write(b)
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(deadline)))
		_, err = conn.Read(make([]byte, 1))
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: Read = %v, want the connection to be closed", name, err)
		}
		_ = conn.Close()
	}
	waitFor(t, "the connections to end", func() bool { return e.Stats().RefusedTCP == 3 })
}

// dialFrom opens n TCP connections to an engine from a loopback address.
func dialFrom(t *testing.T, e *media.Engine, ip net.IP, n int) (conns []net.Conn) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: ip}}
	for range n {
		conn, err := d.DialContext(t.Context(), "tcp", e.TCP())
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		conns = append(conns, conn)
	}
	return conns
}

// isOpen reports whether the engine keeps a TCP connection open although nothing was sent on it.
func isOpen(t *testing.T, c net.Conn) bool {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// TestManyUnprovenTCP shows that the number of unproven connections is limited, both in total and
// for each network.
func TestManyUnprovenTCP(t *testing.T) {
	const limit, share, networks = 256, 32, 9
	e := newEngine(t)
	e.WaitForProof(time.Hour)
	conns := dialFrom(t, e, net.IPv4(127, 0, 0, 1), share+10)
	conns = append(conns, dialFrom(t, e, net.IPv4(127, 0, 0, 2), 10)...) // the same network
	waitFor(t, "the connections of one network to be refused", func() bool { return e.Stats().RefusedTCP == 20 })
	neighbor := dialFrom(t, e, net.IPv4(127, 0, 1, 1), 1)[0]
	if !isOpen(t, neighbor) {
		t.Fatal("a connection from a different network is refused")
	}

	conns = append(conns, neighbor)
	for i := range byte(networks) {
		conns = append(conns, dialFrom(t, e, net.IPv4(127, 0, 2+i, 1), share)...)
	}
	count := uint64(len(conns))
	waitFor(t, "those over the limit to be refused", func() bool { return e.Stats().RefusedTCP == count-limit })
	for _, c := range conns {
		_ = c.Close()
	}
	waitFor(t, "the others to end", func() bool { return e.Stats().RefusedTCP == count })
	if n := e.Unproven(); n != 0 {
		t.Errorf("%d networks are counted after all connections ended, want none", n)
	}
}

// A faultyTap panics at each packet. It simulates a bug in the code that handles packets.
type faultyTap struct{}

func (faultyTap) Packet(calls.Packet)                 { panic("a fault") }
func (faultyTap) Clock(calls.Kind, uint32, time.Time) {}

// TestPanic shows that a panic while a packet is handled ends only the leg that sent
// the packet.
func TestPanic(t *testing.T) {
	e := newEngine(t)
	c, other := echo(t, e), echo(t, e)
	c.leg.Record(faultyTap{})
	c.write(c.packet("one"))
	select {
	case err := <-c.watch.failed:
		for _, want := range []string{"a fault", "receiveRTP"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Failed was called with the error %v, want it to contain %q", err, want)
			}
		}
	case <-time.After(deadline):
		t.Fatal("Failed was not called")
	}

	stats := e.Stats()
	if stats.Panics != 1 {
		t.Errorf("%d panics are counted, want 1", stats.Panics)
	}
	if stats.Legs != 1 {
		t.Errorf("%d legs are open, want only the other one", stats.Legs)
	}
	c.write(c.packet("two"))
	other.write(other.packet("three"))
	if got := other.hear(); got != "three" {
		t.Errorf("heard %q, want three", got)
	}
	c.leg.Quality() // takes the locks that the panic may have left locked
	if len(c.watch.failed) > 0 {
		t.Error("Failed was called twice")
	}
}
