package calls

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// A script controls a call until the call ends, or until the script hands it over to somebody else
// or a room. The script's goroutine asks Scripts for verbs, and carries out each verb in the call's
// mailbox. Meanwhile, the caller is the only member of a mixer, which plays sounds.
type script struct {
	call     *call           // fixed
	resource fabric.Resource // fixed
	ctx      context.Context // fixed: done when the script has lost control
	cancel   context.CancelFunc

	mixer Mixer // nil until the caller has media; only the mailbox uses it

	failed  chan<- VerbResult // receives the result of a connect verb that fails; only the mailbox uses it
	pressed chan rune         // digits that no verb has read yet

	connected     context.Context // done when media can flow to the caller
	noteConnected context.CancelFunc
}

// connectTime is the longest time that the first sound waits for media to flow to the caller.
const connectTime = 5 * time.Second

// maxSteps limits the number of requests to Scripts for one call, so that a script in an endless
// loop ends.
const maxSteps = 100

// The reasons why a script fails.
const (
	reasonScriptFailed = "script_failed"
	reasonScriptLoop   = "script_too_long"
)

// runScript makes a script control a call that is about to begin. If the script was deleted,
// runScript returns problem.NotFound.
func (k *call) runScript(ctx context.Context, id string) error {
	t, err := k.calls.fabric.Resources.FindThing(ctx, k.project, id)
	if err != nil {
		return err
	}
	if t.Resource == nil {
		return problem.NoSuch("resource")
	}
	s := &script{call: k, resource: *t.Resource, pressed: make(chan rune, maxDigits)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.connected, s.noteConnected = context.WithCancel(s.ctx)
	k.script = s
	return nil
}

// scriptCodecs are the codecs to prefer for a caller whose call a script controls. The mixer
// supports all of them. A script may connect the caller to a phone, and nearly every phone supports
// the first codec.
var scriptCodecs = []string{"PCMU", "PCMA", "G722"}

// openMedia answers the offer of the caller's client.
func (s *script) openMedia(w Watcher, offer string, t Terms) (Media, string, error) {
	if s.mixer == nil {
		s.mixer = s.call.calls.engine.NewMixer()
	}
	return s.mixer.Answer(w, offer, t)
}

// stopScript ends the script's control of the call. Without a script, it does nothing.
func (k *call) stopScript() {
	s := k.script
	if s == nil {
		return
	}
	k.script = nil
	s.cancel()
	if s.mixer != nil {
		s.mixer.Close()
	}
}

// run asks Scripts for verbs and carries them out until the script no longer controls the call.
func (s *script) run() {
	defer s.cancel()
	defer func() { // a panic ends only this call
		if cause := recover(); cause != nil {
			s.fail(reasonScriptFailed, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()

	var last *VerbResult
	for step := 1; step <= maxSteps; step++ {
		verbs, err := s.next(step, last)
		if err != nil {
			s.fail(reasonScriptFailed, err)
			return
		}
		if len(verbs) == 0 {
			verbs = []Verb{{Name: HangUpVerb}}
		}
		last = s.perform(verbs)
		if s.ctx.Err() != nil {
			return
		}
	}
	s.fail(reasonScriptLoop, errors.New("the script asked for too many steps"))
}

// next returns the verbs of a step.
func (s *script) next(step int, last *VerbResult) ([]Verb, error) {
	var d Document
	if !s.do(func() { d = s.call.record.webhookDocument() }) {
		return nil, s.ctx.Err()
	}
	return s.call.calls.scripts.Next(s.ctx, ScriptStep{Call: d, Script: s.resource, Step: step, Last: last})
}

// perform carries out verbs until one of them fails, returns digits that the caller pressed, or
// ends the script's control of the call. It returns the result of the last verb.
func (s *script) perform(verbs []Verb) *VerbResult {
	r := &VerbResult{}
	for _, v := range verbs {
		r.Verb = v.Name
		switch v.Name {
		case AnswerVerb:
			s.do(s.answer)
		case PlayVerb:
			*r = s.play(v)
		case RecordVerb:
			*r = s.record(time.Duration(v.Seconds) * time.Second)
		case ConnectVerb:
			*r = s.connect(v.To)
		case HangUpVerb:
			s.do(func() { s.call.end(ScriptCauses[v.Cause]) })
		}
		if r.Error != "" || r.Digits != "" || s.ctx.Err() != nil {
			return r
		}
	}
	return r
}

// do runs f in the call's mailbox. It returns false if the script has lost control of the call.
func (s *script) do(f func()) bool {
	_, err := s.call.do(s.ctx, func() (Reply, error) {
		if s.call.script != s {
			return Reply{}, context.Canceled
		}
		f()
		return Reply{}, nil
	})
	return err == nil
}

// fail ends the call because its script has failed.
func (s *script) fail(reason string, err error) {
	k := s.call
	s.do(func() {
		k.calls.log.Warn("the script of a call failed", "call_id", k.id, "resource_id", s.resource.ID, "error", err)
		k.record.Refusal = reason
		k.end(TemporaryFailure)
	})
}

// answer answers the call, unless the call was already answered.
func (s *script) answer() {
	k := s.call
	if k.state == InCall {
		return
	}
	l := k.caller()
	k.ringTimer.Stop()
	l.awaitMedia()
	k.setState(InCall)
	l.tell(Event{Kind: Answered})
	l.join()
	l.tellState(InCall)
	s.mixer.Add(l.media)
	k.recordIfWanted()
}
