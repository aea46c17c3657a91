package sip

import (
	"net/netip"
	"testing"
	"time"
)

// forged returns the network of the forged address with index i.
func forged(i int) netip.Prefix {
	return networkOf(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
}

// TestForgedSources shows that messages from forged addresses do not use up the limits of phones.
func TestForgedSources(t *testing.T) {
	r, now := newRates(), time.Now()
	home := networkOf(netip.MustParseAddr("198.51.100.1"))
	r.prove(home, now)
	for i := range 100_000 {
		r.allow(forged(i), now)
	}
	for name, network := range map[string]netip.Prefix{
		"a known network": home,
		"a new network":   networkOf(netip.MustParseAddr("203.0.113.1")),
	} {
		for i := range 100 {
			if !r.allow(network, now) {
				t.Fatalf("message %d from %s was refused, want 100 to be allowed", i+1, name)
			}
		}
	}

	for range 2 * messagesAtOnce {
		r.allow(home, now)
	}
	if r.allow(home, now) {
		t.Errorf("a known network may send more than %d messages at once", messagesAtOnce)
	}
}

// TestForgedGateways shows that gateways with forged addresses do not keep the networks of phones from being
// proven, and that phones do not keep the networks of gateways from being
// proven.
func TestForgedGateways(t *testing.T) {
	r, now := newRates(), time.Now()
	for i := range 2 * maxProven {
		r.claim(forged(i), now)
	}
	if n := len(r.proven); n != maxClaimed {
		t.Errorf("%d networks of gateways are proven, want %d", n, maxClaimed)
	}
	for i := range 2 * maxProven {
		r.prove(forged(i), now)
	}
	if n := len(r.proven); n != maxProven {
		t.Errorf("%d networks of phones are proven, want %d", n, maxProven)
	}

	home := networkOf(netip.MustParseAddr("198.51.100.1"))
	r.claim(home, now)
	if !r.isProven(home) {
		t.Error("the network of a gateway is not proven while many phones are registered")
	}
	r.sweep(now.Add(provenFor + time.Second))
	if len(r.proven) != 0 || r.claimed != 0 {
		t.Errorf("after a while, %d networks are left, %d of them of gateways, want none", len(r.proven), r.claimed)
	}
}

// TestAnswersToStrangers shows that an address that may be forged gets few answers until a phone
// there has authenticated.
func TestAnswersToStrangers(t *testing.T) {
	r, now := newRates(), time.Now()
	network := forged(1)
	count := func() (answers int) {
		for range 1000 {
			if r.allowAnswer(network, now) {
				answers++
			}
		}
		return answers
	}

	if got := count(); got != answersAtOnce {
		t.Errorf("a stranger gets %d answers at once, want %d", got, answersAtOnce)
	}
	r.prove(network, now)
	if got := count(); got != 1000 {
		t.Errorf("a known network gets %d answers to 1000 requests, want 1000", got)
	}

	now = now.Add(provenFor + time.Second)
	r.sweep(now)
	if got := count(); got != answersAtOnce {
		t.Errorf("a network that is no longer known gets %d answers at once, want %d", got, answersAtOnce)
	}
}

// TestNewGateways shows that strangers who call phone numbers cannot keep the database busy, no
// matter how many networks they use.
func TestNewGateways(t *testing.T) {
	r, now := newRates(), time.Now()
	allowed := 0
	for range 1000 {
		if r.allowNewGateway(now) {
			allowed++
		}
	}
	if allowed != newGatewaysAtOnce {
		t.Errorf("%d of 1000 INVITEs are looked up at once, want %d", allowed, newGatewaysAtOnce)
	}
}

// TestNonceShare shows that one set of credentials cannot use up the nonces of all other
// credentials. A nonce that was evicted cannot be used again.
func TestNonceShare(t *testing.T) {
	issued := nonces{secret: []byte("secret")}
	now, address := time.Now(), netip.MustParseAddr("192.0.2.1")
	issue := func() [16]byte {
		now = now.Add(time.Microsecond)
		nonce, _ := issued.open(issued.issue(address, now), address)
		return nonce
	}

	first := issue()
	issued.use("mallory", first, "00000001", now)
	for range 2 * noncesEach {
		if !issued.use("mallory", issue(), "00000001", now) {
			t.Fatal("a fresh nonce was refused")
		}
	}

	if len(issued.used) != noncesEach {
		t.Errorf("%d nonces are remembered, want %d", len(issued.used), noncesEach)
	}
	if issued.use("mallory", first, "00000002", now) {
		t.Error("a nonce that is no longer remembered was accepted again")
	}
	if !issued.use("victim", issue(), "00000001", now) {
		t.Error("a fresh nonce of other credentials was refused")
	}

	issued.sweep(now.Add(nonceFor + time.Second))
	if len(issued.used) != 0 {
		t.Errorf("after all nonces have expired, %d are remembered, want none", len(issued.used))
	}
	if len(issued.by) != 0 {
		t.Errorf("after all nonces have expired, %d credentials have a share, want none", len(issued.by))
	}
}

// TestAccountRates shows that requests with one set of credentials do not count for other
// credentials.
func TestAccountRates(t *testing.T) {
	var r accountRates
	now, allowed := time.Now(), 0
	for range 1000 {
		if r.allow("mallory", now) {
			allowed++
		}
	}
	if allowed != requestsAtOnce {
		t.Errorf("%d requests at once were accepted, want %d", allowed, requestsAtOnce)
	}
	if !r.allow("victim", now) {
		t.Error("a request with other credentials was refused")
	}
	r.sweep(now.Add(time.Minute))
	if len(r.all) != 0 {
		t.Errorf("%d credentials are left, want none", len(r.all))
	}
}
