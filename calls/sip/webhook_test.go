package sip_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/script"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/deliver"
)

const scriptSecret = "a secret for scripts"

// A webhook answers the requests of scripts in a test.
type webhook struct {
	*httptest.Server
	answers chan string // the bodies of the answers, in order; "status 500" answers with that status
	asked   chan question
	pause   chan struct{} // requests after the first one wait until this channel is closed; nil means no wait
	forged  atomic.Int32  // requests without a correct signature
}

// A question is the body of a request.
type question struct {
	Step   int            `json:"step"`
	Call   calls.Document `json:"call"`
	Script struct {
		ID       string                     `json:"id"`
		Type     string                     `json:"type"`
		Settings map[string]json.RawMessage `json:"settings"`
	} `json:"script"`
	Last result `json:"last"` // zero if there was no verb before
}

// A result is what happened to the last verb of a script.
type result struct {
	Verb         string `json:"verb"`
	Error        string `json:"error"`
	Reason       string `json:"reason"`
	Digits       string `json:"digits"`
	RecordingSid string `json:"recording_sid"`
}

// wasTold waits for the next request. The request must contain the given result.
func (h *webhook) wasTold(t *testing.T, want result) {
	t.Helper()
	if q := <-h.asked; q.Last != want {
		t.Errorf("request %d to the webhook has the result %+v, want %+v", q.Step, q.Last, want)
	}
}

// newScripted returns a world with a webhook that controls calls to /public/menu. The webhook
// returns the answers in order. The webhook also serves /tone.wav, which is half a second of a
// square wave, and /long.wav, which is too long to play.
func newScripted(t *testing.T, change func(*calls.Config), answers ...string) (*world, *webhook) {
	t.Helper()
	h := &webhook{answers: make(chan string, 200), asked: make(chan question, 200)}
	for _, a := range answers {
		h.answers <- a
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /calls", h.answer)
	mux.HandleFunc("GET /tone.wav", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(squareWave(4000))
	})
	mux.HandleFunc("GET /long.wav", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(squareWave(3 << 20))
	})
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)

	hook := must[*script.Webhook](t)(script.New(script.Config{URL: h.URL + "/calls", Secret: scriptSecret}))
	w := newWorld(t, func(c *calls.Config) {
		c.Scripts = hook
		if change != nil {
			change(c)
		}
	})
	w.addScript("menu")
	return w, h
}

// answer answers a request.
func (h *webhook) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var signed map[string][]string = deliver.Signature(scriptSecret, h.URL+"/calls", body)
	if r.Header.Get(deliver.SHA256Header) != signed[deliver.SHA256Header][0] {
		h.forged.Add(1)
	}

	var q question
	_ = json.Unmarshal(body, &q)
	h.asked <- q
	if h.pause != nil && q.Step > 1 {
		<-h.pause
	}
	select {
	case next := <-h.answers:
		if text, ok := strings.CutPrefix(next, "status "); ok {
			status, _ := strconv.Atoi(text)
			http.Error(w, text, status)
			return
		}
		_, _ = io.WriteString(w, next)
	default:
		_, _ = io.WriteString(w, `{"verbs": []}`)
	}
}

// squareWave returns a WAV file with a loud tone of 500 Hz, in samples of 16 bits at 8 kHz.
func squareWave(samples int) []byte {
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, uint32(36+2*samples))
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	// PCM, one channel, 8000 samples and 16,000 bytes a second, 2 bytes a frame, 16 bits a sample.
	for _, v := range []uint16{1, 1, 8000, 0, 16000, 0, 2, 16} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(2*samples))
	for i := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(10000-20000*(i/8%2))))
	}
	return b
}

// addScript creates a SWML script.
func (w *world) addScript(name string) fabric.Resource {
	w.t.Helper()
	return w.create("swml_script", map[string]json.RawMessage{
		"display_name": quoted(name),
		"name":         quoted(name),
		"contents":     json.RawMessage(`{"sections": {"main": ["answer"]}}`),
	})
}

// answeredBy dials a script, waits for the script to answer, and acknowledges the answer.
func (p *phone) answeredBy(user string) message {
	p.t.Helper()
	_, m := p.dial(user)
	if m.kind() != "200" {
		p.t.Fatalf("calling %s returned\n%s\nwant 200", user, m)
	}
	p.acks(m, p.seq)
	return m
}

// hearsTone makes the phone send silence until it receives a loud packet.
func (p *phone) hearsTone(m message) {
	p.t.Helper()
	b := make([]byte, 2048)
	silent := string(bytes.Repeat([]byte{0xff}, 160))
	eventually(p.t, p.user+" to hear a tone", func() bool {
		p.say(p.mediaOf(m), uint16(p.seq), silent)
		p.seq++
		_ = p.rtp.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		n, err := p.rtp.Read(b)
		var packet rtp.Packet
		return err == nil && packet.Unmarshal(b[:n]) == nil && isLoud(packet.Payload)
	})
}

// isLoud reports whether most samples of a packet in PCMU are loud.
func isLoud(payload []byte) bool {
	loud := 0
	for _, b := range payload {
		if ^b&0x70 >= 0x40 { // a high segment
			loud++
		}
	}
	return loud > len(payload)/2
}
