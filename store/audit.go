package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/problem"
)

// Audit holds the audit trail. It consists of lanes. In a lane, each event is chained to the
// previous one.
type Audit struct{ *core }

// AuditBy sets the key of the audit trail. Without a key, every change that needs an event fails. A
// caller that can derive the key only after opening the database, which shows whether a master key
// exists, uses AuditBy instead of Config.Audit.
func (s *Audit) AuditBy(key *audit.Key) { s.auditKey.Store(key) }

// OnReplacedMaster sets a function that is called when another process may have replaced the master
// key. If it was replaced, the function must call AuditBy with a key derived from the new master key,
// or return an error. It must be set before the first change.
func (s *Audit) OnReplacedMaster(do func(ctx context.Context) error) { s.replaced = do }

// errReplaced is the error for a change by a process that does not know the newest master key.
var errReplaced = errors.New("the master key was replaced, and this process does not have the new one")

// Record writes the event for a decision that changes no row.
func (s *Audit) Record(ctx context.Context, e audit.Event) error {
	return s.change(ctx, e, func(tx) error { return nil })
}

// record writes the events of a transaction. It must be called last, because it locks the lane
// until the commit.
func (c *core) record(ctx context.Context, t tx) error {
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
			if end, err = c.laneEnd(ctx, t); err != nil {
				return err
			}
		}

		if err := c.write(ctx, t, end, e); err != nil {
			return err
		}
	}

	if end == nil {
		return nil
	}
	return t.Remember(end, func(d database.Tx) error { return end.write(ctx, d) })
}

const auditColumns = `lane, seq, id, at, project_id, action, outcome, actor_kind, actor_id, ` +
	`target_kind, target_id, address, request_id, detail, hash`

// write adds an event at the end of its lane.
func (c *core) write(ctx context.Context, t tx, end *laneEnd, e audit.Event) error {
	id, err := uuid.NewV7()
	if err != nil {
		return unaudited(err)
	}
	e.From(audit.From(ctx))
	e.Lane, e.Seq = end.lane, end.seq+1
	e.ID, e.At = id.String(), c.now().Truncate(time.Microsecond)
	e.Clean()
	detail := e.DetailText()
	e.Hash = end.key.Hash(e, detail, end.behind)

	err = t.Later(ctx, `INSERT INTO audit (`+auditColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		e.Lane, e.Seq, e.ID, micros(e.At), e.ProjectID, e.Action, string(e.Outcome), string(e.Actor.Kind), e.Actor.ID,
		e.Target.Kind, e.Target.ID, e.Address, e.RequestID, detail, e.Hash)
	if err != nil {
		return unaudited(err)
	}
	end.seq, end.hash, end.behind = e.Seq, e.Hash, e.Hash
	return nil
}

// A laneEnd is the end of a lane. It belongs to the transaction that writes to the lane. On SQLite,
// it is also remembered in memory for the next transaction.
type laneEnd struct {
	key    *audit.Key
	lane   int
	behind string // the hash to which the next event is chained
	place
	row    place // the contents of the lane's row
	locked bool  // whether this transaction has locked the row, which then cannot change until the commit
}

type place struct {
	seq       int64
	hash, mac string
}

// laneEnd returns the end of the lane to which a transaction writes. On SQLite, this is the end
// that the previous change in this process remembered, if any. Otherwise laneEnd reads and locks
// the lane's row.
func (c *core) laneEnd(ctx context.Context, t tx) (*laneEnd, error) {
	key := cmp.Or(*t.keys, c.auditKey.Load())
	if key == nil {
		return nil, unaudited(errors.New("no audit key is set"))
	}
	if left, ok := t.Recall().(*laneEnd); ok && left.key == key {
		end := *left
		return &end, nil
	}

	end := &laneEnd{key: key, lane: c.lane(), locked: c.lanes > 1}
	var generation int64
	err := t.Locked(ctx, `SELECT seq, hash, mac, generation FROM audit_heads WHERE lane = $1`,
		end.lane).Scan(&end.seq, &end.hash, &end.mac, &generation)
	if err != nil {
		return nil, unaudited(err)
	}
	if generation > key.Generation() {
		return nil, unaudited(errReplaced)
	}
	end.row = end.place
	end.behind = key.Behind(audit.Head{Lane: end.lane, Seq: end.seq, Hash: end.hash, Mac: end.mac})
	return end, nil
}

// write updates the lane's row. If the row is not locked and differs from the remembered one,
// another process has written to the lane. In that case, write fails, and the changes that relied
// on the remembered end are undone.
func (e *laneEnd) write(ctx context.Context, d database.Tx) error {
	const update = `UPDATE audit_heads SET seq = $2, hash = $3, mac = $4
		WHERE lane = $1 AND seq = $5 AND hash = $6 AND mac = $7`
	e.mac = e.key.Mac(audit.EndOfLane, e.lane, e.seq, e.hash)
	args := []any{e.lane, e.seq, e.hash, e.mac, e.row.seq, e.row.hash, e.row.mac}
	if e.locked {
		if err := d.Later(ctx, update, args...); err != nil {
			return unaudited(err)
		}
		e.row = e.place
		return nil
	}

	res, err := d.Exec(ctx, update, args...)
	if err != nil {
		return unaudited(err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return unaudited(errors.Join(errors.New("another event was written to its lane"), err))
	}
	e.row = e.place
	return nil
}

// lane returns the number of the lane to write to. On PostgreSQL, transactions are concurrent. They use
// the lanes in turn, so that few of them wait for the commit of another one.
func (c *core) lane() int {
	if c.lanes == 1 {
		return 0
	}
	return int(c.turn.Add(1) % c.lanes)
}

// unaudited explains why an event could not be written. If the error comes from an earlier queued
// statement, such as the INSERT of an existing row, unaudited returns it unchanged.
func unaudited(err error) error {
	var known *problem.Error
	if isUnique(err) || isForeignKey(err) || errors.As(err, &known) {
		return err
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = errors.New("the end of its lane is missing")
	}
	return fmt.Errorf("%w: writing audit event: %w", &problem.Error{
		Kind:       problem.Unavailable,
		Code:       "temporarily_unavailable",
		Message:    "the audit trail cannot be written, so nothing was changed",
		RetryAfter: time.Second,
	}, err)
}
