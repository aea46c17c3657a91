package sip

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestWaitingRequests shows that requests that wait for an earlier request of their dialog leave the
// workers to other phones. Later, they are handled in their order. The number that may wait is limited.
func TestWaitingRequests(t *testing.T) {
	loopback := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}
	udp, err := net.ListenUDP("udp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	phone, err := net.ListenUDP("udp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = udp.Close(), phone.Close() })

	f := flow{udp: udp, remote: netip.MustParseAddrPort(phone.LocalAddr().String())}
	s := New(Config{UDP: udp})
	d := &dialog{server: s, key: dialogKey{"call", "ours"}, leg: "leg", flow: f, remoteTag: "theirs"}
	s.add(d)
	_, done, _ := d.order.enter(func(bool) bool { return true }) // a request that takes long
	for seq := range maxWaiting {
		s.receive(fmt.Appendf(nil, "OPTIONS sip:selvage.test SIP/2.0\r\n"+
			"Via: SIP/2.0/UDP %s;rport;branch=z9hG4bK%d\r\nFrom: <sip:a@selvage.test>;tag=theirs\r\n"+
			"To: <sip:b@selvage.test>;tag=ours\r\nCall-ID: call\r\nCSeq: %d OPTIONS\r\n"+
			"Content-Length: 0\r\n\r\n", f.remote, seq, seq+1), f)
	}
	if n := len(s.workers); n != 0 {
		t.Errorf("waiting requests use %d workers, want none", n)
	}
	if n := s.counters.limited.Load(); n != 1 {
		t.Errorf("%d requests were dropped, want only the last one", n)
	}

	done()
	_ = phone.SetReadDeadline(time.Now().Add(time.Minute))
	b := make([]byte, 2048)
	for seq := range maxWaiting - 1 {
		n, err := phone.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b[:n]), fmt.Sprintf("CSeq: %d ", seq+1)) {
			t.Errorf("response %d is\n%s\nwant the response to request %d", seq, b[:n], seq+1)
		}
	}
}
