package sip

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/emiago/sipgo/sip"
	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// handleInvite handles an INVITE with which a phone begins a call. It authenticates the phone for
// each call, and begins the call with the phone's offer. All further responses are sent when events
// of the call arrive.
func (s *Server) handleInvite(ctx context.Context, r *sip.Request, f flow) {
	if t := s.find(r, f); t != nil {
		t.repeat()
		return
	}

	c, ok := s.callerOf(ctx, r, f)
	if !ok {
		return
	}

	t, isNew := s.serve(r, f)
	if t == nil {
		s.reply(r, f, 503, "Service Unavailable", sip.NewHeader("Retry-After", "5"))
		return
	}
	if !isNew {
		return // the same INVITE arrived twice, and the other one is being handled
	}

	if name := requires(r); name != "" {
		t.respond(response(r, 420, "Bad Extension", nil, sip.NewHeader("Unsupported", name)), nil)
		return
	}

	contact := contactOf(r)
	offer, isLate, err := offerIn(r, f, c.client.Socket)
	if err != nil || contact == nil {
		t.respond(response(r, 488, "Not Acceptable Here", nil), nil)
		return
	}
	t.respond(response(r, 100, "Trying", nil), nil)

	if c.isBarred {
		t.respond(response(r, 404, "Not Found", nil), nil)
		return
	}
	if c.to == "" {
		to, err := s.addressOf(ctx, c.client.Token.ProjectID, r.Recipient.User)
		if err != nil {
			s.log.Error("finding the address that a phone dialed", "error", err)
			t.respond(response(r, 500, "Server Internal Error", nil), nil)
			return
		}
		c.to = to
	}

	d := s.inboundDialog(r, f, c, t, contact)
	d.theirs = offer
	if isLate {
		d.unanswered = t
	}
	if !s.add(d) {
		t.respond(response(r, 503, "Service Unavailable", nil), nil)
		return
	}
	if t.isCanceled() { // before the dialog was added, so handleCancel has not found it
		d.giveUp()
		return
	}

	s.counters.inbound.Add(1)
	_, err = d.do(calls.Command{Op: calls.Invite, To: c.to, SDP: offer})
	if err != nil {
		s.remove(d)
		if d.finish() {
			t.respond(s.refusal(r, err), nil)
		}
		return
	}
	if d.isGivenUp() { // before the call began, so the call does not know this yet
		d.hangUp(calls.Hangup, calls.NormalClearing)
	}
}

// callerOf returns the caller of an INVITE. If the INVITE must not be handled, ok is false, and
// callerOf has sent the response, if any.
func (s *Server) callerOf(ctx context.Context, r *sip.Request, f flow) (c caller, ok bool) {
	outside := outsiders{s}
	outsider, ok, err := outside.identify(ctx, r, f)
	if err != nil {
		s.log.Error("finding what an outside caller dialed", "error", err)
		return caller{}, false // the caller repeats the request
	}
	if ok {
		return outsider, outside.admitOutsider(outsider, r, f)
	}

	account, ok := s.admit(ctx, r, f)
	if !ok {
		if outsider.wrongFor != "" {
			outside.countWrongPassword(ctx, outsider.wrongFor, f)
		}
		return caller{}, false
	}

	socket := calls.Socket{
		Node:  s.c.Node,
		ID:    uuid.NewString(),
		Phone: f.source(),
		SRTP:  srtpOf(account.MustEncrypt(), account.Ciphers()),
	}
	c = caller{client: clientOf(account.SIPCredential, socket)}
	if account.EndpointID != "" {
		c, err = s.endpointCaller(ctx, account.SIPCredential, socket)
	}
	if err != nil {
		s.log.Error("finding the SIP endpoint of a phone", "error", err)
		return caller{}, false // the caller repeats the request
	}
	if withholdsCaller(r) {
		c.client.Party = hidden(account.SIPCredential)
	}
	return c, true
}

// endpointCaller returns a caller whose phone registers as a SIP endpoint. The endpoint's call
// handler determines what the caller may dial.
func (s *Server) endpointCaller(
	ctx context.Context, cred fabric.SIPCredential, socket calls.Socket,
) (caller, error) {
	own, err := s.c.Fabric.SIP.AddressOf(ctx, cred)
	if err != nil {
		return caller{}, err
	}
	handler, hasHandler, err := s.c.Fabric.SIP.HandlerOf(ctx, cred)
	isBarred := errors.Is(err, problem.NotFound)
	if err != nil && !isBarred {
		return caller{}, err
	}

	socket.Endpoint = true
	client := clientOf(cred, socket)
	client.Party = &calls.Party{
		Name:      cmp.Or(cred.Fields.Text("caller_id"), own.DisplayName),
		Address:   own.Path(),
		AddressID: own.ID,
	}
	client.InsideOnly = !cred.MayCallNumbers()

	c := caller{client: client, isBarred: isBarred}
	if hasHandler {
		c.to = handler.Path()
	}
	return c, nil
}

// inboundDialog returns the dialog that an INVITE begins.
func (s *Server) inboundDialog(
	r *sip.Request, f flow, c caller, t *serverTx, contact *sip.ContactHeader,
) *dialog {
	r.To().Params.Add("tag", newTag()) // all later responses contain the tag
	d := &dialog{
		server:    s,
		key:       dialogKey{r.CallID().Value(), tagOf(r.To().Params)},
		leg:       uuid.NewString(),
		flow:      f,
		client:    c.client,
		gateway:   c.gateway,
		uri:       "<" + r.From().Address.String() + ">",
		remoteTag: tagOf(r.From().Params),
		remote:    contact.Address,
		routes:    routeSet(r),
		theirSeq:  r.CSeq().SeqNo,
		invite:    r,
		received:  t,
		hosts:     []string{r.Recipient.Host, r.From().Address.Host},

		fromNetwork: c.fromNetwork,
	}
	from := r.To().AsFrom()
	d.from = &from
	return d
}

// clientOf returns the client that represents a phone in package calls.
func clientOf(c fabric.SIPCredential, socket calls.Socket) calls.Client {
	token := fabric.Token{
		Kind:         fabric.SAT,
		ID:           c.ID,
		ProjectID:    c.ProjectID,
		SubscriberID: c.SubscriberID,
		IssuedAt:     time.Now(),
	}
	if c.EndpointID != "" {
		token = fabric.Token{
			Kind:      fabric.Guest,
			ID:        c.EndpointID,
			ProjectID: c.ProjectID,
			IssuedAt:  time.Now(),
		}
	}
	return calls.Client{Socket: socket, Token: token}
}

// addressOf returns the phone number or the address that user stands for. It returns a public
// address only for the echo, or if the public address exists and the private one does not.
func (s *Server) addressOf(ctx context.Context, projectID, user string) (string, error) {
	if plain, err := url.PathUnescape(user); err == nil {
		user = plain
	}
	if number, ok := fabric.ParseNumber(user); ok {
		return number, nil
	}

	private := "/private/" + user
	public := "/public/" + user
	if public == calls.EchoAddress {
		return public, nil
	}

	_, err := s.c.Fabric.Addresses.FindAt(ctx, projectID, private)
	if err == nil {
		return private, nil
	}
	if !errors.Is(err, problem.NotFound) {
		return "", err
	}
	_, err = s.c.Fabric.Addresses.FindAt(ctx, projectID, public)
	if err == nil {
		return public, nil
	}
	return private, nil // package calls refuses it
}

// refusal returns the response for a call that could not begin.
func (s *Server) refusal(r *sip.Request, err error) *sip.Response {
	switch {
	case errors.Is(err, problem.Invalid):
		return response(r, 488, "Not Acceptable Here", nil)
	case errors.Is(err, problem.RateLimited), errors.Is(err, problem.Unavailable):
		return response(r, 503, "Service Unavailable", nil, sip.NewHeader("Retry-After", "5"))
	}
	s.log.Error("beginning a call from a phone", "error", err)
	return response(r, 500, "Server Internal Error", nil)
}

// handleCancel handles a CANCEL. A phone sends a CANCEL to end a call before the call is answered
// (RFC 3261, section 9.2).
func (s *Server) handleCancel(r *sip.Request, f flow) {
	t := s.find(r, f)
	if t == nil {
		s.rejectUnknown(r, f)
		return
	}
	s.reply(r, f, 200, "OK")
	t.cancel()
	if d := s.callingWith(t); d != nil {
		d.giveUp()
	}
}

// giveUp ends a call that the phone gives up before it is answered. It returns false if the INVITE
// already has a final response.
func (d *dialog) giveUp() bool {
	if !d.endUnanswered() {
		return false
	}
	d.received.respond(response(d.invite, 487, "Request Terminated", nil), nil)
	d.hangUp(calls.Hangup, calls.NormalClearing)
	return true
}

// endUnanswered marks the dialog as over if its INVITE has no final response yet. It reports
// whether it has marked the dialog.
func (d *dialog) endUnanswered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.confirmed || d.over {
		return false
	}
	d.over = true
	return true
}

// isGivenUp reports whether the dialog is over without an answer. A dialog that was answered and has
// ended may still wait for the ACK, after which the phone gets a BYE.
func (d *dialog) isGivenUp() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over && !d.confirmed
}

// callingWith returns the dialog whose INVITE has the transaction t, or nil.
func (s *Server) callingWith(t *serverTx) *dialog {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.legs {
		if d.received == t {
			return d
		}
	}
	return nil
}
