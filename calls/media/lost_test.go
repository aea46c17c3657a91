package media

import (
	"net"
	"testing"
	"time"

	"github.com/pion/srtp/v3"
	"github.com/pion/stun/v4"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// A lostCount counts how often a leg was lost and connected.
type lostCount struct{ lost, connected int }

func (c *lostCount) Connected(calls.Path) { c.connected++ }
func (c *lostCount) Lost()                { c.lost++ }
func (c *lostCount) Talking(bool)         {}
func (c *lostCount) Pressed(byte)         {}
func (c *lostCount) Failed(error)         {}

// TestLostConsent shows that a leg is lost when the engine abandons the path to its client, even if
// the client still sends packets. Otherwise, the call would continue in silence.
func TestLostConsent(t *testing.T) {
	p := newPair(t, calls.Audio, srtp.ProtectionProfileAeadAes128Gcm)
	s, _ := p.linked()
	var events lostCount
	now := time.Now()
	s.leg.reporter.watcher = &events
	s.leg.reporter.connected = true
	s.transport.created = now.Add(-time.Minute)
	s.transport.peers[0].consentAt = now.Add(-consentTimeout)
	path := s.transport.path.Load()

	s.transport.lastHeard.Store(stamp(now))
	p.engine.doHousekeeping(now)
	if events.lost > 0 {
		t.Error("a leg is lost while its client answers")
	}

	p.engine.doHousekeeping(now.Add(time.Millisecond))
	if events.lost != 1 {
		t.Errorf("without an answer for %v, Lost was called %d times, want once", consentTimeout, events.lost)
	}
	if s.transport.path.Load() != nil {
		t.Errorf("without an answer for %v, the leg still has a path", consentTimeout)
	}

	s.transport.peers[0].consentAt = now
	s.transport.selectPath(path, now)
	p.engine.doHousekeeping(now)
	if events.connected != 1 {
		t.Errorf("after the client came back, Connected was called %d times, want once", events.connected)
	}
}

// TestSetClock shows that the engine does not measure silence by the machine's clock, which may be set.
// A client that has left would seem to be there for as long as the clock was set back.
func TestSetClock(t *testing.T) {
	p := newPair(t, calls.Audio, srtp.ProtectionProfileAeadAes128Gcm)
	s, _ := p.linked()
	now := time.Now()
	p.worker.receiveDatagram(p.packets(t, 1, 20)[0], p.source, now)
	seen, _ := latestPath([]*transport{s.transport}, now)
	if !seen.Equal(now) {
		t.Errorf("the client was last seen at %v, want %v", seen, now)
	}
	if seen == seen.Round(0) { // without the monotonic reading
		t.Errorf("the time %v follows the machine's clock", seen)
	}
}

// drainSink reads all packets that the second client has received. It returns the last check among
// them, or nil, and the number of media packets. It sends one more packet to mark the end, because sockets on
// loopback keep the order.
func (p *pair) drainSink(t *testing.T) (check *stun.Message, media int) {
	t.Helper()
	const end = "end"
	if _, err := p.engine.udp.WriteTo([]byte(end), p.sink.LocalAddr()); err != nil {
		t.Fatal(err)
	}

	for {
		b := make([]byte, maxPacket)
		n, err := p.sink.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if string(b[:n]) == end {
			return check, media
		}
		if !isSTUN(b[:n]) {
			media++
			continue
		}

		m := &stun.Message{Raw: b[:n]}
		if err := m.Decode(); err != nil {
			t.Fatal(err)
		}
		if m.Type == stun.BindingRequest {
			check = m
		}
	}
}

// TestConsent shows that a client that stops answering checks receives no media until it answers
// again, even if it still sends packets.
func TestConsent(t *testing.T) {
	p := newPair(t, calls.Audio, srtp.ProtectionProfileAeadAes128Gcm)
	from, to := p.linked()
	from.transport.path.Store(nil) // only the path to the second client matters here
	remote := p.sink.LocalAddr().(*net.UDPAddr).AddrPort()
	const password = "abcdefghijklmnopqrstuv"
	to.transport.setRemote(&sdp.Section{Ufrag: "abcd", Password: password})
	to.transport.path.Store(nil)
	to.transport.peers = nil
	ours, start := to.transport.ours, time.Now()

	request := func(at time.Duration) {
		t.Helper()
		m := stun.MustBuild(
			stun.BindingRequest,
			stun.TransactionID,
			stun.NewUsername(ours.ufrag+":abcd"),
			stun.RawAttribute{Type: stun.AttrUseCandidate},
			ours.key,
			stun.Fingerprint,
		)
		p.worker.receiveDatagram(m.Raw, remote, start.Add(at))
	}

	answer := func(check *stun.Message, at time.Duration) {
		t.Helper()
		if check == nil {
			t.Fatalf("after %v, no check came", at)
		}
		m := stun.MustBuild(
			stun.BindingSuccess,
			stun.NewTransactionIDSetter(check.TransactionID),
			stun.NewShortTermIntegrity(password),
			stun.Fingerprint,
		)
		p.worker.receiveDatagram(m.Raw, remote, start.Add(at))
	}

	// hears reports whether the client receives media, and returns the last check that it received.
	hears := func(at time.Duration) (heard bool, check *stun.Message) {
		t.Helper()
		p.worker.receiveDatagram(p.packets(t, 1, 20)[0], p.source, start.Add(at))
		check, media := p.drainSink(t)
		return media > 0, check
	}

	request(0)
	heard, check := hears(0)
	if heard {
		t.Error("media goes to a client that has not answered")
	}

	answer(check, 0)
	last := check
	for at := 6 * time.Second; at <= time.Minute; at += 6 * time.Second {
		request(at)
		p.engine.doHousekeeping(start.Add(at))
		heard, check = hears(at)
		answer(check, at)
		if !heard {
			t.Errorf("after %v, no media is sent to a client that answers", at)
		}
		if check.TransactionID == last.TransactionID {
			t.Errorf("after %v, the client got the same check again, want a new one", at)
		}
		last = check
	}

	const silent, gone, back = 89 * time.Second, 91 * time.Second, 100 * time.Second
	request(silent)
	p.engine.doHousekeeping(start.Add(silent))
	if heard, _ = hears(silent); !heard {
		t.Error("no media is sent to a client that has not answered for 29 seconds")
	}

	request(gone)
	p.engine.doHousekeeping(start.Add(gone))
	if heard, _ = hears(gone); heard {
		t.Error("media is sent to a client that has not answered for 31 seconds")
	}
	if got := p.engine.Stats().ConsentLost; got != 1 {
		t.Errorf("ConsentLost = %d, want 1", got)
	}

	request(back)
	_, check = hears(back)
	answer(check, back)
	if heard, _ = hears(back); !heard {
		t.Error("no media is sent to a client that answers again")
	}
}

// TestClaims shows that a second client can take over an address only after the first one has not
// used the address for some time.
func TestClaims(t *testing.T) {
	p := newPair(t, calls.Audio, srtp.ProtectionProfileAeadAes128Gcm)
	from, to := p.linked()
	table, now := &p.engine.table, time.Now()
	steps := []struct {
		by   *transport
		at   time.Duration
		want bool
	}{
		{to.transport, claimHold - time.Second, false},
		{from.transport, claimHold - time.Second, true},
		{to.transport, claimHold + time.Second, false},
		{to.transport, 2*claimHold + time.Second, true},
		{from.transport, 2*claimHold + 2*time.Second, false},
	}

	for _, s := range steps {
		if got := table.claimAddress(p.source, s.by, now.Add(s.at)); got != s.want {
			t.Errorf("after %v, claimAddress = %v, want %v", s.at, got, s.want)
		}
	}
	if table.findByAddress(p.source) != to.transport {
		t.Error("the address does not belong to the last transport that claimed it")
	}
	table.remove(to.transport)
	if table.findByAddress(p.source) != nil {
		t.Error("the address still belongs to a transport although its owner is closed")
	}
	if !table.claimAddress(p.source, from.transport, now) {
		t.Error("the address of a closed transport cannot be taken over")
	}
}

// TestUnconnected shows that the engine counts browsers that did not connect in time, and packets
// that never arrived.
func TestUnconnected(t *testing.T) {
	tests := []struct {
		name     string
		up       bool
		remoteAt time.Duration // time before the leg is closed; zero without a description
		want     uint64
	}{
		{"connected", true, time.Minute, 0},
		{"closed soon", false, unconnectedAfter / 2, 0},
		{"never answered", false, 0, 0},
		{"not reached", false, time.Minute, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, calls.Audio, srtp.ProtectionProfileAeadAes128Gcm)
			from, _ := p.linked()
			if tt.remoteAt > 0 {
				from.transport.remoteAt = time.Now().Add(-tt.remoteAt)
			}
			from.transport.up.Store(tt.up)
			packets := p.packets(t, 10, 20)
			p.worker.receiveDatagram(packets[0], p.source, time.Now())
			p.worker.receiveDatagram(packets[9], p.source, time.Now())

			from.leg.Close()
			stats := p.engine.Stats()
			if stats.Unconnected != tt.want {
				t.Errorf("Unconnected = %d, want %d", stats.Unconnected, tt.want)
			}
			if stats.Lost != 8 {
				t.Errorf("Lost = %d, want the 8 packets between the two that arrived", stats.Lost)
			}
		})
	}
}
