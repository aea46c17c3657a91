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
// verb that reads digits. If too many digits wait, press drops further digits.
func (s *script) press(digits string) {
	for _, digit := range digits {
		select {
		case s.pressed <- digit:
		default:
		}
	}
}

// play plays the audio at a URL to the caller, and returns when the audio has ended. If v.Digits is
// positive, it also reads the digits that the caller presses, and returns when the caller has pressed the
// last one.
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
	s.awaitMedia()

	ended := make(chan struct{})
	s.do(func() { s.mixer.Play(sound, func() { close(ended) }) })
	if v.Digits > 0 {
		r.Digits = s.gather(v, ended)
		return r
	}

	select {
	case <-ended:
	case <-s.ctx.Done():
	}
	return r
}

// awaitMedia waits until media can flow to the caller, but at most for connectTime.
func (s *script) awaitMedia() {
	connected, cancel := context.WithTimeout(s.connected, connectTime)
	defer cancel()
	<-connected.Done()
}

// gather returns the digits that the caller presses during or after a sound. The first digit
// ends the sound. A # ends the digits and is not part of them, unless the caller presses only #.
// ended is closed when the sound has ended.
func (s *script) gather(v Verb, ended <-chan struct{}) string {
	wait := digitTime
	if v.Seconds > 0 {
		wait = time.Duration(v.Seconds) * time.Second
	}

	first, ok := s.firstDigit(ended, wait)
	if !ok {
		return ""
	}
	s.do(s.stopSound)
	digits := string(first)
	if first == '#' {
		return digits
	}

	for len(digits) < v.Digits {
		digit, ok := s.nextDigit(wait)
		if !ok || digit == '#' {
			return digits
		}
		digits += string(digit)
	}
	return digits
}

// firstDigit returns the digit that the caller presses during a sound, or within the duration wait
// after the sound. It returns false if there is none.
func (s *script) firstDigit(ended <-chan struct{}, wait time.Duration) (rune, bool) {
	select {
	case digit := <-s.pressed:
		return digit, true
	case <-ended:
		return s.nextDigit(wait)
	case <-s.ctx.Done():
		return 0, false
	}
}

// nextDigit returns the digit that the caller presses within the duration wait. It returns false if
// there is none.
func (s *script) nextDigit(wait time.Duration) (rune, bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case digit := <-s.pressed:
		return digit, true
	case <-timer.C:
		return 0, false
	case <-s.ctx.Done():
		return 0, false
	}
}

// stopSound ends the sound that the caller hears.
func (s *script) stopSound() { s.mixer.Play(nil, nil) }
