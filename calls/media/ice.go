package media

import (
	"bytes"
	"crypto/rand"
	"net"
	"time"

	"github.com/pion/stun/v4"
)

// Credentials of a section: 48 and 192 random bits (RFC 8445, section 5.3 wants 24 and 128).
type credentials struct {
	ufrag, password string
	key             stun.MessageIntegrity
}

func newCredentials() *credentials {
	text := rand.Text() + rand.Text() // 26 characters of base32 each
	c := &credentials{ufrag: text[:10], password: text[10:50]}
	c.key = stun.NewShortTermIntegrity(c.password)
	return c
}

// nominationHold is how long a path keeps its place against one of lower priority. Agents
// that nominate all pairs at once (RFC 5245, section 8.1.1.2) would otherwise make it flap.
const nominationHold = time.Second

// isSTUN reports whether a packet looks like STUN (RFC 8489, section 5; RFC 7983).
func isSTUN(b []byte) bool {
	return len(b) >= 20 && b[0] < 4 && b[4] == 0x21 && b[5] == 0x12 && b[6] == 0xa4 && b[7] == 0x42
}

// check handles a STUN packet that came by a path. It returns the transport whose client
// sent it, or nil if the sender did not prove that it knows the password.
//
// Nothing is answered to a packet without a known user name fragment and valid integrity:
// a scanner learns nothing, and a spoofed address receives nothing.
func (w *worker) check(b []byte, from *path, now time.Time) (t *transport) {
	defer func() { w.engine.handlePanic(t.owner(), recover()) }()
	m := &w.request
	m.Raw = append(m.Raw[:0], b...)
	if m.Decode() != nil || m.Type != stun.BindingRequest {
		return nil
	}
	name, err := m.Get(stun.AttrUsername)
	if err != nil {
		return nil
	}
	ufrag, _, _ := bytes.Cut(name, []byte(":"))
	named := w.engine.table.name(ufrag)
	if named == nil {
		return nil
	}
	c := named.credential(ufrag)
	if c == nil || c.key.Check(m) != nil {
		w.engine.counters.badSTUN.Add(1)
		return nil
	}

	t = named
	t.heard.Store(now.UnixNano())
	if m.Contains(stun.AttrICEControlled) {
		// A lite agent never controls (RFC 8445, section 6.1.1): the client has to.
		w.respond(m, from, c, stun.BindingError, stun.CodeRoleConflict)
		return t
	}
	w.respond(m, from, c, stun.BindingSuccess, nil)
	t.prove(from, priority(m), m.Contains(stun.AttrUseCandidate), now)
	t.used(c)
	return t
}

// priority returns the PRIORITY of a request (RFC 8445, section 7.1.1).
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
			IP: net.IP(to.remote.Addr().AsSlice()), Port: int(to.remote.Port()),
		})
	}
	setters = append(setters, c.key, stun.Fingerprint)

	if w.response.Build(setters...) == nil {
		to.write(w.response.Raw)
	}
}

// prove takes a path from which the client showed that it knows the password. The path that
// the client nominated last is used; until then, the last proven one.
func (t *transport) prove(from *path, priority uint32, nominated bool, now time.Time) {
	if from.tcp == nil {
		t.engine.table.prove(from.remote, t)
	}
	current := t.path.Load()
	if current != nil && current.same(from) && current.nominated {
		if nominated && now.Sub(current.at) > nominationHold/2 {
			t.setPath(from, priority, true, now)
		}
		return
	}

	switch {
	case current == nil || !current.nominated:
	case !nominated:
		return
	case priority < current.priority && now.Sub(current.at) < nominationHold:
		return
	}
	t.setPath(from, priority, nominated, now)
}

// setPath makes a path the one that packets are sent by.
func (t *transport) setPath(from *path, priority uint32, nominated bool, now time.Time) {
	p := *from
	p.priority, p.nominated, p.at = priority, nominated, now
	t.path.Store(&p)
}
