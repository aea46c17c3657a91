package sip

import (
	"cmp"
	"errors"
	"strings"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/problem"
)

// handleACK handles an ACK, which gets no response.
func (s *Server) handleACK(r *sip.Request, f flow) {
	if t := s.find(r, f); t != nil {
		t.acknowledge()
	}
	if d := s.dialogOf(r, f); d != nil {
		for _, t := range d.accepted() {
			if t.seq == r.CSeq().SeqNo { // RFC 3261, section 13.2.2.4
				d.takeLateAnswer(r, t)
				t.acknowledge()
			}
		}
	}
}

// handleInDialog handles a request within a dialog (RFC 3261, section 12.2.2).
func (s *Server) handleInDialog(r *sip.Request, f flow) {
	d := s.dialogOf(r, f)
	if t := s.find(r, f); t != nil {
		t.repeat()
		return
	}
	if d == nil {
		s.rejectUnknown(r, f)
		return
	}
	if r.Method != sip.BYE && !d.requests.Allow() {
		s.counters.limited.Add(1)
		s.reply(r, f, 500, "Too Many Requests", sip.NewHeader("Retry-After", "1"))
		return
	}

	t, fresh := s.serve(r, f)
	if t == nil && r.Method == sip.BYE { // there are too many transactions, but the call must end
		s.reply(r, f, 200, "OK")
		d.byPhone()
		return
	}
	if t == nil || !fresh {
		return
	}
	if !d.advance(r.CSeq().SeqNo) {
		t.respond(response(r, 500, "Request Out of Order", nil), nil)
		return
	}
	d.follow(f)

	switch r.Method {
	case sip.INVITE, sip.UPDATE:
		d.update(r, t)
	case sip.BYE:
		t.respond(response(r, 200, "OK", nil), nil)
		d.byPhone()
	case sip.INFO:
		d.info(r, t)
	case sip.REFER:
		d.refer(r, t)
	case sip.OPTIONS:
		t.respond(response(r, 200, "OK", nil, allow), nil)
	default:
		t.respond(response(r, 405, "Method Not Allowed", nil, allow), nil)
	}
}

// advance records the sequence number of a request. It reports whether the request is newer than all
// earlier ones.
func (d *dialog) advance(seq uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if seq <= d.theirSeq {
		return false
	}
	d.theirSeq = seq
	return true
}

// byPhone ends the call after the phone has sent a BYE. If the call was not answered, the INVITE gets
// its final response, too (RFC 3261, section 15.1.2). If the call has already ended, byPhone removes
// the dialog, which waited for an ACK.
func (d *dialog) byPhone() {
	if d.giveUp() {
		return
	}
	if d.finish() {
		d.hangUp(calls.Hangup, calls.NormalClearing)
		return
	}
	d.server.remove(d)
}

// update handles a re-INVITE or an UPDATE. With these, a phone holds or resumes the call, or moves
// to another port. A re-INVITE without a description gets a late offer.
func (d *dialog) update(r *sip.Request, t *serverTx) {
	contact := d.server.contactFor(d.path())
	offer := string(r.Body())
	isLate := r.Method == sip.INVITE && offer == ""
	switch {
	case !d.updates.Allow(): // RFC 3261, section 14.2
		t.respond(response(r, 500, "Too Many Updates", nil, sip.NewHeader("Retry-After", "1")), nil)
		return
	case r.Method == sip.UPDATE && len(r.Body()) == 0: // renews the session (RFC 4028), or moves the phone
		d.retarget(r)
		t.respond(response(r, 200, "OK", nil, contact), nil)
		return
	case d.awaitsAnswer(): // RFC 3311, section 5.2
		t.respond(response(r, 491, "Request Pending", nil), nil)
		return
	case isLate:
		offer = d.offerAgain()
	case !isSDP(r):
		t.respond(response(r, 488, "Not Acceptable Here", nil), nil)
		return
	}

	reply, err := d.do(calls.Command{Op: calls.Update, SDP: offer})
	if err != nil || reply.SDP == "" {
		t.respond(d.updateRefusal(r, err), nil)
		return
	}
	d.retarget(r)
	d.mu.Lock()
	if r.Method == sip.INVITE {
		d.reTx = t
	}
	if isLate {
		d.unanswered = t
	} else {
		d.theirs = offer
	}
	d.mu.Unlock()
	t.respond(response(r, 200, "OK", []byte(reply.SDP), contact, allow), nil)
}

// updateRefusal returns the response to a re-INVITE or an UPDATE that had no effect. err is nil if the
// call has ended, or if the phone's answer to our INVITE is still being handled. Only 481 makes a phone
// end the call.
func (d *dialog) updateRefusal(r *sip.Request, err error) *sip.Response {
	isBusy := errors.Is(err, problem.RateLimited) || errors.Is(err, problem.Unavailable)
	switch {
	case errors.Is(err, problem.Invalid):
		return response(r, 488, "Not Acceptable Here", nil)
	case err == nil && d.isOver():
		return response(r, 481, "Call/Transaction Does Not Exist", nil)
	case err == nil:
		return response(r, 500, "Call Not Answered Yet", nil, sip.NewHeader("Retry-After", "1"))
	case !isBusy:
		d.server.log.Error("updating the media of a phone", "leg_id", d.leg, "error", err)
	}
	return response(r, 500, "Server Internal Error", nil, sip.NewHeader("Retry-After", "5"))
}

// isOver reports whether the call has ended.
func (d *dialog) isOver() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// retarget makes later requests go to the contact in r, if there is one (RFC 3261, section 12.2.2).
func (d *dialog) retarget(r *sip.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := contactOf(r); c != nil {
		d.remote = c.Address
	}
}

// info handles a digit that a phone sends in an INFO instead of over RTP.
func (d *dialog) info(r *sip.Request, t *serverTx) {
	digit := infoDigit(r)
	if digit == "" {
		t.respond(response(r, 415, "Unsupported Media Type", nil,
			sip.NewHeader("Accept", "application/dtmf-relay, application/dtmf")), nil)
		return
	}
	_, err := d.do(calls.Command{Op: calls.Digits, Digits: digit})
	if errors.Is(err, problem.Invalid) {
		t.respond(response(r, 400, "Bad Request", nil), nil)
		return
	}
	if err != nil {
		d.server.log.Error("handling a digit of a phone", "leg_id", d.leg, "error", err)
		t.respond(response(r, 500, "Server Internal Error", nil, sip.NewHeader("Retry-After", "5")), nil)
		return
	}
	t.respond(response(r, 200, "OK", nil), nil)
}

// digitsByCode contains the digits whose event codes have two digits (RFC 4733, section 3.2). Some
// phones send these codes in application/dtmf-relay.
var digitsByCode = map[string]string{"10": "*", "11": "#", "12": "A", "13": "B", "14": "C", "15": "D"}

// infoDigit returns the digit in an INFO: "5" from "Signal=5" in application/dtmf-relay, or from "5"
// in application/dtmf. In application/dtmf-relay, the event code of a digit stands for the digit. In
// application/dtmf, "12" is two digits.
func infoDigit(r *sip.Request) string {
	h := r.GetHeader("content-type")
	if h == nil || len(r.Body()) > maxField {
		return ""
	}
	switch strings.ToLower(strings.TrimSpace(h.Value())) {
	case "application/dtmf":
		return strings.TrimSpace(string(r.Body()))
	case "application/dtmf-relay":
		signal := signalOf(string(r.Body()))
		return cmp.Or(digitsByCode[signal], signal)
	}
	return ""
}

// signalOf returns the value in the line "Signal=" of a body in application/dtmf-relay.
func signalOf(body string) string {
	for line := range strings.Lines(body) {
		name, value, _ := strings.Cut(line, "=")
		if strings.EqualFold(strings.TrimSpace(name), "Signal") {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
