package sip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"
	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// newBinding returns the binding that a REGISTER requests for a contact.
func (s *Server) newBinding(r *sip.Request, f flow, c fabric.SIPCredential, to contact) binding {
	b := binding{
		ID:         uuid.NewString(),
		Credential: c.ID,
		Secret:     session.Digest(c.Secrets),
		Contact:    to.uri,
		CallID:     r.CallID().Value(),
		CSeq:       r.CSeq().SeqNo,
		Node:       s.c.Node,
		TCP:        f.tcp != nil,
		Remote:     f.remote,
		Until:      time.Now().Add(to.expires).UnixMicro(),
	}
	if domain := r.To().Address.Host; len(domain) <= maxField {
		b.Domain = domain
	}
	if f.tcp != nil {
		b.Stream = f.tcp.id
	}
	return b
}

var errOutdated = errors.New("a newer request has changed the binding")

// bind adds or renews a binding. If expires is 0, it removes the binding. If the register has too
// many bindings, bind removes the oldest bindings. It returns errOutdated if a newer request has
// changed the binding.
func (r *register) bind(b binding, expires time.Duration) error {
	i := slices.IndexFunc(r.Bindings, func(other binding) bool {
		return other.Credential == b.Credential && other.Contact == b.Contact
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
	r.limit(maxBindings, func(other binding) bool { return other.Credential == b.Credential })
	r.limit(maxContacts, func(binding) bool { return true })
	return nil
}

// streamOf returns the id of the TCP connection in the binding of a contact, or "".
func (r *register) streamOf(credential, contact string) string {
	i := slices.IndexFunc(r.Bindings, func(b binding) bool {
		return b.Credential == credential && b.Contact == contact
	})
	if i < 0 {
		return ""
	}
	return r.Bindings[i].Stream
}

// limit removes the oldest matching bindings until their number is at most the parameter most.
func (r *register) limit(most int, matches func(binding) bool) {
	excess := -most
	for _, b := range r.Bindings {
		if matches(b) {
			excess++
		}
	}
	for range max(excess, 0) {
		oldest := slices.IndexFunc(r.Bindings, matches)
		r.Bindings = slices.Delete(r.Bindings, oldest, oldest+1)
	}
}

// headers returns a Contact header with the remaining time for each binding of the credentials.
func (r register) headers(credential string) (contacts []sip.Header) {
	now := time.Now()
	for _, b := range r.Bindings {
		if b.Credential != credential {
			continue
		}
		left := time.UnixMicro(b.Until).Sub(now).Round(time.Second)
		text := fmt.Sprintf("<%s>;expires=%d", b.Contact, int(left.Seconds()))
		contacts = append(contacts, sip.NewHeader("Contact", text))
	}
	return contacts
}

// socketID returns the id of a binding's socket. Every node can find the binding by this id.
func socketID(owner, binding string) string { return owner + "/" + binding }

// Phones returns the phones that ring for a subscriber or SIP endpoint. Set it as Phones in
// [calls.Config].
func (s *Server) Phones(ctx context.Context, projectID, owner string) (phones []calls.Phone, err error) {
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
			continue // the credentials were deleted or disabled, or have a new password
		}
		node := b.Node
		if s.c.Alone {
			node = s.c.Node // this process may have started after the registration
		}
		phones = append(phones, calls.Phone{
			Codecs: codecsOf(c),
			Socket: calls.Socket{
				Node:       node,
				ID:         socketID(owner, b.ID),
				Phone:      b.Remote.Addr(),
				Endpoint:   c.EndpointID != "",
				Credential: c.ID,
				SRTP:       srtpOf(c.MustEncrypt(), c.Ciphers()),
			},
		})
	}
	return phones, nil
}

// codecsOf returns the codecs that the credentials permit, by their names in SDP.
func codecsOf(c fabric.SIPCredential) []string { return codecNames(c.Codecs()) }

// srtpOf converts fields of the API to the rules for encryption. The API names one suite after a
// draft, with tags of 8 bytes. RFC 7714 defines only the suite with tags of 16 bytes.
func srtpOf(required bool, ciphers []string) calls.SRTP {
	suites := strings.Join(ciphers, " ")
	return calls.SRTP{Required: required, Suites: strings.Replace(suites, "AEAD_AES_256_GCM_8", "AEAD_AES_256_GCM", 1)}
}

// codecNames converts names of codecs in the API to names in SDP.
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
	if b.TCP || f.udp == nil {
		s.mu.Lock()
		f.udp, f.tcp = nil, s.streams[b.Remote]
		s.mu.Unlock()
		if f.tcp == nil || f.tcp.id != b.Stream { // another client may have taken over the address
			return b, f, problem.NoSuch("connection")
		}
	}
	return b, f, nil
}
