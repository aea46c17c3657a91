package sip

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// ringGateway sends the invitation e to a gateway.
func (s trunks) ringGateway(to calls.Socket, e calls.Event) {
	id, _, _ := strings.Cut(to.ID, "/")
	d := &dialog{
		server: s.Server,
		key:    dialogKey{rand.Text() + "@selvage", newTag()},
		leg:    e.Leg,
		node:   e.Node,
		sdp:    e.SDP,
		client: calls.Client{
			Socket: to,
			Token: fabric.Token{
				Kind:      fabric.Guest,
				ID:        id,
				KeyID:     id,
				ProjectID: e.Project,
				IssuedAt:  time.Now(),
			},
		},
	}

	if s.add(d) {
		go func() {
			defer s.recoverPanic()
			if err := d.startAtGateway(to.ID, e); err != nil {
				s.log.Warn("calling through a SIP gateway", "gateway_id", id, "leg_id", e.Leg, "error", err)
				if d.finish() {
					d.hangUp(calls.Fail, calls.UserNotRegistered)
				}
			}
		}()
	}
}

// startAtGateway sends the INVITE, unless the call has ended in the meantime.
func (d *dialog) startAtGateway(socket string, e calls.Event) error {
	s := d.server
	ctx, cancel := context.WithTimeout(context.Background(), handleFor)
	defer cancel()
	id, rest, _ := strings.Cut(socket, "/")
	where, user, _ := strings.Cut(rest, "/")
	at, err := netip.ParseAddrPort(where)
	if err != nil {
		return err // cannot happen: Trunk has formatted the address
	}
	g, err := s.c.Fabric.Gateways.Find(ctx, e.Project, id)
	if err != nil {
		return err
	}
	f, err := trunks{s}.reach(ctx, g, at, &d.tried)
	if err != nil {
		return err
	}
	if d.client.Socket.SRTP.Required && !f.isSecure() {
		return errEncryption // the gateway has changed since Trunk was called
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return nil
	}
	d.flow = f
	d.gateway = &g
	d.remote = gatewayURI(g, user)
	d.uri = "<" + d.remote.String() + ">"
	d.from = &sip.FromHeader{
		Address: sip.Uri{Scheme: "sip", User: callerFor(g, e.From), Host: uriHost(g.Host)},
		Params:  sip.HeaderParams{{K: "tag", V: d.key.tag}},
	}
	if isHidden(e.From) {
		d.hideCaller()
	}
	d.sendInvite(nil)
	return nil
}

// reopen opens another connection to the gateway of a call whose connection has been closed.
func (d *dialog) reopen() error {
	ctx, cancel := context.WithTimeout(context.Background(), handleFor)
	defer cancel()
	former := d.path()
	f, err := d.reach(ctx, former)
	if err != nil {
		return err
	}
	if former.isSecure() && !f.isSecure() {
		return errEncryption
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flow = f
	return nil
}

// reach connects to the gateway of a call. former is the path so far. If the gateway began the call,
// reach connects to the gateway's host instead, because nothing may listen at the port of former.
func (d *dialog) reach(ctx context.Context, former flow) (flow, error) {
	s := trunks{d.server}
	if d.received != nil {
		return s.reachOther(ctx, *d.gateway, netip.AddrPort{}, new([]netip.AddrPort))
	}
	return s.flowTo(ctx, *d.gateway, former.remote)
}

// callerFor returns the user in the From header of a call. The header never contains the caller's
// name.
func callerFor(g fabric.Gateway, from calls.Party) string {
	switch {
	case g.CallerID != "":
		return g.CallerID
	case strings.HasPrefix(from.Address, "+"):
		return from.Address
	}
	return userOf(from)
}

// gatewayURI returns the URI of a user at a gateway.
func gatewayURI(g fabric.Gateway, user string) sip.Uri {
	u := sip.Uri{Scheme: "sip", User: user, Host: uriHost(g.Host), Port: int(g.Port)}
	if g.Transport != "udp" {
		u.UriParams = sip.HeaderParams{{K: "transport", V: g.Transport}}
	}
	return u
}

// uriHost formats a host for a URI.
func uriHost(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// reauthorize repeats the INVITE with the gateway's credentials if the response r requests them. It
// reports whether it repeated the INVITE.
func (d *dialog) reauthorize(r *sip.Response) bool {
	h, ok := d.answerFor(r, sip.INVITE)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !ok || d.authorized || d.over {
		return false
	}
	d.authorized = true
	d.heard = false // a CANCEL must wait for a response to the new INVITE
	d.sendInvite(h)
	return true
}

// logDenial logs that a gateway denies a request. Usually, the gateway does not accept the password, or
// has a fault. Only the operator can correct this. The response r is nil if the gateway did not answer.
func (d *dialog) logDenial(r *sip.Response) {
	if d.gateway == nil || r == nil {
		return
	}
	isFault := r.StatusCode >= 500 && r.StatusCode < 600
	if slices.Contains([]int{401, 403, 407}, r.StatusCode) || isFault {
		d.server.log.Warn("a SIP gateway denies a request", "gateway_id", d.gateway.ID, "host",
			addressOfGateway(*d.gateway), "leg_id", d.leg, "method", r.CSeq().MethodName, "status", r.StatusCode)
	}
}

// answerFor returns the header with the gateway's credentials if the response r requests them. ok
// is false if r is nil or not a challenge. ok is also false in calls from a gateway, because they
// may come from addresses other than that of the gateway's host.
func (d *dialog) answerFor(r *sip.Response, method sip.RequestMethod) (h sip.Header, ok bool) {
	if d.gateway == nil || d.received != nil {
		return nil, false
	}
	if r == nil || challenges[r.StatusCode] == [2]string{} {
		return nil, false
	}
	d.mu.Lock()
	uri := d.remote.String()
	d.mu.Unlock()
	return answerChallenge(r, method, uri, d.gateway.Username, d.gateway.Password)
}

// challenges contains the response codes that request credentials. Its values are the headers of
// the challenge and of the answer (RFC 3261, section 22).
var challenges = map[int][2]string{
	401: {"www-authenticate", "Authorization"},
	407: {"proxy-authenticate", "Proxy-Authorization"},
}

// answerChallenge returns the header that answers the best challenge in a response (RFC 7616). ok
// is false if the gateway has no credentials, or if no challenge can be answered.
func answerChallenge(r *sip.Response, method sip.RequestMethod, uri, user, password string) (h sip.Header, ok bool) {
	names := challenges[r.StatusCode]
	best := credentials{}
	for _, header := range r.GetHeaders(names[0]) {
		c, known := parseChallenge(header.Value())
		if known && (best.nonce == "" || c.algorithm == "SHA-256") {
			best = c
		}
	}
	if user == "" || best.nonce == "" || strings.ContainsAny(best.realm+best.nonce+best.opaque, "\r\n\"\\") {
		return nil, false
	}

	sum := algorithms[best.algorithm]
	secret, request := digest(sum, user, best.realm, password), digest(sum, string(method), uri)
	text := fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s", algorithm=%s`,
		user, best.realm, best.nonce, uri, best.algorithm)
	if best.opaque != "" {
		text += fmt.Sprintf(`, opaque="%s"`, best.opaque)
	}
	if best.qop == "" { // RFC 2069
		text += fmt.Sprintf(`, response="%s"`, digest(sum, secret, best.nonce, request))
	} else {
		cnonce := rand.Text()
		text += fmt.Sprintf(`, qop=auth, nc=00000001, cnonce="%s", response="%s"`, cnonce,
			digest(sum, secret, best.nonce, "00000001", cnonce, "auth", request))
	}
	return sip.NewHeader(names[1], text), true
}

// parseChallenge parses a challenge. ok is false if the server cannot answer this challenge.
func parseChallenge(header string) (c credentials, ok bool) {
	c, ok = parseDigest(header)
	if c.qop != "" {
		ok = ok && hasToken(c.qop, "auth")
		c.qop = "auth"
	}
	return c, ok && c.nonce != "" && algorithms[c.algorithm] != nil
}

// hasToken reports whether a list separated by commas contains a token.
func hasToken(list, token string) bool {
	for t := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(t), token) {
			return true
		}
	}
	return false
}
