package media

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/stun/v4"

	"github.com/selvage/selvage/calls/sdp"
)

// A transport is the connection between one media section and its client. It has the ICE
// credentials and path, the DTLS association and the keys derived from it.
type transport struct {
	engine    *Engine
	section   *section
	identity  *identity    // the certificate that our description names
	port      *phonePort   // nil for browsers, whose transports share the engine's ports
	announced int          // the port in the phone's description; guarded by the engine's mu
	crypto    []sdp.Crypto // our keys for a phone; see section.keys; guarded by the engine's mu
	phoneKey  string       // the phone's key; guarded by the engine's mu
	created   time.Time

	path      atomic.Pointer[path]
	lastHeard atomic.Int64 // when an authenticated packet last arrived; see stamp
	up        atomic.Bool  // the keys exist

	// Guarded by the mu of the engine's table.
	addresses []netip.AddrPort
	removed   bool

	// mu guards the following fields up to unproven.
	mu       sync.Mutex
	ours     *credentials
	previous *credentials    // valid until the client uses the new credentials
	remote   sdp.Fingerprint // fingerprint of the client's certificate; empty until it is known
	remoteAt time.Time       // when remote became known; zero before
	streams  []*stream       // the client's TCP connections, the oldest first

	peers    []*peer // UDP addresses from which the client sent checks
	unproven bucket  // limits the client's checks from unproven addresses

	tiebreaker [8]byte // for our checks (RFC 8445, section 7.1.3)

	pipe        *pipe
	attempts    atomic.Int32 // handshakes started
	handshaking atomic.Bool  // a handshake is running or has succeeded, or too many have failed
	ctx         context.Context
	cancel      context.CancelFunc

	in inbound
}

// inbound is the receiving half of a transport's keys.
type inbound struct {
	mu        sync.Mutex
	ctx       cipher   // nil until the keys are known
	sources   []uint32 // authenticated senders of RTP
	reporters []uint32 // authenticated senders of RTCP
	rtp       bucket
	rtcp      bucket
}

// maxSources limits the number of SSRCs per section, because each costs memory. A browser uses one
// SSRC, and a second SSRC after it has replaced a transceiver.
const maxSources = 8

// newTransport returns a transport that clients can reach immediately.
func (e *Engine) newTransport(s *section) *transport {
	t := e.newBareTransport(s)
	t.identity, t.ours = e.identity.Load(), newCredentials()
	t.pipe = newPipe(t)
	binary.BigEndian.PutUint64(t.tiebreaker[:], rand.Uint64())
	t.unproven = bucket{rate: unprovenChecks, burst: burst * unprovenChecks}
	e.table.addName(t.ours.ufrag, t)
	return t
}

// newBareTransport returns a transport that no client can reach yet.
func (e *Engine) newBareTransport(s *section) *transport {
	t := &transport{engine: e, section: s, created: time.Now()}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.in.rtp, t.in.rtcp = newBuckets(s.kind)
	t.lastHeard.Store(stamp(t.created))
	return t
}

// owner returns the leg that the transport belongs to, or nil.
func (t *transport) owner() *leg {
	if t == nil {
		return nil
	}
	return t.section.leg
}

// credential returns the credentials with our username fragment ufrag, or nil.
func (t *transport) credential(ufrag []byte) *credentials {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ours.ufrag == string(ufrag) {
		return t.ours
	}
	if t.previous != nil && t.previous.ufrag == string(ufrag) {
		return t.previous
	}
	return nil
}

// credentials returns all valid credentials.
func (t *transport) credentials() []*credentials {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.previous != nil {
		return []*credentials{t.ours, t.previous}
	}
	return []*credentials{t.ours}
}

// restart replaces the credentials (RFC 8445, section 9). The old credentials remain valid until
// the client uses the new ones, so that packets keep flowing.
func (t *transport) restart() {
	t.mu.Lock()
	oldest := t.previous
	t.previous, t.ours = t.ours, newCredentials()
	name := t.ours.ufrag
	t.mu.Unlock()

	if oldest != nil {
		t.engine.table.removeName(oldest.ufrag)
	}
	t.engine.table.addName(name, t)
}

// retirePrevious records that the client used c. If c is the current credentials, the previous ones
// become invalid.
func (t *transport) retirePrevious(c *credentials) {
	t.mu.Lock()
	old := t.previous
	if c != t.ours || old == nil {
		t.mu.Unlock()
		return
	}
	t.previous = nil
	t.mu.Unlock()
	t.engine.table.removeName(old.ufrag)
}

// setRemote sets the certificate fingerprint and the credentials that the client must use, or, for
// a phone, its key and the port at which it expects media.
func (t *transport) setRemote(s *sdp.Section) {
	if t.port != nil {
		t.setRemoteKey(s)
		t.setRemotePort(s.Port, s.Address)
		return
	}
	t.mu.Lock()
	t.remote = s.Fingerprint
	if t.remoteAt.IsZero() {
		t.remoteAt = time.Now()
	}
	t.ours.clientUfrag, t.ours.clientKey = s.Ufrag, stun.NewShortTermIntegrity(s.Password)
	t.mu.Unlock()
	t.sendChecks(time.Now())
	t.startHandshake() // a ClientHello may already be queued
}

// unconnectedAfter is how long a client may take to connect. Browsers take less than a second.
const unconnectedAfter = 5 * time.Second

// hasFailed reports whether a browser has failed to connect within unconnectedAfter.
func (t *transport) hasFailed(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.port == nil && !t.up.Load() && !t.remoteAt.IsZero() && now.Sub(t.remoteAt) >= unconnectedAfter
}

// fingerprint returns the fingerprint of the client's certificate, which is empty while it is
// unknown.
func (t *transport) fingerprint() sdp.Fingerprint {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.remote
}

// send writes a packet on the current path.
func (t *transport) send(packet []byte) bool {
	p := t.path.Load()
	return p != nil && p.write(packet)
}

// close closes the transport. The DTLS association sends a close alert to the client.
func (t *transport) close() {
	t.cancel()
	if t.port != nil {
		_ = t.port.conn.Close() // nothing is sent after this
	} else {
		t.engine.table.remove(t)
	}

	t.in.mu.Lock()
	t.in.ctx = nil
	t.in.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()

	for _, s := range t.streams {
		s.close()
	}
	for _, p := range t.peers {
		t.engine.table.removeCheck(p.check)
	}
	t.peers = nil
}
