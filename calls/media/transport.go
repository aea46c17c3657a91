package media

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/srtp/v3"
	"github.com/pion/stun/v4"

	"github.com/selvage/selvage/calls/sdp"
)

// A transport is the connection of one media section to its client: the credentials and
// the path of ICE, the DTLS association and the keys that it made.
type transport struct {
	engine   *Engine
	section  *section
	identity *identity // the certificate that the description named
	made     time.Time

	path  atomic.Pointer[path]
	heard atomic.Int64 // when the client last proved itself, in ns since 1970
	up    atomic.Bool  // the keys are there

	// Guarded by the engine's table.
	proven    []netip.AddrPort
	forgotten bool

	// mu guards what descriptions change.
	mu      sync.Mutex
	ours    *credentials
	before  *credentials    // valid until the client uses those that replaced them
	remote  sdp.Fingerprint // of the client's certificate; empty until it is known
	streams []*stream       // TCP connections of the client, the oldest first

	peers    []*peer // UDP addresses of the client
	unproven bucket  // checks of the client from addresses that are not proven

	tiebreaker [8]byte // of our checks (RFC 8445, section 7.1.3)

	pipe     *pipe
	attempts atomic.Int32 // handshakes begun
	shaking  atomic.Bool  // a handshake is under way or done
	ctx      context.Context
	cancel   context.CancelFunc

	in inbound
}

// inbound is the receiving half of a transport's keys.
type inbound struct {
	mu        sync.Mutex
	ctx       *srtp.Context
	sources   []uint32 // authenticated senders of RTP
	reporters []uint32 // and of RTCP
	rtp       bucket
	rtcp      bucket
}

// maxSources bounds the SSRCs of a section, which each cost memory. A browser uses one, and
// another after it replaced a transceiver.
const maxSources = 8

// newTransport returns a transport that clients can reach from now on.
func (e *Engine) newTransport(s *section) *transport {
	t := &transport{engine: e, section: s, identity: e.identity.Load(), ours: newCredentials(), made: time.Now()}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.pipe = newPipe(t)
	binary.BigEndian.PutUint64(t.tiebreaker[:], rand.Uint64())
	t.in.rtp, t.in.rtcp = limits(s.kind)
	t.unproven = bucket{rate: unprovenChecks, burst: burst * unprovenChecks}
	t.heard.Store(t.made.UnixNano())
	e.table.addName(t.ours.ufrag, t)
	return t
}

// owner returns the leg that a transport belongs to, or nil for none.
func (t *transport) owner() *leg {
	if t == nil {
		return nil
	}
	return t.section.leg
}

// credential returns the credentials with a user name fragment of ours, or nil.
func (t *transport) credential(ufrag []byte) *credentials {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ours.ufrag == string(ufrag) {
		return t.ours
	}
	if t.before != nil && t.before.ufrag == string(ufrag) {
		return t.before
	}
	return nil
}

// credentials returns all credentials that are valid.
func (t *transport) credentials() []*credentials {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before != nil {
		return []*credentials{t.ours, t.before}
	}
	return []*credentials{t.ours}
}

// restart replaces the credentials (RFC 8445, section 9). Those before are valid until the
// client uses the new ones, so that packets flow on meanwhile.
func (t *transport) restart() {
	t.mu.Lock()
	oldest := t.before
	t.before, t.ours = t.ours, newCredentials()
	name := t.ours.ufrag
	t.mu.Unlock()

	if oldest != nil {
		t.engine.table.removeName(oldest.ufrag)
	}
	t.engine.table.addName(name, t)
}

// used ends the validity of replaced credentials.
func (t *transport) used(c *credentials) {
	t.mu.Lock()
	old := t.before
	if c != t.ours || old == nil {
		t.mu.Unlock()
		return
	}
	t.before = nil
	t.mu.Unlock()
	t.engine.table.removeName(old.ufrag)
}

// expect sets the certificate and the credentials that the client must have.
func (t *transport) expect(s *sdp.Section) {
	t.mu.Lock()
	t.remote = s.Fingerprint
	t.ours.clientUfrag, t.ours.clientKey = s.Ufrag, stun.NewShortTermIntegrity(s.Password)
	t.mu.Unlock()
	t.greet(time.Now())
	t.shake() // a ClientHello may wait already
}

// fingerprint returns the client's, or an empty one while it is unknown.
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

// close ends the transport. The DTLS association says goodbye to the client.
func (t *transport) close() {
	t.engine.table.forget(t)
	t.cancel()
	t.in.mu.Lock()
	t.in.ctx = nil
	t.in.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.streams {
		s.finish()
	}
	for _, p := range t.peers {
		t.engine.table.removeCheck(p.check)
	}
	t.peers = nil
}
