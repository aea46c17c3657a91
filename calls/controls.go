package calls

import (
	"context"
	"errors"
)

// Controls are what the client of a leg has switched. They are kept with the record, so that a muted
// leg stays muted when another node takes the call over.
type Controls int64

// The controls.
const (
	AudioMuted Controls = 1 << iota
	VideoMuted
	Deafened
	OnHold
	HandRaised
)

// controls returns what the leg's client has switched.
func (l *leg) controls() (c Controls) {
	for _, s := range l.switches() {
		if *s.on {
			c |= s.control
		}
	}
	return c
}

// restore switches what the client had switched before its node was lost. Media follows in renew.
func (l *leg) restore(c Controls) {
	for _, s := range l.switches() {
		*s.on = c&s.control != 0
	}
}

type controlSwitch struct {
	control Controls
	on      *bool
}

func (l *leg) switches() []controlSwitch {
	m := &l.member
	return []controlSwitch{{AudioMuted, &m.AudioMuted}, {VideoMuted, &m.VideoMuted}, {Deafened, &m.Deaf},
		{OnHold, &l.held}, {HandRaised, &m.HandRaised}}
}

// applyControls makes new media follow the controls. Whether a leg is held, link knows.
func (l *leg) applyControls() {
	l.media.Mute(Audio, l.member.AudioMuted)
	l.media.Mute(Video, l.member.VideoMuted)
	l.media.Deafen(l.member.Deaf)
}

// keepControls writes the controls of both sides into the record. Clients do not wait for it. However
// often controls change, one goroutine writes and at most one waits for it.
func (k *call) keepControls() {
	if k.controlsChanged {
		return // the goroutine that waits will see the change
	}
	k.controlsChanged = true
	go func() {
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
		if err != nil && !errors.Is(err, ErrTaken) {
			k.calls.log.Error("writing the controls of a call", "call_id", k.id, "error", err)
		}
	}()
}

// noteControls notes the controls of both sides in the record.
func (k *call) noteControls() {
	for _, l := range k.legs {
		switch l.id {
		case k.record.ID:
			k.record.CallerControls = l.controls()
		case k.record.CalleeLeg:
			k.record.CalleeControls = l.controls()
		}
	}
}
