package sip

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"
	"unicode"

	"github.com/emiago/sipgo/sip"
	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
)

// There are two kinds of calls from outside: gateways call phone numbers, and anyone may call SIP
// addresses. Outside callers do not have a subscriber's credentials. Like the holder of a guest
// token, each of them reaches only one address.

// A caller is the sender of an INVITE that begins a call.
type caller struct {
	client  calls.Client
	to      string // the dialed address; "" if the INVITE of a phone names it
	gateway *fabric.Gateway
	proven  bool   // the caller proved that it knows the SIP address's password
	guessed string // the id of the SIP address for which it sent a wrong password, or ""
}

// outsiders admits callers that are not registered: gateways, and strangers who call SIP addresses.
type outsiders struct{ *Server }

// admitOutsider reports whether a caller from outside may begin another call. Callers of SIP
// addresses have the same limit as phones that share a set of credentials. Package calls limits the
// calls from gateways. A gateway above its limits gets an answer immediately, so that its requests
// do not use up the transactions. The caller's network and connection count as authenticated only
// if the caller is a gateway or has proved a password.
func (s outsiders) admitOutsider(c caller, r *sip.Request, f flow) bool {
	if c.gateway == nil && !s.accounts.allow(c.client.Token.KeyID, time.Now()) {
		s.counters.limited.Add(1)
		return false
	}
	switch {
	case c.gateway != nil || c.proven:
		s.prove(f)
	case f.tcp != nil:
		f.tcp.keep()
	}
	if c.gateway != nil && s.calls.CheckLimits(c.client) != nil {
		s.counters.limited.Add(1)
		s.reply(r, f, 503, "Service Unavailable", sip.NewHeader("Retry-After", "5"))
		return false
	}
	return true
}

// countGuess counts a wrong password for a SIP address. After too many wrong passwords for it from
// a network, calls from that network to the SIP address are denied without checking the password,
// no matter which username they use.
func (s outsiders) countGuess(ctx context.Context, c caller, f flow) {
	if c.guessed == "" {
		return
	}
	key := blockKey{networkOf(f.source()), c.guessed}
	var full *problem.Error
	if err := s.c.Limits.Take(ctx, limit.SIPPerUser, key.network.String()+" "+c.guessed); errors.As(err, &full) {
		s.blocked.add(key, time.Now().Add(max(full.RetryAfter, time.Second)))
		s.log.Warn("too many wrong passwords for a SIP address", "network", key.network, "sip_address_id", c.guessed)
	}
}

// outsider returns the caller of an INVITE from outside. If the INVITE is not from outside or must
// not be accepted, ok is false. The server then treats it like an INVITE from an unknown phone.
func (s outsiders) outsider(ctx context.Context, r *sip.Request, f flow) (c caller, ok bool, err error) {
	if len(r.GetHeaders("authorization")) == 0 {
		c, ok, err = s.fromGateway(ctx, r, f)
		if ok || err != nil {
			return c, ok, err
		}
	}
	return s.atSIPAddress(ctx, r, f)
}

// fromGateway returns the caller of an INVITE from a gateway, if the gateway's project has the
// number. Any project may claim that its gateways are in a network. Therefore, the number is looked
// up first, and only once.
func (s outsiders) fromGateway(ctx context.Context, r *sip.Request, f flow) (caller, bool, error) {
	registered, ours := s.registeredAt(f.source(), r.Recipient.User)
	user := r.Recipient.User
	if ours {
		user = r.To().Address.User
	}

	number, ok := dialedNumber(user)
	if !ok {
		return caller{}, false, nil
	}
	isKnown := len(registered) > 0 || s.isGateway(f.source())
	if !isKnown && !s.rates.allowNewGateway(time.Now()) {
		return caller{}, false, nil
	}
	if f.udp != nil && !s.rates.allowAnswer(networkOf(f.source()), time.Now()) {
		return caller{}, false, nil
	}

	to, err := s.c.Fabric.PhoneNumbers.AddressFor(ctx, number)
	if err != nil {
		return caller{}, false, problem.IgnoreNotFound(err)
	}

	g, err := s.c.Fabric.Gateways.FindAt(ctx, to.ProjectID, f.source(), registered, f.isSecure())
	if err != nil {
		return caller{}, false, problem.IgnoreNotFound(err)
	}

	from := calls.Party{Address: "anonymous", Name: "Anonymous"}
	if n, ok := dialedNumber(r.From().Address.User); ok {
		from = calls.Party{Address: n, Name: n}
	}
	c := s.callerFrom(f, to, g.ID, from)
	c.client.Socket.Gateway = true
	c.client.Socket.SRTP = srtpOf(g.Encrypted, g.Ciphers)
	c.gateway = &g
	return c, true, nil
}

// dialedNumber returns the phone number in the user part of a gateway's URI. Many gateways omit the
// plus sign of international numbers.
func dialedNumber(user string) (string, bool) {
	user, _, _ = strings.Cut(user, ";") // parameters (RFC 3966)
	if n, ok := fabric.ParseNumber(user); ok {
		return n, true
	}
	if user == "" || strings.Trim(user, "0123456789") != "" {
		return "", false
	}
	return fabric.ParseNumber("+" + user)
}

// atSIPAddress returns the caller of an INVITE to a SIP address, if the address's networks and
// password permit the call. If an address has neither networks nor a password, anyone may call it,
// but only over TCP. The source of a UDP packet may be forged, and a victim would then receive the
// responses and the media.
func (s outsiders) atSIPAddress(ctx context.Context, r *sip.Request, f flow) (caller, bool, error) {
	name, domain, _ := strings.Cut(strings.ToLower(r.Recipient.Host), ".")
	if domain == "" || domain != s.c.Fabric.SIP.Domain() {
		return caller{}, false, nil
	}
	if len(name) > maxField || len(r.Recipient.User) > maxField {
		return caller{}, false, nil
	}
	if f.udp != nil && !s.rates.allowAnswer(networkOf(f.source()), time.Now()) {
		return caller{}, false, nil // strangers may cause only a limited number of queries
	}

	a, err := s.c.Fabric.SIP.FindByHost(ctx, name, r.Recipient.User)
	if errors.Is(err, problem.Malformed) {
		return caller{}, false, nil
	}
	if err != nil {
		return caller{}, false, problem.IgnoreNotFound(err)
	}
	if a.Encrypted() && !f.isSecure() {
		return caller{}, false, nil
	}

	password, err := s.c.Fabric.SIP.Password(a)
	if err != nil {
		return caller{}, false, err
	}
	isOpen := password == "" && !a.Limited()
	if isOpen && f.udp != nil || !a.Accepts(f.source()) {
		return caller{}, false, nil
	}

	proven, wrong := s.knowsPassword(r, f, a.ID, password)
	if wrong {
		return caller{guessed: a.ID}, false, nil
	}
	if !proven {
		return caller{}, false, nil
	}

	to, err := s.c.Fabric.SIP.Target(ctx, a)
	if err != nil {
		return caller{}, false, problem.IgnoreNotFound(err)
	}
	uri := printable(r.From().Address.User + "@" + r.From().Address.Host)
	shown := printable(r.From().DisplayName)
	if shown == "" {
		shown = uri
	}
	c := s.callerFrom(f, to, a.ID, calls.Party{Address: "sip:" + uri, Name: shown})
	c.proven = password != ""
	c.client.Socket.Claimed = !c.proven && f.udp != nil
	c.client.Socket.SRTP = srtpOf(a.Encrypted(), a.Ciphers())
	return c, true, nil
}

// knowsPassword reports whether a request proves the password of a SIP address, with any username.
// It returns true if the address has no password. wrong is true if the request has a different
// password.
func (s outsiders) knowsPassword(r *sip.Request, f flow, id, password string) (ok, wrong bool) {
	if password == "" {
		return true, false
	}
	now := time.Now()
	if s.isBlocked(f) || s.blocked.has(blockKey{networkOf(f.source()), id}, now) {
		return false, false
	}
	c, ok := answers(r)
	if !ok || !c.isFor(r) || c.realm != realm || c.qop != "auth" {
		return false, false
	}
	nonce, ok := s.nonces.open(c.nonce, f.source())
	if !ok || !c.proves(password, string(r.Method)) {
		return false, ok
	}
	return s.nonces.use(id, nonce, c.nc, now), false
}

// callerFrom returns a caller that reaches only the given address. id is the id of the gateway or
// SIP address. All callers with the same id share their limits.
func (s outsiders) callerFrom(f flow, to fabric.Address, id string, from calls.Party) caller {
	return caller{
		to: to.Path(),
		client: calls.Client{
			Party:  &from,
			Socket: calls.Socket{Node: s.c.Node, ID: uuid.NewString(), Phone: f.source()},
			Token: fabric.Token{
				Kind:       fabric.Guest,
				ID:         uuid.NewString(),
				ProjectID:  to.ProjectID,
				KeyID:      id,
				Embedded:   true,
				AddressIDs: []string{to.ID},
				IssuedAt:   time.Now(),
			},
		},
	}
}

// maxShown is the maximum number of characters of a caller's name that other people see.
const maxShown = 100

// printable returns at most maxShown characters of a text. It removes characters that change how
// other characters are displayed.
func printable(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if unicode.IsPrint(r) && n < maxShown {
			b.WriteRune(r)
			n++
		}
	}
	return strings.TrimSpace(b.String())
}

// knows reports whether requests within the dialog may come from an address. Gateways may send
// requests from any of their networks.
func (d *dialog) knows(from netip.Addr) bool {
	return d.flow.source() == from || d.gateway != nil && d.gateway.Accepts(from)
}
