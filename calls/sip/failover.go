package sip

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// maxTargets is the maximum number of a gateway's addresses that are tried for a call or a registration.
const maxTargets = 3

// maxAddresses is the maximum number of a gateway's addresses that are searched for a preferred
// one.
const maxAddresses = 16

// errNoOther is the error for a gateway without another address that may be tried.
var errNoOther = errors.New("the gateway has no other address")

// silentFor is how long an address that has not answered is tried only after the gateway's other
// addresses. Otherwise, every call would wait for it.
const silentFor = 5 * time.Minute

// noteSilent records that a gateway has not answered on a path.
func (s trunks) noteSilent(gateway string, f flow) {
	s.silent.add(silentKey{gateway, f.remote}, time.Now(), silentFor)
}

// closeIfSilent closes the connection of a path on which a request got no answer, if nothing else has
// arrived over it since the request was sent. TCP would notice only after a quarter of an hour that the
// other side is gone, and calls would fail until then.
func (f flow) closeIfSilent(sent time.Time) {
	if f.tcp != nil && time.Unix(0, f.tcp.heard.Load()).Before(sent) {
		f.tcp.close()
	}
}

// noteAnswer records whether a phone or a gateway answers an INVITE. answer is nil if no answer has arrived
// in time.
func (d *dialog) noteAnswer(answer *sip.Response) {
	d.mu.Lock()
	f, heard, sent := d.flow, d.heard, d.sent
	d.mu.Unlock()
	isSilent := answer == nil && !heard
	if isSilent {
		f.closeIfSilent(sent)
	}
	switch {
	case d.gateway == nil:
	case answer != nil:
		d.server.silent.remove(silentKey{d.gateway.ID, f.remote})
	case isSilent:
		d.server.log.Warn("a SIP gateway does not answer", "gateway_id", d.gateway.ID, "host",
			addressOfGateway(*d.gateway), "address", f.remote, "leg_id", d.leg)
		trunks{d.server}.noteSilent(d.gateway.ID, f)
	}
}

// reachOther returns a path to the first address of a gateway that accepts a connection and is not in
// the list tried. If first is an address of the gateway, reachOther tries it before the others. The zero
// address means no preference. reachOther adds each address that it tries to the list.
func (s trunks) reachOther(
	ctx context.Context, g fabric.Gateway, first netip.AddrPort, tried *[]netip.AddrPort,
) (flow, error) {
	if len(*tried) >= maxTargets {
		return flow{}, errNoOther
	}
	limit := maxTargets
	if first.IsValid() {
		limit = maxAddresses
	}
	addresses, err := s.resolve(ctx, g, limit)
	if err != nil {
		return flow{}, err
	}
	if i := slices.Index(addresses, first); i > 0 {
		addresses = slices.Insert(slices.Delete(addresses, i, i+1), 0, first)
	}

	err = errNoOther
	for _, at := range addresses {
		if len(*tried) >= maxTargets || slices.Contains(*tried, at) {
			continue
		}
		*tried = append(*tried, at)
		f, dialed := s.flowTo(ctx, g, at)
		if dialed == nil {
			return f, nil
		}
		err = dialed
	}
	return flow{}, err
}

// reach returns a path to a gateway at an address or, if that cannot be reached, at another
// address. It adds each address that it tries to the list tried.
func (s trunks) reach(
	ctx context.Context, g fabric.Gateway, at netip.AddrPort, tried *[]netip.AddrPort,
) (flow, error) {
	*tried = append(*tried, at)
	f, err := s.flowTo(ctx, g, at)
	if err == nil {
		return f, nil
	}
	other, errOther := s.reachOther(ctx, g, netip.AddrPort{}, tried)
	if errors.Is(errOther, errNoOther) {
		return flow{}, err
	}
	return other, errOther
}

// failover calls the gateway of a dialog at one address after the other.
type failover struct{ *dialog }

// tryOther repeats an INVITE to which a gateway has not responded soon at another address of the gateway.
// It reports whether it repeated the INVITE.
func (d failover) tryOther(invite *sip.Request) bool {
	d.trying.Lock()
	defer d.trying.Unlock()
	d.mu.Lock()
	isPresent := d.invite == invite
	d.mu.Unlock()
	return isPresent && d.failOver(nil)
}

// formerOf returns the dialog that handles the answers to an INVITE if the INVITE was repeated at another
// address of the gateway. Otherwise, it returns nil. If the answer is not a refusal, tryOther then no longer
// repeats the INVITE.
func (d failover) formerOf(invite *sip.Request, answer *sip.Response) *dialog {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.invite == invite && answer != nil && answer.StatusCode < 300 {
		d.heard = true
	}
	return d.former[invite]
}

// answeredLate handles a late answer to an INVITE that was repeated at another address of the gateway. A
// provisional answer causes a CANCEL, and a 200 causes a BYE. Otherwise, the callee would get two calls.
func (d failover) answeredLate(answer *sip.Response) {
	d.noteAnswer(answer)
	switch {
	case answer == nil:
	case answer.StatusCode < 200:
		d.ringing(answer)
	case answer.StatusCode < 300:
		d.accept(answer)
	}
}

// failOver repeats the INVITE at another address of the gateway if answer is a 503, or is nil because
// the gateway has not answered (RFC 3263, section 4.3). It reports whether it repeated the INVITE. The
// caller holds trying.
func (d failover) failOver(answer *sip.Response) bool {
	if d.gateway == nil || !d.isRefused(answer) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), handleFor)
	defer cancel()
	before := len(d.tried)
	f, err := trunks{d.server}.reachOther(ctx, *d.gateway, netip.AddrPort{}, &d.tried)
	if err != nil {
		if !errors.Is(err, errNoOther) {
			d.server.log.Warn("calling another address of a SIP gateway", "gateway_id", d.gateway.ID,
				"leg_id", d.leg, "error", err)
		}
		return false
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.refuses(answer) { // the gateway has just responded, and may still answer with 503
		d.tried = d.tried[:before]
		return false
	}
	d.leaveAddress(answer)
	d.flow = f
	d.authorized = false
	d.heard = false // a CANCEL must wait for a response to the new INVITE
	d.sendInvite(nil)
	return true
}

// leaveAddress makes another dialog handle late answers to the present INVITE. answer is as in failOver. The
// caller holds mu.
func (d failover) leaveAddress(answer *sip.Response) {
	if answer == nil {
		trunks{d.server}.noteSilent(d.gateway.ID, d.flow)
	}
	former := d.fork()
	former.sent = d.sent
	former.reason = reasonOf(calls.OriginatorCancel)
	if d.former == nil {
		d.former = make(map[*sip.Request]*dialog)
	}
	d.former[d.invite] = former
}

// isRefused reports whether an answer means that the gateway cannot take the call at this address.
func (d failover) isRefused(answer *sip.Response) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refuses(answer)
}

// refuses implements isRefused. The caller holds mu.
func (d failover) refuses(answer *sip.Response) bool {
	if d.over || d.confirmed {
		return false
	}
	if answer == nil {
		return !d.heard
	}
	return answer.StatusCode == 503
}
