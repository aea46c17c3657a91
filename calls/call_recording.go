package calls

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// recordIfWanted begins to record an answered call if its parties or their project chose to record
// it.
func (k *call) recordIfWanted() {
	c := k.calls
	if c.recorder == nil || k.echo {
		return
	}
	started, r, replaced := time.Now(), k.record, k.recordings.replaced

	go func() {
		if k.isWanted(r) {
			k.recordings.start(replaced, r.recorded(started))
		}
	}()
}

// isWanted reports whether the parties of the call in r, or their project, chose to record it.
// After an error, it retries until the call has ended.
func (k *call) isWanted(r Record) (wanted bool) {
	_ = k.recordings.retry(func() (err error) { // the error is logged below
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		defer cancel()
		wanted, err = k.calls.isRecorded(ctx, r)
		if err != nil {
			k.calls.log.Error("deciding whether to record a call", "call_id", k.id, "error", err)
		}
		return err
	})
	return wanted
}

// recordAgain ends the recordings of a call that was transferred, because the party that has left
// the call owns them too. If the parties or their project chose to record the call, recordAgain
// begins a new recording.
func (k *call) recordAgain() {
	c := k.calls
	if c.recorder == nil {
		return
	}
	for _, l := range k.people() {
		l.media.Record(nil)
	}
	k.recordings.stopTone()
	k.recordings.replaced++
	started, r, replaced := time.Now(), k.record, k.recordings.replaced

	go func() {
		if err := k.recordings.endAll(); err != nil {
			return // the call has ended
		}
		if k.isWanted(r) {
			k.recordings.start(replaced, r.recorded(started))
		}
	}()
}

// resumeRecording continues recording a call that this node has taken over.
func (k *call) resumeRecording() {
	if k.calls.recorder != nil && !k.echo {
		go k.recordings.resume(k.record.Recorded, k.record.recorded(time.Now()))
	}
}

// recorded returns the description of a recording of both sides of the call. The recording begins
// at the time in started.
func (r Record) recorded(started time.Time) RecordedCall {
	return RecordedCall{
		Project:     r.ProjectID,
		CallID:      r.ID,
		From:        r.From.Address,
		To:          r.To.Address,
		Direction:   "inbound",
		Subscribers: r.Subscribers(),
		Started:     started,
	}
}

var _ recorded = (*call)(nil)

func (k *call) canBeRecorded() bool { return k.state == InCall && !k.takenOver }

func (k *call) setTaps() {
	for _, l := range k.people() {
		l.media.Record(k.tapOf(l))
	}
}

func (k *call) people() []*leg { return peopleIn(k.legs) }

// tapOf returns the tap that passes a leg's packets to all recordings of the call, or nil if the
// call is not recorded.
func (k *call) tapOf(l *leg) Tap {
	if l == k.caller() {
		return k.recordings.tap(CallerSide)
	}
	return k.recordings.tap(CalleeSide)
}

func (k *call) tellRecorded() {
	for _, l := range k.legs {
		if l.active && !l.ended {
			l.tell(Event{Kind: RoomUpdated, Room: k.room()})
		}
	}
}

// saveRecorded stores in the call's record whether the call is being recorded, and the Sid of the
// call's first recording.
func (k *call) saveRecorded(listening, isRetry bool) error {
	before := k.record
	k.record.Recorded = listening
	for sid := range k.recordings.bySid {
		k.record.RecordingSid = cmp.Or(before.RecordingSid, sid)
	}
	if k.record == before && !k.unnoted {
		return nil
	}

	err := k.calls.slowness.write(k.unnoted && isRetry, func(ctx context.Context) error {
		return k.calls.store.SaveRecorded(ctx, k.record) // SaveCall would repeat the webhook event
	})
	k.unnoted = err != nil
	return err
}

// Subscribers returns the ids of the subscribers in the call.
func (r Record) Subscribers() []string {
	both := []string{r.From.SubscriberID, r.To.SubscriberID}
	return slices.DeleteFunc(both, func(id string) bool { return id == "" })
}

// Record makes the recorder of a running call match the stored status of the call's recordings. If
// this node carries the call, Record returns when the recorder matches. If another node carries the
// call, the recorder there matches within a second. Record returns problem.NotFound if the call is
// unknown or has ended, or if it has not been answered.
func (c *Calls) Record(ctx context.Context, projectID, id string) error {
	k := c.find(projectID, id)
	if k == nil || c.recorder == nil {
		return c.Records.Record(ctx, projectID, id)
	}
	if k.visible.Load().(State) != InCall {
		return problem.NoSuch("call")
	}
	return k.recordings.change(nil)
}
