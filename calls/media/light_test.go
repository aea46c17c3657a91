package media_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
	"github.com/pion/stun/v4"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
)

// A light is a client that consists of a socket and keys. It is fast, and can do what browsers
// never do.
type light struct {
	t               testing.TB
	leg             calls.Media
	watch           *watcher
	conn            *net.UDPConn
	ufrag, password string // the engine's credentials
	dtls            *dtls.Conn
	in, out         *srtp.Context
	ssrc            uint32
	seq             uint16

	silent     atomic.Bool  // the engine's checks get no answer
	checks     atomic.Int32 // the engine's checks so far
	stun, srtp chan []byte
	handshake  *queue
}

// A queue is a net.PacketConn that returns pushed packets and writes to a socket.
type queue struct {
	*net.UDPConn
	packets chan []byte
	closed  chan struct{}
	once    sync.Once
}

func (q *queue) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case p := <-q.packets:
		return copy(b, p), q.RemoteAddr(), nil
	case <-q.closed:
		return 0, nil, net.ErrClosed
	}
}

func (q *queue) WriteTo(b []byte, _ net.Addr) (int, error) { return q.Write(b) }
func (q *queue) SetReadDeadline(t time.Time) error         { return nil }
func (q *queue) Close() error                              { q.once.Do(func() { close(q.closed) }); return nil }

// lightCertificate is the certificate of all light clients.
var lightCertificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "light"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// lightPassword is the ICE password of all light clients.
const lightPassword = "abcdefghijklmnopqrstuv"

// lightOffer returns an offer with one audio section.
func lightOffer(fingerprint string) string {
	if fingerprint == "" {
		sum := sha256.Sum256(lightCertificate().Certificate[0])
		fingerprint = strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
	}
	return "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n" +
		"a=mid:0\r\na=ice-ufrag:abcd\r\na=ice-pwd:" + lightPassword + "\r\na=setup:active\r\na=rtcp-mux\r\n" +
		"a=fingerprint:sha-256 " + fingerprint + "\r\na=rtpmap:111 opus/48000/2\r\n"
}

// newLight opens a leg and a socket.
func newLight(t testing.TB, e *media.Engine, offer string) *light {
	t.Helper()
	watch := newWatcher()
	leg, answer, err := e.Answer(watch, offer, calls.Terms{})
	if err != nil {
		t.Fatalf("Answer: %v", err)
	}

	conn, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: e.Port()})
	if err != nil {
		t.Fatal(err)
	}

	c := &light{
		t:        t,
		leg:      leg,
		watch:    watch,
		conn:     conn,
		ssrc:     0x1234,
		ufrag:    attribute(answer, "ice-ufrag"),
		password: attribute(answer, "ice-pwd"),
		stun:     make(chan []byte, 64),
		srtp:     make(chan []byte, 1024),
	}
	c.handshake = &queue{UDPConn: conn, packets: make(chan []byte, 64), closed: make(chan struct{})}
	go c.read()
	return c
}

// read reads packets and dispatches them by type.
func (c *light) read() {
	buffer := make([]byte, 2048)
	for {
		n, err := c.conn.Read(buffer)
		if err != nil {
			return
		}

		packet := bytes.Clone(buffer[:n])
		if check := (&stun.Message{Raw: packet}); check.Decode() == nil && check.Type == stun.BindingRequest {
			c.answer(check)
			continue
		}

		received := c.srtp
		switch first := packet[0]; { // RFC 7983
		case first < 4:
			received = c.stun
		case first < 64:
			received = c.handshake.packets
		}
		select {
		case received <- packet:
		default:
		}
	}
}

// answer answers a check from the engine.
func (c *light) answer(m *stun.Message) {
	if !c.silent.Load() {
		_, _ = c.conn.Write(answerTo(m, lightPassword))
	}
	c.checks.Add(1)
}

// answerTo returns a successful answer to a binding request.
func answerTo(m *stun.Message, password string) []byte {
	return stun.MustBuild(stun.BindingSuccess, stun.NewTransactionIDSetter(m.TransactionID),
		stun.NewShortTermIntegrity(password), stun.Fingerprint).Raw
}

// close ends the client and its leg.
func (c *light) close() {
	if c.dtls != nil {
		_ = c.dtls.Close()
	}
	_ = c.handshake.Close()
	_ = c.conn.Close()
	c.leg.Close()
}

// request returns a binding request.
func (c *light) request(ufrag, password string, more ...stun.Setter) []byte {
	setters := []stun.Setter{stun.BindingRequest, stun.TransactionID, stun.NewUsername(ufrag + ":abcd")}
	setters = append(setters, more...)
	m, err := stun.Build(append(setters, stun.NewShortTermIntegrity(password), stun.Fingerprint)...)
	if err != nil {
		c.t.Fatal(err)
	}
	return m.Raw
}

// attr is a STUN attribute.
type attr struct {
	kind  stun.AttrType
	value []byte
}

func (a attr) AddTo(m *stun.Message) error { m.Add(a.kind, a.value); return nil }

// completeICE proves to the engine that the client knows the password, and checks the engine's
// answer.
func (c *light) completeICE() {
	c.t.Helper()
	c.write(c.request(c.ufrag, c.password,
		attr{stun.AttrUseCandidate, nil}, attr{stun.AttrPriority, []byte{1, 2, 3, 4}}))
	if m := c.response(); m == nil || m.Type != stun.BindingSuccess {
		c.t.Fatalf("the answer to a binding request is %v, want success", m)
	}
}

// sendHandshake sends a record that begins a DTLS handshake. Its content is invalid.
func (c *light) sendHandshake() {
	c.t.Helper()
	const handshakeType = 22
	record := make([]byte, 43)
	copy(record, []byte{handshakeType, 0xfe, 0xfd}) // DTLS 1.2
	c.write(record)
}

func (c *light) write(b []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// response waits for a STUN packet and returns it.
func (c *light) response() *stun.Message {
	c.t.Helper()
	select {
	case b := <-c.stun:
		m := &stun.Message{Raw: b}
		if err := m.Decode(); err != nil {
			c.t.Fatal(err)
		}
		return m
	case <-time.After(deadline):
		c.t.Fatal("no STUN packet arrived")
		return nil
	}
}

// connect performs the DTLS handshake and derives the keys.
func (c *light) connect() error {
	c.completeICE()
	conn, err := dtls.ClientWithOptions(c.handshake, c.conn.RemoteAddr(),
		dtls.WithCertificates(lightCertificate()), dtls.WithInsecureSkipVerify(true),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM), dtls.WithLoggerFactory(quiet{}))
	if err != nil {
		return err
	}
	c.dtls = conn
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}

	state, _ := conn.ConnectionState()
	cfg := srtp.Config{Profile: srtp.ProtectionProfileAeadAes128Gcm}
	if err := cfg.ExtractSessionKeysFromDTLS(&state, true); err != nil {
		return err
	}
	keys := cfg.Keys
	c.out, err = srtp.CreateContext(keys.LocalMasterKey, keys.LocalMasterSalt, cfg.Profile)
	if err != nil {
		return err
	}
	c.in, err = srtp.CreateContext(keys.RemoteMasterKey, keys.RemoteMasterSalt, cfg.Profile)
	return err
}

// packet returns the next encrypted RTP packet.
func (c *light) packet(payload string) []byte {
	c.t.Helper()
	c.seq++
	header := rtp.Header{
		Version:        2,
		PayloadType:    111,
		SequenceNumber: c.seq,
		Timestamp:      uint32(c.seq) * 960,
		SSRC:           c.ssrc,
	}
	plain, err := (&rtp.Packet{Header: header, Payload: []byte(payload)}).Marshal()
	if err != nil {
		c.t.Fatal(err)
	}
	sealed, err := c.out.EncryptRTP(nil, plain, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return sealed
}

// hear returns the payload of the next packet that arrives.
func (c *light) hear() string {
	c.t.Helper()
	select {
	case b := <-c.srtp:
		var h rtp.Header
		plain, err := c.in.DecryptRTP(nil, b, &h)
		if err != nil {
			c.t.Fatalf("decrypting: %v", err)
		}
		return string(plain[h.MarshalSize():])
	case <-time.After(deadline):
		c.t.Fatal("no packet arrived")
		return ""
	}
}
