package rtpengine_test

import (
	"encoding/base64"
	"errors"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/pion/srtp/v3"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/problem"
)

// cryptoOf finds the key with which rtpengine encrypts media for a phone.
var cryptoOf = regexp.MustCompile(`a=crypto:(\d+) AES_CM_128_HMAC_SHA1_80 inline:(\S+)`)

// TestSecurePhone calls a phone that must use SRTP. The phone can decrypt the browser's audio with
// the key from the offer. Answers without encryption are refused, and so are answers with a suite
// that does not encrypt.
func TestSecurePhone(t *testing.T) {
	e, _ := newEngine(t)
	alice := dial(t, e, calls.Terms{})
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	terms := atLoopback
	terms.SRTP.Required = true
	p := &phone{watcher: newWatcher(), t: t, conn: conn, heard: make(chan []byte, 1000)}
	m, offer, err := e.Offer(p, alice.media, terms)
	if err != nil {
		t.Fatal(err)
	}

	crypto := cryptoOf.FindStringSubmatch(offer)
	if crypto == nil {
		t.Fatalf("the offer is %q, want a key for AES_CM_128_HMAC_SHA1_80", offer)
	}
	tag, key := crypto[1], crypto[2]
	if !strings.Contains(offer, "RTP/SAVP ") {
		t.Fatalf("the offer is %q, want SRTP", offer)
	}
	if strings.Contains(offer, "NULL") {
		t.Fatalf("the offer is %q, want no suite without encryption", offer)
	}

	secure := strings.Replace(p.describe(), "RTP/AVP", "RTP/SAVP", 1)
	ours := base64.StdEncoding.EncodeToString(make([]byte, 30))
	for name, answer := range map[string]string{
		"RTP":                p.describe(),
		"SRTP without a key": secure,
		"no encryption":      secure + "a=crypto:" + tag + " NULL_HMAC_SHA1_80 inline:" + ours + "\r\n",
	} {
		if err := m.Accept(answer); !errors.Is(err, problem.Invalid) {
			t.Errorf("Accept of an answer with %s = %v, want %v", name, err, problem.Invalid)
		}
	}

	answer := secure + "a=crypto:" + tag + " AES_CM_128_HMAC_SHA1_80 inline:" + ours + "\r\n"
	if err := m.Accept(answer); err != nil {
		t.Fatalf("Accept: %v", err)
	}

	link(alice.media, m)
	alice.speak()
	go p.listen()
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(key, "="))
	if err != nil {
		t.Fatal(err)
	}

	in, err := srtp.CreateContext(raw[:16], raw[16:], srtp.ProtectionProfileAes128CmHmacSha1_80)
	if err != nil {
		t.Fatal(err)
	}

	waitFor(t, "the phone hears the tone", p.heard, func(packet []byte) bool {
		plain, err := in.DecryptRTP(nil, packet, nil)
		return err == nil && isLoudPCMU(plain)
	})
}
