package web

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/fuzzcost"
)

func TestProxies(t *testing.T) {
	const proxy, stranger = "10.0.0.1:4000", "203.0.113.9:4000"
	long := strings.Repeat("198.51.100.1, ", 10_000)

	tests := []struct {
		name, peer string
		headers    map[string]string // the lines of a header are separated by |
		want       string
	}{
		{"no proxy", stranger, nil, "203.0.113.9"},
		{"a proxy that sends no header", proxy, nil, "10.0.0.1"},
		{"a client", proxy, map[string]string{"X-Forwarded-For": "198.51.100.1"}, "198.51.100.1"},
		{"a client with IPv6", proxy, map[string]string{"X-Forwarded-For": "2001:db8::1"}, "2001:db8::1"},
		{"with a port", proxy, map[string]string{"X-Forwarded-For": "198.51.100.1:99"}, "198.51.100.1"},
		{"in brackets", proxy, map[string]string{"X-Forwarded-For": "[2001:db8::1]:99"}, "2001:db8::1"},
		{"mapped to IPv6", "[::ffff:10.0.0.1]:1", map[string]string{"X-Forwarded-For": "::ffff:198.51.100.1"},
			"198.51.100.1"},
		{"a forged address comes first", proxy,
			map[string]string{"X-Forwarded-For": "192.0.2.66, 198.51.100.1"}, "198.51.100.1"},
		{"two proxies", proxy, map[string]string{"X-Forwarded-For": "192.0.2.66, 198.51.100.1, 10.0.0.2"},
			"198.51.100.1"},
		{"two lines", proxy, map[string]string{"X-Forwarded-For": "192.0.2.66|198.51.100.1, 10.0.0.2"},
			"198.51.100.1"},
		{"a client that pretends to be a proxy", proxy,
			map[string]string{"X-Forwarded-For": "192.0.2.66, 10.0.0.3"}, "192.0.2.66"},
		{"only proxies", proxy, map[string]string{"X-Forwarded-For": "10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"garbage", proxy, map[string]string{"X-Forwarded-For": "' OR 1=1--"}, "10.0.0.1"},
		{"garbage before a proxy", proxy,
			map[string]string{"X-Forwarded-For": "192.0.2.66, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"an empty hop", proxy, map[string]string{"X-Forwarded-For": "192.0.2.66,"}, "10.0.0.1"},
		{"many proxies", proxy, map[string]string{"X-Forwarded-For": long + "198.51.100.7"}, "198.51.100.7"},
		{"Forwarded", proxy, map[string]string{
			"Forwarded": `for=192.0.2.66, For="[2001:db8::1]:80";proto=https;by=10.0.0.2`,
		}, "2001:db8::1"},
		{"Forwarded from two proxies", proxy,
			map[string]string{"Forwarded": `proto=http;for=198.51.100.1, for=10.0.0.2`}, "198.51.100.1"},
		{"Forwarded with an obfuscated name", proxy, map[string]string{"Forwarded": "for=_hidden"}, "10.0.0.1"},
		{"Forwarded with a quoted comma", proxy,
			map[string]string{"Forwarded": `for=198.51.100.1;host="a,for=192.0.2.66"`}, "198.51.100.1"},
		{"both", proxy, map[string]string{"X-Forwarded-For": "198.51.100.1", "Forwarded": "for=192.0.2.66"},
			"198.51.100.1"},
		{"a stranger", stranger, map[string]string{"X-Forwarded-For": "10.0.0.1",
			"Forwarded": "for=10.0.0.1"}, "203.0.113.9"},
		{"a listener that is not TCP", "@", map[string]string{"X-Forwarded-For": "198.51.100.1"}, ""},
	}

	var p Proxies
	var got string
	h := p.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = Address(r) }))
	ask := func(peer string, headers map[string]string) string {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		for name, lines := range headers {
			r.Header[name] = strings.Split(lines, "|")
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		return got
	}

	if got := ask(proxy, map[string]string{"X-Forwarded-For": "198.51.100.1"}); got != "10.0.0.1" {
		t.Errorf("without trusted proxies, the client is %s, want the peer", got)
	}

	p.Set([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	for _, tt := range tests {
		if got := ask(tt.peer, tt.headers); got != tt.want {
			t.Errorf("%s: the client is %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzProxies(f *testing.F) {
	f.Add("198.51.100.1, 10.0.0.2", `for="[2001:db8::1]:80";proto=https`)
	f.Add(",,", `for="`)
	f.Add(strings.Repeat(",", 1<<15), strings.Repeat(`",`, 1<<14))
	f.Add(strings.Repeat("10.0.0.1,", 1<<12), strings.Repeat("for=10.0.0.1;", 1<<11))
	f.Add("["+strings.Repeat(":", 1<<15)+"]", strings.Repeat(";", 1<<15))
	var p Proxies
	p.Set([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})

	f.Fuzz(func(t *testing.T, forwardedFor, forwarded string) {
		for _, h := range []http.Header{{"X-Forwarded-For": {forwardedFor}}, {"Forwarded": {forwarded}}} {
			fuzzcost.Parser.Check(t, len(forwardedFor)+len(forwarded), func() {
				r := &http.Request{RemoteAddr: "10.0.0.1:1", Header: h}
				if client, ok := p.client(r); ok && !client.IsValid() {
					t.Errorf("the client of %v is %v, which is not a valid address", h, client)
				}
				r.RemoteAddr = "203.0.113.9:1"
				if client, ok := p.client(r); ok {
					t.Errorf("the header from the untrusted peer %v was used", client)
				}
			})
		}
	})
}
