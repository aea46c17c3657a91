package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// Proxies are those whose word counts on where a request comes from. The zero value
// trusts nobody.
type Proxies struct {
	trusted atomic.Pointer[[]netip.Prefix]
}

// Set says whom to trust from now on.
func (p *Proxies) Set(trusted []netip.Prefix) { p.trusted.Store(&trusted) }

// Handler has next see the client's address as the request's RemoteAddr, with port
// 0 where a proxy told it. What others say of themselves is not looked at.
func (p *Proxies) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client, ok := p.client(r); ok {
			told := *r
			told.RemoteAddr = netip.AddrPortFrom(client, 0).String()
			r = &told
		}
		next.ServeHTTP(w, r)
	})
}

// client returns who asked the proxies that a request came through: the last address
// of the way which is not one of theirs. What stands before that one may be made up.
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
			break // unknown, or hidden: whoever told it is the last that is known
		}
		if client = at; !p.trusts(at) {
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

// maxHops bounds how much of a way is read.
const maxHops = 32

// hops returns the way of a request as the proxies tell it, the nearest last: that of
// X-Forwarded-For, else that of Forwarded (RFC 7239). Of a proxy that sets one of
// them the other is the client's own, so that a trusted one must not let both through.
func hops(h http.Header) []string {
	way := strings.Split(strings.Join(h.Values("X-Forwarded-For"), ","), ",")
	if len(h.Values("X-Forwarded-For")) == 0 {
		way = nil
		for _, element := range splitQuoted(strings.Join(h.Values("Forwarded"), ","), ',') {
			way = append(way, forwardedFor(element))
		}
	}
	return way[max(0, len(way)-maxHops):]
}

// forwardedFor returns the node that an element of Forwarded is for, or "".
func forwardedFor(element string) string {
	for _, pair := range splitQuoted(element, ';') {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if strings.EqualFold(name, "for") {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// splitQuoted splits at a separator that is in no quoted string.
func splitQuoted(s string, separator byte) (parts []string) {
	quoted, begin := false, 0
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == separator && !quoted:
			parts = append(parts, s[begin:i])
			begin = i + 1
		}
	}
	return append(parts, s[begin:])
}

// parseHop reads an address with or without a port: 192.0.2.1, 192.0.2.1:80,
// 2001:db8::1, [2001:db8::1], [2001:db8::1]:80.
func parseHop(hop string) (netip.Addr, bool) {
	hop = strings.TrimSpace(hop)
	if at, err := netip.ParseAddrPort(hop); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	if inner, ok := strings.CutPrefix(hop, "["); ok {
		hop = strings.TrimSuffix(inner, "]")
	}
	at, err := netip.ParseAddr(hop)
	return at.Unmap().WithZone(""), err == nil
}
