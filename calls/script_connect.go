package calls

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/selvage/selvage/internal/problem"
)

// connect transfers the caller to the party at an address or phone number, or makes the caller a
// member of the room there. It returns the result if nobody answers, or if the room refuses the
// caller. Otherwise, the script has lost control of the call when connect returns.
//
// The rules and caps of forwarding apply. The script's own account pays for calls through gateways,
// no matter who called the script.
func (s *script) connect(to string) VerbResult {
	k := s.call
	party, route, reason, err := s.plan(to)
	switch {
	case err != nil:
		return s.cannotConnect(err)
	case party.RoomID != "":
		return s.enterRoom(party)
	case reason != "":
		return VerbResult{Verb: ConnectVerb, Error: CallRejected.Text, Reason: reason}
	}

	failed := make(chan VerbResult, 1)
	s.do(func() {
		if len(k.late) >= maxLate {
			failed <- VerbResult{Verb: ConnectVerb, Error: TemporaryFailure.Text}
			return
		}
		s.answer()
		s.failed = failed
		k.transfer = &transfer{by: s.side(), stays: k.caller(), before: k.record}
		s.ringBack()
		ringer{k}.ringRoute(route)
	})

	select {
	case r := <-failed:
		return r
	case <-s.ctx.Done():
		return VerbResult{Verb: ConnectVerb}
	}
}

// cannotConnect logs an internal error, and returns the result for it.
func (s *script) cannotConnect(err error) VerbResult {
	s.call.calls.log.Error("connecting the caller of a script", "call_id", s.call.id, "error", err)
	return VerbResult{Verb: ConnectVerb, Error: TemporaryFailure.Text}
}

// enterRoom makes the caller a member of a party's room.
func (s *script) enterRoom(to Party) VerbResult {
	ctx, cancel := context.WithTimeout(s.ctx, lookUp)
	defer cancel()
	s.do(s.answer)
	err := s.call.enterRoom(ctx, to, s, "")
	if err == nil || s.ctx.Err() != nil {
		return VerbResult{Verb: ConnectVerb}
	}

	var refused *problem.Error
	if !errors.As(err, &refused) {
		return s.cannotConnect(err)
	}
	cause, ok := roomCauses[refused.Code]
	if !ok {
		cause = CallRejected
	}
	return VerbResult{Verb: ConnectVerb, Error: cause.Text, Reason: refused.Code}
}

// roomCauses maps the codes of errors to the causes with which rooms refuse a caller. For all other
// codes, the cause is CallRejected. Callers who dial the room themselves get the same causes.
var roomCauses = map[string]Cause{errRoomFull.Code: UserBusy, errRoomNotOpen.Code: NotOpen}

// plan returns the party at an address or phone number and the route to it, or the reason why
// nobody there can ring. Parties with a room have no route.
func (s *script) plan(text string) (Party, *route, string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, lookUp)
	defer cancel()

	p := planner{calls: s.call.calls, project: s.call.project}
	to, reason, err := p.find(ctx, text)
	if err != nil || reason != "" {
		return to, nil, reason, err
	}
	r, err := p.plan(ctx, to, s.resource.ID, nil)
	return to, r, "", err
}

// side returns a leg that stands for the script in a transfer. The leg has no client.
func (s *script) side() *leg {
	l := s.call.newLeg(newID(), Client{}, s.call.record.To)
	l.ended = true
	return l
}

// handOver ends the script's control of the call, because somebody is about to answer the caller.
// Without a script, it does nothing.
func (k *call) handOver() {
	if s := k.script; s != nil {
		s.mixer.Release(k.caller().media)
		k.stopScript()
	}
}

// resume continues a script after nobody has answered its caller.
func (s *script) resume(c Cause, refusal string) {
	s.mixer.Play(nil, nil)
	s.failed <- VerbResult{Verb: ConnectVerb, Error: c.Text, Reason: refusal}
}

// ringBack plays the sound of ringing to the caller until somebody answers.
func (s *script) ringBack() {
	if s.call.transfer != nil {
		s.mixer.Play(ringing(), func() { s.do(s.ringBack) })
	}
}

// ringing returns the sound of ringing: a tone of one second, and four seconds of silence.
var ringing = sync.OnceValue(func() []int16 {
	const rate, pitch, fade = 16000, 425, 160.0
	sound := make([]int16, 5*rate)
	for i := range rate {
		loud := min(1, float64(i)/fade, float64(rate-i)/fade)
		sound[i] = int16(3000 * loud * math.Sin(2*math.Pi*pitch*float64(i)/rate))
	}
	return sound
})
