package sip_test

import (
	"strings"
	"testing"

	"github.com/pion/rtp"
)

// keyOf returns the RFC 4733 code of a digit.
func keyOf(digit byte) byte { return byte(strings.IndexByte("0123456789*#ABCD", digit)) }

// presses sends the telephone event of a digit in several packets. at is the timestamp of the event.
func (p *phone) presses(m message, digit byte, at uint32) {
	p.t.Helper()
	for _, rest := range []string{"\x0a\x00\xa0", "\x0a\x01\x40", "\x8a\x01\xe0", "\x8a\x01\xe0"} {
		p.seq++
		header := rtp.Header{
			Version:        2,
			PayloadType:    101,
			SequenceNumber: uint16(p.seq),
			SSRC:           9,
			Timestamp:      at,
		}
		packet := rtp.Packet{Header: header, Payload: append([]byte{keyOf(digit)}, rest...)}
		data := must[[]byte](p.t)(packet.Marshal())
		must[int](p.t)(p.rtp.WriteToUDP(data, p.mediaOf(m)))
	}
}

// informs sends a digit as an INFO request.
func (p *phone) informs(m message, digit string) {
	p.t.Helper()
	body := "Signal=" + digit + "\r\nDuration=160\r\n"
	r := p.inDialog("INFO", m).with("Content-Type: application/dtmf-relay\r\n", body)
	p.send(p.write(r, ""))
	p.expect("200")
}

// gathering returns a webhook's answer that plays a tone until alice presses digits. more begins
// with the number of digits, followed by further members of the verb and by other verbs.
func gathering(more string) string {
	return `{"verbs": [{"verb": "play", "url": "/tone.wav", "digits": ` + more + `]}`
}

// TestScriptDigits gathers the digits that alice presses, as INFO and as telephone events.
// Gathering ends with the last of four digits, or with a #.
func TestScriptDigits(t *testing.T) {
	w, h := newScripted(t, nil,
		gathering(`4, "seconds": 60}, {"verb": "hangup"}`),
		gathering(`8, "seconds": 60}, {"verb": "hangup"}`),
		gathering(`1, "seconds": 60}`))
	alice := w.newPhone("alice")
	m := alice.answeredBy("menu")
	alice.hearsTone(m)
	<-h.asked
	alice.informs(m, "5")
	alice.presses(m, '2', 8000)
	alice.presses(m, '2', 9600)
	alice.presses(m, 'A', 11200)
	h.wasTold(t, result{Verb: "play", Digits: "522A"})

	alice.informs(m, "0")
	alice.informs(m, "#")
	h.wasTold(t, result{Verb: "play", Digits: "0"})

	alice.presses(m, '#', 12800) // an INFO would get its 200 before or after the BYE
	h.wasTold(t, result{Verb: "play", Digits: "#"})
	alice.respond(alice.expect("BYE"), "200 OK", "")
}

// TestScriptKeepsDigits shows that the next verbs get the digits that alice pressed while no verb
// gathered them, but at most 64 of them.
func TestScriptKeepsDigits(t *testing.T) {
	w, h := newScripted(t, nil,
		`{"verbs": [{"verb": "answer"}]}`,
		gathering(`32}`),
		gathering(`32}`),
		gathering(`32, "seconds": 1}, {"verb": "answer"}`))
	h.pause = make(chan struct{})
	alice := w.newPhone("alice")
	m := alice.answeredBy("menu")
	for range 66 {
		alice.informs(m, "7")
	}
	close(h.pause)
	alice.hearsTone(m)

	<-h.asked
	<-h.asked
	h.wasTold(t, result{Verb: "play", Digits: strings.Repeat("7", 32)})
	h.wasTold(t, result{Verb: "play", Digits: strings.Repeat("7", 32)})
	h.wasTold(t, result{Verb: "answer"})
}

// TestScriptWithoutDigits shows that the next verb is carried out if nobody presses a digit.
func TestScriptWithoutDigits(t *testing.T) {
	w, h := newScripted(t, nil, gathering(`1, "seconds": 1}, {"verb": "answer"}`))
	alice := w.newPhone("alice")
	m := alice.answeredBy("menu")
	alice.hearsTone(m)
	<-h.asked
	h.wasTold(t, result{Verb: "answer"})
	alice.respond(alice.expect("BYE"), "200 OK", "")
}
