package sip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"
	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

const (
	minExpiry     = time.Minute
	maxExpiry     = 10 * time.Minute // a phone that loses its network registers again within this time
	maxBindings   = 10               // contacts for a set of credentials
	maxContacts   = 20               // contacts for a subscriber
	maxContactURI = 512              // bytes
	maxTries      = 50               // attempts at a change, if other changes are made at the same time
)

// A binding is a registered contact of a phone.
type binding struct {
	ID         string         `json:"id"`
	Credential string         `json:"c"` // id of the SIP credentials, or of the SIP endpoint
	Secret     string         `json:"s"` // digest of the sealed password; a new password ends the binding
	Contact    string         `json:"u"`
	CallID     string         `json:"k"` // from the REGISTER
	CSeq       uint32         `json:"q"`
	Node       string         `json:"n"`
	TCP        bool           `json:"t,omitempty"`
	Stream     string         `json:"x,omitempty"` // id of the TCP connection
	Remote     netip.AddrPort `json:"r"`           // the phone's address, as the server sees it
	Until      int64          `json:"e"`           // Unix time in microseconds
}

// A register lists the bindings of a subscriber or SIP endpoint, oldest first.
type register struct {
	Project  string    `json:"p"`
	Bindings []binding `json:"b"`
}

func registerKey(owner string) session.Key { return session.Key{Kind: "phones", ID: owner} }

// registerOf returns an owner's register without expired bindings. old is the stored value, or nil if
// there is none.
func (s *Server) registerOf(ctx context.Context, owner string) (r register, old []byte, err error) {
	old, err = s.c.Sessions.Get(ctx, registerKey(owner))
	if errors.Is(err, problem.NotFound) {
		return r, nil, nil
	}
	if err != nil {
		return r, nil, fmt.Errorf("reading registrations: %w", err)
	}
	if json.Unmarshal(old, &r) != nil {
		r = register{} // written by another version of selvage: start over
	}
	now := time.Now().UnixMicro()
	r.Bindings = slices.DeleteFunc(r.Bindings, func(b binding) bool { return b.Until <= now })
	return r, old, nil
}

// changeRegister applies a change to the register of the credentials' owner, and returns the result. If another
// caller changes the register at the same time, changeRegister tries again.
func (s *Server) changeRegister(
	ctx context.Context, c fabric.SIPCredential, change func(*register) error,
) (r register, err error) {
	for range maxTries {
		var old []byte
		if r, old, err = s.registerOf(ctx, c.Owner()); err != nil {
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

// isRegistered reports whether f leads to a phone that is registered here or, for TCP, has
// authenticated.
func (s *Server) isRegistered(f flow) bool {
	if f.tcp != nil {
		return f.tcp.proven.Load()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.pinged[f.remote])
}

// isBlocked reports whether f comes from a network with too many wrong passwords. Registered phones
// and requests within calls are not affected: one phone with an old password would otherwise silence
// all others behind the same NAT.
func (s *Server) isBlocked(f flow) bool {
	return s.blocked.has(blockKey{network: networkOf(f.source())}, time.Now()) && !s.isRegistered(f)
}

// admit authenticates a request. If the request must not be handled, admit sends the response, if
// any, and ok is false.
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
	case err != nil:
		s.log.Error("authenticating a phone", "error", err)
		s.reply(r, f, 500, "Server Internal Error")
	case a.Fields.Text("encryption") == "required":
		s.reply(r, f, 403, "Encryption Required") // this server offers no encryption
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
	t, fresh := s.serve(r, f)
	if t != nil && !fresh {
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

	reg, err := s.changeRegister(ctx, c, func(reg *register) error {
		if wildcard {
			reg.Bindings = slices.DeleteFunc(reg.Bindings, func(b binding) bool { return b.Credential == c.ID })
		}
		for _, contact := range contacts {
			if err := reg.bind(s.binding(r, f, c, contact), contact.expires); err != nil {
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
	if f.udp != nil && len(contacts) > 0 && contacts[0].expires > 0 {
		s.keepOpen(f.remote, time.Now().Add(contacts[0].expires))
	}
	return response(r, 200, "OK", nil, reg.headers(c.ID)...)
}

// keepOpen makes the server ping an address until the given time.
func (s *Server) keepOpen(a netip.AddrPort, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.pinged[a]; known || len(s.pinged) < maxPinged {
		s.pinged[a] = until
	}
}

// A contact is a Contact header in a REGISTER.
type contact struct {
	uri     string
	expires time.Duration // 0 removes the contact
}

var errContact = errors.New("a contact cannot be used")

// contactsOf returns the contacts in a request. wildcard is true if the request removes all
// contacts.
func contactsOf(r *sip.Request) (all []contact, wildcard bool, err error) {
	general := maxExpiry
	if h := r.GetHeader("expires"); h != nil {
		general = seconds(h.Value())
	}
	headers := r.GetHeaders("contact")
	for _, h := range headers {
		c, ok := h.(*sip.ContactHeader)
		switch {
		case !ok || len(all) == maxBindings:
			return nil, false, errContact
		case c.Address.Wildcard:
			if len(headers) > 1 || general != 0 {
				return nil, false, errContact
			}
			return nil, true, nil
		}

		one := contact{c.Address.String(), general}
		if own, ok := c.Params.Get("expires"); ok {
			one.expires = seconds(own)
		}
		if !strings.EqualFold(c.Address.Scheme, "sip") || len(one.uri) > maxContactURI {
			return nil, false, errContact
		}
		all = append(all, one)
	}
	return all, false, nil
}

// seconds parses a number of seconds. It returns maxExpiry for larger numbers and for malformed
// text.
func seconds(text string) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return maxExpiry
	}
	return min(time.Duration(n)*time.Second, maxExpiry)
}

// binding returns the binding that a REGISTER requests for a contact.
func (s *Server) binding(r *sip.Request, f flow, c fabric.SIPCredential, to contact) binding {
	b := binding{ID: uuid.NewString(), Credential: c.ID, Secret: session.Digest(c.Secrets), Contact: to.uri,
		CallID: r.CallID().Value(), CSeq: r.CSeq().SeqNo, Node: s.c.Node, TCP: f.tcp != nil, Remote: f.remote,
		Until: time.Now().Add(to.expires).UnixMicro()}
	if f.tcp != nil {
		b.Stream = f.tcp.id
	}
	return b
}

var errOutdated = errors.New("a newer request has changed the binding")

// bind adds or renews a binding, or removes it if expires is 0. If there are too many bindings, it
// removes the oldest ones. It returns errOutdated if a newer request has changed the binding.
func (r *register) bind(b binding, expires time.Duration) error {
	i := slices.IndexFunc(r.Bindings, func(o binding) bool {
		return o.Credential == b.Credential && o.Contact == b.Contact
	})
	if i >= 0 {
		old := r.Bindings[i]
		if old.CallID == b.CallID && old.CSeq >= b.CSeq {
			return errOutdated
		}
		b.ID = old.ID
		r.Bindings = slices.Delete(r.Bindings, i, i+1)
	}
	if expires == 0 {
		return nil
	}
	r.Bindings = append(r.Bindings, b)
	r.limit(maxBindings, func(o binding) bool { return o.Credential == b.Credential })
	r.limit(maxContacts, func(binding) bool { return true })
	return nil
}

// limit removes the oldest matching bindings if there are more than most.
func (r *register) limit(most int, matches func(binding) bool) {
	n := 0
	for _, b := range r.Bindings {
		if matches(b) {
			n++
		}
	}
	for ; n > most; n-- {
		i := slices.IndexFunc(r.Bindings, matches)
		r.Bindings = slices.Delete(r.Bindings, i, i+1)
	}
}

// headers returns a Contact header for each binding of the credentials, with the remaining time.
func (r register) headers(credential string) (all []sip.Header) {
	now := time.Now()
	for _, b := range r.Bindings {
		if b.Credential == credential {
			left := time.UnixMicro(b.Until).Sub(now).Round(time.Second)
			all = append(all, sip.NewHeader("Contact", fmt.Sprintf("<%s>;expires=%d", b.Contact, int(left.Seconds()))))
		}
	}
	return all
}

// socketID returns the id of a binding's socket. Every node can find the binding by this id.
func socketID(owner, binding string) string { return owner + "/" + binding }

// Phones returns the phones that ring for a subscriber or SIP endpoint. It serves as Phones in
// [calls.Config].
func (s *Server) Phones(ctx context.Context, projectID, owner string) (all []calls.Phone, err error) {
	r, _, err := s.registerOf(ctx, owner)
	if err != nil || r.Project != projectID {
		return nil, err
	}
	known := make(map[string]fabric.SIPCredential)
	for _, b := range slices.Backward(r.Bindings) {
		c, ok := known[b.Credential]
		if !ok {
			c, err = s.c.Fabric.SIP.FindAccount(ctx, projectID, owner, b.Credential)
			if err != nil && !errors.Is(err, problem.NotFound) {
				return nil, err
			}
			known[b.Credential] = c
		}

		if c.ID == "" || session.Digest(c.Secrets) != b.Secret {
			continue // the credentials were deleted, disabled, or got another password
		}
		node := b.Node
		if s.c.Alone {
			node = s.c.Node // this process may have started after the registration
		}
		all = append(all, calls.Phone{Codecs: codecsOf(c), Socket: calls.Socket{Node: node, ID: socketID(owner, b.ID),
			Phone: b.Remote.Addr(), Endpoint: c.EndpointID != ""}})
	}
	return all, nil
}

// codecsOf returns the codecs that the credentials permit, by their names in SDP.
func codecsOf(c fabric.SIPCredential) []string { return codecNames(c.Codecs()) }

// codecNames converts the names of codecs in the API to those in SDP.
func codecNames(codecs []string) (names []string) {
	for _, name := range codecs {
		switch name, _, _ = strings.Cut(name, "@"); name {
		case "OPUS":
			names = append(names, "opus")
		case "G722", "PCMU", "PCMA":
			names = append(names, name)
		}
	}
	return names
}

// findBinding returns the binding of a socket, and the flow to its phone.
func (s *Server) findBinding(ctx context.Context, id string) (b binding, f flow, err error) {
	owner, name, _ := strings.Cut(id, "/")
	r, _, err := s.registerOf(ctx, owner)
	if err != nil {
		return b, f, err
	}
	i := slices.IndexFunc(r.Bindings, func(b binding) bool { return b.ID == name })
	if i < 0 {
		return b, f, problem.NoSuch("phone")
	}
	b = r.Bindings[i]
	f = flow{udp: s.c.UDP, remote: b.Remote}
	if b.TCP {
		s.mu.Lock()
		f.udp, f.tcp = nil, s.streams[b.Remote]
		s.mu.Unlock()
		if f.tcp == nil || f.tcp.id != b.Stream { // another client may have got the address since
			return b, f, problem.NoSuch("connection")
		}
	}
	return b, f, nil
}
