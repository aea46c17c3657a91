package media_test

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pion/stun/v4"

	"github.com/selvage/selvage/calls"
)

// nominate returns a signed request in which the client nominates the path that the request takes.
func (c *light) nominate() []byte {
	return c.request(c.ufrag, c.password, attr{stun.AttrUseCandidate, nil}, attr{stun.AttrPriority, []byte{9, 9, 9, 9}})
}

// soon is how long tests wait for packets that must not arrive.
const soon = 100 * time.Millisecond

// receive returns the next packet from a socket, or nil if none arrives in time.
func receive(t *testing.T, conn *net.UDPConn, within time.Duration) []byte {
	t.Helper()
	b := make([]byte, 2048)
	must(t, conn.SetReadDeadline(time.Now().Add(within)))
	n, err := conn.Read(b)
	if err != nil {
		return nil
	}
	return b[:n]
}

// receiveAll returns the packets that have arrived at a socket.
func receiveAll(t *testing.T, conn *net.UDPConn) (packets [][]byte) {
	t.Helper()
	for b := receive(t, conn, soon); b != nil; b = receive(t, conn, soon) {
		packets = append(packets, b)
	}
	return packets
}

// isSTUN reports whether a packet begins like a STUN message, which media does not.
func isSTUN(b []byte) bool { return len(b) >= 20 && b[0] <= 1 }

// receiveCheck returns the next packet from a socket, which must be a binding request.
func receiveCheck(t *testing.T, conn *net.UDPConn) *stun.Message {
	t.Helper()
	m := &stun.Message{Raw: receive(t, conn, deadline)}
	if err := m.Decode(); err != nil {
		t.Fatalf("decoding the first packet to a new address: %v", err)
	}
	if m.Type != stun.BindingRequest {
		t.Fatalf("the first packet to a new address is %v, want a check", m)
	}
	return m
}

// TestSpoofedSource shows that a client cannot direct its media to an address that does not answer,
// and that the engine sends this address at most three times as many bytes as came from it.
func TestSpoofedSource(t *testing.T) {
	e := newEngine(t)
	c, victim := echo(t, e), stranger(t, e)
	spoofed := 0 // bytes that the client sent with the victim's address
	for range 20 {
		request := c.nominate()
		spoofed += len(request)
		_, err := victim.Write(request)
		must(t, err)
		c.write(c.packet("hello"))
		if heard := c.hear(); heard != "hello" {
			t.Fatalf("the client received %q, want hello", heard)
		}
	}

	e.Housekeep(time.Now().Add(time.Second))
	received := 0
	for _, b := range receiveAll(t, victim) {
		received += len(b)
		if !isSTUN(b) {
			t.Errorf("the victim got the packet %x, want nothing but STUN", b)
		}
	}
	if received > 3*spoofed {
		t.Errorf("the victim got %d bytes for %d spoofed bytes, want at most %d", received, spoofed, 3*spoofed)
	}
}

// TestSpoofedFlood shows that the engine sends a bounded number of packets if a client's requests
// come from addresses that never answer.
func TestSpoofedFlood(t *testing.T) {
	e := newEngine(t)
	c, victim := echo(t, e), stranger(t, e)
	const rate, atOnce = 50, 100 // the rate and the burst of requests that the engine answers
	began := time.Now()
	for e.Stats().Limited < 100 {
		_, err := victim.Write(c.nominate())
		must(t, err)
	}

	packets := len(receiveAll(t, victim))
	requests := atOnce + rate + int(rate*time.Since(began).Seconds())
	most := 2 * requests // an answer and a check for each request
	if packets == 0 || packets > most {
		t.Errorf("the victim got %d packets, want 1 to %d", packets, most)
	}
	c.completeICE() // its own address has no limit
}

// TestForgedAnswers shows that media goes to an address only after a signed answer with the right
// id has come from the address itself.
func TestForgedAnswers(t *testing.T) {
	e := newEngine(t)
	c, victim, other := echo(t, e), stranger(t, e), stranger(t, e)
	_, err := victim.Write(c.nominate())
	must(t, err)
	check := receiveCheck(t, victim)
	if name, _ := check.Get(stun.AttrUsername); string(name) != "abcd:"+c.ufrag {
		t.Errorf("the check is for %q, want %q", name, "abcd:"+c.ufrag)
	}
	if err := stun.NewShortTermIntegrity(lightPassword).Check(check); err != nil {
		t.Errorf("the check is not signed with the client's password: %v", err)
	}

	stale := &stun.Message{TransactionID: stun.NewTransactionID()}
	for name, forged := range map[string]struct {
		from   *net.UDPConn
		answer []byte
	}{
		"a different id":       {victim, answerTo(stale, lightPassword)},
		"a different password": {victim, answerTo(check, "a wrong password")},
		"a different address":  {other, answerTo(check, lightPassword)},
		"the client's address": {c.conn, answerTo(check, lightPassword)},
	} {
		_, err := forged.from.Write(forged.answer)
		must(t, err)
		c.write(c.packet(name))
		if heard := c.hear(); heard != name {
			t.Errorf("after an answer with %s, the client received %q, want its own packet", name, heard)
		}
	}

	for _, b := range receiveAll(t, victim) {
		if !isSTUN(b) {
			t.Errorf("an address that has not answered got the packet %x, want nothing but STUN", b)
		}
	}
}

// TestMove shows that media follows a client to a new address within one round trip.
func TestMove(t *testing.T) {
	e := newEngine(t)
	c, there := echo(t, e), stranger(t, e)
	_, err := there.Write(c.nominate())
	must(t, err)
	check := receiveCheck(t, there)

	_, err = there.Write(answerTo(check, lightPassword))
	must(t, err)
	_, err = there.Write(c.packet("from there"))
	must(t, err)
	for {
		b := receive(t, there, deadline)
		if b == nil {
			t.Fatal("no media goes to the new address")
		}
		if isRTP := b[0] >= 128; isRTP {
			return
		}
	}
}

// TestSilentClient shows that a client that never answers a check is not connected.
func TestSilentClient(t *testing.T) {
	e := newEngine(t)
	c := newLight(t, e, lightOffer(""))
	t.Cleanup(c.close)
	c.silent.Store(true)
	c.completeICE()
	c.sendHandshake()
	waitFor(t, "the client's handshake", func() bool { return e.Stats().Unknown == 1 })
	if got := e.TableSizes().Addresses; got != 0 {
		t.Errorf("the engine knows %d addresses of a client that answers no check, want none", got)
	}
	if len(c.watch.connected) > 0 {
		t.Error("Connected was called for a client that answers no check")
	}
	if n := len(c.handshake.packets); n > 0 {
		t.Errorf("a client that answers no check got %d packets of a handshake, want none", n)
	}

	c.close()
	if got := e.TableSizes(); got.Names != 0 || got.Checks != 0 {
		t.Errorf("after the client has left, the engine knows %+v, want no names and no checks", got)
	}
}

// TestEarlyCheck shows that a callee can check its path before its answer has arrived, because
// media may be faster than signaling.
func TestEarlyCheck(t *testing.T) {
	e := newEngine(t)
	caller := echo(t, e)
	w := newWatcher()
	leg, offer, err := e.Offer(w, caller.leg, calls.Terms{})
	must(t, err)
	c := newLight(t, e, lightOffer(""))
	t.Cleanup(c.close)
	c.leg.Close()
	c.leg = leg
	c.ufrag = attribute(offer, "ice-ufrag")
	c.password = attribute(offer, "ice-pwd")

	c.completeICE()
	if c.checks.Load() > 0 {
		t.Error("a check was sent before the client's password was known")
	}
	must(t, leg.Accept(lightOffer("")))
	waitFor(t, "a check", func() bool { return c.checks.Load() > 0 })
	must(t, c.connect())
	select {
	case <-w.connected:
	case <-time.After(deadline):
		t.Error("Connected was not called")
	}
}

// TestTakenAddress shows that a client cannot take over an address that a different client still
// uses. This applies even if the client at the address answers the engine's check for the thief.
func TestTakenAddress(t *testing.T) {
	e := newEngine(t)
	c := echo(t, e)
	thief := newLight(t, e, strings.Replace(lightOffer(""), "ice-ufrag:abcd", "ice-ufrag:thief", 1))
	t.Cleanup(thief.close)
	before := c.checks.Load()
	c.write(thief.nominate())
	waitFor(t, "a check to be answered", func() bool { return c.checks.Load() > before })
	c.response() // the response to the thief's request

	c.write(c.packet("still mine"))
	if heard := c.hear(); heard != "still mine" {
		t.Errorf("the first client received %q, want still mine", heard)
	}
	if path := thief.leg.Quality().Path; path != (calls.Path{}) {
		t.Errorf("the thief's path is %+v, want none", path)
	}
}

// TestManySources shows that a client with many source addresses uses only a limited part of the
// table.
func TestManySources(t *testing.T) {
	e := newEngine(t)
	c := echo(t, e)
	for range 50 {
		other := stranger(t, e)
		_, err := other.Write(c.nominate())
		must(t, err)
		check := receiveCheck(t, other)
		if bytes.Equal(check.TransactionID[:], make([]byte, stun.TransactionIDSize)) {
			t.Error("the check has no id")
		}
	}

	got := e.TableSizes()
	if got.Addresses != 1 {
		t.Errorf("the engine knows %d addresses of the client, want 1", got.Addresses)
	}
	if got.Checks > 8 {
		t.Errorf("the engine has %d open checks, want at most 8", got.Checks)
	}
	answered := c.checks.Load()
	c.completeICE() // the engine has forgotten the client's own address, and learns it again
	waitFor(t, "the engine's check to be answered", func() bool { return c.checks.Load() > answered })
	c.write(c.packet("still here"))
	if heard := c.hear(); heard != "still here" {
		t.Errorf("the client received %q, want still here", heard)
	}
}
