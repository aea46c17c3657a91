package web

import (
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// Proxies holds the proxies that may report the client's address and certificate. The zero value
// trusts no proxy.
type Proxies struct {
	// CertificateHeader is the header in which proxies report the client's certificate, or "". Set
	// it before the first request.
	CertificateHeader string

	trusted atomic.Pointer[[]netip.Prefix]
}

// Set replaces the trusted proxies.
func (p *Proxies) Set(trusted []netip.Prefix) { p.trusted.Store(&trusted) }

// Handler sets RemoteAddr to the client's address, and TLS to the state with the client's
// certificate, before it calls next. If a proxy reported the address, the port is 0. Handler
// ignores reports from untrusted peers, and removes their certificate header.
func (p *Proxies) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, moved := p.client(r)
		if !moved && p.CertificateHeader == "" {
			next.ServeHTTP(w, r)
			return
		}

		reported := *r
		if p.CertificateHeader != "" {
			if p.trustsPeer(r) {
				forwardCertificate(&reported, p.CertificateHeader)
			} else {
				r.Header.Del(p.CertificateHeader)
			}
		}
		if moved {
			reported.RemoteAddr = netip.AddrPortFrom(client, 0).String()
		}
		next.ServeHTTP(w, &reported)
	})
}

// trustsPeer reports whether r comes directly from a trusted proxy.
func (p *Proxies) trustsPeer(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && p.trusts(peer.Addr())
}

// client returns the client's address. This is the last address on the request's path that does not
// belong to a trusted proxy. Earlier addresses may be forged. ok is false if the client is the peer
// itself, or if no proxy is trusted.
func (p *Proxies) client(r *http.Request) (client netip.Addr, ok bool) {
	if trusted := p.trusted.Load(); trusted == nil || len(*trusted) == 0 {
		return client, false
	}

	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !p.trusts(peer.Addr()) {
		return client, false
	}

	client = peer.Addr()
	for _, hop := range slices.Backward(hops(r.Header)) {
		at, ok := parseHop(hop)
		if !ok {
			break // unknown or obfuscated: use the address of the hop that reported it
		}
		client = at
		if !p.trusts(at) {
			break
		}
	}
	return client, client != peer.Addr()
}

func (p *Proxies) trusts(at netip.Addr) bool {
	trusted := p.trusted.Load()
	if trusted == nil {
		return false
	}
	at = at.Unmap().WithZone("")
	return slices.ContainsFunc(*trusted, func(prefix netip.Prefix) bool { return prefix.Contains(at) })
}

// maxHops is how many hops of a request's path are read; earlier hops are ignored.
const maxHops = 32

// hops returns the hops that proxies report for a request. The last hop is the nearest one. hops
// reads X-Forwarded-For or, if this header is missing, Forwarded (RFC 7239). If a proxy sets only
// one of these headers, the client may have set the other. A trusted proxy must therefore not pass
// on both headers.
func hops(h http.Header) []string {
	if lines := h.Values("X-Forwarded-For"); len(lines) > 0 {
		return last(strings.SplitSeq(strings.Join(lines, ","), ","))
	}
	way := last(splitQuoted(strings.Join(h.Values("Forwarded"), ","), ','))
	for i, element := range way {
		way[i] = forwardedFor(element)
	}
	return way
}

// last returns the last maxHops elements of all, and keeps no other elements in memory.
func last(all iter.Seq[string]) []string {
	var ring [maxHops]string
	n := 0
	for element := range all {
		ring[n%maxHops] = element
		n++
	}
	if n <= maxHops {
		return ring[:n]
	}
	return append(ring[n%maxHops:], ring[:n%maxHops]...)
}

// forwardedFor returns the parameter "for" in an element of Forwarded, or "".
func forwardedFor(element string) string {
	for pair := range splitQuoted(element, ';') {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if strings.EqualFold(name, "for") {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// splitQuoted returns the parts of s between separators that are not in a quoted string.
func splitQuoted(s string, separator byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		quoted, begin := false, 0
		for i := range len(s) {
			switch {
			case s[i] == '"':
				quoted = !quoted
			case s[i] == separator && !quoted:
				if !yield(s[begin:i]) {
					return
				}
				begin = i + 1
			}
		}
		yield(s[begin:])
	}
}

// maxHop is the maximum length in bytes of an address with a zone and a port.
const maxHop = 100

// parseHop parses an address with or without a port. It accepts 192.0.2.1, 192.0.2.1:80,
// 2001:db8::1, [2001:db8::1] and [2001:db8::1]:80.
func parseHop(hop string) (netip.Addr, bool) {
	hop = strings.TrimSpace(hop)
	if len(hop) > maxHop {
		return netip.Addr{}, false
	}
	if at, err := netip.ParseAddrPort(hop); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	if inner, ok := strings.CutPrefix(hop, "["); ok {
		hop = strings.TrimSuffix(inner, "]")
	}
	at, err := netip.ParseAddr(hop)
	return at.Unmap().WithZone(""), err == nil
}
