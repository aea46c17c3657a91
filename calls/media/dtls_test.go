package media

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/srtp/v3"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/sdp"
)

// FuzzDTLS looks for packets from a verified client that break the DTLS library. A panic in one of
// the library's goroutines would end the process. An input is a sequence of packets. Two bytes with
// the length precede each packet.
func FuzzDTLS(f *testing.F) {
	p := newPair(f, calls.Audio, srtp.ProtectionProfileAeadAes128Gcm)
	var whole []byte
	for _, packet := range p.flights(f) {
		whole = appendFrame(whole, packet)
		f.Add(appendFrame(nil, packet))
	}

	f.Add(whole)
	f.Fuzz(func(_ *testing.T, b []byte) {
		t := p.newRemote()
		t.handshaking.Store(true)
		for len(b) >= 2 {
			n := min(int(binary.BigEndian.Uint16(b)), len(b)-2)
			t.receiveDTLS(b[2:2+n], time.Now())
			b = b[2+n:]
		}

		done := make(chan struct{})
		go func() {
			defer close(done)
			t.handshake()
		}()
		for !t.pipe.empty() && t.handshaking.Load() {
			runtime.Gosched()
		}
		t.close()
		<-done
	})
}

func appendFrame(b, packet []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(packet))), packet...)
}

// newRemote returns a transport whose client has the engine's own certificate. The transport's
// packets go to the sink.
func (p *pair) newRemote() *transport {
	from, _ := p.linked()
	t := p.engine.newTransport(from)
	t.setRemote(&sdp.Section{Fingerprint: t.identity.fingerprint, Ufrag: "abcd", Password: "password"})
	t.path.Store(&path{udp: p.engine.udp, remote: p.sink.LocalAddr().(*net.UDPAddr).AddrPort()})
	return t
}

// flights returns the packets that a client sends in a handshake with the engine.
func (p *pair) flights(f *testing.F) [][]byte {
	f.Helper()
	t := p.newRemote()
	defer t.close()
	conn := &sinkConn{UDPConn: p.sink, to: t}
	client, err := dtls.ClientWithOptions(conn, p.sink.LocalAddr(),
		dtls.WithCertificates(t.identity.certificate), dtls.WithInsecureSkipVerify(true),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM))
	if err != nil {
		f.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	if err := client.HandshakeContext(ctx); err != nil {
		f.Fatal(err)
	}

	sent := conn.packets()
	if len(sent) < 2 {
		f.Fatalf("the client sent %d packets, want at least one for each of two flights", len(sent))
	}
	return sent
}

// A sinkConn is the connection of a client that receives the packets sent to the sink.
type sinkConn struct {
	*net.UDPConn
	to *transport

	mu   sync.Mutex
	sent [][]byte
}

// packets returns the packets that the client has sent. The client may still be sending alerts.
func (c *sinkConn) packets() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sent)
}

// WriteTo implements net.PacketConn.
func (c *sinkConn) WriteTo(b []byte, _ net.Addr) (int, error) {
	c.mu.Lock()
	c.sent = append(c.sent, bytes.Clone(b))
	c.mu.Unlock()
	c.to.receiveDTLS(b, time.Now())
	return len(b), nil
}

// Close implements net.PacketConn. The sink stays open.
func (c *sinkConn) Close() error { return nil }
