package calls

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// recordTimeout limits how long a change to a call's recordings may take. The call does not wait
// for it.
const recordTimeout = 10 * time.Second

// recordings are the recordings of one call that are in progress, at most one per track.
type recordings struct {
	// changing is held while the recordings are being changed, which uses the database and the
	// disk. The call's mailbox therefore never waits for it.
	changing sync.Mutex

	// Only the mailbox reads and changes the following fields.
	bySid map[string]Recording
	tone  *time.Timer // until the next tone; nil if there is none
}

// recordIfWanted begins to record an answered call, if its parties or their project chose this.
func (k *call) recordIfWanted() {
	c := k.calls
	if c.recorder == nil || k.echo {
		return
	}
	started, r := time.Now(), k.record

	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		defer cancel()
		wanted, err := c.isRecorded(ctx, r)
		if err != nil {
			c.log.Error("deciding whether to record a call", "call_id", k.id, "error", err)
		}
		if !wanted {
			return
		}
		_ = k.changeRecordings(func(ctx context.Context) error { // it logs its error
			_, err := c.recorder.Start(ctx, r.recorded(started))
			return err
		})
	}()
}

// resumeRecording continues recording a call that this node has taken over, in a new recording. The
// lost node finishes the previous recording once it is back.
func (k *call) resumeRecording() {
	c, r, started := k.calls, k.record, time.Now()
	if c.recorder == nil || k.echo {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		defer cancel()
		// This is not done within changeRecordings: ending a recording calls changeRecordings,
		// which would wait for itself.
		recorded, err := c.recorder.Interrupt(ctx, k.project, k.id)
		if err != nil {
			c.log.Error("closing the recording from a lost node", "call_id", k.id, "error", err)
			return
		}
		// A restarted server may have ended that recording before the clients came
		// back.
		if !recorded && !r.Recorded {
			return
		}
		_ = k.changeRecordings(func(ctx context.Context) error { // it logs its error
			_, err := c.recorder.Start(ctx, r.recorded(started))
			return err
		})
	}()
}

// recorded describes a recording of both sides of the call that begins at started.
func (r Record) recorded(started time.Time) RecordedCall {
	return RecordedCall{
		Project: r.ProjectID, CallID: r.ID, From: r.From.Address, To: r.To.Address, Direction: "inbound",
		Subscribers: r.Subscribers(), Started: started,
	}
}

// changeRecordings calls before, which may be nil, and then makes the recorder match the stored
// status of the recordings. It logs errors and returns them.
func (k *call) changeRecordings(before func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	k.recordings.changing.Lock()
	defer k.recordings.changing.Unlock()

	var err error
	if before != nil {
		err = before(ctx)
	}
	if err == nil {
		err = k.applyRecordings(ctx)
	}
	if err != nil {
		k.calls.log.Error("recording a call", "call_id", k.id, "error", err)
	}
	return err
}

// applyRecordings starts, pauses, resumes and stops recordings until they match their stored
// status.
func (k *call) applyRecordings(ctx context.Context) error {
	wanted, err := k.calls.recorder.Wanted(ctx, k.project, k.id)
	if err != nil {
		return err
	}
	running, listening := make(map[string]Recording, len(wanted)), false
	for _, w := range wanted {
		rec, err := k.calls.recorder.Start(ctx, w.RecordedCall)
		if err != nil {
			return err
		}
		if running[w.Sid] = rec; w.Paused {
			rec.Pause(w.Skip)
		} else {
			rec.Resume()
			listening = true
		}
	}

	_, err = k.do(ctx, func() (Reply, error) { return Reply{}, k.setRecordings(running, listening) })
	return err
}

// setRecordings replaces the recordings of the call, and tells its members whether there are any.
// listening reports whether any of them is not paused.
func (k *call) setRecordings(running map[string]Recording, listening bool) error {
	for sid, rec := range k.recordings.bySid {
		if running[sid] == nil {
			rec.Stop()
		}
	}
	if k.state != InCall {
		for _, rec := range running {
			rec.Stop()
		}
		return nil
	}

	before := k.isRecorded()
	k.recordings.bySid = running
	for _, l := range k.legs {
		if l.active && !l.over && l.media != nil && l.member.Type == Person {
			l.media.Record(k.tapOf(l))
		}
	}
	k.setTone(listening)
	if k.isRecorded() != before {
		k.tellMembers(Event{Kind: RoomUpdated, Room: k.room()})
	}
	return k.saveRecorded(listening)
}

// saveRecorded notes in the record whether the call is being recorded, and its first recording.
func (k *call) saveRecorded(listening bool) error {
	was := k.record
	k.record.Recorded = listening
	for sid := range k.recordings.bySid {
		k.record.RecordingSid = cmp.Or(was.RecordingSid, sid)
	}
	if k.record == was {
		return nil
	}
	return k.save()
}

func (k *call) isRecorded() bool { return len(k.recordings.bySid) > 0 }

// tapOf returns the tap that passes a leg's packets to all recordings, or nil if the call is not
// recorded.
func (k *call) tapOf(l *leg) Tap {
	side := CallerSide
	if l.inbound {
		side = CalleeSide
	}
	var all taps
	for _, rec := range k.recordings.bySid {
		all = append(all, rec.Tap(side))
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// stopRecordings ends all recordings. Their files are made in the background.
func (k *call) stopRecordings() {
	for _, rec := range k.recordings.bySid {
		rec.Stop()
	}
	k.recordings.bySid = nil
	k.record.Recorded = false
	k.setTone(false)
}

// setTone starts or stops the tone that tells members that the call is being recorded.
func (k *call) setTone(on bool) {
	r := &k.recordings
	switch {
	case on == (r.tone != nil) || k.calls.recordTone == 0:
	case on:
		k.playTone()
	default:
		r.tone.Stop()
		r.tone = nil
	}
}

// playTone plays the tone to all members and schedules the next one.
func (k *call) playTone() {
	for _, l := range k.legs {
		if l.active && !l.over && l.media != nil && l.member.Type == Person {
			l.media.Beep()
		}
	}
	var next *time.Timer
	next = time.AfterFunc(k.calls.recordTone, func() {
		k.post(func() {
			if k.recordings.tone == next {
				k.playTone()
			}
		})
	})
	k.recordings.tone = next
}

// taps pass packets to several recordings.
type taps []Tap

func (t taps) Packet(p Packet) {
	for _, tap := range t {
		tap.Packet(p)
	}
}

func (t taps) Clock(kind Kind, rtp uint32, wall time.Time) {
	for _, tap := range t {
		tap.Clock(kind, rtp, wall)
	}
}

// Subscribers returns the ids of the subscribers in the call.
func (r Record) Subscribers() []string {
	both := []string{r.From.SubscriberID, r.To.SubscriberID}
	return slices.DeleteFunc(both, func(id string) bool { return id == "" })
}

// Record makes the recorder of a running call match the stored status of the call's recordings. If
// this node carries the call, Record returns when that is done; another node does it within a
// second. If the call is unknown or has ended, Record returns problem.NotFound.
func (c *Calls) Record(ctx context.Context, projectID, id string) error {
	k := c.find(projectID, id)
	if k == nil || c.recorder == nil {
		return c.Records.Record(ctx, projectID, id)
	}
	if k.visible.Load().(State) != InCall {
		return problem.NoSuch("call")
	}
	return k.changeRecordings(nil)
}
