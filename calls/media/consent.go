package media

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/pion/stun/v4"
)

const (
	maxPeers = 8 // addresses per transport; a new address replaces the one heard least recently

	// unprovenChecks is how many checks per second a client may send from unproven addresses.
	// Agents send 20 per second (RFC 8445, section 14.2), in bursts if they have several networks.
	// Checks above the limit get no answer.
	unprovenChecks = 50

	checkPause   = 50 * time.Millisecond  // minimum time between checks (RFC 8445, section 14.2)
	checkRepeats = 2                      // repetitions of a check while the client sends none itself
	repeatPause  = 400 * time.Millisecond // time before each repetition

	consentInterval = 5 * time.Second  // time between checks of the path in use, plus or minus a fifth
	consentTimeout  = 30 * time.Second // sending stops after this time without an answer (RFC 7675)
)

// A transaction is the id of a STUN request.
type transaction = [stun.TransactionIDSize]byte

// A peer is a UDP address from which a client proved that it knows our password. The source address
// of a packet may be forged, so the packet does not prove that the client is there. The engine
// therefore sends a check to the address, and uses the address as a path after the client has
// answered.
type peer struct {
	path        path         // with the attributes of the client's last check
	credentials *credentials // the credentials that the client last used from this address
	lastHeard   time.Time    // when the client last used credentials

	check     transaction // the unanswered check, or zero
	sentAt    time.Time   // when the check was last sent
	repeats   int         // how many times the check was repeated since the client was last heard
	renewAt   time.Time   // when to check consent again, if the path is in use
	consentAt time.Time   // when the last answered check was sent; zero if none was answered
}

// hasConsent reports whether media may be sent to the address.
func (p *peer) hasConsent(now time.Time) bool {
	return !p.consentAt.IsZero() && now.Sub(p.consentAt) <= consentTimeout
}

// receiveCheck records a check that a client sent over UDP. It returns a check to send to the
// client, or nil. consent is true if the path may already be used. ok is false if the client
// sent too many checks.
func (t *transport) receiveCheck(from *path, c *credentials, now time.Time) (request []byte, consent, ok bool) {
	owned := t.engine.table.refreshClaim(from.remote, t, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.findPeer(from.remote)
	consent = owned && p != nil && p.hasConsent(now)
	if !consent && !t.unproven.take(1, now) {
		return nil, false, false
	}

	if p == nil {
		p = t.addPeer(from.remote)
	}
	nominated := from.nominated || p.path.nominated && p.consentAt.IsZero()
	p.path = *from
	p.path.nominated = nominated
	p.credentials = c
	p.lastHeard = now
	p.repeats = 0
	if !consent && now.Sub(p.sentAt) >= checkPause {
		request = t.buildCheck(p, now)
	}
	return request, consent, true
}

// findPeer returns the peer whose address is a, or nil. The caller holds mu.
func (t *transport) findPeer(a netip.AddrPort) *peer {
	for _, p := range t.peers {
		if p.path.remote == a {
			return p
		}
	}
	return nil
}

// addPeer adds a peer with address a and returns it. The caller holds mu.
func (t *transport) addPeer(a netip.AddrPort) *peer {
	if len(t.peers) == maxPeers {
		oldest := 0
		for i, p := range t.peers {
			if p.lastHeard.Before(t.peers[oldest].lastHeard) {
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

// buildCheck returns a check to send to a peer (RFC 8445, section 7.2.2), or nil while the client's
// password is unknown. It repeats a check that is still unanswered. The caller holds mu.
func (t *transport) buildCheck(p *peer, now time.Time) []byte {
	c := p.credentials
	if c.clientUfrag == "" || t.ctx.Err() != nil {
		return nil
	}
	if p.check == (transaction{}) {
		p.check = stun.NewTransactionID()
		t.engine.table.addCheck(p.check, t)
		fifth := consentInterval / 5
		p.renewAt = now.Add(consentInterval - fifth + rand.N(2*fifth))
	}
	p.sentAt = now

	m, err := stun.Build(
		stun.BindingRequest,
		stun.NewTransactionIDSetter(p.check),
		stun.NewUsername(c.clientUfrag+":"+c.ufrag),
		stun.RawAttribute{Type: stun.AttrICEControlled, Value: t.tiebreaker[:]},
		stun.RawAttribute{Type: stun.AttrPriority, Value: checkPriority},
		c.clientKey,
		stun.Fingerprint,
	)
	if err != nil {
		return nil
	}
	return m.Raw
}

// checkPriority is the PRIORITY of our checks. It is the priority of a peer-reflexive candidate
// (RFC 8445, section 5.1.2.1).
var checkPriority = []byte{110, 255, 255, 255}

// receiveCheckAnswer handles an answer to a check. The answer proves the address that it came from,
// if the check was sent there and the answer is signed with the client's password.
func (t *transport) receiveCheckAnswer(m *stun.Message, from *path, now time.Time) bool {
	t.mu.Lock()
	p := t.findPeer(from.remote)
	if p == nil || p.check != m.TransactionID || p.credentials.clientKey.Check(m) != nil {
		t.mu.Unlock()
		t.engine.counters.badSTUN.Add(1)
		return false
	}
	t.engine.table.removeCheck(p.check)
	p.check = transaction{}
	p.consentAt = p.sentAt
	chosen := p.path
	t.mu.Unlock()

	t.lastHeard.Store(stamp(now))
	if t.engine.table.claimAddress(from.remote, t, now) {
		t.selectPath(&chosen, now)
	}
	return true
}

// sendChecks sends a check to each address from which the client has sent a check, unless the
// client has already answered one there. It is called when the client's password becomes known.
func (t *transport) sendChecks(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.peers {
		if p.consentAt.IsZero() {
			p.path.send(t.buildCheck(p, now))
		}
	}
}

// renewConsent periodically checks the path in use, repeats checks that may have been lost, and
// stops using a path if the client does not answer.
func (t *transport) renewConsent(now time.Time) {
	current := t.path.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	consent := current == nil || current.tcp != nil || t.ctx.Err() != nil
	for _, p := range t.peers {
		used := current != nil && current.same(&p.path)
		consent = consent || used && p.hasConsent(now)
		switch {
		case used && !now.Before(p.renewAt):
			t.engine.table.removeCheck(p.check) // RFC 7675, section 5.1: each check has its own id
			p.check = transaction{}
			p.path.send(t.buildCheck(p, now))
		case !used && p.check != (transaction{}) && p.repeats < checkRepeats && now.Sub(p.sentAt) >= repeatPause:
			p.repeats++
			p.path.send(t.buildCheck(p, now))
		}
	}

	if !consent && t.path.CompareAndSwap(current, nil) {
		t.engine.counters.consentLost.Add(1)
	}
}
