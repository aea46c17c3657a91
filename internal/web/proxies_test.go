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

	forwardedFor := func(lines ...string) http.Header { return http.Header{"X-Forwarded-For": lines} }
	forwarded := func(line string) http.Header { return http.Header{"Forwarded": {line}} }
	both := func(first, second string) http.Header {
		return http.Header{"X-Forwarded-For": {first}, "Forwarded": {second}}
	}

	fromProxy := []struct {
		name   string
		header http.Header
		want   string
	}{
		{"no header", nil, "10.0.0.1"},
		{"a client", forwardedFor("198.51.100.1"), "198.51.100.1"},
		{"a client with IPv6", forwardedFor("2001:db8::1"), "2001:db8::1"},
		{"with a port", forwardedFor("198.51.100.1:99"), "198.51.100.1"},
		{"in brackets", forwardedFor("[2001:db8::1]:99"), "2001:db8::1"},
		{"a forged address comes first", forwardedFor("192.0.2.66, 198.51.100.1"), "198.51.100.1"},
		{"two proxies", forwardedFor("192.0.2.66, 198.51.100.1, 10.0.0.2"), "198.51.100.1"},
		{"two lines", forwardedFor("192.0.2.66", "198.51.100.1, 10.0.0.2"), "198.51.100.1"},
		{"a client that pretends to be a proxy", forwardedFor("192.0.2.66, 10.0.0.3"), "192.0.2.66"},
		{"only proxies", forwardedFor("10.0.0.3, 10.0.0.2"), "10.0.0.3"},
		{"garbage", forwardedFor("' OR 1=1--"), "10.0.0.1"},
		{"garbage before a proxy", forwardedFor("192.0.2.66, unknown, 10.0.0.2"), "10.0.0.2"},
		{"an empty hop", forwardedFor("192.0.2.66,"), "10.0.0.1"},
		{"many proxies", forwardedFor(long + "198.51.100.7"), "198.51.100.7"},
		{
			name:   "Forwarded",
			header: forwarded(`for=192.0.2.66, For="[2001:db8::1]:80";proto=https;by=10.0.0.2`),
			want:   "2001:db8::1",
		},
		{
			name:   "Forwarded from two proxies",
			header: forwarded(`proto=http;for=198.51.100.1, for=10.0.0.2`),
			want:   "198.51.100.1",
		},
		{
			name:   "Forwarded with an obfuscated name",
			header: forwarded("for=_hidden"),
			want:   "10.0.0.1",
		},
		{
			name:   "Forwarded with a quoted comma",
			header: forwarded(`for=198.51.100.1;host="a,for=192.0.2.66"`),
			want:   "198.51.100.1",
		},
		{"both headers", both("198.51.100.1", "for=192.0.2.66"), "198.51.100.1"},
	}

	var p Proxies
	clientOf := func(peer string, header http.Header) (client string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		r.Header = header
		h := p.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { client = Address(r) }))
		h.ServeHTTP(httptest.NewRecorder(), r)
		return client
	}

	if got := clientOf(proxy, forwardedFor("198.51.100.1")); got != "10.0.0.1" {
		t.Errorf("without trusted proxies, the client is %q, want the peer, 10.0.0.1", got)
	}

	p.Set([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	for _, tt := range fromProxy {
		if got := clientOf(proxy, tt.header); got != tt.want {
			t.Errorf("%s: the client is %q, want %q", tt.name, got, tt.want)
		}
	}

	for _, tt := range []struct {
		name, peer string
		header     http.Header
		want       string
	}{
		{"no proxy", stranger, nil, "203.0.113.9"},
		{"a stranger", stranger, both("10.0.0.1", "for=10.0.0.1"), "203.0.113.9"},
		{"a proxy mapped to IPv6", "[::ffff:10.0.0.1]:1", forwardedFor("::ffff:198.51.100.1"), "198.51.100.1"},
		{"a listener that is not TCP", "@", forwardedFor("198.51.100.1"), ""},
	} {
		if got := clientOf(tt.peer, tt.header); got != tt.want {
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
					t.Errorf("the client %v was read from the header of an untrusted peer", client)
				}
			})
		}
	})
}
