package calls

import (
	"context"
	"time"
)

// errorNoSound is the error for a verb whose audio cannot be played.
const errorNoSound = "sound_unavailable"

// digitTime is how long a verb waits for each digit, unless it names another time.
const digitTime = 5 * time.Second

// press passes digits of the caller to the verb that waits for them, or keeps them for the next
// verb that reads digits. If too many digits wait, press drops the others.
func (s *script) press(digits string) {
	for _, d := range digits {
		select {
		case s.pressed <- d:
		default:
		}
	}
}

// play plays the audio at a URL to the caller, and reads the digits that the caller presses, if the
// verb has any. It returns after the audio has ended, or after the last digit.
func (s *script) play(v Verb) VerbResult {
	r := VerbResult{Verb: PlayVerb}
	k := s.call
	sound, release, err := k.calls.scripts.Sound(s.ctx, s.resource.ProjectID, v.URL)
	if err != nil {
		k.calls.log.Warn("fetching a sound for a script", "call_id", k.id, "resource_id", s.resource.ID, "error", err)
		r.Error = errorNoSound
		return r
	}
	defer release()

	s.do(s.answer)
	waits, cancel := context.WithTimeout(s.connected, connectTime)
	<-waits.Done()
	cancel()
	over := make(chan struct{})
	s.do(func() { s.mixer.Play(sound, func() { close(over) }) })
	if v.Digits > 0 {
		r.Digits = s.gather(v, over)
		return r
	}
	select {
	case <-over:
	case <-s.ctx.Done():
	}
	return r
}

// gather returns the digits that the caller presses during a sound or after it. The first digit
// ends the sound. A # ends the digits and is not part of them, unless the caller presses only #.
// over is closed when the sound has ended.
func (s *script) gather(v Verb, over <-chan struct{}) (digits string) {
	wait := digitTime
	if v.Seconds > 0 {
		wait = time.Duration(v.Seconds) * time.Second
	}
	timer := time.NewTimer(wait)
	timer.Stop()
	defer timer.Stop()

	for {
		select {
		case <-s.ctx.Done():
			return digits
		case <-timer.C:
			return digits
		case <-over:
			over = nil
			timer.Reset(wait)
		case d := <-s.pressed:
			if digits == "" {
				over = nil
				s.do(func() { s.mixer.Play(nil, nil) })
			}

			if d == '#' && digits != "" {
				return digits
			}
			if digits += string(d); len(digits) == v.Digits || d == '#' {
				return digits
			}
			timer.Reset(wait)
		}
	}
}
