package calls

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// recordTimeout limits how long a change to recordings may take. The call or room does not wait for
// the change.
const recordTimeout = 10 * time.Second

// recordings are the recordings of a call or a room session that are in progress, at most one per
// track.
type recordings struct {
	calls *Calls   // fixed
	of    recorded // fixed
	about Recorded // fixed: identifies the call or room session to the recorder

	// changing is held while the recorder is made to match the stored status. This uses the database
	// and the disk, so the mailbox never waits for changing.
	changing sync.Mutex
	starting sync.Mutex // held while a recording begins, or while all of them are ended

	// Only the mailbox reads and changes the following fields.
	bySid    map[string]Recording
	tone     *time.Timer // runs until the next tone; nil without a tone
	replaced int         // how many parties of a call were replaced by transfers
}

func (r *recordings) init(c *Calls, of recorded, about Recorded) {
	r.calls, r.of, r.about = c, of, about
}

// A recorded is a call or a room. Except for do and post, its methods run in the mailbox.
type recorded interface {
	do(ctx context.Context, f func() (Reply, error)) (Reply, error)
	post(f func())

	// canBeRecorded reports whether the call or room was answered and has not ended. It may also
	// return false if another node has taken the call over.
	canBeRecorded() bool
	// setTaps makes the media of the call or room pass its packets to all current recordings.
	setTaps()
	// people returns the legs whose clients are notified when recording starts or stops.
	people() []*leg
	// tellRecorded informs the clients whether the call or room is being recorded.
	tellRecorded()
	// saveRecorded writes whether the call or room is being recorded. listening is true if any
	// recording is not paused. If isRetry is set, and an earlier attempt has failed, saveRecorded does
	// not wait for a database that was too slow recently. It then returns errSlow.
	saveRecorded(listening, isRetry bool) error
}

// change calls before, which may be nil, and then makes the recorder match the stored status of the
// recordings. It logs errors and returns them.
func (r *recordings) change(before func(context.Context) error) error {
	return r.attempt(before, false)
}

// changeAgain is like change, for callers that try again after an error. They do not wait again and again
// for a database that is too slow: changeAgain may return errSlow, which it does not log.
func (r *recordings) changeAgain(before func(context.Context) error) error {
	return r.attempt(before, true)
}

// attempt implements change and changeAgain.
func (r *recordings) attempt(before func(context.Context) error, isRetry bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	err := r.applyAfter(ctx, before, isRetry)
	if err != nil && !errors.Is(err, errSlow) {
		r.logger().Error("recording a call", "error", err)
	}
	return err
}

// retryAfter is how long retry waits before it tries again.
const retryAfter = time.Second

// follow makes the recorder match the stored status of the recordings. The request to do so is no
// longer stored, so follow tries again after an error until the call or room has ended.
func (r *recordings) follow() error {
	return r.retry(func() error { return r.changeAgain(nil) })
}

// retry calls f until it succeeds, or this node no longer carries the call or room. It returns the
// last error.
func (r *recordings) retry(f func() error) error {
	return r.retryUntil(func() bool { return !r.of.canBeRecorded() }, f)
}

// retryUntil is like retry, but it stops only after hasEnded returns true, or another node has taken the
// call or room over. hasEnded runs in the mailbox.
func (r *recordings) retryUntil(hasEnded func() bool, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		time.Sleep(retryAfter)
		if r.isOver(hasEnded) {
			return err
		}
	}
}

// isOver reports whether hasEnded, which runs in the mailbox, returns true, or whether another node has
// taken the call or room over.
func (r *recordings) isOver(hasEnded func() bool) bool {
	over := true
	_, err := r.of.do(context.Background(), func() (Reply, error) {
		over = hasEnded()
		return Reply{}, nil
	})
	return err != nil || over || r.isTaken()
}

// applyAfter calls before, which may be nil, and then apply. It ends the recordings whose packets
// cannot be stored. changing is not held while before or applyAfter ends a recording. Package
// recordings then calls change, which would otherwise wait forever.
func (r *recordings) applyAfter(ctx context.Context, before func(context.Context) error, isRetry bool) error {
	if before != nil {
		if err := before(ctx); err != nil {
			return err
		}
	}
	unstored, err := r.apply(ctx, isRetry)
	for _, sid := range unstored {
		err = joinLogged(err, r.calls.recorder.End(ctx, r.about, sid))
	}
	return err
}

func (r *recordings) logger() *slog.Logger {
	if r.about.RoomSession != "" {
		return r.calls.log.With("room_session_id", r.about.RoomSession)
	}
	return r.calls.log.With("call_id", r.about.CallID)
}

// apply starts, pauses, resumes and stops recordings until they match their stored status. It
// also returns the Sids of the recordings whose packets cannot be stored.
func (r *recordings) apply(ctx context.Context, isRetry bool) (unstored []string, err error) {
	r.changing.Lock()
	defer r.changing.Unlock()
	wanted, err := r.calls.recorder.Wanted(ctx, r.about)
	if err != nil {
		return nil, err
	}

	running := make(map[string]Recording, len(wanted)) // by Sid
	listening := false
	var notStored error
	for _, w := range wanted {
		rec, err := r.calls.recorder.Start(ctx, w.RecordedCall)
		if errors.Is(err, ErrNotStored) {
			unstored = append(unstored, w.Sid)
			notStored = err
			continue
		}
		if err != nil {
			return unstored, err
		}
		running[w.Sid] = rec
		if w.Paused {
			rec.Pause(w.Skip)
		} else {
			rec.Resume()
			listening = true
		}
	}

	_, err = r.of.do(ctx, func() (Reply, error) { return Reply{}, r.set(running, listening, isRetry) })
	if errors.Is(err, errRoomOver) {
		for _, rec := range running {
			rec.Stop()
		}
		return unstored, notStored
	}
	return unstored, joinLogged(err, notStored)
}

// joinLogged is like errors.Join, but leaves errSlow out if there is another error, because changeAgain
// must log the other one.
func joinLogged(err, other error) error {
	if other != nil && errors.Is(err, errSlow) {
		return other
	}
	return errors.Join(err, other)
}

// set replaces the recordings. If recording has started or stopped, it notifies the members.
// listening is true if any recording is not paused. For isRetry, see saveRecorded.
func (r *recordings) set(running map[string]Recording, listening, isRetry bool) error {
	for sid, rec := range r.bySid {
		if running[sid] == nil {
			rec.Stop()
		}
	}
	if !r.of.canBeRecorded() {
		for _, rec := range running {
			rec.Stop()
		}
		return nil
	}

	before := r.any()
	r.bySid = running
	r.of.setTaps()
	if listening {
		r.startTone()
	} else {
		r.stopTone()
	}
	if r.any() != before {
		r.of.tellRecorded()
	}
	return r.of.saveRecorded(listening, isRetry)
}

// any reports whether anything is being recorded.
func (r *recordings) any() bool { return len(r.bySid) > 0 }

// tap returns the tap that passes the packets of a side to all recordings, or nil if nothing is
// recorded.
func (r *recordings) tap(side Side) Tap {
	var several taps
	for _, rec := range r.bySid {
		several = append(several, rec.Tap(side))
	}
	switch len(several) {
	case 0:
		return nil
	case 1:
		return several[0]
	}
	return several
}

// stop ends all recordings. Their files are made in the background.
func (r *recordings) stop() {
	for _, rec := range r.bySid {
		rec.Stop()
	}
	r.bySid = nil
	r.stopTone()
}

// startTone starts the tone that informs members of a recording, unless it is already playing or
// the server's configuration has no tone.
func (r *recordings) startTone() {
	if r.tone == nil && r.calls.recordTone > 0 {
		r.playTone()
	}
}

func (r *recordings) stopTone() {
	if r.tone != nil {
		r.tone.Stop()
		r.tone = nil
	}
}

// playTone plays the tone to all members and schedules the next one.
func (r *recordings) playTone() {
	for _, l := range r.of.people() {
		l.media.Beep()
	}
	var next *time.Timer
	next = time.AfterFunc(r.calls.recordTone, func() {
		r.of.post(func() {
			if r.tone == next {
				r.playTone()
			}
		})
	})
	r.tone = next
}

// peopleIn returns the members among legs who have media, without their screens and devices.
func peopleIn(legs []*leg) (people []*leg) {
	for _, l := range legs {
		if l.active && !l.ended && l.media != nil && l.member.Type == Person {
			people = append(people, l)
		}
	}
	return people
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
