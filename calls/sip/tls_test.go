package sip_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// certificate returns the certificate of all servers in these tests.
var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}

	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}

	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
})

// trusted returns the certificate authorities that the phones in these tests trust.
func trusted() *x509.CertPool {
	all := x509.NewCertPool()
	all.AddCert(certificate().Leaf)
	return all
}

// overTLS makes the phone use a TLS connection.
func (p *phone) overTLS() *phone {
	p.t.Helper()
	p.conn = must[*tls.Conn](p.t)(tls.Dial("tcp", p.tls, &tls.Config{RootCAs: trusted()}))
	p.t.Cleanup(func() { _ = p.conn.Close() })
	p.callID = "from " + p.conn.LocalAddr().String()
	return p
}

// requireSRTP changes a subscriber's credentials so that they require encryption.
func (w *world) requireSRTP(name string) {
	w.t.Helper()
	subscriber := w.subscribers[name]
	all := must[page.Page[fabric.SIPCredential]](w.t)(
		w.fabric.SIP.ListCredentials(w.t.Context(), w.project, subscriber, page.Query{Size: 1}))
	must[fabric.SIPCredential](w.t)(w.fabric.SIP.UpdateCredential(w.t.Context(), w.project, subscriber, all.Items[0].ID,
		map[string]json.RawMessage{"encryption": quoted("required"),
			"ciphers": json.RawMessage(`["AEAD_AES_256_GCM_8","AES_CM_128_HMAC_SHA1_80"]`)}))
}

// phoneKey is the key of phones in these tests.
var phoneKey = strings.Repeat("k", 30)

// secureOffer returns a description of the phone's media with SRTP.
func (p *phone) secureOffer(tag string) string {
	return strings.Replace(p.offer("sendrecv"), "RTP/AVP", "RTP/SAVP", 1) + "a=crypto:" + tag +
		" AES_CM_128_HMAC_SHA1_80 inline:" + base64.StdEncoding.EncodeToString([]byte(phoneKey)) + "\r\n"
}

var keyIn = regexp.MustCompile(`a=crypto:(\d+) AES_CM_128_HMAC_SHA1_80 inline:(\S+)`)

// serverKey returns the tag and the key in the server's description.
func serverKey(t *testing.T, m message) (tag, key string) {
	t.Helper()
	match := keyIn.FindStringSubmatch(m.body())
	if match == nil || !strings.Contains(m.body(), "RTP/SAVP 0") {
		t.Fatalf("the description is\n%s\nwant SRTP", m)
	}
	return match[1], string(must[[]byte](t)(base64.StdEncoding.DecodeString(match[2])))
}

func cipher(t *testing.T, key string) *srtp.Context {
	t.Helper()
	return must[*srtp.Context](t)(
		srtp.CreateContext([]byte(key[:16]), []byte(key[16:]), srtp.ProtectionProfileAes128CmHmacSha1_80))
}

// hearSecure sends payload over SRTP from one phone until the listener receives it. key is the
// server's key for its media to the listener.
func hearSecure(t *testing.T, from *phone, to *net.UDPAddr, listener *phone, key, payload string) {
	t.Helper()
	out, in, b := cipher(t, phoneKey), cipher(t, key), make([]byte, 2048)
	for seq := range uint16(1500) {
		packet := must[[]byte](t)((&rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: seq, SSRC: 9,
			Timestamp: uint32(seq) * 160}, Payload: []byte(payload)}).Marshal())
		must[int](t)(from.rtp.WriteToUDP(must[[]byte](t)(out.EncryptRTP(nil, packet, nil)), to))
		_ = listener.rtp.SetReadDeadline(time.Now().Add(40 * time.Millisecond))
		n, err := listener.rtp.Read(b)
		if err != nil {
			continue
		}
		if plain, err := in.DecryptRTP(nil, b[:n], nil); err == nil && strings.HasSuffix(string(plain), payload) {
			return
		}
	}
	t.Fatalf("the phone of %s did not receive %q", listener.user, payload)
}

// TestSecurePhones makes a call between two phones whose credentials require encryption. Both
// phones use TLS and SRTP. Requests within the call that arrive without TLS are rejected with 481,
// because a 200 would contain keys.
func TestSecurePhones(t *testing.T) {
	w := newWorld(t)
	w.requireSRTP("alice")
	w.requireSRTP("bob")
	alice, bob := w.newPhone("alice").overTLS(), w.newPhone("bob").overTLS()
	contact := bob.register().header("Contact")
	if len(contact) != 1 || !strings.Contains(contact[0], ";transport=tls") {
		t.Errorf("the contacts are %q, want one with transport=tls", contact)
	}

	r := alice.invitation("bob")
	r.body = alice.secureOffer("7")
	alice.ask(r) // the response is 100
	invite := bob.expect("INVITE")
	if via := invite.header("Via")[0]; !strings.HasPrefix(via, "SIP/2.0/TLS ") ||
		!strings.Contains(invite.body(), "a=crypto:1 AEAD_AES_256_GCM inline:") {
		t.Errorf("bob's phone got\n%s\nwant TLS, and AEAD_AES_256_GCM first", invite)
	}

	tag, bobs := serverKey(t, invite)
	bob.respond(invite, "200 OK", bob.secureOffer(tag))
	bob.expect("ACK")
	if m := alice.next(deadline); m.kind() != "180" {
		t.Fatalf("alice's phone got\n%s\nwant 180", m)
	}

	answered := alice.expect("200")
	tag, alices := serverKey(t, answered)
	if tag != "7" || alices == bobs || alices == phoneKey || bobs == phoneKey {
		t.Error("the answer's tag differs from the offer's tag, or two descriptions have the same key")
	}
	hearSecure(t, alice, alice.mediaOf(answered), bob, bobs, "hello bob")
	hearSecure(t, bob, bob.mediaOf(invite), alice, alices, "hello alice")

	stolen := w.newPhone("alice")
	stolen.callID, stolen.seq = alice.callID, alice.seq
	update := alice.inDialog("INVITE", answered)
	update.headers, update.body = sdpType, alice.secureOffer("7")
	stolen.send(stolen.write(update, ""))
	if m := stolen.expect("481"); strings.Contains(string(m), "crypto") {
		t.Errorf("the response over UDP is\n%s\nwant no key", m)
	}
	alice.send(alice.write(update, ""))
	if _, key := serverKey(t, alice.expect("200")); key != alices {
		t.Error("after an update, the server has a different key")
	}

	update.body = alice.offer("sendrecv") // without encryption
	alice.send(alice.write(update, ""))
	alice.send(alice.acknowledge(update, alice.expect("488")))
	alice.send(alice.write(alice.inDialog("BYE", answered), ""))
	alice.expect("200")
	bob.respond(bob.expect("BYE"), "200 OK", "")
	w.isOver()
}

// TestRequiredEncryption shows what is refused if credentials require encryption: registrations and
// calls without TLS, and calls without SRTP. A phone that registered before encryption was required
// does not ring, because the server would send its keys without encryption.
func TestRequiredEncryption(t *testing.T) {
	w := newWorld(t)
	early := w.newPhone("bob")
	early.register()
	w.requireSRTP("bob")
	for name, r := range map[string]request{"REGISTER": early.registration(600), "INVITE": early.invitation("alice")} {
		p := w.newPhone("bob")
		p.callID = name
		if _, m := p.ask(r); m.kind() != "403" {
			t.Errorf("%s without TLS returned\n%s\nwant 403", name, m)
		}
	}

	secure := w.newPhone("bob").overTLS()
	r := secure.invitation("echo")
	_, m := secure.ask(r)
	for m.kind() == "100" {
		m = secure.next(deadline)
	}

	if m.kind() != "488" {
		t.Errorf("calling without SRTP returned\n%s\nwant 488", m)
	}

	alice := w.newPhone("alice")
	if m := alice.dialed("bob"); m.kind() != "480" {
		t.Errorf("calling a phone without TLS returned\n%s\nwant 480", m)
	}
	if m := early.next(silence); m != "" {
		t.Errorf("the phone without TLS got\n%s\nwant nothing", m)
	}
}

// TestPlainTLS shows that a phone with TLS may leave its media unencrypted if its credentials
// permit this. A client without TLS gets no response on the TLS port.
func TestPlainTLS(t *testing.T) {
	w := newWorld(t)
	p := w.newPhone("alice").overTLS()
	_, m := p.dial("echo")
	if m.kind() != "200" || strings.Contains(m.body(), "crypto") {
		t.Fatalf("calling echo returned\n%s\nwant 200 with RTP", m)
	}
	hear(t, p, p.mediaOf(m), p, "hello myself")

	plain := w.newPhone("bob")
	plain.conn = must[net.Conn](t)(net.Dial("tcp", w.tls))
	t.Cleanup(func() { _ = plain.conn.Close() })
	plain.send(plain.write(plain.registration(600), ""))
	b := make([]byte, 100)
	_ = plain.conn.SetReadDeadline(time.Now().Add(deadline))
	if n, err := plain.conn.Read(b); err == nil && strings.HasPrefix(string(b[:n]), "SIP") {
		t.Errorf("a client without TLS got %q, want no response", b[:n])
	}
}

// TestSecureGateway calls a phone number through a gateway that requires encryption. The call is
// refused unless the gateway uses TLS.
func TestSecureGateway(t *testing.T) {
	w := newWorld(t)
	w.permit(fabric.OutboundOn, "+49")
	carrier := must[net.Listener](t)(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate()}}))
	t.Cleanup(func() { _ = carrier.Close() })
	_, id := w.newCarrier(map[string]json.RawMessage{"encryption": quoted("required"),
		"uri": quoted("trunk@" + carrier.Addr().String())})
	alice := w.newPhone("alice")
	r, m := alice.dial("+4930123456")
	if m.kind() != "500" {
		t.Errorf("calling over UDP through a gateway that requires encryption returned\n%s\nwant 500", m)
	}
	alice.send(alice.acknowledge(r, m))

	must[fabric.Resource](t)(w.fabric.Resources.Update(t.Context(), w.project,
		w.fabric.Resources.Kinds().ByType("sip_gateway"), id, map[string]json.RawMessage{"transport": quoted("tls")}))
	if _, m := alice.dial("+4930123456"); m.kind() != "180" {
		t.Fatalf("calling through the gateway over TLS returned\n%s\nwant 180", m)
	}

	trunk := w.newPhone("carrier")
	trunk.conn = must[net.Conn](t)(carrier.Accept())
	t.Cleanup(func() { _ = trunk.conn.Close() })
	invite := trunk.expect("INVITE")
	tag, key := serverKey(t, invite)
	trunk.respond(invite, "200 OK", trunk.secureOffer(tag))
	trunk.expect("ACK")
	answered := alice.expect("200")
	out := cipher(t, key)
	b := make([]byte, 2048)
	heard := false
	for seq := range uint16(1500) {
		alice.say(alice.mediaOf(answered), seq, "hello carrier")
		_ = trunk.rtp.SetReadDeadline(time.Now().Add(40 * time.Millisecond))
		if n, err := trunk.rtp.Read(b); err == nil {
			plain, err := out.DecryptRTP(nil, b[:n], nil)
			if heard = err == nil && strings.HasSuffix(string(plain), "hello carrier"); heard {
				break
			}
		}
	}

	if !heard {
		t.Error("the gateway did not hear the phone over SRTP")
	}
	if r := w.lastCall(); r.State != calls.InCall {
		t.Errorf("the call is %s, want %s", r.State, calls.InCall)
	}
}
