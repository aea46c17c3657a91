package sip

import (
	"fmt"
	"strings"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/calls"
)

// cutSocket splits the id of a phone's socket; see socketID.
func cutSocket(id string) (owner, binding string, ok bool) { return strings.Cut(id, "/") }

// Tell implements [calls.Clients] for phones. It does not block.
func (s *Server) Tell(to calls.Socket, e calls.Event) {
	if e.Kind == calls.Invited {
		if to.Gateway {
			trunks{s}.ringGateway(to, e)
		} else {
			s.ring(to, e)
		}
		return
	}
	s.mu.Lock()
	d := s.legs[e.Leg]
	s.mu.Unlock()
	if d != nil {
		d.tell(e)
	}
}

// tell turns an event into a response or request.
func (d *dialog) tell(e calls.Event) {
	d.mu.Lock()
	if e.Node != "" {
		d.node = e.Node
	}
	if e.Kind == calls.EarlyMedia {
		d.sdp = e.SDP
	}
	d.mu.Unlock()

	switch e.Kind {
	case calls.StateChanged:
		if e.State == calls.Ringing && d.received != nil {
			d.received.respond(response(d.invite, 180, "Ringing", nil, d.server.contactFor(d.path())), nil)
		}
	case calls.Answered:
		d.tellAnswered()
	case calls.Transferring:
		d.tellTransfer(e)
	case calls.HungUp:
		d.tellEnd(e.Cause)
	case calls.Lost:
		d.tellEnd(calls.NodeLost) // unlike a browser, a phone cannot connect to another node
	}
}

// tellAnswered accepts the INVITE of a phone whose call was answered.
func (d *dialog) tellAnswered() {
	d.mu.Lock()
	wanted := d.received != nil && !d.over && !d.confirmed
	d.confirmed = d.confirmed || wanted
	sdp := d.sdp
	d.mu.Unlock()
	if wanted {
		accepted := response(d.invite, 200, "OK", []byte(sdp), d.server.contactFor(d.path()), allow, userAgent)
		d.received.respond(accepted, d.unacknowledged)
	}
}

// unacknowledged ends a call whose phone did not acknowledge the 200 (RFC 3261, section 13.3.1.4).
func (d *dialog) unacknowledged() {
	if d.finish() {
		d.bye(calls.RecoveryTimeout)
		d.hangUp(calls.Hangup, calls.NormalClearing)
	}
}

// tellEnd ends the dialog for the phone: by BYE, by CANCEL, or by a final response.
func (d *dialog) tellEnd(c calls.Cause) {
	d.mu.Lock()
	if d.over {
		d.mu.Unlock()
		return
	}
	d.over = true
	confirmed := d.confirmed
	if !confirmed && d.received == nil {
		d.cancel(c)
	}
	d.mu.Unlock()

	if confirmed {
		d.server.removeLeg(d)
		d.end(c)
		return
	}
	if d.received != nil {
		status, reason := refusalOf(c)
		d.received.respond(response(d.invite, status, reason, nil, reasonOf(c)), nil)
	}
	d.server.remove(d)
}

// refusals lists the responses to a phone whose call was not answered, by cause.
var refusals = map[string]struct {
	status int
	reason string
}{
	calls.UserBusy.Text:          {486, "Busy Here"},
	"REJECT_ALL":                 {603, "Decline"},
	calls.NoAnswer.Text:          {480, "Temporarily Unavailable"},
	calls.UserNotRegistered.Text: {480, "Temporarily Unavailable"},
	calls.CallRejected.Text:      {403, "Forbidden"},
	calls.TokenRevoked.Text:      {403, "Forbidden"},
	calls.UnallocatedNumber.Text: {404, "Not Found"},
	calls.NotImplemented.Text:    {404, "Not Found"},
	calls.Incompatible.Text:      {488, "Not Acceptable Here"},
	calls.NormalClearing.Text:    {480, "Temporarily Unavailable"},
	calls.OriginatorCancel.Text:  {487, "Request Terminated"},
	calls.RecoveryTimeout.Text:   {480, "Temporarily Unavailable"},
	calls.TemporaryFailure.Text:  {500, "Server Internal Error"},
}

// refusalOf returns the response for a cause. A cause that is not listed means that the server is
// too busy.
func refusalOf(c calls.Cause) (status int, reason string) {
	if r, ok := refusals[c.Text]; ok {
		return r.status, r.reason
	}
	return 503, "Service Unavailable"
}

// reasonOf returns the Reason header for a cause (RFC 3326). If another device answered the call,
// the header tells phones not to list the call as missed.
func reasonOf(c calls.Cause) sip.Header {
	if c == calls.LoseRace {
		return sip.NewHeader("Reason", `SIP;cause=200;text="Call completed elsewhere"`)
	}
	code := c.Code
	if code > 127 { // Q.850 has no such code
		code = calls.NormalClearing.Code
	}
	return sip.NewHeader("Reason", fmt.Sprintf(`Q.850;cause=%d;text="%s"`, code, c.Text))
}

// failureOf returns the command and cause for a refusal by a phone or a gateway. A status of 600 or more
// ends the call on all devices (RFC 3261, section 21.6). For any other status, the callee's other devices
// keep ringing. A gateway knows whether a number exists (RFC 3398, section 8.2.6.1).
func failureOf(status int, byGateway bool) (calls.Op, calls.Cause) {
	switch {
	case byGateway && (status == 404 || status == 410 || status == 484 || status == 604):
		return calls.Fail, calls.UnallocatedNumber
	case status == 600:
		return calls.Hangup, calls.UserBusy
	case status > 600:
		return calls.Hangup, calls.CallRejected
	case status == 486:
		return calls.Fail, calls.UserBusy
	case status == 408, status == 480:
		return calls.Fail, calls.NoAnswer
	case status == 403:
		return calls.Fail, calls.CallRejected
	case status == 406, status == 415, status == 488:
		return calls.Fail, calls.Incompatible
	}
	return calls.Fail, calls.UserNotRegistered
}
