package sdp_test

import (
	"errors"
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
		name, offer string
		first       []string
		want        string
	}{
		{"a desk phone", deskPhone, nil, "0 audio G722=9 telephone-event=101 sendrecv"},
		{"a preferred codec", deskPhone, []string{"PCMA", "PCMU"}, "0 audio PCMA=8 telephone-event=101 sendrecv"},
		{"a softphone", softphone, nil, "0 video rejected; 1 audio opus=96 telephone-event=97 recvonly"},
		{"hold as in RFC 2543", strings.Replace(deskPhone, "c=IN IP4 192.168.1.20", "c=IN IP4 0.0.0.0", 1), nil,
			"0 audio G722=9 telephone-event=101 recvonly"},
		{"no port", strings.Replace(deskPhone, "m=audio 6000", "m=audio 0", 1), nil, "0 audio rejected"},
		{"WebRTC", strings.Replace(deskPhone, "RTP/AVP", "UDP/TLS/RTP/SAVPF", 1), nil, "0 audio rejected"},
		{"SRTP", strings.Replace(deskPhone, "RTP/AVP", "RTP/SAVP", 1), nil, "0 audio rejected"},
		{"SRTP with a key", secure, nil, "0 audio G722=9 telephone-event=101 sendrecv"},
		{"SRTP with two keys in a line", strings.Replace(secure, "|2^31", "|2^31;inline:AAAA", 1), nil,
			"0 audio G722=9 telephone-event=101 sendrecv"},
		{"G.729 alone", "v=0\r\nm=audio 6000 RTP/AVP 18\r\na=rtpmap:18 G729/8000\r\n", nil, "0 audio rejected"},
	}

	for _, tt := range tests {
		d, err := sdp.ParsePhone(tt.offer)
		if err != nil {
			t.Errorf("ParsePhone of %s = %v", tt.name, err)
			continue
		}
		var answers []sdp.Section
		for _, s := range d.Sections {
			answers = append(answers, s.AnswerPhone(sdp.Suites(""), tt.first...))
		}
		if got := summary(answers); got != tt.want {
			t.Errorf("the answer to %s is %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestParsePhoneAddress(t *testing.T) {
	d, err := sdp.ParsePhone(softphone)
	if err != nil {
		t.Fatal(err)
	}
	if s := d.Sections[1]; s.Address.String() != "2001:db8::7" || s.Port != 7000 || !s.Mux {
		t.Errorf("ParsePhone = %v, port %d, mux %v, want 2001:db8::7, 7000, true", s.Address, s.Port, s.Mux)
	}
	if d, err = sdp.ParsePhone(deskPhone); err != nil || d.Sections[0].Address.String() != "192.168.1.20" {
		t.Errorf("ParsePhone = %v, %v, want the address of the session", d, err)
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

	offer.Address, offer.Port = phone.Sections[0].Address, 20000
	got := (&sdp.Description{Session: 7, Version: 1, Sections: []sdp.Section{offer}}).Phone()
	want := "v=0\r\no=- 7 1 IN IP4 192.168.1.20\r\ns=-\r\nt=0 0\r\n" +
		"m=audio 20000 RTP/AVP 0 126\r\nc=IN IP4 192.168.1.20\r\na=rtpmap:0 PCMU/8000\r\n" +
		"a=rtpmap:126 telephone-event/8000\r\na=fmtp:126 0-15\r\na=ptime:20\r\na=rtcp-mux\r\na=sendrecv\r\n"
	if got != want {
		t.Errorf("Phone =\n%s, want\n%s", got, want)
	}

	accepted := offer.Accept(&phone.Sections[0])
	if s := summary([]sdp.Section{accepted}); s != "0 audio PCMU=0 telephone-event=101 sendrecv" || accepted.Mux {
		t.Errorf("Accept = %s, mux %v, want the phone's payload types and no mux", s, accepted.Mux)
	}
}

// TestCrypto shows which keys of an offer are read, and in which order suites are chosen.
func TestCrypto(t *testing.T) {
	d, err := sdp.ParsePhone(secure)
	if err != nil {
		t.Fatal(err)
	}
	s := &d.Sections[0]
	if len(s.Crypto) != 2 || s.Crypto[0].Tag != 1 || s.Crypto[1].Suite != "AES_CM_128_HMAC_SHA1_32" ||
		len(s.Crypto[0].Key) != sdp.KeyLength(s.Crypto[0].Suite) {
		t.Fatalf("ParsePhone read %+v, want two keys", s.Crypto)
	}
	for list, want := range map[string]int{"": 1, "AES_CM_128_HMAC_SHA1_32 AES_CM_128_HMAC_SHA1_80": 2, "unknown": 0} {
		if c, ok := s.FindCrypto(sdp.Suites(list)); c.Tag != want || ok != (want > 0) {
			t.Errorf("FindCrypto(%q) has the tag %d, want %d", list, c.Tag, want)
		}
	}

	const suite = "AES_CM_128_HMAC_SHA1_80"
	key := strings.Repeat("A", 40)
	for _, line := range []string{"1 " + suite, "1 unknown inline:", "1 " + suite + " inline:AAAA",
		"x " + suite + " inline:" + key, "1 " + suite + " uri:" + key,
		"1 " + suite + " inline:" + strings.Repeat("!", 40), "1 " + suite + " inline:" + key + "|2^20|1:4",
		"1 " + suite + " inline:" + key + " KDR=1"} {
		d, err := sdp.ParsePhone(deskPhone + "a=crypto:" + line + "\r\n")
		if err != nil || len(d.Sections[0].Crypto) != 0 {
			t.Errorf("ParsePhone of a=crypto:%s = %+v, %v, want no key", line, d, err)
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
			a := d.Sections[i].AnswerPhone(sdp.Suites(""))
			a.Address, a.Port = d.Sections[i].Address, d.Sections[i].Port
			if !a.Address.IsValid() || a.Rejected {
				continue
			}
			text := (&sdp.Description{Sections: []sdp.Section{a}}).Phone()
			once, err := sdp.ParsePhone(text)
			if err != nil || once.Sections[0].Port != a.Port || once.Sections[0].Address != a.Address {
				t.Fatalf("parsing the written answer: error %v\n%s", err, text)
			}
		}
	})
}
