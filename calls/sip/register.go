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
	maxExpiry     = 10 * time.Minute // phones that lose their network come back within it
	maxBindings   = 10               // contacts of one set of credentials
	maxContacts   = 20               // contacts of one subscriber
	maxContactURI = 512              // bytes
	maxTries      = 50               // attempts at a change that lost a race with another one
)

// A binding is a registered contact of a phone.
type binding struct {
	ID         string         `json:"id"`
	Credential string         `json:"c"` // id of the SIP credentials
	Secret     string         `json:"s"` // digest of their sealed password: a changed one ends the binding
	Contact    string         `json:"u"`
	CallID     string         `json:"k"` // of the registration
	CSeq       uint32         `json:"q"`
	Node       string         `json:"n"`
	TCP        bool           `json:"t,omitempty"`
	Remote     netip.AddrPort `json:"r"` // where the phone is, as we see it
	Until      int64          `json:"e"` // microseconds
}

// A register is the list of a subscriber's bindings, the oldest first.
type register struct {
	Project  string    `json:"p"`
	Bindings []binding `json:"b"`
}

func registerKey(subscriber string) session.Key { return session.Key{Kind: "phones", ID: subscriber} }

// registerOf returns the register of a subscriber without expired bindings, and the bytes that it
// was read from, or nil.
func (s *Server) registerOf(ctx context.Context, subscriber string) (r register, old []byte, err error) {
	old, err = s.c.Sessions.Get(ctx, registerKey(subscriber))
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

// changeRegister applies a change to a subscriber's register, and returns the result.
func (s *Server) changeRegister(
	ctx context.Context, c fabric.SIPCredential, change func(*register) error,
) (r register, err error) {
	for range maxTries {
		var old []byte
		if r, old, err = s.registerOf(ctx, c.SubscriberID); err != nil {
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
			err = s.c.Sessions.Add(ctx, registerKey(c.SubscriberID), value, maxExpiry)
		} else {
			err = s.c.Sessions.CompareAndSwap(ctx, registerKey(c.SubscriberID), old, value, maxExpiry)
		}
		if !errors.Is(err, problem.Conflict) && !errors.Is(err, problem.NotFound) {
			return r, err
		}
	}
	return r, errors.New("writing registrations: they change too often")
}

// isRegistered reports whether a phone that is registered here uses this flow.
func (s *Server) isRegistered(f flow) bool {
	if f.tcp != nil {
		return f.tcp.proven.Load()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.pinged[f.remote])
}

// admit authenticates a request. If it may not be handled, admit answers it and returns false.
func (s *Server) admit(ctx context.Context, r *sip.Request, f flow) (a fabric.SIPAccount, ok bool) {
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
		reply(r, f, 500, "Server Internal Error")
	case a.Fields.Text("encryption") == "required":
		reply(r, f, 403, "Encryption Required") // and this connection has none
	default:
		if f.tcp != nil {
			f.tcp.proven.Store(true)
		}
		return a, true
	}
	return a, false
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

// register changes the bindings of a phone, and returns the response.
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

// keepOpen pings an address until the given time.
func (s *Server) keepOpen(a netip.AddrPort, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.pinged[a]; known || len(s.pinged) < maxPinged {
		s.pinged[a] = until
	}
}

// A contact is a Contact header of a REGISTER.
type contact struct {
	uri     string
	expires time.Duration // 0 removes the contact
}

var errContact = errors.New("a contact cannot be used")

// contactsOf returns the contacts in a request. wildcard is true if all are to be removed.
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

// seconds reads a number of seconds. More than maxExpiry, and what is malformed, becomes maxExpiry.
func seconds(text string) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return maxExpiry
	}
	return min(time.Duration(n)*time.Second, maxExpiry)
}

// binding returns the binding of a contact.
func (s *Server) binding(r *sip.Request, f flow, c fabric.SIPCredential, to contact) binding {
	return binding{ID: uuid.NewString(), Credential: c.ID, Secret: session.Digest(c.Secrets), Contact: to.uri,
		CallID: r.CallID().Value(), CSeq: r.CSeq().SeqNo, Node: s.c.Node, TCP: f.tcp != nil, Remote: f.remote,
		Until: time.Now().Add(to.expires).UnixMicro()}
}

var errOutdated = errors.New("a newer request has changed the binding")

// bind adds, renews or removes a binding. The oldest ones give way if there are too many.
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

// limit removes the oldest of the matching bindings beyond most.
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

// headers lists the bindings of credentials, with the time that is left.
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

// socketID returns the id of a binding's socket, from which any node finds the binding.
func socketID(subscriber, binding string) string { return subscriber + "/" + binding }

// Phones returns the phones that ring for a subscriber, for [calls.Config].
func (s *Server) Phones(ctx context.Context, projectID, subscriberID string) (all []calls.Phone, err error) {
	r, _, err := s.registerOf(ctx, subscriberID)
	if err != nil || r.Project != projectID {
		return nil, err
	}
	known := make(map[string]fabric.SIPCredential)
	for _, b := range slices.Backward(r.Bindings) {
		c, ok := known[b.Credential]
		if !ok {
			c, err = s.c.Fabric.SIP.FindAccount(ctx, projectID, subscriberID, b.Credential)
			if err != nil && !errors.Is(err, problem.NotFound) {
				return nil, err
			}
			known[b.Credential] = c
		}

		if c.ID == "" || session.Digest(c.Secrets) != b.Secret {
			continue // deleted, disabled or with another password since
		}
		node := b.Node
		if s.c.Alone {
			node = s.c.Node // this process may have started after the registration
		}
		all = append(all, calls.Phone{Codecs: codecsOf(c),
			Socket: calls.Socket{Node: node, ID: socketID(subscriberID, b.ID), Phone: b.Remote.Addr()}})
	}
	return all, nil
}

// codecsOf returns the codecs of credentials by their names in SDP.
func codecsOf(c fabric.SIPCredential) (names []string) {
	for _, name := range c.Codecs() {
		switch name, _, _ = strings.Cut(name, "@"); name {
		case "OPUS":
			names = append(names, "opus")
		case "G722", "PCMU", "PCMA":
			names = append(names, name)
		}
	}
	return names
}

// findBinding returns the binding of a socket and the way to its phone.
func (s *Server) findBinding(ctx context.Context, id string) (b binding, f flow, err error) {
	subscriber, name, _ := strings.Cut(id, "/")
	r, _, err := s.registerOf(ctx, subscriber)
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
		if f.tcp == nil {
			return b, f, problem.NoSuch("connection")
		}
	}
	return b, f, nil
}
