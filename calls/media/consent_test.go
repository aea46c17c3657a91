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

// nominate returns a signed request in which the client nominates the path of the request.
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

// isCheck reports whether a packet is a binding request, and parses it.
func isCheck(b []byte) (*stun.Message, bool) {
	m := &stun.Message{Raw: b}
	return m, m.Decode() == nil && m.Type == stun.BindingRequest
}

// TestSpoofedSource shows that a client cannot direct its media to an address that does not answer,
// and that this address receives few packets.
func TestSpoofedSource(t *testing.T) {
	e := newEngine(t)
	c, victim := echo(t, e), stranger(t, e)
	sent, got := 0, 0
	for range 20 {
		request := c.nominate()
		sent += len(request)
		_, err := victim.Write(request)
		must(t, err)
		c.write(c.packet("hello"))
		if heard := c.hear(); heard != "hello" {
			t.Fatalf("the client received %q, want hello", heard)
		}
	}

	e.Housekeep(time.Now().Add(time.Second))
	for b := receive(t, victim, soon); b != nil; b = receive(t, victim, soon) {
		got += len(b)
		if len(b) < 20 || b[0] > 1 {
			t.Errorf("the victim got a packet that begins with %x, want nothing but STUN", b[:2])
		}
	}

	if got > 3*sent {
		t.Errorf("the victim got %d bytes for %d spoofed bytes, want at most three times as many", got, sent)
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

	packets := 0
	for b := receive(t, victim, soon); b != nil; b = receive(t, victim, soon) {
		packets++
	}

	most := 2 * (atOnce + rate + int(rate*time.Since(began).Seconds()))
	if packets == 0 || packets > most {
		t.Errorf("the victim got %d packets, want more than 0 and at most %d: an answer and a check for each request",
			packets, most)
	}
	c.prove() // its own address has no limit
}

// TestForgedAnswers shows that media goes to an address only after a signed answer with the right
// id has come from the address itself.
func TestForgedAnswers(t *testing.T) {
	e := newEngine(t)
	c, victim, other := echo(t, e), stranger(t, e), stranger(t, e)
	_, err := victim.Write(c.nominate())
	must(t, err)
	check, ok := isCheck(receive(t, victim, deadline))
	if !ok {
		t.Fatal("the first packet to a new address is not a check")
	}
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
		"a different password": {victim, answerTo(check, "another password")},
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

	for b := receive(t, victim, soon); b != nil; b = receive(t, victim, soon) {
		if len(b) < 20 || b[0] > 1 {
			t.Error("media goes to an address that has not answered")
		}
	}
}

// TestMove shows that media follows a client to a new address within one round trip.
func TestMove(t *testing.T) {
	e := newEngine(t)
	c, there := echo(t, e), stranger(t, e)
	_, err := there.Write(c.nominate())
	must(t, err)
	check, ok := isCheck(receive(t, there, deadline))
	if !ok {
		t.Fatal("the first packet to a new address is not a check")
	}

	_, err = there.Write(answerTo(check, lightPassword))
	must(t, err)
	_, err = there.Write(c.packet("from there"))
	must(t, err)
	for b := receive(t, there, deadline); ; b = receive(t, there, deadline) {
		if b == nil {
			t.Fatal("no media goes to the new address")
		}
		if b[0] >= 128 {
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
	c.prove()
	c.write(append([]byte{22, 0xfe, 0xfd}, make([]byte, 40)...))
	waitFor(t, "the client's handshake", func() bool { return e.Stats().Unknown == 1 })
	if _, addresses, _ := e.Known(); addresses != 0 || len(c.watch.connected) > 0 || len(c.handshake.packets) > 0 {
		t.Errorf("a client that answers no check has %d addresses, want none", addresses)
	}
	c.close()
	if names, _, checks := e.Known(); names != 0 || checks != 0 {
		t.Errorf("the engine still knows %d names and %d checks, want none", names, checks)
	}
}

// TestEarlyCheck shows that a callee can check its path before its answer has arrived, because
// media may be faster than signaling.
func TestEarlyCheck(t *testing.T) {
	e := newEngine(t)
	caller := echo(t, e)
	w := newWatcher()
	m, offer, err := e.Offer(w, caller.leg, calls.Terms{})
	must(t, err)
	c := newLight(t, e, lightOffer(""))
	t.Cleanup(c.close)
	c.leg.Close()
	c.leg, c.ufrag, c.password = m, attribute(offer, "ice-ufrag"), attribute(offer, "ice-pwd")

	c.prove()
	if c.checks.Load() > 0 {
		t.Error("a check was sent before the client's password was known")
	}
	must(t, m.Accept(lightOffer("")))
	waitFor(t, "a check", func() bool { return c.checks.Load() > 0 })
	must(t, c.connect())
	select {
	case <-w.connected:
	case <-time.After(deadline):
		t.Error("Connected was not called")
	}
}

// TestTakenAddress shows that a client cannot take over an address that another client still uses.
// This applies even if the first client answers checks to the address.
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
	if q := thief.leg.Quality(); q.Path.Remote != "" || q.Path != (calls.Path{}) {
		t.Errorf("the thief's path is %+v, want none", q.Path)
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
		check, ok := isCheck(receive(t, other, deadline))
		if !ok {
			t.Fatal("the first packet to a new address is not a check")
		}
		if bytes.Equal(check.TransactionID[:], make([]byte, stun.TransactionIDSize)) {
			t.Error("the check has no id")
		}
	}

	if _, addresses, checks := e.Known(); addresses != 1 || checks > 8 {
		t.Errorf("the engine knows %d addresses and %d checks, want 1 address and at most 8 checks", addresses, checks)
	}
	answered := c.checks.Load()
	c.prove() // the engine has forgotten the client's own address, and learns it again
	waitFor(t, "its check to be answered", func() bool { return c.checks.Load() > answered })
	c.write(c.packet("still here"))
	if heard := c.hear(); heard != "still here" {
		t.Errorf("the client received %q, want still here", heard)
	}
}
