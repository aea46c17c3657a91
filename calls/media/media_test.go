package media_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/webrtc/v4"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
)

// key is a payload that begins like a VP8 key frame.
const key = "\x10\x00\x00\x00picture"

func TestEcho(t *testing.T) {
	e := newEngine(t)
	c := newClient(t, setup{}, "audio", "video")
	c.call(e)
	link(c, c)
	c.connected()

	hear(t, c.parts[0], c.parts[0], "hello")
	hear(t, c.parts[1], c.parts[1], key)
	select {
	case p := <-c.watch.connected:
		if p.Transport != "udp" {
			t.Errorf("the transport of the path is %s, want udp", p.Transport)
		}
		if p.Remote == "" {
			t.Error("the path names no remote address")
		}
	case <-time.After(deadline):
		t.Error("Connected was not called")
	}
}

// link forwards all media from one client to another.
func link(from, to *client) {
	from.leg.Link(calls.Audio, to.leg)
	from.leg.Link(calls.Video, to.leg)
}

// talk returns two clients that receive each other's media.
func talk(t *testing.T, e *media.Engine, kinds ...string) (alice, bob *client) {
	t.Helper()
	alice, bob = newClient(t, setup{}, kinds...), newClient(t, setup{})
	alice.call(e)
	bob.ring(e, alice)
	link(alice, bob)
	link(bob, alice)
	alice.connected()
	bob.connected()
	return alice, bob
}

func TestTwoLegs(t *testing.T) {
	alice, bob := talk(t, newEngine(t), "audio", "video")
	hear(t, alice.parts[0], bob.parts[0], "hello bob")
	hear(t, bob.parts[0], alice.parts[0], "hello alice")
	hear(t, alice.parts[1], bob.parts[1], key+"alice")
	hear(t, bob.parts[1], alice.parts[1], key+"bob")
}

func TestTCP(t *testing.T) {
	e := newEngine(t, func(c *media.Config) { c.NoUDP = true })
	c := newClient(t, setup{network: webrtc.NetworkTypeTCP4}, "audio")
	c.call(e)
	link(c, c)
	c.connected()
	hear(t, c.parts[0], c.parts[0], "hello")
	if p := <-c.watch.connected; p.Transport != "tcp" {
		t.Errorf("Connected was called with %+v, want a path over TCP", p)
	}
}

// TestIndicationTCP shows that a connection remains open after a binding indication, which some clients
// send to keep it open.
func TestIndicationTCP(t *testing.T) {
	e := newEngine(t)
	c := newLight(t, e, lightOffer(""))
	t.Cleanup(c.close)
	conn, err := net.Dial("tcp", e.TCP())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(deadline)))

	write := func(packet []byte) {
		t.Helper()
		_, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...))
		must(t, err)
	}
	wantAnswer := func() {
		t.Helper()
		write(c.nominate())
		var length [2]byte
		_, err := io.ReadFull(conn, length[:])
		must(t, err)
		answer := &stun.Message{Raw: make([]byte, binary.BigEndian.Uint16(length[:]))}
		_, err = io.ReadFull(conn, answer.Raw)
		must(t, err)
		must(t, answer.Decode())
		if answer.Type != stun.BindingSuccess {
			t.Fatalf("the answer to a check is %v, want success", answer)
		}
	}

	wantAnswer()
	indication := stun.NewType(stun.MethodBinding, stun.ClassIndication)
	write(stun.MustBuild(indication, stun.TransactionID, stun.Fingerprint).Raw)
	wantAnswer()
}
