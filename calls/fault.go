package calls

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
)

// errFault is the error of a command that panicked.
var errFault = errors.New("a server error ended the call")

// post runs f in the call's mailbox. If f panics, only this call ends. If the call moves before f
// runs, f runs in the call's new mailbox.
func (k *call) post(f func()) {
	box := k.box.Load()
	box.post(func() {
		if k.box.Load() != box {
			k.post(f)
			return
		}
		defer func() { k.handlePanic(recover()) }()
		f()
	})
}

// handlePanic ends the call after a panic. cause is the result of recover. If it is nil,
// handlePanic does nothing. If ending the call panics as well, handlePanic discards the call.
func (k *call) handlePanic(cause any) {
	if cause == nil {
		return
	}
	k.calls.log.Error("panic in a call", "call_id", k.id, "error", fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
	defer func() {
		if recover() != nil {
			k.discard()
		}
	}()
	k.end(TemporaryFailure)
}

// discard stops the call's timers and recordings, closes its media, and removes the call, its legs
// and its place in a room. It sends no events. Run writes the record.
func (k *call) discard() {
	k.state = Completed
	k.ringTimer.Stop()
	k.endTimer.Stop()
	if k.record.State != "" {
		k.record.discard()
		writer{k}.endLater()
	}
	for _, l := range k.legs {
		l.ended = true
		if l.media != nil {
			l.media.Close()
		}
		if k.calls.isRegistered(l) {
			k.forgetLeg(l)
		}
	}

	k.calls.remove(k)
	if k.inRoom != nil {
		k.inRoom.members = slices.DeleteFunc(k.inRoom.members, func(m *call) bool { return m == k })
	}

	// The cause of the first panic may have been one of the recordings.
	defer func() {
		if cause := recover(); cause != nil {
			k.calls.log.Error("panic while ending a recording", "call_id", k.id,
				"error", fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	k.recordings.stop()
}

// discard records the end of a call after a panic.
func (r *Record) discard() {
	r.State = Completed
	r.Cause = TemporaryFailure
	if r.Ended.IsZero() {
		r.Ended = r.endNow()
	}
}

// isRegistered reports whether l is still registered.
func (c *Calls) isRegistered(l *leg) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.legs[l.key()] == l
}
