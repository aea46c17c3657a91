package sip_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/script"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/egress"
)

const scriptSecret = "a secret for scripts"

// A webhook answers the requests of scripts in a test.
type webhook struct {
	*httptest.Server
	answers chan string // the bodies of the answers, in order
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
	Last *struct {
		Verb   string `json:"verb"`
		Error  string `json:"error"`
		Reason string `json:"reason"`

		Digits       string `json:"digits"`
		RecordingSid string `json:"recording_sid"`
	} `json:"last"`
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
	mux.HandleFunc("GET /tone.wav", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(squareWave(4000)) })
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
		if code, ok := strings.CutPrefix(next, "status "); ok {
			http.Error(w, code, map[string]int{"500": 500, "302": 302}[code])
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
	kind := w.fabric.Resources.Kinds().ByPath("swml_scripts")
	return must[fabric.Resource](w.t)(w.fabric.Resources.Create(w.t.Context(), w.project, kind,
		map[string]json.RawMessage{"display_name": quoted(name), "name": quoted(name),
			"contents": json.RawMessage(`{"sections": {"main": ["answer"]}}`)}))
}

// answeredBy dials a script, waits for the script to answer, and acknowledges the answer.
func (p *phone) answeredBy(user string) message {
	p.t.Helper()
	_, m := p.dial(user)
	if m.kind() != "200" {
		p.t.Fatalf("calling %s returned\n%s\nwant 200", user, m)
	}
	ack := p.inDialog("ACK", m)
	ack.seq = p.seq
	p.send(p.write(ack, ""))
	return m
}

// hearsTone sends silence until the phone hears a loud packet.
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
	return loud > 80
}

// TestScriptPlays runs a script that answers a phone's call, plays a sound, and hangs up.
func TestScriptPlays(t *testing.T) {
	w, h := newScripted(t, nil,
		`{"verbs": [{"verb": "answer"}, {"verb": "play", "url": "/tone.wav"}, {"verb": "play", "url": "/tone.wav"}]}`,
		`{"verbs": [{"verb": "hangup", "cause": "USER_BUSY"}]}`)
	alice := w.newPhone("alice")
	m := alice.answeredBy("menu")
	alice.hearsTone(m)
	bye := alice.expect("BYE")
	alice.respond(bye, "200 OK", "")
	w.isOver()

	first, second := <-h.asked, <-h.asked
	if first.Step != 1 || first.Last != nil || first.Script.Type != "swml_script" ||
		first.Call.From != "/private/alice" || first.Call.To != "/public/menu" ||
		!strings.Contains(string(first.Script.Settings["contents"]), "sections") {
		t.Errorf("the first request to the webhook was %+v, want step 1 of alice's call to menu", first)
	}
	if second.Step != 2 || second.Last == nil || second.Last.Verb != "play" || second.Last.Error != "" ||
		second.Call.State != calls.InCall {
		t.Errorf("the second request to the webhook was %+v, want step 2 after play", second)
	}
	if h.forged.Load() != 0 {
		t.Error("a request had no correct signature")
	}

	if r := w.lastCall(); r.Cause != calls.UserBusy || r.Answered.IsZero() || r.Refusal != "" {
		t.Errorf("the record is %+v, want an answered call that ended with USER_BUSY", r)
	}
}

// TestScriptRefuses runs a script that rejects a call without answering it.
func TestScriptRefuses(t *testing.T) {
	w, _ := newScripted(t, nil, `{"verbs": [{"verb": "hangup", "cause": "CALL_REJECTED"}]}`)
	alice := w.newPhone("alice")
	r, m := alice.dial("menu")
	if m.kind() != "403" {
		t.Fatalf("the call ended with\n%s\nwant 403", m)
	}
	alice.send(alice.acknowledge(r, m))
	w.isOver()
	if r := w.lastCall(); r.Cause != calls.CallRejected || !r.Answered.IsZero() {
		t.Errorf("the record is %+v, want CALL_REJECTED and no answer", r)
	}
}

// TestScriptFails shows that calls end with a clear reason if the webhook answers with an error or
// nonsense.
func TestScriptFails(t *testing.T) {
	many := `{"verbs": [` + strings.Repeat(`{"verb": "answer"},`, 20) + `{"verb": "answer"}]}`
	for name, answer := range map[string]string{
		"an error": "status 500", "a redirect": "status 302", "no JSON": "<html>", "a different type": `[]`,
		"more JSON": `{"verbs": []} {}`, "an unknown verb": `{"verbs": [{"verb": "dance"}]}`,
		"an unknown member": `{"verbs": [{"verb": "answer", "loud": true}]}`, "too many verbs": many,
		"a foreign parameter": `{"verbs": [{"verb": "answer", "url": "/tone.wav"}]}`,
		"an unknown cause":    `{"verbs": [{"verb": "hangup", "cause": "TOKEN_REVOKED"}]}`,
		"no sound":            `{"verbs": [{"verb": "play"}]}`,
		"too many digits":     `{"verbs": [{"verb": "play", "url": "/tone.wav", "digits": 33}]}`,
		"fewer than 0 digits": `{"verbs": [{"verb": "play", "url": "/tone.wav", "digits": -1}]}`,
		"too long for digits": `{"verbs": [{"verb": "play", "url": "/tone.wav", "digits": 1, "seconds": 61}]}`,
		"seconds for nothing": `{"verbs": [{"verb": "play", "url": "/tone.wav", "seconds": 5}]}`,
		"no end":              `{"verbs": [{"verb": "record"}]}`,
		"too many seconds":    `{"verbs": [{"verb": "record", "seconds": 601}]}`,
		"nobody":              `{"verbs": [{"verb": "connect"}]}`,
		"too many bytes":      `{"verbs": []}` + strings.Repeat(" ", 64<<10),
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := newScripted(t, nil, answer)
			alice := w.newPhone("alice")
			r, m := alice.dial("menu")
			if m.kind() != "500" {
				t.Fatalf("the call ended with\n%s\nwant 500", m)
			}
			alice.send(alice.acknowledge(r, m))

			w.isOver()
			if r := w.lastCall(); r.Cause != calls.TemporaryFailure || r.Refusal != "script_failed" {
				t.Errorf("the record has the cause %s and the reason %q, want script_failed", r.Cause.Text, r.Refusal)
			}
			w.logs("the script of a call failed")
		})
	}
}

// TestScriptWithoutWebhook shows with which causes calls end if no webhook is configured, or if the
// webhook is down.
func TestScriptWithoutWebhook(t *testing.T) {
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	hook := must[*script.Webhook](t)(script.New(script.Config{URL: down.URL, Secret: scriptSecret}))
	for name, tt := range map[string]struct {
		scripts calls.Scripts
		want    string
		cause   calls.Cause
	}{"none": {nil, "404", calls.NotImplemented}, "down": {hook, "500", calls.TemporaryFailure}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *calls.Config) { c.Scripts = tt.scripts })
			w.addScript("menu")
			alice := w.newPhone("alice")
			r, m := alice.dial("menu")
			alice.send(alice.acknowledge(r, m))
			w.isOver()
			if last := w.lastCall(); m.kind() != tt.want || last.Cause != tt.cause {
				t.Errorf("the call ended with %s and %s, want %s and %s", m.kind(), last.Cause.Text, tt.want,
					tt.cause.Text)
			}
		})
	}
}

// A panicking is a calls.Scripts whose methods panic.
type panicking struct{ calls.Scripts }

func (panicking) Next(context.Context, calls.ScriptStep) ([]calls.Verb, error) { panic("a mistake") }

// TestScriptPanics shows that a panic in a script's goroutine ends only its call.
func TestScriptPanics(t *testing.T) {
	w := newWorld(t, func(c *calls.Config) { c.Scripts = panicking{} })
	w.addScript("menu")
	alice := w.newPhone("alice")
	r, m := alice.dial("menu")
	alice.send(alice.acknowledge(r, m))
	w.isOver()
	if last := w.lastCall(); m.kind() != "500" || last.Refusal != "script_failed" {
		t.Errorf("the call ended with %s and the reason %q, want 500 and script_failed", m.kind(), last.Refusal)
	}
	w.logs("a mistake")
}

// TestScriptInCircles shows that the server stops a script that never ends.
func TestScriptInCircles(t *testing.T) {
	w, h := newScripted(t, nil)
	for range 150 {
		h.answers <- `{"verbs": [{"verb": "answer"}]}`
	}
	alice := w.newPhone("alice")
	alice.answeredBy("menu")
	alice.respond(alice.expect("BYE"), "200 OK", "")
	w.isOver()
	if r := w.lastCall(); r.Refusal != "script_too_long" || len(h.asked) != 100 {
		t.Errorf("the call ended with %q after %d requests, want script_too_long after 100", r.Refusal, len(h.asked))
	}
}

// TestScriptCallerHangsUp shows that the webhook gets no further requests if the caller hangs up while
// a sound is playing.
func TestScriptCallerHangsUp(t *testing.T) {
	play := `{"verb": "play", "url": "/tone.wav"},`
	w, h := newScripted(t, nil, `{"verbs": [`+strings.TrimSuffix(strings.Repeat(play, 20), ",")+`]}`)
	alice := w.newPhone("alice")
	m := alice.answeredBy("menu")
	alice.hearsTone(m)
	alice.hangsUp(m)
	w.isOver()
	if len(h.asked) != 1 {
		t.Errorf("the webhook got %d requests, want 1", len(h.asked))
	}
}

// TestScriptSounds shows which sounds cannot be played: sounds that are too long, files without
// audio, and sounds at addresses that the egress policy forbids.
func TestScriptSounds(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request reached a private address")
	}))
	t.Cleanup(inside.Close)
	at := must[*url.URL](t)(url.Parse(inside.URL))
	for _, address := range []string{"/long.wav", "/missing.wav", "/calls", "http://[::1]:" + at.Port() + "/tone.wav",
		"http://localhost:" + at.Port() + "/tone.wav", "file:///etc/passwd", "http://u:p@127.0.0.1/", "http://%zz"} {
		t.Run(address, func(t *testing.T) {
			w, h := newScripted(t, nil, `{"verbs": [{"verb": "play", "url": "`+address+`"}, {"verb": "answer"}]}`)
			alice := w.newPhone("alice")
			r, m := alice.dial("menu")
			alice.send(alice.acknowledge(r, m))
			<-h.asked
			if next := <-h.asked; next.Last == nil || next.Last.Error != "sound_unavailable" ||
				next.Call.State == calls.InCall {
				t.Errorf("the request to the webhook was %+v, want sound_unavailable in an unanswered call", next)
			}
		})
	}
}

// TestSoundOfAllowedHost plays a sound from a host that the operator allows.
func TestSoundOfAllowedHost(t *testing.T) {
	sounds := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(squareWave(800))
	}))
	defer sounds.Close()

	address := strings.Replace(sounds.URL, "127.0.0.1", "localhost", 1)
	hook := must[*script.Webhook](t)(script.New(script.Config{URL: "https://ivr.example.com/", Secret: scriptSecret,
		Egress: egress.Policy{Allow: []string{"localhost"}}}))
	sound, release, err := hook.Sound(t.Context(), "p", address)
	if err != nil {
		t.Fatal(err)
	}

	release()
	if len(sound) != 1600 {
		t.Errorf("0.1 s of sound has %d samples, want 1600", len(sound))
	}
}
