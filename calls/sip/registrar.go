package sip

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/fabric"
)

// These constants determine how often gateways are read and registrations are renewed.
const (
	gatewaysEvery = 10 * time.Second
	registerFor   = 5 * time.Minute // requested length of a registration
	maxRegister   = 24 * time.Hour  // the longest length that a gateway may require
	retryAfter    = time.Minute     // pause after a failed registration
	registrarFor  = 30 * time.Second
	reachFor      = 2 * dialFor // time limit for finding a gateway's address and connecting to it

	// The number of registrations waiting for a response is limited, both in total and for each
	// project. Therefore, gateways that do not respond cannot keep the server from registering at
	// other projects' gateways. maxRegistered is the maximum number of registrations per project.
	maxAtRegister = 64
	maxOfProject  = 4
	maxRegistered = 100
)

// An enrollment is the state of the server's registration at a gateway. Server.mu guards it.
type enrollment struct {
	gateway     fabric.Gateway // as of the first REGISTER
	callID, tag string
	seq         uint32
	path        flow      // the path of the registration
	expires     uint64    // requested length of the registration in seconds; 0 ends it
	lengthened  bool      // the gateway has made the pending registration request a longer length
	user        string    // the user in our Contact header; only the gateway knows it
	next        time.Time // when to register again
	until       time.Time // when the registration expires; zero without a registration
	refused     bool      // the gateway has refused a REGISTER since the last success
	pending     bool
	tried       []netip.AddrPort // the addresses that the pending registration has tried
	attempt     flow             // the path of its latest REGISTER; zero without one
}

// A registrar registers a [Server] at gateways.
type registrar struct{ *Server }

// runGateways updates the list of gateways and registers at those that require it, until ctx ends.
func (s registrar) runGateways(ctx context.Context) {
	tick := time.NewTicker(gatewaysEvery)
	defer tick.Stop()
	for {
		if err := s.readGateways(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("reading SIP gateways", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// readGateways reads all gateways, and begins the registrations that are due.
func (s registrar) readGateways(ctx context.Context) error {
	gateways, err := s.c.Fabric.Gateways.All(ctx)
	if err != nil {
		return err
	}

	s.logDamage(gateways)
	networks := make(map[netip.Prefix]bool)
	registers := make(map[string]bool) // by id
	for _, g := range gateways {
		registers[g.ID] = g.Registers
		for _, n := range g.Networks {
			networks[n] = true
		}
	}

	s.mu.Lock()
	s.networks = slices.Collect(maps.Keys(networks))
	waiting := make(map[string]int) // registrations by project; "" counts all
	for id, r := range s.registrations {
		if r.pending {
			waiting[r.gateway.ProjectID]++
			waiting[""]++
		}
		if !registers[id] {
			delete(s.registrations, id)
			s.endSoon(r)
		}
	}
	s.mu.Unlock()

	wanted := make(map[string]int) // registrations by project
	for _, g := range gateways {
		if !g.Registers || g.Damage != nil {
			continue
		}
		wanted[g.ProjectID]++
		if wanted[g.ProjectID] <= maxRegistered && !s.isLeaving() && s.isRegistrar(ctx, g) {
			s.registerAt(ctx, g, waiting)
		}
	}
	return nil
}

// logDamage logs which passwords of gateways cannot be opened. It logs each gateway once, and again
// after the gateway was changed.
func (s registrar) logDamage(gateways []fabric.Gateway) {
	damaged := make(map[string]time.Time)
	for _, g := range gateways {
		if g.Damage != nil {
			damaged[g.ID] = g.Updated
		}
	}
	s.mu.Lock()
	logged := s.damaged
	s.damaged = damaged
	s.mu.Unlock()

	for _, g := range gateways {
		if g.Damage != nil && !logged[g.ID].Equal(g.Updated) {
			s.log.Error("opening the password of a SIP gateway", "gateway_id", g.ID, "error", g.Damage)
		}
	}
}

// registerAt registers at a gateway if a registration is due, unless too many registrations are
// waiting. It does not wait for the gateway.
func (s registrar) registerAt(ctx context.Context, g fabric.Gateway, waiting map[string]int) {
	now := time.Now()
	s.mu.Lock()
	r := s.registrations[g.ID]
	if r == nil || r.gateway.Updated != g.Updated {
		r = s.enroll(g, r)
		s.registrations[g.ID] = r
	}

	due := !r.pending && !now.Before(r.next) && waiting[""] < maxAtRegister && waiting[g.ProjectID] < maxOfProject
	if due {
		r.pending = true
		r.lengthened = false
		r.tried = nil
	}
	s.mu.Unlock()
	if !due {
		return
	}

	waiting[""]++
	waiting[g.ProjectID]++
	go func() {
		defer s.recoverPanic()
		s.reachRegistrar(ctx, g, r)
	}()
}

// enroll returns a new enrollment at a gateway. former is the enrollment before the gateway was changed,
// or nil. If the registration continues, the new enrollment takes it over. It has the same Contact, so
// that the gateway does not send each call twice. The caller holds mu.
func (s registrar) enroll(g fabric.Gateway, former *enrollment) *enrollment {
	r := &enrollment{
		gateway: g,
		callID:  rand.Text() + "@selvage",
		tag:     newTag(),
		expires: uint64(registerFor.Seconds()),
		user:    rand.Text(),
	}
	if former == nil {
		return r
	}
	isSame := addressOfGateway(g) == addressOfGateway(former.gateway) && g.Username == former.gateway.Username &&
		g.Transport == former.gateway.Transport
	if isSame {
		r.user, r.path, r.until = former.user, former.path, former.until
		return r
	}
	s.endSoon(former)
	return r
}

// reachRegistrar sends a REGISTER to the first address of a gateway that was not tried and can be
// reached. To renew a registration, it first tries the address of the registration.
func (s registrar) reachRegistrar(ctx context.Context, g fabric.Gateway, r *enrollment) {
	ctx, cancel := context.WithTimeout(ctx, reachFor)
	defer cancel()
	f, err := trunks(s).reachOther(ctx, g, s.registeredTo(r), &r.tried)
	if err != nil {
		if !errors.Is(err, errNoOther) {
			s.log.Warn("registering at a SIP gateway", "gateway_id", g.ID, "host", addressOfGateway(g), "error", err)
		}
		s.registered(r, f, 0)
		return
	}
	s.mu.Lock()
	r.attempt = f
	s.mu.Unlock()
	s.sendRegister(g, r, f, nil)
}

// registeredTo returns the gateway's address at which the server is registered, or the zero address if
// there is no registration or the gateway refuses to renew it.
func (s registrar) registeredTo(r *enrollment) netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.refused || !time.Now().Before(r.until) {
		return netip.AddrPort{}
	}
	return r.path.remote
}

// sendRegister sends a REGISTER to a gateway. authorization may be nil.
func (s registrar) sendRegister(g fabric.Gateway, reg *enrollment, f flow, authorization sip.Header) {
	r := s.newRegister(g, reg, f, authorization)
	sent := time.Now()
	s.request(r, f, answerWithin, func(answer *sip.Response) {
		if answer == nil {
			f.closeIfSilent(sent)
		}
		if answer == nil || answer.StatusCode >= 200 {
			s.answeredRegister(g, reg, f, authorization != nil, answer)
		}
	})
}

// newRegister returns a REGISTER for a gateway (RFC 3261, section 10.2).
func (s registrar) newRegister(
	g fabric.Gateway, reg *enrollment, f flow, authorization sip.Header,
) *sip.Request {
	s.mu.Lock()
	reg.seq++
	seq := reg.seq
	expires := sip.ExpiresHeader(reg.expires)
	s.mu.Unlock()
	who := sip.Uri{Scheme: "sip", User: escapeUser(g.Username), Host: uriHost(g.Host)}
	r := s.newRequest(sip.REGISTER, gatewayURI(g, ""), f)
	r.AppendHeader(&sip.FromHeader{Address: who, Params: sip.HeaderParams{{K: "tag", V: reg.tag}}})
	r.AppendHeader(&sip.ToHeader{Address: who})
	id := sip.CallIDHeader(reg.callID)
	r.AppendHeader(&id)
	r.AppendHeader(&sip.CSeqHeader{SeqNo: seq, MethodName: sip.REGISTER})
	contact := s.contactFor(f).(*sip.ContactHeader)
	contact.Address.User = reg.user
	r.AppendHeader(contact)
	r.AppendHeader(&expires)
	r.AppendHeader(userAgent)
	if authorization != nil {
		r.AppendHeader(authorization)
	}
	r.SetBody(nil)
	return r
}

// answeredRegister handles answer, the response to a REGISTER. answer is nil if no response
// arrived.
func (s registrar) answeredRegister(g fabric.Gateway, reg *enrollment, f flow, authorized bool, answer *sip.Response) {
	if answer != nil {
		s.silent.remove(silentKey{g.ID, f.remote})
	}
	switch {
	case answer == nil:
		trunks(s).noteSilent(g.ID, f)
		s.log.Warn("a SIP gateway does not answer", "gateway_id", g.ID, "host", addressOfGateway(g))
	case answer.StatusCode < 300:
		s.registered(reg, f, expiryOf(answer, reg.user))
		return
	case answer.StatusCode == 423 && s.lengthen(reg, answer):
		s.sendRegister(g, reg, f, nil)
		return
	case !authorized:
		uri := gatewayURI(g, "")
		if h, ok := answerChallenge(answer, sip.REGISTER, uri.String(), g.Username, g.Password); ok {
			s.sendRegister(g, reg, f, h)
			return
		}
		fallthrough
	default:
		s.log.Warn("a SIP gateway refuses the registration", "gateway_id", g.ID, "host", addressOfGateway(g),
			"status", answer.StatusCode)
	}

	if answer == nil || answer.StatusCode == 503 { // RFC 3263, section 4.3
		s.reachRegistrar(context.Background(), g, reg)
		return
	}
	s.mu.Lock()
	reg.refused = true
	s.mu.Unlock()
	s.registered(reg, f, 0)
}

// lengthen makes the following REGISTERs request the length that a gateway requires in its answer
// (RFC 3261, section 10.2.8). It returns false if a different length would not help, or if the
// pending registration was lengthened before.
func (s registrar) lengthen(reg *enrollment, answer *sip.Response) bool {
	h := answer.GetHeader("min-expires")
	if h == nil {
		return false
	}
	least, err := strconv.ParseUint(strings.TrimSpace(h.Value()), 10, 32)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	isUseful := least > reg.expires && least <= uint64(maxRegister.Seconds())
	isEnding := reg.expires == 0
	if reg.lengthened || isEnding || !isUseful {
		return false
	}
	reg.expires = least
	reg.lengthened = true
	return true
}

// registered records a registration over f that lasts for the given time. A time of 0 means that the
// registration failed. An earlier registration remains valid in this case.
func (s registrar) registered(reg *enrollment, f flow, lasts time.Duration) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	reg.pending = false
	reg.attempt = flow{}
	if lasts == 0 {
		reg.next = now.Add(retryAfter)
		return
	}
	reg.path = f
	reg.refused = false
	reg.until = now.Add(lasts)
	reg.next = now.Add(max(lasts/2, gatewaysEvery))
}

// lostConnection is called when the connection t has ended. It makes the registrations over t due,
// because gateways send calls over the connection of their registration. If t has lasted less than
// retryAfter, the registrations are due only after retryAfter. Otherwise, a gateway that closes each
// connection would get a REGISTER every few seconds.
func (s registrar) lostConnection(t *stream, opened time.Time) {
	next := time.Now()
	if next.Sub(opened) < retryAfter {
		next = next.Add(retryAfter)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.registrations {
		if r.path.tcp == t && next.Before(r.next) {
			r.next = next
		}
	}
}

// expiryOf returns how long a registration lasts, according to our contact in the response.
func expiryOf(r *sip.Response, user string) time.Duration {
	for _, h := range r.GetHeaders("contact") {
		if c, ok := h.(*sip.ContactHeader); ok && c.Address.User == user {
			if own, ok := c.Params.Get("expires"); ok {
				return max(seconds(own), time.Second)
			}
		}
	}
	if h := r.GetHeader("expires"); h != nil {
		return max(seconds(h.Value()), time.Second)
	}
	return registerFor
}
