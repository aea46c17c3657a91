package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
)

// A core is the database that all parts of a Store share, with the audit trail that their
// changes are written to.
type core struct {
	db   database.DB
	now  func() time.Time
	from int64 // the schema version that Open found

	auditKey atomic.Pointer[audit.Key] // nil until AuditBy
	lanes    uint64                    // number of lanes that audit events are spread over
	turn     atomic.Uint64             // counts events, to choose their lanes
}

// A tx runs queries, either within a change or read-only.
type tx struct {
	database.Tx
	event *audit.Event   // describes the change; nil when reading
	more  *[]audit.Event // further events of the same change, see also
}

// A scanner is a row.
type scanner = database.Scanner

// read returns a tx for queries that change nothing.
func (s *core) read() tx { return tx{Tx: s.db.Read()} }

// watch is like read, for queries that must be answered however busy the database is.
func (s *core) watch() tx { return tx{Tx: s.db.Watch()} }

// clock returns the current time on the database's machine.
func (s *core) clock(ctx context.Context) (time.Time, error) {
	now, err := s.db.Clock(ctx)
	if err != nil {
		return now, fmt.Errorf("asking the database for the time: %w", err)
	}
	return now, nil
}

// AuditBy sets the key of the audit chains. Until then nothing is changed that needs an
// event; a database is opened first, since it tells whether there is a master key.
func (s *Audit) AuditBy(key *audit.Key) { s.auditKey.Store(key) }

// Record writes the event of a decision that changes no row.
func (s *Audit) Record(ctx context.Context, e audit.Event) error {
	return s.change(ctx, e, func(tx) error { return nil })
}

// change runs do in a transaction and returns once it is committed and synced to
// disk, with the event that tells of it. An error of do undoes what do did.
func (s *core) change(ctx context.Context, e audit.Event, do func(tx) error) error {
	if err := e.Check(); err != nil {
		return err
	}
	return s.db.Change(ctx, func(d database.Tx) error {
		event := e // do may run again
		t := tx{d, &event, new([]audit.Event)}
		if err := do(t); err != nil {
			return err
		}
		return s.record(ctx, t)
	})
}

// also adds an event to that of the change, for one that does several things.
func (t tx) also(e audit.Event) { *t.more = append(*t.more, e) }

// once is change for one statement, which without an event needs no transaction: then an
// error of do undoes nothing.
func (s *core) once(ctx context.Context, e audit.Event, do func(tx) error) error {
	if !e.Unwritten() {
		return s.change(ctx, e, do)
	}
	return s.db.Once(ctx, func(d database.Tx) error { return do(tx{Tx: d, event: &e}) })
}

// record writes the events of a transaction, as the last thing it does: the lane is locked
// until the commit.
func (s *core) record(ctx context.Context, t tx) error {
	var end *laneEnd
	for i := range 1 + len(*t.more) {
		e := *t.event
		if i > 0 {
			e = (*t.more)[i-1]
		}
		if e.Unwritten() {
			continue
		}
		if end == nil {
			var err error
			if end, err = s.laneEnd(ctx, t); err != nil {
				return err
			}
		}
		if err := s.write(ctx, t, end, e); err != nil {
			return err
		}
	}
	if end == nil {
		return nil
	}
	return t.Remember(end, func(d database.Tx) error { return end.write(ctx, d) })
}

// write writes an event behind the end of its lane.
func (s *core) write(ctx context.Context, t tx, end *laneEnd, e audit.Event) error {
	id, err := uuid.NewV7()
	if err != nil {
		return unaudited(err)
	}
	e.From(audit.From(ctx))
	e.Lane, e.Seq = end.lane, end.seq+1
	e.ID, e.At = id.String(), s.now().Truncate(time.Microsecond)
	e.Clean()
	detail := e.DetailText()
	e.Hash = end.key.Hash(e, detail, end.behind)
	err = t.Later(ctx, `INSERT INTO audit (`+
		auditColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		e.Lane, e.Seq, e.ID, micros(e.At), e.ProjectID, e.Action, string(e.Outcome), string(e.Actor.Kind), e.Actor.ID,
		e.Target.Kind, e.Target.ID, e.Address, e.RequestID, detail, e.Hash)
	if err != nil {
		return unaudited(err)
	}
	end.seq, end.hash, end.behind = e.Seq, e.Hash, e.Hash
	return nil
}

// A laneEnd is where a lane ends, in the transaction that writes to it and, on SQLite,
// in memory between them.
type laneEnd struct {
	key    *audit.Key
	lane   int
	behind string // what the next event is chained to
	place
	row    place // what the lane's row says
	locked bool  // by this transaction alone, and so it says that until the commit
}

type place struct {
	seq       int64
	hash, mac string
}

// laneEnd returns the end of the lane that a transaction writes to: as it was left in this
// process, where one writer has them all, or as the row says, which is locked by that.
func (s *core) laneEnd(ctx context.Context, t tx) (*laneEnd, error) {
	key := s.auditKey.Load()
	if key == nil {
		return nil, unaudited(errors.New("there is no key"))
	}
	if left, ok := t.Recall().(*laneEnd); ok && left.key == key {
		end := *left
		return &end, nil
	}
	end := &laneEnd{key: key, lane: s.lane(), locked: s.lanes > 1}
	err := t.Row(ctx, `UPDATE audit_heads SET seq = seq WHERE lane = $1 RETURNING seq, hash, mac`,
		end.lane).Scan(&end.seq, &end.hash, &end.mac)
	if err != nil {
		return nil, unaudited(err)
	}
	end.row = end.place
	end.behind = key.Behind(audit.Head{Lane: end.lane, Seq: end.seq, Hash: end.hash, Mac: end.mac})
	return end, nil
}

// write writes the end into the lane's row. Where that is not locked and says anything else
// than we know, another process has written: all that hangs on what we know is undone.
func (e *laneEnd) write(ctx context.Context, d database.Tx) error {
	const update = `UPDATE audit_heads SET seq = $2, hash = $3, mac = $4 WHERE lane = $1 AND seq = $5 AND hash = $6 AND mac = $7`
	e.mac = e.key.Mac(audit.EndOfLane, e.lane, e.seq, e.hash)
	args := []any{e.lane, e.seq, e.hash, e.mac, e.row.seq, e.row.hash, e.row.mac}
	if e.locked {
		if err := d.Later(ctx, update, args...); err != nil {
			return unaudited(err)
		}
	} else {
		res, err := d.Exec(ctx, update, args...)
		if err != nil {
			return unaudited(err)
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			return unaudited(errors.Join(errors.New("the end of its lane has moved"), err))
		}
	}
	e.row = e.place
	return nil
}

const auditColumns = `lane, seq, id, at, project_id, action, outcome, actor_kind, actor_id, target_kind, target_id, address, request_id, detail, hash`

// lane returns the lane to write to: on PostgreSQL, where transactions run at once, they
// take turns, so that few wait for another's commit.
func (s *core) lane() int {
	if s.lanes == 1 {
		return 0
	}
	return int(s.turn.Add(1) % s.lanes)
}

// unaudited explains why an event could not be written. What was queued before it may be
// what fails, such as an INSERT of what is there already: that is told as it is.
func unaudited(err error) error {
	var told *problem.Error
	if isUnique(err) || isForeignKey(err) || errors.As(err, &told) {
		return err
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = errors.New("the end of its lane is gone")
	}
	return fmt.Errorf("%w: writing audit event: %w", &problem.Error{
		Kind: problem.Unavailable, Code: "temporarily_unavailable",
		Message: "the audit trail cannot be written, and nothing is changed without it", RetryAfter: time.Second,
	}, err)
}
