package media

import (
	"bytes"
	"crypto/rand"
	"net"
	"time"

	"github.com/pion/stun/v4"
)

// A credentials holds our ICE credentials for a section, and the matching credentials of the
// client. Our username fragment has 50 random bits and our password 200. RFC 8445, section 5.3,
// requires only 24 and 128.
type credentials struct {
	ufrag, password string
	key             stun.MessageIntegrity

	clientUfrag string // "" while unknown; guarded by the transport's mu, like clientKey
	clientKey   stun.MessageIntegrity
}

func newCredentials() *credentials {
	text := rand.Text() + rand.Text() // 26 characters of base32 each
	c := &credentials{ufrag: text[:10], password: text[10:50]}
	c.key = stun.NewShortTermIntegrity(c.password)
	return c
}

// nominationHold is how long a selected path remains in use before a path of lower priority may
// replace the selected path. Otherwise, the selection would change constantly with agents that nominate all pairs
// at the same time (RFC 5245, section 8.1.1.2).
const nominationHold = time.Second

// isSTUN reports whether a packet looks like STUN (RFC 8489, section 5; RFC 7983).
func isSTUN(b []byte) bool {
	return len(b) >= 20 && b[0] < 4 && b[4] == 0x21 && b[5] == 0x12 && b[6] == 0xa4 && b[7] == 0x42
}

// isIndication reports whether a STUN packet is a binding indication. Clients send these to keep paths
// open, and expect no answer (RFC 8445, section 11).
func isIndication(b []byte) bool { return b[0] == 0 && b[1] == 0x11 }

// receiveSTUN handles a STUN packet that arrived on a path. It returns the transport whose client
// sent it, or nil if the sender did not prove that it knows the password.
//
// If the request came over UDP, the engine also sends a check, and only the answer to this check
// makes the source a path. The check is sent before the answer to the request, so that the client
// answers the check before it sends anything else.
//
// A packet without a known username fragment and valid integrity gets no answer. Therefore, a
// scanner learns nothing, and a spoofed address receives nothing.
func (w *worker) receiveSTUN(b []byte, from *path, now time.Time) (t *transport) {
	defer func() { w.engine.handlePanic(t.owner(), recover()) }()
	m := &w.request
	m.Raw = append(m.Raw[:0], b...)
	if m.Decode() != nil {
		return nil
	}
	if m.Type == stun.BindingSuccess && from.tcp == nil {
		return w.receiveCheckAnswer(m, from, now)
	}
	if m.Type != stun.BindingRequest {
		return nil
	}

	name, err := m.Get(stun.AttrUsername)
	if err != nil {
		return nil
	}

	ufrag, _, _ := bytes.Cut(name, []byte(":"))
	named := w.engine.table.findByName(ufrag)
	if named == nil {
		w.receiveProbe(m, ufrag, from, now)
		return nil
	}

	c := named.credential(ufrag)
	if c == nil || c.key.Check(m) != nil {
		w.engine.counters.badSTUN.Add(1)
		return nil
	}

	t = named
	t.lastHeard.Store(stamp(now))
	if m.Contains(stun.AttrICEControlled) {
		// A lite agent is never the controlling agent (RFC 8445, section 6.1.1), so the client must
		// take this role.
		w.respond(m, from, c, stun.BindingError, stun.CodeRoleConflict)
		return t
	}

	from.priority = priority(m)
	from.nominated = m.Contains(stun.AttrUseCandidate)
	consent := true // a TCP connection already proves a round trip
	if from.tcp == nil {
		request, known, ok := t.receiveCheck(from, c, now)
		if !ok {
			w.engine.counters.limited.Add(1)
			return t
		}
		from.send(request)
		consent = known
	}

	w.respond(m, from, c, stun.BindingSuccess, nil)
	if consent {
		t.selectPath(from, now)
	}
	t.retirePrevious(c)
	return t
}

// receiveCheckAnswer handles an answer to one of our checks.
func (w *worker) receiveCheckAnswer(m *stun.Message, from *path, now time.Time) *transport {
	t := w.engine.table.findByCheck(m.TransactionID)
	if t == nil || !t.receiveCheckAnswer(m, from, now) {
		return nil
	}
	return t
}

// priority returns the PRIORITY attribute of a request (RFC 8445, section 7.1.1).
func priority(m *stun.Message) uint32 {
	b, err := m.Get(stun.AttrPriority)
	if err != nil || len(b) != 4 {
		return 0
	}
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// respond answers a binding request (RFC 8445, section 7.3).
func (w *worker) respond(m *stun.Message, to *path, c *credentials, kind stun.MessageType, failure stun.Setter) {
	setters := []stun.Setter{kind, stun.NewTransactionIDSetter(m.TransactionID)}
	if failure != nil {
		setters = append(setters, failure)
	} else {
		setters = append(setters, &stun.XORMappedAddress{
			IP:   net.IP(to.remote.Addr().AsSlice()),
			Port: int(to.remote.Port()),
		})
	}
	setters = append(setters, c.key, stun.Fingerprint)

	if w.response.Build(setters...) == nil {
		to.write(w.response.Raw)
	}
}

// selectPath decides whether to use a path on which the client has passed a connectivity check. The
// transport uses the path that the client nominated last. Before any nomination, it uses the path
// that was checked last.
func (t *transport) selectPath(from *path, now time.Time) {
	current := t.path.Load()
	if current != nil && current.same(from) && current.nominated {
		if from.nominated && now.Sub(current.at) > nominationHold/2 {
			t.setPath(from, now)
		}
		return
	}

	switch {
	case current == nil || !current.nominated:
	case !from.nominated:
		return
	case from.priority < current.priority && now.Sub(current.at) < nominationHold:
		return
	}
	t.setPath(from, now)
}

// setPath makes the transport send packets on the path from now on.
func (t *transport) setPath(from *path, now time.Time) {
	p := *from
	p.at = now
	t.path.Store(&p)
}
