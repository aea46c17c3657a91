package calls

import (
	"context"
	"errors"

	"github.com/selvage/selvage/internal/problem"
)

// start begins a new recording. Recordings begin one after another. Otherwise, the recorder would end
// a recording that is just beginning, as if a killed process had left it. After an error, start tries
// again until the call or room has ended, unless the recorder refuses the recording or cannot store
// packets.
//
// replaced is the value of r.replaced that belongs to the parties in c, and 0 for a room. If another
// party was replaced since then, start begins no recording.
func (r *recordings) start(replaced int, c RecordedCall) {
	r.starting.Lock()
	defer r.starting.Unlock()
	var rec Recording
	_ = r.retry(func() error { // changeAgain logs errors
		if !r.hasParties(replaced) {
			return nil
		}
		err := r.changeAgain(func(ctx context.Context) (err error) {
			if rec == nil {
				rec, err = r.calls.recorder.Start(ctx, c)
			}
			return err
		})
		if rec == nil && (errors.Is(err, ErrNotStored) || errors.Is(err, problem.Invalid)) {
			return nil // another attempt would fail as well
		}
		return err
	})
	if rec == nil {
		return
	}

	_, err := r.of.do(context.Background(), func() (Reply, error) {
		if r.bySid[rec.Sid()] == nil { // the recording was ended before changeAgain found it
			rec.Stop()
		}
		return Reply{}, nil
	})
	if err != nil { // the room has ended
		rec.Stop()
	}
}

// hasParties reports whether the call or room can be recorded, and no party was replaced since
// r.replaced had the given value.
func (r *recordings) hasParties(replaced int) (has bool) {
	_, err := r.of.do(context.Background(), func() (Reply, error) {
		has = r.of.canBeRecorded() && r.replaced == replaced
		return Reply{}, nil
	})
	return err == nil && has
}

// resume ends the recordings that a lost node was making. If there were any, or if expected is set,
// it begins a new recording. expected is true if the call or room was being recorded, according to
// the database. A restarted server may have ended this recording before the clients came back. The
// lost node finishes the ended recordings when it runs again. After an error, resume tries again
// until the call or room has ended.
func (r *recordings) resume(expected bool, c RecordedCall) {
	r.starting.Lock()
	err := r.retry(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		defer cancel()
		recorded, err := r.calls.recorder.Interrupt(ctx, r.about)
		if err != nil {
			r.logger().Error("closing the recording from a lost node", "error", err)
		}
		expected = expected || recorded
		return err
	})
	r.starting.Unlock()
	if err == nil && expected {
		r.start(0, c)
	}
}

// endAll ends all recordings, including one that is just beginning. After an error, it tries again
// until the call or room has ended.
func (r *recordings) endAll() error {
	r.starting.Lock()
	defer r.starting.Unlock()
	err := r.retry(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		defer cancel()
		err := r.calls.recorder.End(ctx, r.about, "")
		if err != nil {
			r.logger().Error("ending the recordings of a call", "error", err)
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.follow()
}

// isTaken reports whether another node has taken the call or room over, according to the database.
// A recording that begins here would end the recording of that node.
func (r *recordings) isTaken() bool {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	if r.about.RoomSession != "" {
		s, err := r.calls.rooms.store.FindRoom(ctx, r.about.Project, r.about.RoomSession)
		return err == nil && s.Node != r.calls.node
	}
	k, err := r.calls.store.FindCall(ctx, r.about.Project, r.about.CallID)
	return err == nil && k.Node != r.calls.node
}
