package sip

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// These constants limit the messages from one network: the rate per second and the burst. An office
// with hundreds of phones may be one network.
const (
	messagesPerSecond = 1000
	messagesAtOnce    = 3000

	maxProven       = 10_000                  // the maximum number of proven networks of phones
	maxClaimed      = 5_000                   // the maximum number of proven networks of gateways over UDP
	provenFor       = maxExpiry + time.Minute // a network is proven while it renews registrations
	strangerBuckets = 4096

	// An INVITE to a phone number from an unknown network may come from a gateway that was created
	// since the gateways were last read. These constants limit how many of these INVITEs make the
	// server read the gateways again.
	newGatewaysPerSecond = 10
	newGatewaysAtOnce    = 50
)

// These constants limit the answers over UDP to a network in which no phone has authenticated. The
// network's address may be forged, and an answer is larger than its request.
const (
	answersPerSecond = 10
	answersAtOnce    = 50
)

// rates limits the messages of each network. A network is proven after a phone in it has
// authenticated, and then has its own limit. All other networks share limits. A hash of the network
// determines which limit it shares. Forged addresses can use up some of the shared limits, but
// never the limit of a proven network.
type rates struct {
	seed        maphash.Seed
	newGateways *rate.Limiter

	mu        sync.Mutex
	claimed   int // the number of proven networks of gateways over UDP
	proven    map[netip.Prefix]*provenRate
	strangers [strangerBuckets]strangerRate
}

type provenRate struct {
	claimed  bool // only a gateway has claimed it
	messages *rate.Limiter
	until    time.Time
}

// networkOf returns the network of an address, which limits count as one sender. This is a single
// IPv4 address, or the /64 of an IPv6 address, because one machine may use a whole /64.
func networkOf(a netip.Addr) netip.Prefix {
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // the address is valid
	return p
}

// A strangerRate has limits that are nil until they are used.
type strangerRate struct{ messages, answers *rate.Limiter }

func newRates() *rates {
	return &rates{
		seed:        maphash.MakeSeed(),
		proven:      make(map[netip.Prefix]*provenRate),
		newGateways: rate.NewLimiter(newGatewaysPerSecond, newGatewaysAtOnce),
	}
}

// prove records that a phone in a network has authenticated.
func (r *rates) prove(n netip.Prefix, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.proven[n]
	if p == nil || p.claimed {
		if len(r.proven)-r.claimed >= maxProven {
			return
		}
		r.remove(n)
		p = r.add(n)
	}
	p.until = now.Add(provenFor)
}

// claim is like prove, for a gateway that has sent a packet over UDP. The packet's address may be forged,
// so these networks have a separate maximum.
func (r *rates) claim(n netip.Prefix, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.proven[n]
	if p == nil {
		if r.claimed >= maxClaimed {
			return
		}
		p = r.add(n)
		p.claimed = true
		r.claimed++
	}
	p.until = now.Add(provenFor)
}

// add adds a proven network. The caller holds mu.
func (r *rates) add(n netip.Prefix) *provenRate {
	p := &provenRate{messages: rate.NewLimiter(messagesPerSecond, messagesAtOnce)}
	r.proven[n] = p
	return p
}

// remove removes a proven network, if it exists. The caller holds mu.
func (r *rates) remove(n netip.Prefix) {
	if p := r.proven[n]; p != nil && p.claimed {
		r.claimed--
	}
	delete(r.proven, n)
}

// isProven reports whether a phone in a network has authenticated recently, or a gateway has sent
// packets from it.
func (r *rates) isProven(n netip.Prefix) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.proven[n] != nil
}

// stranger returns the limits of a network that is not proven. The caller holds mu.
func (r *rates) stranger(n netip.Prefix) *strangerRate {
	s := &r.strangers[maphash.Comparable(r.seed, n)%strangerBuckets]
	if s.messages == nil {
		s.messages = rate.NewLimiter(messagesPerSecond, messagesAtOnce)
		s.answers = rate.NewLimiter(answersPerSecond, answersAtOnce)
	}
	return s
}

// allow counts a message, and reports whether it is within the limit.
func (r *rates) allow(n netip.Prefix, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.proven[n]; p != nil {
		return p.messages.AllowN(now, 1)
	}
	return r.stranger(n).messages.AllowN(now, 1)
}

// allowAnswer counts an answer to a request that is not authenticated, and reports whether it may
// be sent.
func (r *rates) allowAnswer(n netip.Prefix, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.proven[n] != nil || r.stranger(n).answers.AllowN(now, 1)
}

// allowNewGateway counts an INVITE from a network where no gateway is known, and reports whether a
// gateway may be looked up for this INVITE.
func (r *rates) allowNewGateway(now time.Time) bool { return r.newGateways.AllowN(now, 1) }

// sweep deletes networks that are no longer proven.
func (r *rates) sweep(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, p := range r.proven {
		if now.After(p.until) {
			r.remove(n)
		}
	}
}

// These constants limit the authenticated requests with one set of credentials, which up to 10
// phones share. The server remembers each request for half a minute.
const (
	requestsPerSecond = 10
	requestsAtOnce    = 50
)

// accountRates limits the authenticated requests with each set of credentials. The zero value is
// ready to use.
type accountRates struct {
	mu  sync.Mutex
	all map[string]*rate.Limiter // limiters by the id of the credentials
}

// allow counts a request, and reports whether it is within the limit.
func (r *accountRates) allow(credential string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = make(map[string]*rate.Limiter)
	}
	l := r.all[credential]
	if l == nil {
		l = rate.NewLimiter(requestsPerSecond, requestsAtOnce)
		r.all[credential] = l
	}
	return l.AllowN(now, 1)
}

// sweep deletes the limiters of idle credentials.
func (r *accountRates) sweep(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, l := range r.all {
		if l.TokensAt(now) >= requestsAtOnce {
			delete(r.all, id)
		}
	}
}
