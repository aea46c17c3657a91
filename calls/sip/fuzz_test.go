package sip

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/internal/fuzzcost"
)

const registration = "REGISTER sip:selvage.test SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:5060;rport;branch=z9hG4bKa\r\n" +
	"From: \"A\" <sip:a@selvage.test>;tag=1\r\nTo: <sip:a@selvage.test>\r\nCall-ID: x\r\nCSeq: 1 REGISTER\r\n" +
	"Contact: <sip:a@192.0.2.1:5060;transport=udp>;expires=60, <sip:b@192.0.2.1>\r\nExpires: 600\r\n" +
	"Content-Length: 0\r\n\r\n"

// FuzzMessage shows that no message breaks the parser or the functions that use its result, and
// that the responses can be parsed.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(registration))
	f.Add([]byte(strings.Replace(registration, "Contact: ",
		"m: *\r\nRecord-Route: <sip:p;lr>, <sip:q;lr>\r\nX: ", 1)))
	f.Add([]byte("SIP/2.0 200 OK\r\nv: SIP/2.0/TCP h;branch=z\r\nf: <sip:a@b>;tag=1\r\n" +
		"t: sip:c@d;tag=2\r\ni: x\r\nCSeq: 1 INVITE\r\nl: 0\r\n\r\n"))
	vias := strings.Repeat("Via: SIP/2.0/UDP a;branch=b\r\n", 200)
	f.Add([]byte(strings.Replace(registration, "Expires", vias+"Expires", 1)))
	_, headers, _ := strings.Cut(registration, "\r\n")
	f.Add([]byte("INVITE sip:%61@[::1]:99999;a;b=c?d=e SIP/2.0\r\n" + headers))
	bound := fuzzcost.Bound{CPU: 20 * time.Millisecond, CPUPerByte: 2 * time.Microsecond, Heap: 1 << 20, PerByte: 256}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > maxHead+maxBody {
			return
		}
		var m sip.Message
		var err error
		bound.Check(t, len(b), func() { m, err = parse(b) })
		if err != nil {
			return
		}

		routeSet(m)
		contactOf(m)
		isSDP(m)
		r, ok := m.(*sip.Request)
		if !ok {
			return
		}

		m.SetSource("192.0.2.1:5060")
		_, _, _ = contactsOf(r)
		if c, ok := answers(r); ok {
			c.isFor(r)
		}
		requires(r)
		infoDigit(r)
		text := response(r, 200, "OK", []byte("v=0\r\n")).String()
		if len(text) >= maxHead {
			return
		}
		if _, err := parser.ParseSIP([]byte(text)); err != nil {
			t.Errorf("parsing the response: %v, want no error\n%s", err, text)
		}
	})
}

// FuzzCredentials shows that no header breaks the parser of credentials, and that accepted fields
// have a limited length.
func FuzzCredentials(f *testing.F) {
	f.Add(`Digest username="a", realm="selvage", nonce="n", uri="sip:x", response="r", algorithm=MD5, qop=auth, nc=1`)
	f.Add(`Digest username="a\"b\\", nonce=,response="`)
	f.Add("Digest " + strings.Repeat("a=b,", 3000))
	f.Add(`Digest a="` + strings.Repeat(`\"`, 5000) + `"`)
	bound := fuzzcost.Bound{CPU: 20 * time.Millisecond, CPUPerByte: 2 * time.Microsecond, Heap: 1 << 20, PerByte: 64}
	f.Fuzz(func(t *testing.T, header string) {
		var c credentials
		var ok bool
		bound.Check(t, len(header), func() { c, ok = parseCredentials(header) })
		if ok && c.username == "" {
			t.Error("parseCredentials accepted an empty username")
		}
		if ok && len(c.username) > maxField {
			t.Errorf("parseCredentials accepted a username of %d bytes, want at most %d", len(c.username), maxField)
		}
		if ok && len(c.nonce) > maxField {
			t.Errorf("parseCredentials accepted a nonce of %d bytes, want at most %d", len(c.nonce), maxField)
		}
		c.proves("password", "REGISTER")
	})
}

// FuzzStream shows that no stream breaks the framing of messages, and that messages have a limited
// length.
func FuzzStream(f *testing.F) {
	f.Add([]byte("\r\n\r\n" + registration + registration))
	f.Add([]byte("INFO sip:x SIP/2.0\r\nl: 3\r\n\r\nabcd"))
	f.Add([]byte("X\r\nContent-Length: -1\r\n\r\n"))
	f.Add(bytes.Repeat([]byte("a: b\r\n"), 3000))
	bound := fuzzcost.Bound{CPU: 20 * time.Millisecond, CPUPerByte: time.Microsecond, Heap: 1 << 20, PerByte: 64}
	f.Fuzz(func(t *testing.T, b []byte) {
		bound.Check(t, len(b), func() {
			in := bufio.NewReaderSize(bytes.NewReader(b), maxHead)
			for {
				m, err := readMessage(in, func() {})
				if err != nil {
					return
				}
				if len(m) > maxHead+maxBody {
					t.Errorf("readMessage returned %d bytes, want at most %d", len(m), maxHead+maxBody)
				}
			}
		})
	})
}

func TestNonces(t *testing.T) {
	issued, now := nonces{secret: []byte("secret")}, time.Now()
	address := flow{}.remote.Addr()
	text := issued.issue(address, now)
	nonce, ok := issued.open(text, address)
	if !ok {
		t.Fatal("a new nonce was not accepted")
	}

	expired := now.Add(nonceFor + time.Second)
	for _, tt := range []struct {
		count string
		at    time.Time
		want  bool
	}{
		{"00000001", now, true},
		{"00000001", now, false},
		{"00000003", now, true},
		{"00000002", now, false},
		{"0000000z", now, false},
		{"00000004", expired, false},
		{"00000004", now, true},
	} {
		if got := issued.use("phone", nonce, tt.count, tt.at); got != tt.want {
			t.Errorf("using a nonce with the count %s after %v = %v, want %v", tt.count, tt.at.Sub(now), got, tt.want)
		}
	}

	issued.sweep(expired)
	if len(issued.used) != 0 {
		t.Errorf("%d expired nonces are kept, want none", len(issued.used))
	}

	last := "A"
	if strings.HasSuffix(text, last) {
		last = "Q"
	}
	if _, ok := issued.open(text[:len(text)-1]+last, address); ok {
		t.Error("a nonce with a different signature was accepted")
	}
}
