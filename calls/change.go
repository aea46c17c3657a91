package calls

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// maxLate is the maximum number of changes of a call that wait to be written. A call with this many
// can no longer move or be transferred.
const maxLate = 10

// A change is a change of a running call that is written once: its answer, a transfer or a move.
type change struct {
	record  Record // the record with the change
	failure string // the log message if the change cannot be written
	write   func(ctx context.Context, r Record) error

	// isIn reports whether a stored record contains the change. It may return false if it cannot know.
	// The audit trail or the webhooks then get the change twice.
	isIn func(stored Record) bool
}

// recordNow returns the record to write. current is the current record of the call. The gateway and
// the recordings are taken from it, because they are also written independently of changes.
func (c change) recordNow(current Record) Record {
	r := c.record
	r.Gateway = current.Gateway
	r.Payer = current.Payer
	r.Lines = current.Lines
	r.OutboundFrom = current.OutboundFrom
	r.Recorded = current.Recorded
	r.RecordingSid = current.RecordingSid
	return r
}

// changes are the changes of a call that could not be written yet, in order. Only the first one has
// been tried. It may be stored, because the response of the database may have been lost.
type changes []change

// write writes all changes, and removes those that are stored. It returns how many it wrote. stored is
// the current row, and current is the current record.
func (s *changes) write(ctx context.Context, stored, current Record) (written int, err error) {
	wasTried := true
	for len(*s) > 0 {
		first := (*s)[0]
		isStored := wasTried && first.isIn(stored)
		if !isStored {
			if err := first.write(ctx, first.recordNow(current)); err != nil {
				return written, err
			}
			written++
		}
		wasTried = false
		*s = (*s)[1:]
	}
	return written, nil
}

// A callEnd is the record of a call that has ended, with the changes that must be written before.
type callEnd struct {
	Record
	before *changes
}

// save writes the changes and then the record. If it fails, the next call continues.
func (e callEnd) save(ctx context.Context, s Store) error {
	if len(*e.before) > 0 {
		stored, err := s.FindCall(ctx, e.ProjectID, e.ID)
		if err != nil {
			return err
		}
		if _, err := e.before.write(ctx, stored, e.Record); err != nil {
			return err
		}
	}
	return s.SaveCall(ctx, e.Record)
}

// A writer writes the changes of a running call.
type writer struct{ *call }

// write writes a change. If it cannot be written, the call continues, and the change is written later.
// If another node has taken the call over, this node stops sending events to the call's clients.
func (k writer) write(c change) {
	if len(k.late) > 0 {
		k.late = append(k.late, c)
		return
	}
	err := k.calls.slowness.first(func(ctx context.Context) error { return c.write(ctx, c.record) })
	switch {
	case err == nil:
		return
	case errors.Is(err, ErrTaken):
		k.takenOver = true
	case !isObsolete(err):
		k.writeLater(c)
	}
	k.calls.log.Error(c.failure, "call_id", k.id, "error", err)
}

// writeLater writes a change once the database works again. No other change waits.
func (k writer) writeLater(c change) {
	k.late = changes{c}
	go k.recordings.retry(k.writeLate)
}

// writeLate writes the changes that could not be written before. The mailbox waits for the database only
// if the database has just answered a query, and has not been too slow to write changes recently.
func (k writer) writeLate() error {
	if k.calls.slowness.isRecent() {
		return errSlow
	}
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	stored, err := k.calls.store.FindCall(ctx, k.project, k.id)
	if err != nil {
		return problem.IgnoreNotFound(err) // NotFound: the project was deleted
	}

	return runIn(context.Background(), k.call, func() error {
		if k.state != InCall {
			return nil // the changes are written with the end of the call
		}
		err := k.calls.slowness.try(func(ctx context.Context) (int, error) {
			return k.late.write(ctx, stored, k.record)
		})
		if errors.Is(err, ErrTaken) {
			k.takenOver = true
		}
		if isObsolete(err) {
			k.late = nil
			return nil
		}
		return err
	})
}

// slowPause is how long mailboxes pause before they try again to write changes, after an attempt has
// timed out without writing a change. The database may still answer queries.
const slowPause = time.Minute

// errSlow is the error for a change that is not written, because the database was too slow recently.
var errSlow = errors.New("the database was too slow to write an earlier change")

// slowness remembers when the database was last too slow to write changes of a call or room session.
// Otherwise, a room and its members would make the mailbox wait again and again. It is safe for concurrent
// use.
type slowness struct {
	mu    sync.Mutex
	until time.Time // no changes are written before this time
}

// try is like attempt. If an attempt has timed out less than slowPause ago and wrote no change, try returns
// errSlow instead.
func (s *slowness) try(write func(context.Context) (int, error)) error {
	if s.isRecent() {
		return errSlow
	}
	return s.attempt(write)
}

// first is like attempt, for the first attempt to write one change.
func (s *slowness) first(write func(context.Context) error) error {
	return s.attempt(func(ctx context.Context) (int, error) { return 0, write(ctx) })
}

// write is like first or, if isRetry is set, like try.
func (s *slowness) write(isRetry bool, write func(context.Context) error) error {
	if isRetry && s.isRecent() {
		return errSlow
	}
	return s.first(write)
}

// attempt calls write, whose time it limits to saveTimeout. write returns how many changes it wrote.
func (s *slowness) attempt(write func(context.Context) (int, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	written, err := write(ctx)
	if err != nil && ctx.Err() != nil && written == 0 {
		s.note()
	}
	return err
}

// isRecent reports whether note was called less than slowPause ago.
func (s *slowness) isRecent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until)
}

// note records that an attempt has just timed out without writing a change.
func (s *slowness) note() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Now().Add(slowPause)
}

// endLater makes Run write the end of the call, which could not be written yet.
func (k writer) endLater() {
	before := k.late
	k.late = nil
	k.calls.ends.add(callEnd{k.record, &before})
}

// answer returns the change that stores the answer to the call.
func (k writer) answer() change {
	return change{
		record: k.record,
		write:  k.calls.store.SaveCall,
		isIn:   func(stored Record) bool { return !stored.Answered.IsZero() },
	}
}
