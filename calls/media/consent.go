package media

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/pion/stun/v4"
)

const (
	maxPeers = 8 // addresses of one transport that are known; the one that is silent for longest is forgotten

	// Checks of a client from addresses that are not proven, for each second. Agents send twenty a
	// second (RFC 8445, section 14.2), in bursts with several networks. Those beyond get no answer.
	unprovenChecks = 50

	checkPause   = 50 * time.Millisecond  // between two sendings of a check (RFC 8445, section 14.2)
	checkRepeats = 2                      // of a check, while the client sends none itself
	repeatPause  = 400 * time.Millisecond // before each of them

	consentInterval = 5 * time.Second  // between two checks of the path in use, give or take a fifth
	consentTimeout  = 30 * time.Second // without an answer, nothing more is sent (RFC 7675, section 5.1)
)

// A transaction is the id of a STUN request.
type transaction = [stun.TransactionIDSize]byte

// A peer is a UDP address from which a client proved that it knows our password. That a packet
// names an address as its source does not mean that the client is there. So the engine sends a
// check of its own to the address, and uses it as a path once the check has been answered.
type peer struct {
	path        path         // to the address, with the client's wishes about it
	credentials *credentials // that the client last used from there
	heard       time.Time    // when it did

	check   transaction // the check that awaits an answer; zero for none
	asked   time.Time   // when it was last sent
	repeats int         // how often it was sent again since the client was heard
	next    time.Time   // when consent is checked again, if the path is in use
	consent time.Time   // when the last check that was answered had been sent; zero for never
}

// hasConsent reports whether media may be sent to the address.
func (p *peer) hasConsent(now time.Time) bool {
	return !p.consent.IsZero() && now.Sub(p.consent) <= consentTimeout
}

// meet takes note of a client's check by UDP. It returns a check to send to the client, or nil, and
// reports whether the path may be used already. ok is false if there were too many.
func (t *transport) meet(from *path, c *credentials, now time.Time) (request []byte, consent, ok bool) {
	owned := t.engine.table.hear(from.remote, t, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peer(from.remote)
	consent = owned && p != nil && p.hasConsent(now)
	if !consent && !t.unproven.take(1, now) {
		return nil, false, false
	}

	if p == nil {
		p = t.addPeer(from.remote)
	}
	nominated := from.nominated || p.path.nominated && p.consent.IsZero()
	p.path, p.path.nominated = *from, nominated
	p.credentials, p.heard, p.repeats = c, now, 0
	if !consent && now.Sub(p.asked) >= checkPause {
		request = t.ask(p, now)
	}
	return request, consent, true
}

// peer returns the peer with an address, or nil. The caller holds mu.
func (t *transport) peer(a netip.AddrPort) *peer {
	for _, p := range t.peers {
		if p.path.remote == a {
			return p
		}
	}
	return nil
}

// addPeer returns a new peer. The caller holds mu.
func (t *transport) addPeer(a netip.AddrPort) *peer {
	if len(t.peers) == maxPeers {
		oldest := 0
		for i, p := range t.peers {
			if p.heard.Before(t.peers[oldest].heard) {
				oldest = i
			}
		}
		t.engine.table.removeCheck(t.peers[oldest].check)
		t.peers = append(t.peers[:oldest:oldest], t.peers[oldest+1:]...)
	}
	p := &peer{path: path{remote: a}}
	t.peers = append(t.peers, p)
	return p
}

// ask returns a check to send to a peer (RFC 8445, section 7.2.2), or nil as long as the client's
// password is unknown. A check that awaits an answer is repeated. The caller holds mu.
func (t *transport) ask(p *peer, now time.Time) []byte {
	c := p.credentials
	if c.clientUfrag == "" || t.ctx.Err() != nil {
		return nil
	}
	if p.check == (transaction{}) {
		p.check = stun.NewTransactionID()
		t.engine.table.addCheck(p.check, t)
		fifth := consentInterval / 5
		p.next = now.Add(consentInterval - fifth + rand.N(2*fifth))
	}
	p.asked = now

	m, err := stun.Build(stun.BindingRequest, stun.NewTransactionIDSetter(p.check),
		stun.NewUsername(c.clientUfrag+":"+c.ufrag),
		stun.RawAttribute{Type: stun.AttrICEControlled, Value: t.tiebreaker[:]},
		stun.RawAttribute{Type: stun.AttrPriority, Value: checkPriority},
		c.clientKey, stun.Fingerprint)
	if err != nil {
		return nil
	}
	return m.Raw
}

// checkPriority is the PRIORITY of our checks: that of a peer-reflexive candidate (RFC 8445,
// section 5.1.2.1).
var checkPriority = []byte{110, 255, 255, 255}

// confirm takes an answer to a check. It proves the address if the answer came from there and is
// signed with the client's password.
func (t *transport) confirm(m *stun.Message, from *path, now time.Time) bool {
	t.mu.Lock()
	p := t.peer(from.remote)
	if p == nil || p.check != m.TransactionID || p.credentials.clientKey.Check(m) != nil {
		t.mu.Unlock()
		t.engine.counters.badSTUN.Add(1)
		return false
	}
	t.engine.table.removeCheck(p.check)
	p.check, p.consent = transaction{}, p.asked
	chosen := p.path
	t.mu.Unlock()

	t.heard.Store(now.UnixNano())
	if t.engine.table.prove(from.remote, t, now) {
		t.choose(&chosen, now)
	}
	return true
}

// greet sends checks to the addresses from which the client was heard before its password was
// known.
func (t *transport) greet(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.peers {
		if p.consent.IsZero() {
			p.path.send(t.ask(p, now))
		}
	}
}

// renewConsent checks the path in use now and then, repeats checks that may be lost, and stops using
// a path whose client does not answer.
func (t *transport) renewConsent(now time.Time) {
	current := t.path.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	consent := current == nil || current.tcp != nil || t.ctx.Err() != nil
	for _, p := range t.peers {
		used := current != nil && current.same(&p.path)
		consent = consent || used && p.hasConsent(now)
		switch {
		case used && !now.Before(p.next):
			t.engine.table.removeCheck(p.check) // RFC 7675, section 5.1: each has an id of its own
			p.check = transaction{}
			p.path.send(t.ask(p, now))
		case !used && p.check != (transaction{}) && p.repeats < checkRepeats && now.Sub(p.asked) >= repeatPause:
			p.repeats++
			p.path.send(t.ask(p, now))
		}
	}

	if !consent && t.path.CompareAndSwap(current, nil) {
		t.engine.counters.consentLost.Add(1)
	}
}
