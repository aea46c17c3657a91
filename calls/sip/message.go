package sip

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/calls"
)

// parser parses messages. It is safe for concurrent use.
var parser = sip.NewParser()

// Headers of the server's messages.
var (
	allow     = sip.NewHeader("Allow", "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, REFER")
	userAgent = sip.NewHeader("User-Agent", "selvage")
	sdpType   = sip.NewHeader("Content-Type", "application/sdp")
)

var errIncomplete = errors.New("the message lacks a required header")

// parse parses a message. It returns an error if the message lacks a mandatory header (RFC 3261,
// section 8.1.1), or if an identifier is too long.
func parse(b []byte) (sip.Message, error) {
	m, err := parser.ParseSIP(b)
	if err != nil {
		return nil, err
	}
	via, from, id := m.Via(), m.From(), m.CallID()
	if via == nil || from == nil || id == nil || m.To() == nil || m.CSeq() == nil || len(*id) > maxField {
		return nil, errIncomplete
	}
	branch, _ := via.Params.Get("branch")
	for _, identifier := range []string{branch, tagOf(from.Params)} {
		if identifier == "" || len(identifier) > maxField {
			return nil, errIncomplete
		}
	}
	return m, nil
}

func tagOf(p sip.HeaderParams) string {
	tag, _ := p.Get("tag")
	return tag
}

// receive handles a message. It runs in the goroutine that reads the socket.
func (s *Server) receive(b []byte, f flow) {
	defer s.recoverPanic()
	m, err := parse(b)
	if err != nil {
		s.counters.malformed.Add(1)
		return
	}
	m.SetSource(f.remote.String())
	if r, ok := m.(*sip.Response); ok {
		s.receiveResponse(r, f)
		return
	}

	r := m.(*sip.Request)
	f = responsePath(r.Via(), f)
	slots := s.workers
	earlier, done, ok := allDialogs{s}.orderOf(r, f).enter(func(waits bool) bool {
		if waits { // the request needs no worker yet
			slots = s.waiting
		}
		select {
		case slots <- struct{}{}:
			return true
		default:
			return false
		}
	})
	if !ok {
		s.counters.limited.Add(1)
		return // the phone repeats the request
	}
	go func() {
		defer done()
		<-earlier
		if slots == s.waiting {
			s.workers <- struct{}{}
			<-s.waiting
		}
		defer func() { <-s.workers }()
		defer s.recoverPanic()
		s.handle(r, f)
	}()
}

// recoverPanic recovers from a panic caused by a message, so that the process continues.
func (s *Server) recoverPanic() {
	if cause := recover(); cause != nil {
		s.log.Error("handling a SIP message", "error", fmt.Errorf("panic: %v", cause))
	}
}

// receiveResponse passes a response to the transaction of its request. It drops responses that do
// not come from the address to which the request was sent.
func (s *Server) receiveResponse(r *sip.Response, f flow) {
	s.counters.answered.add(r.StatusCode)
	branch, _ := r.Via().Params.Get("branch")
	s.mu.Lock()
	t := s.sent[sentKey{branch, r.CSeq().MethodName}]
	s.mu.Unlock()
	if t != nil && t.flow.source() == f.source() {
		go func() {
			defer s.recoverPanic()
			t.receive(r)
		}()
	}
}

// handleFor limits how long a request may wait for the database.
const handleFor = 10 * time.Second

// handle handles a request.
func (s *Server) handle(r *sip.Request, f flow) {
	ctx, cancel := context.WithTimeout(context.Background(), handleFor)
	defer cancel()
	switch {
	case r.Method == sip.ACK:
		s.handleACK(r, f)
	case r.Method == sip.CANCEL:
		s.handleCancel(r, f)
	case tagOf(r.To().Params) != "":
		s.handleInDialog(r, f)
	case r.Method == sip.REGISTER:
		s.handleOnce(r, f, func() { s.handleRegister(ctx, r, f) })
	case r.Method == sip.INVITE:
		s.handleOnce(r, f, func() { s.handleInvite(ctx, r, f) })
	case s.answersTo(f):
		s.answerOutside(r, f)
	}
}

// answerOutside answers a request outside a call, other than INVITE and REGISTER. For example, phones
// send SUBSCRIBE, and repeat it if they get no answer.
func (s *Server) answerOutside(r *sip.Request, f flow) {
	switch r.Method {
	case sip.OPTIONS:
		s.reply(r, f, 200, "OK", allow)
	case sip.BYE, sip.INFO, sip.UPDATE, sip.REFER:
		s.reply(r, f, 481, "Call/Transaction Does Not Exist")
	default:
		s.reply(r, f, 405, "Method Not Allowed", allow)
	}
}

// answersTo reports whether the sender of a request outside a call gets an answer without
// authentication. This is the case for registered phones and for gateways. Many gateways send no
// calls to a server that does not answer OPTIONS.
func (s *Server) answersTo(f flow) bool {
	if s.isRegistered(f) {
		return true
	}
	registered, _ := s.registeredAt(f.source(), "")
	if len(registered) == 0 && !s.isGateway(f.source()) {
		return false
	}
	return f.udp == nil || s.rates.allowAnswer(networkOf(f.source()), time.Now())
}

// reply sends a response without creating a transaction.
func (s *Server) reply(r *sip.Request, f flow, status int, reason string, headers ...sip.Header) {
	s.counters.sent.add(status)
	f.write([]byte(response(r, status, reason, nil, headers...).String()))
}

// rejectUnknown answers a request for an unknown call. Strangers get no answer, so that scanners
// find nothing.
func (s *Server) rejectUnknown(r *sip.Request, f flow) {
	if s.rates.isProven(networkOf(f.source())) {
		s.reply(r, f, 481, "Call/Transaction Does Not Exist")
	}
}

// response returns a response to a request. If body is not nil, it is a media description.
func response(r *sip.Request, status int, reason string, body []byte, headers ...sip.Header) *sip.Response {
	resp := sip.NewResponseFromRequest(r, status, reason, nil)
	for _, h := range headers {
		resp.AppendHeader(h)
	}
	if body != nil {
		resp.AppendHeader(sdpType)
		resp.SetBody(body)
	}
	return resp
}

// challenge asks the sender of a request to authenticate with any of the algorithms. stale means
// that the credentials were right, but the nonce was no longer valid. Over UDP, challenge sends
// nothing if the sender's network has received too many answers.
func (s *Server) challenge(r *sip.Request, f flow, stale bool) {
	if f.udp != nil && !s.rates.allowAnswer(networkOf(f.source()), time.Now()) {
		s.counters.limited.Add(1)
		return
	}
	nonce := s.nonces.issue(f.source(), time.Now())
	var headers []sip.Header
	for _, algorithm := range s.c.Digests {
		text := fmt.Sprintf(`Digest realm="%s", nonce="%s", algorithm=%s, qop="auth"`, realm, nonce, algorithm)
		if stale {
			text += ", stale=true"
		}
		headers = append(headers, sip.NewHeader("WWW-Authenticate", text))
	}
	s.reply(r, f, 401, "Unauthorized", headers...)
}

// answers returns the credentials in a request. If the request has several Authorization headers, it
// returns the credentials with the best algorithm.
func answers(r *sip.Request) (best credentials, ok bool) {
	for _, h := range r.GetHeaders("authorization") {
		c, valid := parseCredentials(h.Value())
		if valid && (!ok || c.algorithm == "SHA-256") {
			best, ok = c, true
		}
	}
	return best, ok
}

// isFor reports whether the credentials are for the URI of the request. Parameters may differ,
// because phones may leave them out.
func (c credentials) isFor(r *sip.Request) bool {
	var u sip.Uri
	return sip.ParseUri(c.uri, &u) == nil && u.User == r.Recipient.User && strings.EqualFold(u.Host, r.Recipient.Host)
}

// newRequest returns a request to a phone, without the headers that identify the dialog.
func (s *Server) newRequest(method sip.RequestMethod, to sip.Uri, f flow) *sip.Request {
	r := sip.NewRequest(method, to)
	r.AppendHeader(&sip.ViaHeader{
		ProtocolName:    "SIP",
		ProtocolVersion: "2.0",
		Transport:       f.network(),
		Host:            s.hostFor(f),
		Port:            s.portFor(f),
		Params:          sip.HeaderParams{{K: "branch", V: sip.RFC3261BranchMagicCookie + rand.Text()}, {K: "rport"}},
	})
	forwards := sip.MaxForwardsHeader(70)
	r.AppendHeader(&forwards)
	return r
}

// hostFor returns the host at which the phone can reach the server, or 0.0.0.0 if it is unknown.
func (s *Server) hostFor(f flow) string {
	a := s.c.AddressFor(f.source())
	if !a.IsValid() {
		a = netip.IPv4Unspecified()
	}
	return a.String()
}

// portFor returns the port at which the phone can reach the server. If a connection to a gateway
// uses TLS, but the server does not serve TLS, portFor returns the port of TCP.
func (s *Server) portFor(f flow) int {
	if f.isSecure() && s.ports.secure != 0 || s.ports.plain == 0 {
		return s.ports.secure
	}
	return s.ports.plain
}

// contactFor returns a Contact header with the server's address. The phone sends requests within a
// dialog to this address.
func (s *Server) contactFor(f flow) sip.Header {
	u := sip.Uri{Scheme: "sip", User: "selvage", Host: s.hostFor(f), Port: s.portFor(f)}
	switch {
	case f.isSecure() && s.ports.secure != 0:
		u.UriParams = sip.HeaderParams{{K: "transport", V: "tls"}}
	case f.tcp != nil:
		u.UriParams = sip.HeaderParams{{K: "transport", V: "tcp"}}
	}
	return &sip.ContactHeader{Address: u}
}

// acknowledgment returns the ACK for a response that refuses an INVITE, in the same transaction.
func acknowledgment(invite *sip.Request, r *sip.Response) *sip.Request {
	ack := sip.NewRequest(sip.ACK, invite.Recipient)
	copyHeaders(invite, ack, "via", "route", "max-forwards", "from", "call-id")
	ack.AppendHeader(sip.HeaderClone(r.To()))
	ack.AppendHeader(&sip.CSeqHeader{SeqNo: invite.CSeq().SeqNo, MethodName: sip.ACK})
	ack.SetBody(nil)
	return ack
}

// cancellation returns the CANCEL for an INVITE (RFC 3261, section 9.1).
func cancellation(invite *sip.Request, reason sip.Header) *sip.Request {
	r := sip.NewRequest(sip.CANCEL, invite.Recipient)
	copyHeaders(invite, r, "via", "route", "max-forwards", "from", "to", "call-id")
	r.AppendHeader(&sip.CSeqHeader{SeqNo: invite.CSeq().SeqNo, MethodName: sip.CANCEL})
	r.AppendHeader(reason)
	r.SetBody(nil)
	return r
}

func copyHeaders(from, to *sip.Request, names ...string) {
	for _, name := range names {
		for _, h := range from.GetHeaders(name) {
			to.AppendHeader(sip.HeaderClone(h))
		}
	}
}

// routeSet returns the Route headers for requests within a dialog. They name the proxies between
// the server and the phone (RFC 3261, section 12.1).
func routeSet(m sip.Message) (routes []sip.Header) {
	for _, h := range m.GetHeaders("record-route") {
		routes = append(routes, sip.NewHeader("Route", h.Value()))
	}
	return routes
}

// contactOf returns the first contact in a message, or nil.
func contactOf(m sip.Message) *sip.ContactHeader {
	for _, h := range m.GetHeaders("contact") {
		if c, ok := h.(*sip.ContactHeader); ok && !c.Address.Wildcard {
			return c
		}
	}
	return nil
}

// userOf returns the user in a party's SIP URI: the last part of the party's address, escaped, or
// "anonymous" if that is empty.
func userOf(p calls.Party) string {
	name := p.Address[strings.LastIndexByte(p.Address, '/')+1:]
	if name == "" {
		return "anonymous"
	}
	return escapeUser(name)
}

// escapeUser escapes a name for the user part of a SIP URI. It does not escape the plus sign of a
// number, which is permitted there, because phones would display the escaped form.
func escapeUser(name string) string {
	var b strings.Builder
	for i := range len(name) { // RFC 3261, section 25.1: unreserved, and the plus sign
		if c := name[i]; isAlphanumeric(c) || strings.IndexByte("-_.!~*'()+", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// displayName replaces the characters in name that quoted strings do not permit.
func displayName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '"' || r == '\\' || r == 0x7f {
			return ' '
		}
		return r
	}, name)
}

// isSDP reports whether the body of a message is a media description.
func isSDP(m sip.Message) bool {
	h := m.GetHeaders("content-type")
	if len(h) == 0 || len(m.Body()) == 0 {
		return false
	}
	kind, _, _ := strings.Cut(h[0].Value(), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/sdp")
}

// requires returns an extension that a request requires, or "". The server supports no extensions.
func requires(r *sip.Request) string {
	for _, h := range r.GetHeaders("require") {
		for name := range strings.SplitSeq(h.Value(), ",") {
			name = strings.TrimSpace(name)
			if name != "" {
				return name
			}
		}
	}
	return ""
}
