package sip_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// A zone is what the server's resolver knows. Without records, the resolver knows only this machine's
// own names.
type zone struct{ server atomic.Pointer[net.UDPConn] }

// dial connects to the DNS server of the zone.
func (z *zone) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	server := z.server.Load()
	if server == nil {
		return nil, errors.New("there is no DNS server")
	}
	return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
}

// serve starts a DNS server. All names have an SRV record for each address, the preferred one first.
func (z *zone) serve(t *testing.T, hosts ...netip.AddrPort) {
	t.Helper()
	conn := must[*net.UDPConn](t)(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return // the test has ended
			}
			if reply := answerTo(b[:n], hosts); reply != nil {
				_, _ = conn.WriteTo(reply, from) // if this fails, the resolver repeats its query
			}
		}
	}()
	z.server.Store(conn)
}

// hostName is the format of the host names in SRV records.
const hostName = "sip%d.isp.example."

// answerTo returns the response to a query.
func answerTo(query []byte, hosts []netip.AddrPort) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.Additionals = true, nil
	q := m.Questions[0]

	head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	switch q.Type {
	case dnsmessage.TypeA, dnsmessage.TypeAAAA:
		var i int
		if _, err := fmt.Sscanf(q.Name.String(), hostName, &i); err == nil && i < len(hosts) {
			m.Answers = addressRecord(head, hosts[i].Addr())
		}
	case dnsmessage.TypeSRV:
		for i, host := range hosts {
			record := &dnsmessage.SRVResource{
				Priority: uint16(i),
				Port:     host.Port(),
				Target:   dnsmessage.MustNewName(fmt.Sprintf(hostName, i)),
			}
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: record})
		}
	}

	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}

// addressRecord returns the record that answers a query for an address, or nil if the address has a
// different type.
func addressRecord(head dnsmessage.ResourceHeader, a netip.Addr) []dnsmessage.Resource {
	var body dnsmessage.ResourceBody = &dnsmessage.AAAAResource{AAAA: a.As16()}
	if a.Is4() {
		body = &dnsmessage.AResource{A: a.As4()}
	}
	if a.Is4() != (head.Type == dnsmessage.TypeA) {
		return nil
	}
	return []dnsmessage.Resource{{Header: head, Body: body}}
}
