package calls

import (
	"context"
	"errors"
)

// Controls are the switches of a leg that are on, such as mute. The record stores them, so that a
// muted leg stays muted when another node takes the call over.
type Controls int64

// The controls that a leg can have.
const (
	AudioMuted Controls = 1 << iota
	VideoMuted
	Deafened
	OnHold
	HandRaised
)

// controls returns the leg's switches that are on.
func (l *leg) controls() (c Controls) {
	for _, s := range l.switches() {
		if *s.on {
			c |= s.control
		}
	}
	return c
}

// restore sets the switches that were on before the leg's node was lost. Later, renew applies them
// to the media.
func (l *leg) restore(c Controls) {
	for _, s := range l.switches() {
		*s.on = c&s.control != 0
	}
	// The record does not distinguish the client's own mutes from a moderator's.
	l.ownAudioMute, l.ownVideoMute = l.member.AudioMuted, l.member.VideoMuted
}

// A controlSwitch pairs a control with the field of a leg that holds its state.
type controlSwitch struct {
	control Controls
	on      *bool
}

func (l *leg) switches() []controlSwitch {
	return []controlSwitch{
		{AudioMuted, &l.member.AudioMuted},
		{VideoMuted, &l.member.VideoMuted},
		{Deafened, &l.member.Deaf},
		{OnHold, &l.held},
		{HandRaised, &l.member.HandRaised},
	}
}

// applyControls applies the leg's controls to its media, except for hold, which link applies.
func (l *leg) applyControls() {
	l.media.Mute(Audio, l.member.AudioMuted)
	l.media.Mute(Video, l.member.VideoMuted)
	l.media.Deafen(l.member.Deaf)
}

// keepControls writes the controls of both sides into the record without making clients wait. If they
// cannot be written, keepControls tries again until the call has ended. However fast controls change, one goroutine
// writes, and at most one other goroutine waits.
func (k *call) keepControls() {
	if k.controlsChanged {
		return // the waiting goroutine will write this change, too
	}
	k.controlsChanged = true
	hasEnded := func() bool { return k.state == Completed || k.takenOver }
	go k.recordings.retryUntil(hasEnded, k.saveControls)
}

// saveControls writes the present controls of both sides into the record. After it has
// logged an error, it logs no other errors until it succeeds again. It returns nil if there is no reason
// to try again.
func (k *call) saveControls() error {
	k.controlsSaving.Lock()
	defer k.controlsSaving.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()

	var r Record
	_, err := k.do(ctx, func() (Reply, error) {
		k.controlsChanged = false
		k.noteControls()
		r = k.record
		return Reply{}, nil
	})
	if err == nil {
		err = k.calls.store.SaveControls(ctx, r)
	}
	if err == nil || errors.Is(err, ErrTaken) {
		k.controlsFailing = false
		return nil
	}

	if !k.controlsFailing {
		k.calls.log.Error("writing the controls of a call", "call_id", k.id, "error", err)
	}
	k.controlsFailing = true
	return runIn(context.Background(), k, func() error {
		if k.controlsChanged {
			return nil // another goroutine waits
		}
		k.controlsChanged = true
		return err
	})
}

// noteControls copies the controls of both sides into the record.
func (k *call) noteControls() {
	for _, l := range k.legs {
		switch l.id {
		case k.record.callerLeg():
			k.record.CallerControls = l.controls()
		case k.record.CalleeLeg:
			k.record.CalleeControls = l.controls()
		}
	}
}
