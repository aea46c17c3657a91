package sip

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"net/url"
	"slices"
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
	to      string          // the dialed address; "" if the INVITE of a phone names it
	gateway *fabric.Gateway // nil if the caller is not a gateway

	// The phone belongs to a SIP endpoint whose call handler cannot be called, so the phone can call nobody.
	isBarred bool

	// The call comes from a small network of the gateway or SIP address, or from a gateway at which the
	// server has registered.
	fromNetwork bool

	// For calls to a SIP address.
	provedPassword bool
	wrongFor       string // the id of the SIP address for which the password was wrong, or ""
}

// outsiders admits callers that are not registered: gateways, and strangers who call SIP addresses.
type outsiders struct{ *Server }

// admitOutsider reports whether a caller from outside may begin another call. It records that the
// caller was identified, so that its network and connection are kept.
func (s outsiders) admitOutsider(c caller, r *sip.Request, f flow) bool {
	if c.gateway != nil {
		return s.admitGateway(c, r, f)
	}

	// Callers of SIP addresses have the same limit as phones that share a set of credentials.
	if !s.accounts.allow(c.client.Token.KeyID, time.Now()) {
		s.counters.limited.Add(1)
		return false
	}
	if c.provedPassword {
		s.prove(f)
		return true
	}
	if f.tcp != nil && c.fromNetwork { // over TCP, the source is not forged
		f.tcp.keep()
		return true
	}
	if f.tcp != nil && !s.keep(f) { // the network does not count as authenticated
		s.refuse(r, f)
		return false
	}
	return true
}

// countWrongPassword counts a wrong password for the SIP address with the given id. After too many
// wrong passwords for it from a network, calls from that network to the SIP address are denied
// without checking the password, no matter which username they use.
func (s outsiders) countWrongPassword(ctx context.Context, id string, f flow) {
	network := networkOf(f.source())
	err := s.c.Limits.Take(ctx, limit.SIPPerUser, network.String()+" "+id)
	if err == nil {
		return
	}
	s.blocked.add(blockKey{network, id}, time.Now(), blockFor(err))
	if errors.Is(err, problem.RateLimited) {
		s.log.Warn("too many wrong passwords for a SIP address", "network", network, "sip_address_id", id)
		return
	}
	s.log.Error("counting a wrong password for a SIP address", "sip_address_id", id, "error", err)
}

// identify returns the caller of an INVITE from outside. If the INVITE is not from outside or must
// not be accepted, ok is false. The server then treats it like an INVITE from an unknown phone.
// Even then, the caller's field wrongFor is valid.
func (s outsiders) identify(ctx context.Context, r *sip.Request, f flow) (c caller, ok bool, err error) {
	sendsPassword := len(r.GetHeaders("authorization")) > 0
	if sendsPassword {
		return s.callerOfSIPAddress(ctx, r, f)
	}
	c, ok, err = s.callerFromGateway(ctx, r, f)
	if err != nil {
		return caller{}, false, err
	}
	if ok {
		return c, true, nil
	}
	return s.callerOfSIPAddress(ctx, r, f)
}

// allowQuery counts an INVITE from a stranger, and reports whether the server may query the store
// for the INVITE. Each network may cause only a limited number of queries over UDP.
func (s outsiders) allowQuery(f flow) bool {
	return f.udp == nil || s.rates.allowAnswer(networkOf(f.source()), time.Now())
}

// callerFromGateway returns the caller of an INVITE from a gateway, if the gateway's project has the
// number. Any project may claim that its gateways are in a network. Therefore, the number is looked
// up first, and only once.
func (s outsiders) callerFromGateway(ctx context.Context, r *sip.Request, f flow) (caller, bool, error) {
	registered, isOurContact := s.registeredAt(f.source(), r.Recipient.User)
	dialed := r.Recipient
	if isOurContact {
		dialed = r.To().Address // the recipient is our Contact, and does not name the number
	}

	number, ok := gatewayNumber(dialed)
	if !ok {
		return caller{}, false, nil
	}
	isKnown := len(registered) > 0 || s.isGateway(f.source())
	if !isKnown && !s.rates.allowNewGateway(time.Now()) {
		return caller{}, false, nil
	}
	if !s.allowQuery(f) {
		return caller{}, false, nil
	}

	to, err := s.c.Fabric.PhoneNumbers.AddressFor(ctx, number)
	if err != nil {
		return caller{}, false, problem.IgnoreNotFound(err)
	}

	gateway, err := s.c.Fabric.Gateways.FindAt(ctx, to.ProjectID, f.source(), registered, f.isSecure())
	if err != nil {
		return caller{}, false, problem.IgnoreNotFound(err)
	}

	from := anonymous
	if number, ok := gatewayNumber(r.From().Address); ok && !withholdsCaller(r) {
		from = calls.Party{Address: number, Name: number}
	}
	c := s.newCaller(f, to, gateway.ID, from)
	c.client.Socket.Gateway = true
	c.client.Socket.SRTP = srtpOf(gateway.Encrypted, gateway.Ciphers)
	c.gateway = &gateway
	c.fromNetwork = registered[gateway.ID] || isInSmall(gateway.Networks, f.source())
	return c, true, nil
}

// gatewayNumber returns the phone number in a gateway's URI, which is a SIP URI or a tel URI (RFC
// 3966). Many gateways omit the plus sign of international numbers. Some escape it.
func gatewayNumber(u sip.Uri) (string, bool) {
	user := u.User
	if u.Scheme == "tel" {
		user = u.Raw()
	}
	if plain, err := url.PathUnescape(user); err == nil {
		user = plain
	}
	user, parameters, _ := strings.Cut(user, ";")
	if !strings.HasPrefix(user, "+") {
		prefix, ok := phoneContext(parameters)
		if !ok {
			return "", false
		}
		user = prefix + user
	}
	if number, ok := fabric.ParseNumber(user); ok {
		return number, true
	}
	onlyDigits := user != "" && strings.Trim(user, "0123456789") == ""
	if !onlyDigits {
		return "", false
	}
	return fabric.ParseNumber("+" + user)
}

// phoneContext returns the prefix of a local number, such as "+4930", from the parameters of its URI
// (RFC 3966, section 5.1.5). It returns "" if the number is not local. If the number is local to a
// domain, which is not a prefix, ok is false.
func phoneContext(parameters string) (prefix string, ok bool) {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if strings.EqualFold(name, "phone-context") {
			return value, strings.HasPrefix(value, "+")
		}
	}
	return "", true
}

// callerOfSIPAddress returns the caller of an INVITE to a SIP address, if the address's networks and
// password permit the call. If an address has neither networks nor a password, anyone may call it,
// but only over TCP. The source of a UDP packet may be forged, and a victim would then receive the
// responses and the media.
func (s outsiders) callerOfSIPAddress(ctx context.Context, r *sip.Request, f flow) (caller, bool, error) {
	name, domain, _ := strings.Cut(strings.ToLower(r.Recipient.Host), ".")
	if domain == "" || domain != s.c.Fabric.SIP.Domain() {
		return caller{}, false, nil
	}
	if len(name) > maxField || len(r.Recipient.User) > maxField {
		return caller{}, false, nil
	}
	if !s.allowQuery(f) {
		return caller{}, false, nil
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
	hasPassword := password != ""
	isOpen := !hasPassword && !a.Limited()
	if isOpen && f.udp != nil || !a.Accepts(f.source()) {
		return caller{}, false, nil
	}

	if hasPassword {
		switch s.checkPassword(r, f, a.ID, password) {
		case passwordWrong:
			return caller{wrongFor: a.ID}, false, nil
		case passwordUnproven:
			return caller{}, false, nil
		}
	}

	to, err := s.c.Fabric.SIP.Target(ctx, a)
	if err != nil {
		return caller{}, false, problem.IgnoreNotFound(err)
	}
	uri := toPrintable(r.From().Address.User + "@" + r.From().Address.Host)
	from := calls.Party{Address: "sip:" + uri, Name: cmp.Or(toPrintable(r.From().DisplayName), uri)}
	if withholdsCaller(r) {
		from = anonymous
	}
	c := s.newCaller(f, to, a.ID, from)
	c.provedPassword = hasPassword
	c.fromNetwork = a.Limited() && isInSmall(a.Networks(), f.source())
	c.client.Socket.Claimed = !hasPassword && f.udp != nil
	c.client.Socket.SRTP = srtpOf(a.Encrypted(), a.Ciphers())
	return c, true, nil
}

// isInSmall reports whether an address is in one of the given networks, and this network is so small
// that it may belong to a single customer.
func isInSmall(networks []netip.Prefix, from netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool {
		return n.Contains(from) && n.Bits() >= limit.RangeOf(from).Bits()
	})
}

// A passwordResult is what a request proves about a password.
type passwordResult int

const (
	passwordUnproven passwordResult = iota // no valid answer to a challenge, or blocked
	passwordWrong
	passwordRight
)

// checkPassword checks whether a request proves that its sender knows the password of the SIP
// address with the given id. The sender may use any username. checkPassword uses up the request's
// nonce count, so that nobody can repeat the request.
func (s outsiders) checkPassword(r *sip.Request, f flow, id, password string) passwordResult {
	now := time.Now()
	if s.isBlocked(f) || s.blocked.has(blockKey{networkOf(f.source()), id}, now) {
		return passwordUnproven
	}
	c, ok := answers(r)
	if !ok || !c.isFor(r) || c.realm != realm || c.qop != "auth" {
		return passwordUnproven
	}
	nonce, ok := s.nonces.open(c.nonce, f.source())
	if !ok {
		return passwordUnproven
	}
	if !c.proves(password, string(r.Method)) {
		return passwordWrong
	}
	if !s.nonces.use(id, nonce, c.nc, now) {
		return passwordUnproven
	}
	return passwordRight
}

// newCaller returns a caller that reaches only the given address. id is the id of the gateway or
// SIP address. All callers with the same id share their limits.
func (s outsiders) newCaller(f flow, to fabric.Address, id string, from calls.Party) caller {
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

// toPrintable returns at most maxShown characters of a text. It removes characters that change how
// other characters are displayed.
func toPrintable(text string) string {
	var kept []rune
	for _, r := range text {
		if unicode.IsPrint(r) && len(kept) < maxShown {
			kept = append(kept, r)
		}
	}
	return strings.TrimSpace(string(kept))
}

// knows reports whether requests within the dialog may come from an address. Gateways may send
// requests from any of their networks.
func (d *dialog) knows(from netip.Addr) bool {
	return d.flow.source() == from || d.gateway != nil && d.gateway.Accepts(from)
}
