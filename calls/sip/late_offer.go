package sip

import (
	"crypto/rand"
	"errors"
	"slices"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// A late offer is an offer in the 200 to an INVITE that has no description. The answer to a late
// offer is in the ACK (RFC 3261, section 13.2.1). Some gateways begin or resume all calls in this
// way.
//
// The engine does not support late offers. For an INVITE without a description, the server therefore
// writes an offer that the phone could have sent. The engine's answer to this offer becomes the late
// offer. The phone's answer in the ACK goes to the engine as an update.

// offerIn returns the phone's offer in an INVITE that begins a call. For an INVITE without a
// description, it returns an offer that the phone could have sent, and late is true. It returns an
// error if the INVITE has a body of a different type.
func offerIn(r *sip.Request, f flow, socket calls.Socket) (offer string, late bool, err error) {
	if len(r.Body()) > 0 {
		if !isSDP(r) {
			return "", false, errors.New("the body is not a description")
		}
		return string(r.Body()), false, nil
	}

	var key *sdp.Crypto
	if socket.SRTP.Required {
		key, err = temporaryKey(socket.SRTP)
		if err != nil {
			return "", false, err
		}
	}
	return sdp.PlainOffer(f.source(), key), true, nil
}

// preferredSuite is the suite for SRTP in late offers. Nearly all phones support it.
const preferredSuite = "AES_CM_128_HMAC_SHA1_80"

// temporaryKey returns a random key for the media of a phone whose key is not yet known. It returns
// an error if the rules permit no supported suite.
func temporaryKey(rules calls.SRTP) (*sdp.Crypto, error) {
	permitted := sdp.Suites(rules.Suites)
	if len(permitted) == 0 {
		return nil, errors.New("no permitted suite is supported")
	}
	suite := permitted[0]
	if slices.Contains(permitted, preferredSuite) {
		suite = preferredSuite
	}
	key := make([]byte, sdp.KeyLength(suite))
	_, _ = rand.Read(key) // never fails
	return &sdp.Crypto{Tag: 1, Suite: suite, Key: string(key)}, nil
}

// takeLateAnswer handles an ACK for the transaction t. If t had a late offer, the ACK must contain the
// answer. If it does not, or if the answer cannot be used, a new call ends. A call that was already in
// progress continues unchanged.
func (d *dialog) takeLateAnswer(ack *sip.Request, t *serverTx) {
	if !d.expectsAnswer(t) {
		return
	}
	answer := string(ack.Body())
	err := errors.New("the ACK has no answer")
	if isSDP(ack) {
		_, err = d.do(calls.Command{Op: calls.Update, SDP: answer})
	}

	d.mu.Lock()
	if err == nil {
		d.theirs = answer
	}
	current := d.theirs
	d.mu.Unlock()
	if err == nil {
		return
	}
	if t != d.received {
		_, _ = d.do(calls.Command{Op: calls.Update, SDP: current}) // it was accepted before
		return
	}
	if d.finish() {
		d.bye(calls.Incompatible)
		d.hangUp(calls.Hangup, calls.Incompatible)
	}
}

// expectsAnswer reports whether an ACK for t must contain the answer to a late offer. It returns true
// only for the first ACK.
func (d *dialog) expectsAnswer(t *serverTx) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unanswered != t || d.over {
		return false
	}
	d.unanswered = nil
	return true
}

// awaitsAnswer reports whether an ACK with the answer to a late offer may still arrive.
func (d *dialog) awaitsAnswer() bool {
	d.mu.Lock()
	t := d.unanswered
	d.mu.Unlock()
	return t != nil && t.isAwaitingACK()
}

// offerAgain returns the phone's last description as an offer without hold. It stands in for the
// offer in a re-INVITE without a description.
func (d *dialog) offerAgain() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return sdp.Resume(d.theirs)
}
