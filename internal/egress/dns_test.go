package egress_test

import (
	"context"
	"net"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// resolver returns a resolver that queries a DNS server within the test. The server calls answer for the
// address of a name.
func resolver(t *testing.T, answer func(name string) net.IP) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })

	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return // the test has ended
			}
			if reply := respond(buf[:n], answer); reply != nil {
				_, _ = conn.WriteTo(reply, from) // if this fails, the resolver repeats its query
			}
		}
	}()
	return &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
		},
	}
}

// respond returns the response to a query for an A or AAAA record. The response contains an address
// only if answer returns an address of the requested type.
func respond(query []byte, answer func(name string) net.IP) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}

	m.Response, m.Additionals = true, nil
	q := m.Questions[0]

	head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	switch q.Type {
	case dnsmessage.TypeA:
		if ip := answer(q.Name.String()).To4(); ip != nil {
			m.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: [4]byte(ip)}}}
		}
	case dnsmessage.TypeAAAA:
		if ip := answer(q.Name.String()); ip.To4() == nil {
			m.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AAAAResource{AAAA: [16]byte(ip)}}}
		}
	}

	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}
