package sdp_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls/sdp"
	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/internal/problem"
)

// deskPhone is an offer in the form that desk phones and sipp send.
const deskPhone = "v=0\r\no=user1 53655765 2353687637 IN IP4 192.168.1.20\r\ns=-\r\n" +
	"c=IN IP4 192.168.1.20\r\nt=0 0\r\n" +
	"m=audio 6000 RTP/AVP 9 0 8 101\r\na=rtpmap:9 G722/8000\r\na=rtpmap:0 PCMU/8000\r\n" +
	"a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-16\r\n"

// softphone is an offer in the form that baresip and Linphone send, with video first.
const softphone = "v=0\r\no=- 1 1 IN IP6 2001:db8::7\r\ns=-\r\nt=0 0\r\n" +
	"m=video 7002 RTP/AVP 96\r\nc=IN IP6 2001:db8::7\r\na=rtpmap:96 VP8/90000\r\n" +
	"m=audio 7000 RTP/AVP 96 0 97\r\nc=IN IP6 2001:db8::7\r\na=rtpmap:96 opus/48000/2\r\n" +
	"a=rtpmap:97 telephone-event/48000\r\na=rtcp-mux\r\na=sendonly\r\n"

// secure is deskPhone with keys for SRTP.
var secure = strings.Replace(deskPhone, "RTP/AVP", "RTP/SAVP", 1) +
	"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:" + strings.Repeat("A", 40) + "|2^31\r\n" +
	"a=crypto:2 AES_CM_128_HMAC_SHA1_32 inline:" + strings.Repeat("B", 40) + " WSH=64\r\n" +
	"a=crypto:3 F8_128_HMAC_SHA1_80 inline:" + strings.Repeat("C", 40) + "\r\n"

func TestAnswerPhone(t *testing.T) {
	tests := []struct {
		name      string
		offer     string
		preferred []string // codecs
		want      string
	}{
		{
			name:  "a desk phone",
			offer: deskPhone,
			want:  "0 audio G722=9 telephone-event=101 sendrecv",
		},
		{
			name:      "a preferred codec",
			offer:     deskPhone,
			preferred: []string{"PCMA", "PCMU"},
			want:      "0 audio PCMA=8 telephone-event=101 sendrecv",
		},
		{
			name:  "a softphone",
			offer: softphone,
			want:  "0 video rejected; 1 audio opus=96 telephone-event=97 recvonly",
		},
		{
			name:  "hold as in RFC 2543",
			offer: strings.Replace(deskPhone, "c=IN IP4 192.168.1.20", "c=IN IP4 0.0.0.0", 1),
			want:  "0 audio G722=9 telephone-event=101 recvonly",
		},
		{
			name:  "no port",
			offer: strings.Replace(deskPhone, "m=audio 6000", "m=audio 0", 1),
			want:  "0 audio rejected",
		},
		{
			name:  "WebRTC",
			offer: strings.Replace(deskPhone, "RTP/AVP", "UDP/TLS/RTP/SAVPF", 1),
			want:  "0 audio rejected",
		},
		{
			name:  "SRTP",
			offer: strings.Replace(deskPhone, "RTP/AVP", "RTP/SAVP", 1),
			want:  "0 audio rejected",
		},
		{
			name:  "SRTP with a key",
			offer: secure,
			want:  "0 audio G722=9 telephone-event=101 sendrecv",
		},
		{
			name:  "SRTP with two keys in a line",
			offer: strings.Replace(secure, "|2^31", "|2^31;inline:AAAA", 1),
			want:  "0 audio G722=9 telephone-event=101 sendrecv",
		},
		{
			name:  "G.729 alone",
			offer: "v=0\r\nm=audio 6000 RTP/AVP 18\r\na=rtpmap:18 G729/8000\r\n",
			want:  "0 audio rejected",
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := sdp.ParsePhone(tt.offer)
			if err != nil {
				t.Fatal(err)
			}
			var answers []sdp.Section
			for _, s := range d.Sections {
				answers = append(answers, s.AnswerPhone(sdp.Suites(""), tt.preferred...))
			}
			if got := summary(answers); got != tt.want {
				t.Errorf("the answer is %s, want %s", got, tt.want)
			}
		})
	}
}

func TestParsePhoneAddress(t *testing.T) {
	d, err := sdp.ParsePhone(softphone)
	if err != nil {
		t.Fatal(err)
	}
	audio := d.Sections[1]
	if got := audio.Address.String(); got != "2001:db8::7" {
		t.Errorf("the address of the audio section is %s, want 2001:db8::7", got)
	}
	if audio.Port != 7000 {
		t.Errorf("the port of the audio section is %d, want 7000", audio.Port)
	}
	if !audio.Mux {
		t.Error("the audio section has separate ports for RTP and RTCP, want one port")
	}

	d, err = sdp.ParsePhone(deskPhone)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Sections[0].Address.String(); got != "192.168.1.20" {
		t.Errorf("without an address of its own, the section has %s, want 192.168.1.20 of the session", got)
	}
}

func TestPhone(t *testing.T) {
	browser, err := sdp.Parse(offers(t)["chromium-audio"])
	if err != nil {
		t.Fatal(err)
	}

	agreed := browser.Sections[0].Answer(sdp.PCMU)
	offer := agreed.OfferPhone("0", nil)
	phone, err := sdp.ParsePhone(deskPhone)
	if err != nil {
		t.Fatal(err)
	}

	offer.Address = phone.Sections[0].Address
	offer.Port = 20000
	got := (&sdp.Description{Session: 7, Version: 1, Sections: []sdp.Section{offer}}).Phone()
	want := "v=0\r\no=- 7 1 IN IP4 192.168.1.20\r\ns=-\r\nt=0 0\r\n" +
		"m=audio 20000 RTP/AVP 0 126\r\nc=IN IP4 192.168.1.20\r\na=rtpmap:0 PCMU/8000\r\n" +
		"a=rtpmap:126 telephone-event/8000\r\na=fmtp:126 0-15\r\na=ptime:20\r\na=rtcp-mux\r\na=sendrecv\r\n"
	if got != want {
		t.Errorf("Phone =\n%s, want\n%s", got, want)
	}

	accepted := offer.Accept(&phone.Sections[0])
	wantAccepted := "0 audio PCMU=0 telephone-event=101 sendrecv" // with the phone's payload types
	if got := summary([]sdp.Section{accepted}); got != wantAccepted {
		t.Errorf("Accept = %s, want %s", got, wantAccepted)
	}
	if accepted.Mux {
		t.Error("Accept uses one port for RTP and RTCP, want two as in the phone's answer")
	}
}

// TestCrypto shows which keys of an offer are read, and in which order suites are chosen.
func TestCrypto(t *testing.T) {
	d, err := sdp.ParsePhone(secure)
	if err != nil {
		t.Fatal(err)
	}
	section := &d.Sections[0]
	if len(section.Crypto) != 2 {
		t.Fatalf("ParsePhone read %d keys, want 2", len(section.Crypto))
	}
	first, second := section.Crypto[0], section.Crypto[1]
	if first.Tag != 1 {
		t.Errorf("the tag of the first key is %d, want 1", first.Tag)
	}
	if got, want := len(first.Key), sdp.KeyLength(first.Suite); got != want {
		t.Errorf("the first key has %d bytes, want %d", got, want)
	}
	if second.Suite != "AES_CM_128_HMAC_SHA1_32" {
		t.Errorf("the suite of the second key is %s, want AES_CM_128_HMAC_SHA1_32", second.Suite)
	}

	for _, tt := range []struct {
		suites string
		tag    int
		found  bool
	}{
		{"", 1, true},
		{"AES_CM_128_HMAC_SHA1_32 AES_CM_128_HMAC_SHA1_80", 2, true},
		{"unknown", 0, false},
	} {
		c, found := section.FindCrypto(sdp.Suites(tt.suites))
		if found != tt.found {
			t.Errorf("FindCrypto(%q) found a key: %v, want %v", tt.suites, found, tt.found)
		}
		if c.Tag != tt.tag {
			t.Errorf("FindCrypto(%q) returns the tag %d, want %d", tt.suites, c.Tag, tt.tag)
		}
	}
}

// TestCryptoIgnored shows which lines with keys are ignored.
func TestCryptoIgnored(t *testing.T) {
	const suite = "AES_CM_128_HMAC_SHA1_80"
	key := strings.Repeat("A", 40)
	for name, line := range map[string]string{
		"no key":               "1 " + suite,
		"an unknown suite":     "1 unknown inline:",
		"a short key":          "1 " + suite + " inline:AAAA",
		"a malformed tag":      "x " + suite + " inline:" + key,
		"an unknown method":    "1 " + suite + " uri:" + key,
		"a malformed key":      "1 " + suite + " inline:" + strings.Repeat("!", 40),
		"a key identifier":     "1 " + suite + " inline:" + key + "|2^20|1:4",
		"an unknown parameter": "1 " + suite + " inline:" + key + " KDR=1",
	} {
		d, err := sdp.ParsePhone(deskPhone + "a=crypto:" + line + "\r\n")
		if err != nil {
			t.Errorf("%s: %v, want no error", name, err)
			continue
		}
		if got := d.Sections[0].Crypto; len(got) != 0 {
			t.Errorf("%s: ParsePhone read the keys %+v, want none", name, got)
		}
	}
}

// FuzzParsePhone looks for phone descriptions that crash the parser, and for answers that change
// when they are parsed.
func FuzzParsePhone(f *testing.F) {
	f.Add(deskPhone)
	f.Add(softphone)
	f.Add(secure)
	f.Add(strings.Replace(secure, "a=crypto:1",
		strings.Repeat("a=crypto:3 AEAD_AES_256_GCM inline:||||;;\r\n", 500), 1))
	f.Add(strings.Replace(deskPhone, "c=IN IP4 192.168.1.20", "c=IN IP4 224.2.1.1/127/3", 1))
	f.Add("v=0\r\n" + strings.Repeat("c=IN IP4 192.0.2.1\r\n", 2000) + "m=audio 1 RTP/AVP 0\r\n")
	f.Add("v=0\r\nm=audio 1 RTP/AVP" + strings.Repeat(" 96", 64) + "\r\n" + strings.Repeat("a=rtcp-mux\r\n", 1000))
	bound := fuzzcost.Bound{CPU: 20 * time.Millisecond, CPUPerByte: time.Microsecond, Heap: 1 << 20, PerByte: 64}
	f.Fuzz(func(t *testing.T, text string) {
		var d *sdp.Description
		var err error
		bound.Check(t, len(text), func() { d, err = sdp.ParsePhone(text) })
		if err != nil {
			if !errors.Is(err, problem.Invalid) {
				t.Fatalf("ParsePhone = %v, want %v", err, problem.Invalid)
			}
			return
		}

		for i := range d.Sections {
			answer := d.Sections[i].AnswerPhone(sdp.Suites(""))
			answer.Address = d.Sections[i].Address
			answer.Port = d.Sections[i].Port
			if !answer.Address.IsValid() || answer.Rejected {
				continue
			}

			written := (&sdp.Description{Sections: []sdp.Section{answer}}).Phone()
			parsed, err := sdp.ParsePhone(written)
			if err != nil {
				t.Fatalf("parsing the written answer: %v\n%s", err, written)
			}
			if got := parsed.Sections[0]; got.Port != answer.Port || got.Address != answer.Address {
				t.Fatalf("the written answer has %v port %d, want %v port %d\n%s",
					got.Address, got.Port, answer.Address, answer.Port, written)
			}
		}
	})
}

// TestReaddress shows that only descriptions with the expected address get a different address.
func TestReaddress(t *testing.T) {
	first, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	d := sdp.Description{Session: 1, Version: 1, Sections: []sdp.Section{{
		Kind:      sdp.Audio,
		Protocol:  "RTP/AVP",
		Direction: sdp.SendReceive,
		Address:   first,
		Port:      9000,
	}}}
	before := d.Phone()
	d.Sections[0].Address = other
	if got, want := sdp.Readdress(before, first, other), d.Phone(); got != want {
		t.Errorf("with another address, the description is\n%s\nwant\n%s", got, want)
	}
	for _, text := range []string{d.Phone(), deskPhone} {
		if got := sdp.Readdress(text, first, other); got != text {
			t.Errorf("a description with a different address became\n%s\nwant\n%s", got, text)
		}
	}
}
