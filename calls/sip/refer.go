package sip

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// fragType is the type of the bodies that report the progress of a transfer (RFC 3420).
var fragType = sip.NewHeader("Content-Type", "message/sipfrag;version=2.0")

// A reference is the REFER of a transfer in progress. The zero value means no transfer.
type reference struct {
	seq   uint32 // the CSeq number of the REFER
	later bool   // the phone sent another REFER before, so notifications must name this REFER
}

// errAttended is the error for a REFER that requests an attended transfer (RFC 3891).
var errAttended = errors.New("the Refer-To header has a Replaces header")

// errReferTo is the error for a Refer-To header that does not name a user of this server.
var errReferTo = errors.New("the Refer-To header names nobody here")

// refer handles a REFER, with which a phone transfers the call (RFC 5589, section 6). The response
// only means that the transfer has begun. Notifications report the progress of the transfer.
func (d *dialog) refer(r *sip.Request, t *serverTx) {
	ctx, cancel := context.WithTimeout(context.Background(), handleFor)
	defer cancel()
	if !d.updates.Allow() {
		t.respond(response(r, 500, "Too Many Transfers", nil, sip.NewHeader("Retry-After", "1")), nil)
		return
	}

	if name := requires(r); name != "" {
		t.respond(response(r, 420, "Bad Extension", nil, sip.NewHeader("Unsupported", name)), nil)
		return
	}

	user, err := d.referTo(r)
	switch {
	case errors.Is(err, errAttended):
		t.respond(response(r, 501, "Attended Transfer Not Supported", nil), nil)
		return
	case errors.Is(err, errReferTo):
		t.respond(response(r, 404, "Not Found", nil), nil)
		return
	case err != nil:
		t.respond(response(r, 400, "Bad Request", nil), nil)
		return
	}

	c, ok, err := d.referrer(ctx, user)
	if err != nil {
		d.server.log.Error("finding who transfers a call", "leg_id", d.leg, "error", err)
		t.respond(response(r, 500, "Server Internal Error", nil), nil)
		return
	}
	if !ok {
		t.respond(response(r, 403, "Forbidden", nil), nil)
		return
	}

	if !d.beginReference(r.CSeq().SeqNo) {
		t.respond(response(r, 491, "Request Pending", nil), nil)
		return
	}
	t.respond(response(r, 202, "Accepted", nil, d.server.contactFor(d.path())), nil)
	d.notify(100, "Trying")
	if _, err := d.doAs(c.client, calls.Command{Op: calls.TransferTo, To: c.to}); err != nil {
		d.notify(d.server.transferRefusal(err))
	}
}

// referTo returns the user in the Refer-To header of a REFER. The header must name this server.
func (d *dialog) referTo(r *sip.Request) (user string, err error) {
	headers := append(r.GetHeaders("refer-to"), r.GetHeaders("r")...)
	if len(headers) != 1 {
		return "", errors.New("a REFER needs exactly one Refer-To header")
	}

	var u sip.Uri
	if _, err := sip.ParseAddressValue(headers[0].Value(), &u, &sip.HeaderParams{}); err != nil {
		return "", fmt.Errorf("parsing a Refer-To header: %w", err)
	}

	method, hasMethod := u.UriParams.Get("method")
	scheme := strings.ToLower(u.Scheme)
	switch {
	case u.Headers.Has("Replaces"), u.Headers.Has("replaces"):
		return "", errAttended
	case hasMethod && !strings.EqualFold(method, "INVITE"), scheme != "sip" && scheme != "sips",
		u.User == "", len(u.User) > maxField, !d.isOurs(u.Host):
		return "", errReferTo
	}
	return u.User, nil
}

// isOurs reports whether host is a name of this server that the phone may use.
func (d *dialog) isOurs(host string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := append([]string{d.server.hostFor(d.flow)}, d.hosts...)
	for _, name := range names {
		if name != "" && strings.EqualFold(name, host) {
			return true
		}
	}
	return false
}

// referrer returns the dialog's phone as a caller that dials user. ok is false if the phone may not
// transfer calls.
func (d *dialog) referrer(ctx context.Context, user string) (c caller, ok bool, err error) {
	token := d.client.Token
	switch {
	case d.gateway != nil:
		return c, false, nil
	case d.client.Socket.Endpoint:
		cred, err := d.server.c.Fabric.SIP.FindAccount(ctx, token.ProjectID, token.ID, token.ID)
		if errors.Is(err, problem.NotFound) {
			return c, false, nil
		}
		if err != nil {
			return c, false, err
		}
		c, err = d.server.endpointCaller(ctx, cred, d.client.Socket)
		if err != nil || c.isBarred {
			return c, false, err
		}
	case token.Kind == fabric.SAT:
		c.client = d.client
	default:
		return c, false, nil
	}

	if c.to == "" {
		c.to, err = d.server.addressOf(ctx, token.ProjectID, user)
		if err != nil {
			return c, false, err
		}
	}
	return c, true, nil
}

// beginReference records that a transfer is in progress. It returns false if a transfer is already
// in progress, or if the call has not been answered.
func (d *dialog) beginReference(seq uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reference.seq != 0 || !d.confirmed || d.over {
		return false
	}
	d.reference = reference{seq: seq, later: d.referred}
	d.referred = true
	return true
}

// notify sends the phone a notification with the progress of its transfer (RFC 3515, section 2.4).
// A final status ends the transfer.
func (d *dialog) notify(status int, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ref := d.reference
	if ref.seq == 0 || d.over {
		return
	}
	state := "active;expires=180"
	if status >= 200 {
		state, d.reference = "terminated;reason=noresource", reference{}
	}
	event := "refer"
	if ref.later {
		event = fmt.Sprintf("refer;id=%d", ref.seq)
	}

	d.seq++
	r := d.request(sip.NOTIFY, d.seq)
	r.AppendHeader(sip.NewHeader("Event", event))
	r.AppendHeader(sip.NewHeader("Subscription-State", state))
	r.AppendHeader(d.server.contactFor(d.flow))
	r.AppendHeader(fragType)
	r.SetBody([]byte(fmt.Sprintf("SIP/2.0 %d %s\r\n", status, reason)))
	d.server.request(r, d.flow, byeEnd, func(*sip.Response) {})
}

// tellTransfer notifies the phone of the progress of its transfer.
func (d *dialog) tellTransfer(e calls.Event) {
	switch e.State {
	case calls.Ringing:
		d.notify(180, "Ringing")
	case calls.InCall:
		d.notify(200, "OK")
	case calls.Completed:
		d.notify(refusalOf(e.Cause))
	}
}

// transferRefusal returns the status of a transfer that could not begin.
func (s *Server) transferRefusal(err error) (status int, reason string) {
	switch {
	case errors.Is(err, problem.Conflict):
		return 488, "Not Acceptable Here"
	case errors.Is(err, problem.Forbidden), errors.Is(err, problem.Invalid):
		return 403, "Forbidden"
	case errors.Is(err, problem.RateLimited):
		return 503, "Service Unavailable"
	}
	s.log.Error("transferring a call", "error", err)
	return 500, "Server Internal Error"
}
