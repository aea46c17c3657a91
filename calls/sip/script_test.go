package sip_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/calls/script"
	"github.com/selvage/selvage/internal/egress"
)

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
	want := first
	want.Step = 1
	want.Last = result{}
	want.Script.Type = "swml_script"
	want.Call.From = "/private/alice"
	want.Call.To = "/public/menu"
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("the first request to the webhook is wrong (-want +got):\n%s", diff)
	}
	if contents := string(first.Script.Settings["contents"]); !strings.Contains(contents, "sections") {
		t.Errorf("the script in the request has the contents %s, want its sections", contents)
	}

	want = second
	want.Step = 2
	want.Last = result{Verb: "play"}
	want.Call.State = calls.InCall
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("the second request to the webhook is wrong (-want +got):\n%s", diff)
	}
	if n := h.forged.Load(); n != 0 {
		t.Errorf("%d requests have a wrong signature or none, want 0", n)
	}

	r := w.recordHas(func(want *calls.Record) {
		want.Cause = calls.UserBusy
		want.Refusal = ""
	})
	if r.Answered.IsZero() {
		t.Error("the record has no time of answer, want an answered call")
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
	w.recordHas(func(want *calls.Record) {
		want.Cause = calls.CallRejected
		want.Answered = time.Time{}
	})
}

// TestScriptFails shows that calls end with a clear reason if the webhook answers with an error or
// nonsense.
func TestScriptFails(t *testing.T) {
	many := `{"verbs": [` + strings.Repeat(`{"verb": "answer"},`, 20) + `{"verb": "answer"}]}`
	for name, answer := range map[string]string{
		"an error":              "status 500",
		"a redirect":            "status 302",
		"no JSON":               "<html>",
		"a different type":      `[]`,
		"more JSON":             `{"verbs": []} {}`,
		"an unknown verb":       `{"verbs": [{"verb": "dance"}]}`,
		"an unknown member":     `{"verbs": [{"verb": "answer", "loud": true}]}`,
		"too many verbs":        many,
		"another verb's member": `{"verbs": [{"verb": "answer", "url": "/tone.wav"}]}`,
		"a forbidden cause":     `{"verbs": [{"verb": "hangup", "cause": "TOKEN_REVOKED"}]}`,
		"no sound":              `{"verbs": [{"verb": "play"}]}`,
		"too many digits":       `{"verbs": [{"verb": "play", "url": "/tone.wav", "digits": 33}]}`,
		"fewer than 0 digits":   `{"verbs": [{"verb": "play", "url": "/tone.wav", "digits": -1}]}`,
		"too long for digits":   `{"verbs": [{"verb": "play", "url": "/tone.wav", "digits": 1, "seconds": 61}]}`,
		"seconds for nothing":   `{"verbs": [{"verb": "play", "url": "/tone.wav", "seconds": 5}]}`,
		"no end":                `{"verbs": [{"verb": "record"}]}`,
		"too many seconds":      `{"verbs": [{"verb": "record", "seconds": 601}]}`,
		"nobody":                `{"verbs": [{"verb": "connect"}]}`,
		"too many bytes":        `{"verbs": []}` + strings.Repeat(" ", 64<<10),
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
			w.recordHas(func(want *calls.Record) {
				want.Cause = calls.TemporaryFailure
				want.Refusal = "script_failed"
			})
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
		status  string
		cause   calls.Cause
	}{
		"none": {scripts: nil, status: "404", cause: calls.NotImplemented},
		"down": {scripts: hook, status: "500", cause: calls.TemporaryFailure},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *calls.Config) { c.Scripts = tt.scripts })
			w.addScript("menu")
			alice := w.newPhone("alice")
			r, m := alice.dial("menu")
			alice.send(alice.acknowledge(r, m))
			w.isOver()
			if m.kind() != tt.status {
				t.Errorf("the call ended with %s, want %s", m.kind(), tt.status)
			}
			w.recordHas(func(want *calls.Record) { want.Cause = tt.cause })
		})
	}
}

// A panicking is a calls.Scripts whose methods panic.
type panicking struct{ calls.Scripts }

func (panicking) Next(context.Context, calls.ScriptStep) ([]calls.Verb, error) { panic("a mistake") }

// TestScriptPanics shows that a panic in a script's goroutine ends only the script's call.
func TestScriptPanics(t *testing.T) {
	w := newWorld(t, func(c *calls.Config) { c.Scripts = panicking{} })
	w.addScript("menu")
	alice := w.newPhone("alice")
	r, m := alice.dial("menu")
	alice.send(alice.acknowledge(r, m))
	w.isOver()
	if m.kind() != "500" {
		t.Errorf("the call ended with %s, want 500", m.kind())
	}
	if got := w.lastCall().Refusal; got != "script_failed" {
		t.Errorf("the reason in the record is %q, want script_failed", got)
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
	if got := w.lastCall().Refusal; got != "script_too_long" {
		t.Errorf("the call ended for the reason %q, want script_too_long", got)
	}
	if len(h.asked) != 100 {
		t.Errorf("the webhook got %d requests, want 100", len(h.asked))
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

// TestScriptSounds shows which sounds cannot be played: sounds that are too long or missing, and
// sounds at addresses that are invalid or that the egress policy forbids.
func TestScriptSounds(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request reached a private address")
	}))
	t.Cleanup(inside.Close)

	port := must[*url.URL](t)(url.Parse(inside.URL)).Port()
	for _, address := range []string{
		"/long.wav",
		"/missing.wav",
		"/calls",
		"http://[::1]:" + port + "/tone.wav",
		"http://localhost:" + port + "/tone.wav",
		"file:///etc/passwd",
		"http://u:p@127.0.0.1/",
		"http://%zz",
	} {
		t.Run(address, func(t *testing.T) {
			w, h := newScripted(t, nil, `{"verbs": [{"verb": "play", "url": "`+address+`"}, {"verb": "answer"}]}`)
			alice := w.newPhone("alice")
			r, m := alice.dial("menu")
			alice.send(alice.acknowledge(r, m))
			<-h.asked
			second := <-h.asked
			if got := second.Last.Error; got != "sound_unavailable" {
				t.Errorf("the result has the error %q, want sound_unavailable", got)
			}
			if second.Call.State == calls.InCall {
				t.Error("the call was answered although the sound cannot be played")
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
	hook := must[*script.Webhook](t)(script.New(script.Config{
		URL:    "https://ivr.example.com/",
		Secret: scriptSecret,
		Egress: egress.Policy{Allow: []string{"localhost"}},
	}))
	sound, release, err := hook.Sound(t.Context(), "p", address)
	if err != nil {
		t.Fatal(err)
	}

	release()
	if len(sound) != 1600 {
		t.Errorf("0.1 s of sound has %d samples, want 1600", len(sound))
	}
}
