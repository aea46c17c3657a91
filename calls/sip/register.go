package sip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

const (
	minExpiry     = time.Minute
	maxExpiry     = 10 * time.Minute // a phone that loses its network registers again by then
	maxBindings   = 10               // contacts per set of credentials
	maxContacts   = 20               // contacts per subscriber
	maxContactURI = 512              // length in bytes
	maxTries      = 50               // attempts at a change while other changes are made
)

// A binding is a registered contact of a phone.
type binding struct {
	ID         string         `json:"id"`
	Credential string         `json:"c"` // the id of the SIP credentials or the SIP endpoint
	Secret     string         `json:"s"` // digest of the sealed password, which may change
	Contact    string         `json:"u"`
	CallID     string         `json:"k"` // the Call-ID of the REGISTER
	CSeq       uint32         `json:"q"`
	Node       string         `json:"n"`
	TCP        bool           `json:"t,omitempty"`
	Stream     string         `json:"x,omitempty"` // the id of the TCP connection
	Remote     netip.AddrPort `json:"r"`           // the phone's address, as the server sees it
	Domain     string         `json:"d,omitempty"` // the name of this server in the REGISTER
	Until      int64          `json:"e"`           // when the binding expires, as Unix time in microseconds
}

// A register lists the bindings of a subscriber or SIP endpoint, oldest first.
type register struct {
	Project  string    `json:"p"`
	Bindings []binding `json:"b"`
}

func registerKey(owner string) session.Key { return session.Key{Kind: "phones", ID: owner} }

// registerOf returns an owner's register without expired bindings. old is the stored value, or nil
// if nothing is stored.
func (s *Server) registerOf(ctx context.Context, owner string) (r register, old []byte, err error) {
	old, err = s.c.Sessions.Get(ctx, registerKey(owner))
	if errors.Is(err, problem.NotFound) {
		return r, nil, nil
	}
	if err != nil {
		return r, nil, fmt.Errorf("reading registrations: %w", err)
	}
	if json.Unmarshal(old, &r) != nil {
		r = register{} // written by a different version of selvage: start again
	}
	now := time.Now().UnixMicro()
	r.Bindings = slices.DeleteFunc(r.Bindings, func(b binding) bool { return b.Until <= now })
	return r, old, nil
}

// changeRegister applies a change to the register of the credentials' owner, and returns the
// result. If another caller changes the register at the same time, changeRegister tries again.
func (s *Server) changeRegister(
	ctx context.Context, c fabric.SIPCredential, change func(*register) error,
) (r register, err error) {
	for range maxTries {
		var old []byte
		r, old, err = s.registerOf(ctx, c.Owner())
		if err != nil {
			return r, err
		}

		r.Project = c.ProjectID
		if err := change(&r); err != nil {
			return r, err
		}

		value, err := json.Marshal(r)
		if err != nil {
			return r, fmt.Errorf("writing registrations: %w", err)
		}
		if old == nil {
			err = s.c.Sessions.Add(ctx, registerKey(c.Owner()), value, maxExpiry)
		} else {
			err = s.c.Sessions.CompareAndSwap(ctx, registerKey(c.Owner()), old, value, maxExpiry)
		}
		if !errors.Is(err, problem.Conflict) && !errors.Is(err, problem.NotFound) {
			return r, err
		}
	}
	return r, errors.New("writing registrations: too many concurrent changes")
}

// isRegistered reports whether a registered phone sent the request that arrived over f. For TCP, it reports
// whether the connection's client has authenticated.
func (s *Server) isRegistered(f flow) bool {
	if f.tcp != nil {
		return f.tcp.proven.Load()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.pinged[f.sender()])
}

// isBlocked reports whether f comes from a network with too many wrong passwords. Registered phones
// and requests within calls are not affected. Otherwise, one phone with an old password would
// silence all other phones behind the same NAT.
func (s *Server) isBlocked(f flow) bool {
	return s.blocked.has(blockKey{network: networkOf(f.source())}, time.Now()) && !s.isRegistered(f)
}

// admit authenticates a request. If the request must not be handled, ok is false, and admit has
// sent the response, if any.
func (s *Server) admit(ctx context.Context, r *sip.Request, f flow) (a fabric.SIPAccount, ok bool) {
	if s.isBlocked(f) {
		s.counters.blocked.Add(1)
		return a, false
	}
	c, ok := answers(r)
	if !ok {
		s.challenge(r, f, false)
		return a, false
	}

	err := errChallenge
	if c.isFor(r) {
		a, err = s.authenticate(ctx, string(r.Method), c, f.source())
	}
	switch {
	case errors.Is(err, errChallenge), errors.Is(err, errStale):
		s.challenge(r, f, errors.Is(err, errStale))
	case errors.Is(err, errSilence):
	case errors.Is(err, fabric.ErrDamaged): // already logged
		s.reply(r, f, 500, "Server Internal Error")
	case err != nil:
		s.log.Error("authenticating a phone", "error", err)
		s.reply(r, f, 500, "Server Internal Error")
	case a.MustEncrypt() && !f.isSecure():
		s.reply(r, f, 403, "TLS Required") // the messages contain the keys for media
	default:
		s.prove(f)
		return a, true
	}
	return a, false
}

// prove records that a request from f was authenticated.
func (s *Server) prove(f flow) {
	s.rates.prove(networkOf(f.source()), time.Now())
	if f.tcp != nil {
		f.tcp.keep()
		f.tcp.proven.Store(true)
		outsiders{s}.forgetGuest(f)
	}
}

// handleRegister handles REGISTER (RFC 3261, section 10.3).
func (s *Server) handleRegister(ctx context.Context, r *sip.Request, f flow) {
	if t := s.find(r, f); t != nil {
		t.repeat()
		return
	}

	a, ok := s.admit(ctx, r, f)
	if !ok {
		return
	}

	t, isNew := s.serve(r, f)
	if t != nil && !isNew {
		return
	}

	resp := s.register(ctx, r, f, a.SIPCredential)
	if t == nil {
		f.write([]byte(resp.String()))
		return
	}
	t.respond(resp, nil)
}

// register changes a phone's bindings as a REGISTER requests, and returns the response.
func (s *Server) register(ctx context.Context, r *sip.Request, f flow, c fabric.SIPCredential) *sip.Response {
	contacts, wildcard, err := contactsOf(r)
	switch {
	case err != nil:
		return response(r, 400, "Bad Contact", nil)
	case slices.ContainsFunc(contacts, func(c contact) bool { return c.expires > 0 && c.expires < minExpiry }):
		return response(r, 423, "Interval Too Brief", nil,
			sip.NewHeader("Min-Expires", strconv.Itoa(int(minExpiry.Seconds()))))
	}

	secret := session.Digest(c.Secrets)
	var former []string // the connections in the bindings that this request renews
	reg, err := s.changeRegister(ctx, c, func(reg *register) error {
		former = nil
		reg.Bindings = slices.DeleteFunc(reg.Bindings, func(b binding) bool {
			// Bindings from before the password changed are removed, too.
			return b.Credential == c.ID && (wildcard || b.Secret != secret)
		})
		for _, contact := range contacts {
			former = append(former, reg.streamOf(c.ID, contact.uri))
			if err := reg.bind(s.newBinding(r, f, c, contact), contact.expires); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errOutdated) {
		return response(r, 500, "Request Out of Order", nil)
	}
	if err != nil {
		s.log.Error("registering a phone", "error", err)
		return response(r, 500, "Server Internal Error", nil)
	}

	s.counters.registered.Add(1)
	var longest time.Duration
	for _, contact := range contacts { // some of the contacts may be removed
		longest = max(longest, contact.expires)
	}
	if f.udp != nil && longest > 0 {
		until := time.Now().Add(longest)
		pinger{s}.keepOpen(f.remote, until)
		pinger{s}.keepOpen(f.sender(), until) // marks the phone as registered
	}
	if f.tcp != nil && longest > 0 {
		allDialogs{s}.reconnect(c, f, contacts, former)
	}
	return response(r, 200, "OK", nil, reg.headers(c.ID)...)
}
