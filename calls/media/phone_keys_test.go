package media_test

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/media"
	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/problem"
)

const suite80 = "AES_CM_128_HMAC_SHA1_80"

// suites contains the supported suites.
var suites = map[string]srtp.ProtectionProfile{
	suite80:                   srtp.ProtectionProfileAes128CmHmacSha1_80,
	"AES_CM_128_HMAC_SHA1_32": srtp.ProtectionProfileAes128CmHmacSha1_32,
	"AES_256_CM_HMAC_SHA1_80": srtp.ProtectionProfileAes256CmHmacSha1_80,
	"AES_256_CM_HMAC_SHA1_32": srtp.ProtectionProfileAes256CmHmacSha1_32,
	"AEAD_AES_128_GCM":        srtp.ProtectionProfileAeadAes128Gcm,
	"AEAD_AES_256_GCM":        srtp.ProtectionProfileAeadAes256Gcm,
}

// A secret is a phone's key for SRTP.
type secret struct{ suite, key string }

func newSecret(suite string) secret {
	key := make([]byte, sdp.KeyLength(suite))
	_, _ = rand.Read(key) // never fails
	return secret{suite, string(key)}
}

// line returns the key's line for a description.
func (s secret) line() string {
	return fmt.Sprintf("a=crypto:1 %s inline:%s\r\n", s.suite, base64.StdEncoding.EncodeToString([]byte(s.key)))
}

// context returns a cipher with the key.
func (s secret) context(t *testing.T) *srtp.Context {
	t.Helper()
	n, err := suites[s.suite].KeyLen()
	must(t, err)
	c, err := srtp.CreateContext([]byte(s.key[:n]), []byte(s.key[n:]), suites[s.suite])
	must(t, err)
	return c
}

// A securePhone exchanges SRTP with an engine.
type securePhone struct {
	*phone
	secret
	out, in *srtp.Context
}

func newSecurePhone(t *testing.T, suite string) *securePhone {
	t.Helper()
	p := &securePhone{phone: newPhone(t, "127.0.0.1"), secret: newSecret(suite)}
	p.out = p.context(t)
	return p
}

// offer returns the phone's description with its key.
func (p *securePhone) offer() string { return p.offerWith(p.line()) }

// offerWith returns the phone's description with the given lines for keys.
func (p *securePhone) offerWith(lines string) string {
	return strings.Replace(p.description(p.port(), "sendrecv"), "RTP/AVP", "RTP/SAVP", 1) + lines
}

// keyIn returns the engine's key from a description.
func keyIn(t *testing.T, description string) secret {
	t.Helper()
	d, err := sdp.ParsePhone(description)
	must(t, err)
	if len(d.Sections[0].Crypto) == 0 {
		t.Fatalf("no key in\n%s", description)
	}
	c := d.Sections[0].Crypto[0]
	return secret{c.Suite, c.Key}
}

// dial begins a call with the phone's offer, and returns the engine's answer.
func (p *securePhone) dial(terms calls.Terms, e *media.Engine) string {
	p.t.Helper()
	terms.Phone = loopback
	leg, answer, err := e.Answer(p.watch, p.offer(), terms)
	must(p.t, err)
	p.leg = leg
	p.take(answer)
	p.in = keyIn(p.t, answer).context(p.t)
	return answer
}

// sealed returns the phone's next packet, encrypted.
func (p *securePhone) sealed(payload string) []byte {
	p.t.Helper()
	b, err := p.out.EncryptRTP(nil, p.packet(0, payload), nil)
	must(p.t, err)
	return b
}

// echoes sends packets from a socket until the phone hears the payload.
func (p *securePhone) echoes(from *net.UDPConn, payload string) {
	p.t.Helper()
	b := make([]byte, 2048)
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		_, err := from.WriteToUDP(p.sealed(payload), p.to)
		must(p.t, err)
		must(p.t, from.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		n, err := from.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}

		must(p.t, err)
		plain, err := p.in.DecryptRTP(nil, b[:n], nil)
		if err != nil {
			continue // the packet is encrypted with an earlier key
		}

		packet := &rtp.Packet{}
		must(p.t, packet.Unmarshal(plain))
		if string(packet.Payload) == payload {
			return
		}
	}
	p.t.Fatalf("the phone did not hear %q", payload)
}

// TestSecurePhone makes a call with each suite. The two directions have different keys.
func TestSecurePhone(t *testing.T) {
	for suite := range suites {
		t.Run(suite, func(t *testing.T) {
			e, p := newEngine(t), newSecurePhone(t, suite)
			answer := p.dial(calls.Terms{SRTP: calls.SRTP{Required: true}}, e)
			if !strings.Contains(answer, "RTP/SAVP 0 101\r\n") {
				t.Fatalf("the answer is\n%s\nwant SRTP", answer)
			}
			if n := strings.Count(answer, "a=crypto:1 "+suite+" "); n != 1 {
				t.Fatalf("the answer has %d keys for %s, want 1:\n%s", n, suite, answer)
			}
			if keyIn(t, answer).key == p.key {
				t.Fatal("the engine's key is the phone's key, want a different one")
			}
			p.leg.Link(calls.Audio, p.leg)
			p.echoes(p.conn, "hello")
		})
	}
}

// TestSecureOffer shows that a phone is offered the permitted suites, each with its own key. The
// phone's answer decides which suite is used.
func TestSecureOffer(t *testing.T) {
	e, browser := newEngine(t), newPhone(t, "127.0.0.1")
	browser.call(e, browser.description(browser.port(), "sendrecv"))
	rules := calls.SRTP{Required: true, Suites: "AEAD_AES_256_GCM unknown " + suite80}
	terms := calls.Terms{Phone: loopback, SRTP: rules}
	offer := func(p *securePhone) string {
		t.Helper()
		leg, offer, err := e.Offer(p.watch, browser.leg, terms)
		must(t, err)
		p.leg = leg
		p.take(offer)
		return offer
	}

	p := newSecurePhone(t, suite80)
	first := offer(p)
	d, err := sdp.ParsePhone(first)
	must(t, err)
	keys := d.Sections[0].Crypto
	if len(keys) != 2 {
		t.Fatalf("the offer has %d keys, want 2:\n%s", len(keys), first)
	}
	want := []string{"AEAD_AES_256_GCM", suite80}
	if got := []string{keys[0].Suite, keys[1].Suite}; !slices.Equal(got, want) {
		t.Fatalf("the suites of the offer are %q, want %q", got, want)
	}
	if keys[0].Tag == keys[1].Tag {
		t.Errorf("both keys have the tag %d, want different tags", keys[0].Tag)
	}
	if strings.HasPrefix(keys[0].Key, keys[1].Key[:16]) {
		t.Error("both suites have the same key, want different keys")
	}

	ours := secret{suite: keys[1].Suite, key: keys[1].Key}
	for name, answer := range map[string]string{
		"RTP":               p.description(p.port(), "sendrecv"),
		"no key":            p.offerWith(""),
		"our own key":       p.offerWith(ours.line()),
		"a different suite": p.offerWith(newSecret("AES_CM_128_HMAC_SHA1_32").line()),
		"half a key":        p.offerWith(secret{suite80, p.key[:15]}.line()),
	} {
		if err := p.leg.Accept(answer); !errors.Is(err, problem.Invalid) {
			t.Errorf("Accept of an answer with %s = %v, want %v", name, err, problem.Invalid)
		}
	}

	must(t, p.leg.Accept(p.offerWith(strings.Replace(p.line(), "crypto:1", "crypto:2", 1))))
	p.in = ours.context(t)
	p.leg.Link(calls.Audio, p.leg)
	p.echoes(p.conn, "hello")
}

// TestSecureOfferRefused shows which offers are refused. An offer that begins or ends the
// encryption of a running call is also refused.
func TestSecureOfferRefused(t *testing.T) {
	e, p := newEngine(t), newSecurePhone(t, suite80)
	plain := p.description(p.port(), "sendrecv")
	required := calls.SRTP{Required: true}
	offerWithParameter := func(parameter string) string {
		return p.offerWith(strings.TrimSuffix(p.line(), "\r\n") + parameter + "\r\n")
	}
	for _, tt := range []struct {
		name, offer string
		srtp        calls.SRTP
	}{
		{"RTP, but SRTP is required", plain, required},
		{"RTP with keys", plain + p.line(), required},
		{"no key", p.offerWith(""), calls.SRTP{}},
		{"no key, which is required", p.offerWith(""), required},
		{"a suite that is not permitted", p.offer(), calls.SRTP{Suites: "AEAD_AES_256_GCM"}},
		{"half a key", p.offerWith(secret{suite80, p.key[:15]}.line()), calls.SRTP{}},
		{"unencrypted SRTP", offerWithParameter(" UNENCRYPTED_SRTP"), calls.SRTP{}},
		{"no authentication", offerWithParameter(" UNAUTHENTICATED_SRTP"), calls.SRTP{}},
		{"a key identifier", offerWithParameter("|2^20|1:4"), calls.SRTP{}},
		{"DTLS", strings.Replace(p.offer(), "RTP/SAVP", "UDP/TLS/RTP/SAVP", 1), calls.SRTP{}},
	} {
		_, _, err := e.Answer(p.watch, tt.offer, calls.Terms{Phone: loopback, SRTP: tt.srtp})
		if !errors.Is(err, problem.Invalid) {
			t.Errorf("Answer of an offer with %s = %v, want %v", tt.name, err, problem.Invalid)
		}
	}

	leg, _, err := e.Answer(p.watch, offerWithParameter("|2^31"), calls.Terms{Phone: loopback})
	if err != nil {
		t.Fatalf("Answer of a key with a lifetime = %v, want no error", err)
	}
	leg.Close()

	answer := p.dial(calls.Terms{}, e)
	p.leg.Link(calls.Audio, p.leg)
	p.echoes(p.conn, "hello")
	for name, offer := range map[string]string{
		"RTP":               plain,
		"a different suite": p.offerWith(newSecret("AES_CM_128_HMAC_SHA1_32").line()),
		"our own key":       p.offerWith(keyIn(t, answer).line()),
		"no key":            p.offerWith(""),
	} {
		if _, err := p.leg.Update(offer); !errors.Is(err, problem.Invalid) {
			t.Errorf("Update with %s = %v, want %v", name, err, problem.Invalid)
		}
	}
	p.echoes(p.conn, "still here")

	other := newPhone(t, "127.0.0.1")
	other.call(e, other.description(other.port(), "sendrecv"))
	if _, err := other.leg.Update(p.offer()); !errors.Is(err, problem.Invalid) {
		t.Errorf("Update of RTP to SRTP = %v, want %v", err, problem.Invalid)
	}
}

// TestSecurePhoneChangesKey renegotiates with the phone's old key, which continues the stream, and
// then with a new key. The engine's key stays the same.
func TestSecurePhoneChangesKey(t *testing.T) {
	e, p := newEngine(t), newSecurePhone(t, suite80)
	before := keyIn(t, p.dial(calls.Terms{}, e))
	p.leg.Link(calls.Audio, p.leg)
	p.echoes(p.conn, "hello")
	for _, changed := range []bool{false, true} {
		old := p.sealed("with the key from before")
		if changed {
			p.secret = newSecret(suite80)
			p.out = p.context(t)
		}

		answer, err := p.leg.Update(p.offer())
		must(t, err)
		if got := keyIn(t, answer); got != before {
			t.Errorf("after an update, the engine's key is %+v, want %+v as before", got, before)
		}

		p.echoes(p.conn, fmt.Sprint("updated ", changed))
		if !changed {
			continue
		}

		dropped := e.Stats().Dropped
		_, err = p.conn.WriteToUDP(old, p.to)
		must(t, err)
		waitFor(t, "the packet with the old key to be dropped", func() bool { return e.Stats().Dropped > dropped })
	}
}

// TestSecureStrangers shows that packets that are not encrypted with the phone's key are dropped,
// even if they come from the phone's address. They do not divert the phone's media. Repeated
// packets are dropped, too.
func TestSecureStrangers(t *testing.T) {
	e, p := newEngine(t), newSecurePhone(t, suite80)
	p.dial(calls.Terms{}, e)
	p.leg.Link(calls.Audio, p.leg)
	dropped := func(conn *net.UDPConn, packet []byte) {
		t.Helper()
		before := e.Stats().Dropped
		_, err := conn.WriteToUDP(packet, p.to)
		must(t, err)
		waitFor(t, "the packet to be dropped", func() bool { return e.Stats().Dropped > before })
	}

	// Before the phone has sent anything, a stranger behind the same NAT tries other keys, and then
	// no key.
	stranger := newPhone(t, "127.0.0.1")
	wrong, err := newSecret(suite80).context(t).EncryptRTP(nil, p.packet(0, "wrong key"), nil)
	must(t, err)
	dropped(stranger.conn, p.packet(0, "no key"))
	dropped(stranger.conn, wrong)
	p.echoes(p.conn, "hello")
	dropped(p.conn, wrong)
	again := p.sealed("again")
	_, err = p.conn.WriteToUDP(again, p.to)
	must(t, err)
	dropped(p.conn, again)
	p.echoes(p.conn, "still here")
	if got := stranger.hear(50 * time.Millisecond); got != nil {
		t.Errorf("the stranger heard %q, want nothing", got.Payload)
	}
}
