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

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
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
	roots := x509.NewCertPool()
	roots.AddCert(certificate().Leaf)
	return roots
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
	credentials := must[page.Page[fabric.SIPCredential]](w.t)(
		w.fabric.SIP.ListCredentials(w.t.Context(), w.project, subscriber, page.Query{Size: 1})).Items
	encryption := map[string]json.RawMessage{
		"encryption": quoted("required"),
		"ciphers":    json.RawMessage(`["AEAD_AES_256_GCM_8","AES_CM_128_HMAC_SHA1_80"]`),
	}
	must[fabric.SIPCredential](w.t)(
		w.fabric.SIP.UpdateCredential(w.t.Context(), w.project, subscriber, credentials[0].ID, encryption))
}

// phoneKey is the key of phones in these tests.
var phoneKey = strings.Repeat("k", 30)

// secureOffer returns a description of the phone's media with SRTP.
func (p *phone) secureOffer(tag string) string {
	offer := strings.Replace(p.offer("sendrecv"), "RTP/AVP", "RTP/SAVP", 1)
	key := base64.StdEncoding.EncodeToString([]byte(phoneKey))
	return offer + "a=crypto:" + tag + " AES_CM_128_HMAC_SHA1_80 inline:" + key + "\r\n"
}

var keyIn = regexp.MustCompile(`a=crypto:(\d+) AES_CM_128_HMAC_SHA1_80 inline:(\S+)`)

// serverKey returns the tag and the key in the server's description.
func serverKey(t *testing.T, m message) (tag, key string) {
	t.Helper()
	if !strings.Contains(m.body(), "RTP/SAVP 0") {
		t.Fatalf("the description is\n%s\nwant SRTP", m)
	}
	match := keyIn.FindStringSubmatch(m.body())
	if match == nil {
		t.Fatalf("the description is\n%s\nwant a key", m)
	}
	return match[1], string(must[[]byte](t)(base64.StdEncoding.DecodeString(match[2])))
}

// cipher returns the SRTP state for a key, which is followed by its salt.
func cipher(t *testing.T, key string) *srtp.Context {
	t.Helper()
	return must[*srtp.Context](t)(
		srtp.CreateContext([]byte(key[:16]), []byte(key[16:]), srtp.ProtectionProfileAes128CmHmacSha1_80))
}

// hearSecure sends payload over SRTP from one phone until the listener receives it. key is the
// server's key for its media to the listener.
func hearSecure(t *testing.T, from *phone, to *net.UDPAddr, listener *phone, key, payload string) {
	t.Helper()
	outgoing, incoming := cipher(t, phoneKey), cipher(t, key)
	for seq := range uint16(1500) {
		packet := rtpPacket(t, 0, seq, payload)
		encrypted := must[[]byte](t)(outgoing.EncryptRTP(nil, packet, nil))
		must[int](t)(from.rtp.WriteToUDP(encrypted, to))
		if listener.receivesSecure(incoming, payload) {
			return
		}
	}
	t.Fatalf("the phone of %s did not receive %q", listener.user, payload)
}

// receivesSecure reports whether the next SRTP packet to the phone arrives within a short time and
// ends in payload.
func (p *phone) receivesSecure(incoming *srtp.Context, payload string) bool {
	b := make([]byte, 2048)
	_ = p.rtp.SetReadDeadline(time.Now().Add(40 * time.Millisecond))
	n, err := p.rtp.Read(b)
	if err != nil {
		return false
	}
	plain, err := incoming.DecryptRTP(nil, b[:n], nil)
	return err == nil && strings.HasSuffix(string(plain), payload)
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
	if via := invite.header("Via")[0]; !strings.HasPrefix(via, "SIP/2.0/TLS ") {
		t.Errorf("bob's phone was invited by %s, want TLS", via)
	}
	if first := "a=crypto:1 AEAD_AES_256_GCM inline:"; !strings.Contains(invite.body(), first) {
		t.Errorf("the offer to bob's phone is\n%s\nwant %s", invite.body(), first)
	}

	bobsTag, keyToBob := serverKey(t, invite)
	bob.respond(invite, "200 OK", bob.secureOffer(bobsTag))
	bob.expect("ACK")
	if m := alice.next(deadline); m.kind() != "180" {
		t.Fatalf("alice's phone got\n%s\nwant 180", m)
	}

	answered := alice.expect("200")
	alicesTag, keyToAlice := serverKey(t, answered)
	if alicesTag != "7" {
		t.Errorf("the answer has the tag %s, want 7 as in the offer", alicesTag)
	}
	if keyToAlice == keyToBob {
		t.Error("the server uses the same key for both phones")
	}
	for user, key := range map[string]string{"alice": keyToAlice, "bob": keyToBob} {
		if key == phoneKey {
			t.Errorf("the server's key for its media to %s is the phone's own key", user)
		}
	}
	hearSecure(t, alice, alice.mediaOf(answered), bob, keyToBob, "hello bob")
	hearSecure(t, bob, bob.mediaOf(invite), alice, keyToAlice, "hello alice")

	thief := w.newPhone("alice")
	thief.callID = alice.callID
	thief.seq = alice.seq
	update := alice.inDialog("INVITE", answered).with(sdpType, alice.secureOffer("7"))
	thief.send(thief.write(update, ""))
	if m := thief.expect("481"); strings.Contains(string(m), "crypto") {
		t.Errorf("the response over UDP is\n%s\nwant no key", m)
	}
	alice.send(alice.write(update, ""))
	if _, key := serverKey(t, alice.expect("200")); key != keyToAlice {
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
	for _, r := range []request{early.registration(600), early.invitation("alice")} {
		p := w.newPhone("bob")
		p.callID = r.method
		if _, m := p.ask(r); m.kind() != "403" {
			t.Errorf("%s without TLS returned\n%s\nwant 403", r.method, m)
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
	if m.kind() != "200" {
		t.Fatalf("calling echo returned\n%s\nwant 200", m)
	}
	if strings.Contains(m.body(), "crypto") {
		t.Fatalf("the answer to an offer of RTP is\n%s\nwant no key", m.body())
	}
	hear(t, p, p.mediaOf(m), p, "hello myself")

	plain := w.newPhone("bob")
	plain.conn = must[net.Conn](t)(net.Dial("tcp", w.tls))
	t.Cleanup(func() { _ = plain.conn.Close() })
	plain.send(plain.write(plain.registration(600), ""))
	response := make([]byte, 100)
	_ = plain.conn.SetReadDeadline(time.Now().Add(deadline))
	n, err := plain.conn.Read(response)
	if err == nil && strings.HasPrefix(string(response[:n]), "SIP") {
		t.Errorf("a client without TLS got %q, want no SIP response", response[:n])
	}
}

// TestSecureGateway calls a phone number through a gateway that requires encryption. The call is
// refused unless the gateway uses TLS. Only an imported gateway can lack TLS.
func TestSecureGateway(t *testing.T) {
	w := newWorld(t)
	w.permit(fabric.OutboundOn, "+49")
	serverTLS := &tls.Config{Certificates: []tls.Certificate{certificate()}}
	carrier := must[net.Listener](t)(tls.Listen("tcp", "127.0.0.1:0", serverTLS))
	t.Cleanup(func() { _ = carrier.Close() })
	kind := w.fabric.Resources.Kinds().ByType(fabric.GatewayKind)
	fields := map[string]json.RawMessage{
		"name":       quoted("Carrier"),
		"uri":        quoted("trunk@" + carrier.Addr().String()),
		"prefixes":   json.RawMessage(`["+49"]`),
		"encryption": quoted("required"),
		"transport":  quoted("udp"),
		"ciphers":    json.RawMessage(`["AES_CM_128_HMAC_SHA1_80"]`),
		"codecs":     json.RawMessage(`["PCMU"]`),
	}
	id := must[fabric.Resource](t)(
		w.fabric.Resources.Import(t.Context(), w.project, kind, fabric.Identity{}, fields, false)).ID
	alice := w.newPhone("alice")
	r, m := alice.dial("+4930123456")
	if m.kind() != "500" {
		t.Errorf("calling over UDP through a gateway that requires encryption returned\n%s\nwant 500", m)
	}
	alice.send(alice.acknowledge(r, m))

	w.changeGateway(id, map[string]json.RawMessage{"transport": quoted("tls")})
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
	incoming := cipher(t, key)
	heard := false
	for seq := uint16(0); seq < 1500 && !heard; seq++ {
		alice.say(alice.mediaOf(answered), seq, "hello carrier")
		heard = trunk.receivesSecure(incoming, "hello carrier")
	}

	if !heard {
		t.Error("the gateway did not hear the phone over SRTP")
	}
	if got := w.lastCall().State; got != calls.InCall {
		t.Errorf("the call is %s, want %s", got, calls.InCall)
	}
}
