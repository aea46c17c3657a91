package sip

import (
	"context"
	"crypto/rand"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"
	"golang.org/x/time/rate"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// A dialogKey identifies a dialog by its Call-ID and our tag (RFC 3261, section 12). The tag is
// random, so only the receiver of our messages knows it.
type dialogKey struct{ callID, tag string }

// A dialog is a phone's part in a call. In package calls, it is a leg whose client is the phone.
type dialog struct {
	server *Server
	key    dialogKey
	leg    string       // the id of the leg
	client calls.Client // represents the phone in package calls
	from   sip.Header   // the From header of our requests
	uri    string       // the phone's URI in the To header of our requests
	hosts  []string     // the names by which the phone knows this server; fixed once flow is set
	order  order        // of the phone's requests

	fromNetwork bool // see caller; fixed

	mu        sync.Mutex
	node      string // the node that carries the call
	flow      flow   // the path of our requests
	remoteTag string
	remote    sip.Uri // where our requests are sent
	routes    []sip.Header
	seq       uint32
	theirSeq  uint32
	sdp       string // our last description
	theirs    string // the phone's last description, or what stands in for it
	confirmed bool   // a 200 to the INVITE was sent or received
	checked   time.Time
	over      bool

	requests   *rate.Limiter   // limits the phone's requests; fixed
	updates    *rate.Limiter   // limits re-INVITEs, UPDATEs and REFERs; fixed
	invite     *sip.Request    // the INVITE that began the dialog, or its latest repetition
	received   *serverTx       // the transaction of invite, if the phone sent it
	sent       time.Time       // when we sent the INVITE
	heard      bool            // the phone has responded to our INVITE
	reason     sip.Header      // the reason in a CANCEL that is held until the phone's first response
	gateway    *fabric.Gateway // the gateway of the call, or nil; fixed once flow is set
	identity   []sip.Header    // headers about the caller in the INVITE to the gateway
	authorized bool            // the INVITE to the gateway had credentials

	// The attempts to call the gateway at its addresses.
	trying sync.Mutex               // held while another address is chosen, before mu
	tried  []netip.AddrPort         // the addresses that were tried; needs trying once an INVITE was sent
	former map[*sip.Request]*dialog // the INVITEs to the addresses before the present one; see formerOf

	reTx       *serverTx // the transaction of the phone's latest accepted re-INVITE
	unanswered *serverTx // the INVITE whose late offer the phone has not answered yet, or nil

	reference reference // the transfer in progress
	referred  bool      // the phone has sent a REFER
}

// These constants limit re-INVITEs, UPDATEs and REFERs in one dialog: the rate per second and the
// burst. Re-INVITEs and UPDATEs make the engine negotiate media, and all calls wait for this. A
// REFER reads the database.
const (
	updatesPerSecond = 2
	updatesAtOnce    = 10
)

// These constants limit all requests in one dialog, except ACK and BYE: the rate per second and the
// burst. The server remembers each request for half a minute.
const (
	inCallPerSecond = 5
	inCallAtOnce    = 100
)

// add adds a dialog to the server. It returns false if the server is closed.
func (s *Server) add(d *dialog) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	d.requests = rate.NewLimiter(inCallPerSecond, inCallAtOnce)
	d.updates = rate.NewLimiter(updatesPerSecond, updatesAtOnce)
	s.dialogs[d.key] = d
	s.legs[d.leg] = d
	return true
}

// remove deletes a dialog from the server. It reports whether the server had this dialog.
func (s *Server) remove(d *dialog) bool {
	s.mu.Lock()
	_, had := s.dialogs[d.key]
	delete(s.dialogs, d.key)
	delete(s.legs, d.leg)
	s.mu.Unlock()
	for _, t := range d.accepted() {
		t.stopAccepting()
	}
	return had
}

// removeLeg deletes a dialog from those that take part in calls. Messages from the phone still find
// it.
func (s *Server) removeLeg(d *dialog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.legs, d.leg)
}

// accepted returns the transactions of the phone's first and latest INVITE. An ACK from the phone
// may be for either.
func (d *dialog) accepted() (transactions []*serverTx) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range []*serverTx{d.received, d.reTx} {
		if t != nil {
			transactions = append(transactions, t)
		}
	}
	return transactions
}

// dialogOf returns the dialog that a request belongs to. It returns nil if the dialog is unknown,
// or if the request does not come from the address of the dialog's phone. It also returns nil if
// the dialog is encrypted, but the request is not, because the answer to a re-INVITE contains keys
// for media.
func (s *Server) dialogOf(r *sip.Request, f flow) *dialog {
	s.mu.Lock()
	d := s.dialogs[dialogKey{r.CallID().Value(), tagOf(r.To().Params)}]
	s.mu.Unlock()
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	lacksEncryption := d.flow.isSecure() && !f.isSecure()
	isFromPhone := d.knows(f.source()) && d.remoteTag == tagOf(r.From().Params)
	if !isFromPhone || lacksEncryption {
		return nil
	}
	return d
}

// doFor limits how long a command may take.
const doFor = 10 * time.Second

// do sends a command from the phone to package calls.
func (d *dialog) do(cmd calls.Command) (calls.Reply, error) { return d.doAs(d.client, cmd) }

// doAs is like do, for a client that represents the phone with additional rights.
func (d *dialog) doAs(client calls.Client, cmd calls.Command) (calls.Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), doFor)
	defer cancel()
	d.mu.Lock()
	cmd.Leg = d.leg
	cmd.Node = d.node
	d.mu.Unlock()
	r, err := d.server.calls.Do(ctx, client, cmd)
	if r.Node != "" {
		d.mu.Lock()
		d.node = r.Node
		d.mu.Unlock()
	}
	return r, err
}

// hangUp removes the dialog and ends its leg with op and c. It is called when the phone has hung
// up, or cannot take part in the call.
func (d *dialog) hangUp(op calls.Op, c calls.Cause) {
	d.server.remove(d)
	if _, err := d.do(calls.Command{Op: op, Cause: c.Text}); err != nil {
		d.server.log.Error("ending a call with a phone", "leg_id", d.leg, "error", err)
	}
}

// finish marks the dialog as over. It returns true only the first time.
func (d *dialog) finish() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := !d.over
	d.over = true
	return first
}

// request returns a request within the dialog. The caller holds mu.
func (d *dialog) request(method sip.RequestMethod, seq uint32) *sip.Request {
	r := d.server.newRequest(method, d.remote, d.flow)
	for _, h := range d.routes {
		r.AppendHeader(h)
	}

	r.AppendHeader(d.from)
	to := d.uri
	if d.remoteTag != "" {
		to += ";tag=" + d.remoteTag
	}

	r.AppendHeader(sip.NewHeader("To", to))
	id := sip.CallIDHeader(d.key.callID)
	r.AppendHeader(&id)
	r.AppendHeader(&sip.CSeqHeader{SeqNo: seq, MethodName: method})
	r.AppendHeader(userAgent)
	return r
}

// end removes the dialog and sends the phone a BYE. If the phone has not yet acknowledged a 200,
// the removal and the BYE wait until it has, or until the wait for the ACK has timed out (RFC 3261,
// section 15). No BYE is sent if the phone has sent one by then.
func (d *dialog) end(c calls.Cause) {
	for _, t := range d.accepted() {
		if t.afterACK(func() { d.end(c) }) {
			return
		}
	}
	if d.server.remove(d) {
		d.bye(c)
	}
}

// bye sends the phone a BYE. If the connection to a gateway has been closed, bye opens another one,
// because the gateway would otherwise continue the call (RFC 3261, section 18.1.1).
func (d *dialog) bye(c calls.Cause) {
	if d.gateway == nil || !d.path().hasEnded() {
		d.authorizedBYE(c)
		return
	}
	go func() {
		defer d.server.recoverPanic()
		if err := d.reopen(); err != nil {
			d.server.log.Warn("ending a call at a SIP gateway",
				"gateway_id", d.gateway.ID, "leg_id", d.leg, "error", err)
			return
		}
		d.authorizedBYE(c)
	}()
}

// authorizedBYE sends a BYE. If a called gateway then requests credentials, authorizedBYE sends
// another BYE with the credentials.
func (d *dialog) authorizedBYE(c calls.Cause) {
	d.sendBYE(c, nil, func(answer *sip.Response) {
		if h, ok := d.answerFor(answer, sip.BYE); ok {
			d.sendBYE(c, h, d.logDenial)
			return
		}
		d.logDenial(answer)
	})
}

// sendBYE sends a BYE. If more is not nil, it adds this header.
func (d *dialog) sendBYE(c calls.Cause, more sip.Header, handle func(*sip.Response)) {
	d.mu.Lock()
	d.seq++
	r := d.request(sip.BYE, d.seq)
	f := d.flow
	d.mu.Unlock()
	if more != nil {
		r.AppendHeader(more)
	}
	r.AppendHeader(reasonOf(c))
	r.SetBody(nil)
	d.server.request(r, f, byeEnd, handle)
}

// checkEvery is the interval between requests that check whether the phone in a call still
// responds. A phone on hold sends no media, so nothing else would show that the phone is gone.
const checkEvery = time.Minute

// allDialogs acts on all dialogs of a [Server].
type allDialogs struct{ *Server }

// check checks the phone of each leg.
func (s allDialogs) check(now time.Time) {
	s.mu.Lock()
	dialogs := slices.Collect(maps.Values(s.legs))
	s.mu.Unlock()
	for _, d := range dialogs {
		d.check(now)
	}
}

// check sends the phone an OPTIONS, unless the last check was within checkEvery. If no response arrives,
// or the phone does not know the call, the call ends. A phone that did not respond gets a BYE, because
// only some messages may have been lost (RFC 3261, section 12.2.1.2).
//
// While a phone's call is not answered yet, check only repeats the last response to the phone, because
// proxies end a call after three minutes without a response (RFC 3261, section 13.3.1.1).
func (d *dialog) check(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.checked.IsZero() {
		d.checked = now
	}
	if d.over || now.Sub(d.checked) < checkEvery {
		return
	}

	d.checked = now
	if !d.confirmed {
		if d.received != nil {
			d.received.repeat()
		}
		return
	}
	d.seq++
	r := d.request(sip.OPTIONS, d.seq)
	r.SetBody(nil)
	f := d.flow
	d.server.request(r, f, timerEnd, func(answer *sip.Response) {
		if answer == nil && d.path() != f {
			return // the phone has reconnected in the meantime
		}
		// RFC 3261, section 12.2.1.2
		lost := answer == nil || answer.StatusCode == 408 || answer.StatusCode == 481
		if d.gateway != nil { // some carriers drop OPTIONS; missing media ends their calls
			lost = answer != nil && answer.StatusCode == 481
		}
		if !lost || !d.finish() {
			return
		}
		if answer == nil || answer.StatusCode == 408 {
			d.bye(calls.RecoveryTimeout)
		}
		d.hangUp(calls.Hangup, calls.NormalClearing)
	})
}

// newTag returns a tag for our side of a dialog.
func newTag() string { return rand.Text() }
