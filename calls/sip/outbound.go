package sip

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/fabric"
)

// ring sends the invitation e to a phone.
func (s *Server) ring(to calls.Socket, e calls.Event) {
	owner, _, _ := cutSocket(to.ID)
	c := fabric.SIPCredential{ID: to.Credential, ProjectID: e.Project, SubscriberID: owner}
	if to.Endpoint {
		c.SubscriberID = ""
		c.EndpointID = owner
	}
	d := &dialog{
		server: s,
		key:    dialogKey{rand.Text() + "@selvage", newTag()},
		leg:    e.Leg,
		node:   e.Node,
		sdp:    e.SDP,
		client: clientOf(c, to),
	}
	if s.add(d) {
		go func() {
			defer s.recoverPanic()
			d.start(to.ID, e)
		}()
	}
}

// start sends the INVITE, unless the call has ended in the meantime.
func (d *dialog) start(socket string, e calls.Event) {
	s := d.server
	ctx, cancel := context.WithTimeout(context.Background(), handleFor)
	defer cancel()
	b, f, contact, err := d.findPhone(ctx, socket)
	if err != nil {
		if d.finish() {
			d.hangUp(calls.Fail, calls.UserNotRegistered)
		}
		return
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	host := s.hostFor(f)
	d.flow = f
	d.remote = contact
	d.uri = "<" + contact.String() + ">"
	d.hosts = []string{b.Domain}
	d.from = &sip.FromHeader{
		DisplayName: displayName(e.From.Name),
		Address:     sip.Uri{Scheme: "sip", User: userOf(e.From), Host: host},
		Params:      sip.HeaderParams{{K: "tag", V: d.key.tag}},
	}
	d.sendInvite(nil)
}

// findPhone returns the registration of the dialog's phone, its connection and its contact. It
// returns an error if the phone is registered with a different server, or if its connection has
// closed. It also returns an error if the phone registered without TLS before its credentials
// required encryption.
func (d *dialog) findPhone(ctx context.Context, socket string) (b binding, f flow, contact sip.Uri, err error) {
	b, f, err = d.server.findBinding(ctx, socket)
	if err != nil {
		return b, f, contact, err
	}
	if err := sip.ParseUri(b.Contact, &contact); err != nil {
		return b, f, contact, err
	}
	if d.client.Socket.SRTP.Required && !f.isSecure() {
		return b, f, contact, errors.New("the phone has registered without encryption")
	}
	return b, f, contact, nil
}

// sendInvite sends an INVITE. If extra is not nil, it adds this header. The caller holds mu.
func (d *dialog) sendInvite(extra sip.Header) {
	s := d.server
	d.seq++
	r := d.request(sip.INVITE, d.seq)
	if extra != nil {
		r.AppendHeader(extra)
	}
	for _, h := range d.identity {
		r.AppendHeader(h)
	}
	r.AppendHeader(s.contactFor(d.flow))
	r.AppendHeader(allow)
	r.AppendHeader(sdpType)
	r.SetBody([]byte(d.offer()))
	d.invite = r
	s.counters.outbound.Add(1)
	d.sent = time.Now()

	t := &clientTx{
		server:  s,
		request: r,
		flow:    d.flow,
		limit:   answerWithin,
		handle:  func(answer *sip.Response) { d.answered(r, answer) },
	}
	if d.gateway != nil && len(d.tried) < maxTargets {
		t.slow = func() bool { return failover{d}.tryOther(r) }
	}
	t.begin()
}

// offer returns our description for an INVITE. The description was made for the first address of a
// gateway. The gateway's other addresses may have to use a different address of this machine. The
// caller holds mu.
func (d *dialog) offer() string {
	first, at := d.client.Socket.Phone, d.flow.source()
	if d.gateway == nil || first == at {
		return d.sdp
	}
	return sdp.Readdress(d.sdp, d.server.c.AddressFor(first), d.server.c.AddressFor(at))
}

// answered handles the phone's response to an INVITE. r is nil if no response arrived in time.
func (d *dialog) answered(invite *sip.Request, r *sip.Response) {
	if r == nil || r.StatusCode >= 300 {
		d.trying.Lock()
		defer d.trying.Unlock()
	}
	if former := (failover{d}).formerOf(invite, r); former != nil {
		failover{former}.answeredLate(r)
		return
	}

	d.noteAnswer(r)
	switch {
	case failover{d}.failOver(r):
	case r == nil:
		if d.finish() {
			d.hangUp(calls.Fail, calls.UserNotRegistered)
		}
	case r.StatusCode < 200:
		d.ringing(r)
	case r.StatusCode < 300:
		d.accept(r)
	case d.reauthorize(r):
	default:
		if d.finish() {
			d.logDenial(r)
			op, cause := failureOf(r.StatusCode, d.gateway != nil)
			d.hangUp(op, cause)
		}
	}
}

// ringing handles a provisional response. If a CANCEL was waiting for the phone's first response,
// ringing sends it (RFC 3261, section 9.1).
func (d *dialog) ringing(r *sip.Response) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.CSeq().SeqNo != d.invite.CSeq().SeqNo {
		return // the INVITE was repeated with credentials, and this response is late
	}
	d.heard = true
	if d.reason != nil {
		d.sendCancel()
	}
}

// cancel stops the phone from ringing. If the phone has not responded yet, the CANCEL waits for the
// phone's first response. The caller holds mu.
func (d *dialog) cancel(c calls.Cause) {
	d.reason = reasonOf(c)
	if d.invite != nil && d.heard {
		d.sendCancel()
	}
}

// sendCancel sends the CANCEL. The caller holds mu.
func (d *dialog) sendCancel() {
	r := cancellation(d.invite, d.reason)
	d.reason = nil
	d.server.request(r, d.flow, byeEnd, func(*sip.Response) {})
}

// accept handles the phone's answer. The phone repeats the answer until it receives an ACK.
func (d *dialog) accept(r *sip.Response) {
	d.mu.Lock()
	first, over := !d.confirmed, d.over
	if !first && tagOf(r.To().Params) != d.remoteTag {
		fork := d.fork()
		d.mu.Unlock()
		fork.accept(r)
		return
	}
	d.confirmed = true
	if first {
		d.theirs = string(r.Body())
		d.remoteTag = tagOf(r.To().Params)
		if c := contactOf(r); c != nil {
			d.remote = c.Address
		}
		routes := routeSet(r)
		for i := len(routes) - 1; i >= 0; i-- {
			d.routes = append(d.routes, routes[i])
		}
	}

	ack := d.request(sip.ACK, d.invite.CSeq().SeqNo)
	copyHeaders(d.invite, ack, "authorization", "proxy-authorization") // RFC 3261, section 13.2.2.4
	ack.SetBody(nil)
	d.flow.write([]byte(ack.String()))
	d.mu.Unlock()

	switch {
	case !first:
		return
	case over: // the CANCEL came too late
		d.bye(calls.NormalClearing)
		return
	}
	// An answer without SDP is refused.
	answer := calls.Command{Op: calls.Answer, SDP: string(r.Body())}
	client := d.client
	if d.gateway != nil { // the INVITE may have gone to another address than the gateway's first
		client.Socket.Phone = d.path().source()
	}
	if _, err := d.doAs(client, answer); err != nil && d.finish() {
		d.bye(calls.Incompatible)
		d.hangUp(calls.Fail, calls.Incompatible)
	}
}

// fork returns the dialog of another phone that has answered the INVITE. If a proxy passes the INVITE
// on to several phones, more than one may answer. Only the first phone takes the call. The dialogs of
// the others are over, so these phones get a BYE (RFC 3261, section 13.2.2.4). The caller holds mu.
func (d *dialog) fork() *dialog {
	return &dialog{
		server:  d.server,
		key:     d.key,
		leg:     d.leg,
		client:  d.client,
		flow:    d.flow,
		from:    d.from,
		uri:     d.uri,
		remote:  d.invite.Recipient,
		seq:     d.invite.CSeq().SeqNo,
		invite:  d.invite,
		gateway: d.gateway,
		over:    true,
	}
}
