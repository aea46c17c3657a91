package store

import (
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

// AuditBy sets the key of the audit chains. Until then nothing is changed that needs an
// event; a database is opened first, since it tells whether there is a master key.
func (s *Store) AuditBy(key *audit.Key) { s.auditKey.Store(key) }

// Record writes the event of a decision that changes no row.
func (s *Store) Record(ctx context.Context, e audit.Event) error {
	return s.change(ctx, e, func(tx) error { return nil })
}

// change runs do in a transaction and returns once it is committed and synced to
// disk, with the event that tells of it. An error of do undoes what do did.
func (s *Store) change(ctx context.Context, e audit.Event, do func(tx) error) error {
	if err := e.Check(); err != nil {
		return err
	}
	return s.db.Change(ctx, func(d database.Tx) error {
		event := e // do may run again
		t := tx{d, &event, new([]audit.Event)}
		if err := do(t); err != nil {
			return err
		}
		lane := s.lane() // one, so that no two wait for each other
		for _, e := range append([]audit.Event{event}, *t.more...) {
			if err := s.record(ctx, t, lane, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// also adds an event to that of the change, for one that does several things.
func (t tx) also(e audit.Event) { *t.more = append(*t.more, e) }

// once is change for one statement, which without an event needs no transaction: then an
// error of do undoes nothing.
func (s *Store) once(ctx context.Context, e audit.Event, do func(tx) error) error {
	if !e.Unwritten() {
		return s.change(ctx, e, do)
	}
	return s.db.Once(ctx, func(d database.Tx) error { return do(tx{Tx: d, event: &e}) })
}

// record writes the event of a transaction, as the last thing it does: the lane is locked
// until the commit.
func (s *Store) record(ctx context.Context, t tx, lane int, e audit.Event) error {
	if e.Unwritten() {
		return nil
	}
	key := s.auditKey.Load()
	if key == nil {
		return unaudited(errors.New("there is no key"))
	}
	e.From(audit.From(ctx))
	e.Lane = lane
	head := audit.Head{Lane: lane}
	err := t.Row(ctx, `UPDATE audit_heads SET seq = seq + 1 WHERE lane = $1 RETURNING seq, hash, mac`, e.Lane).Scan(&e.Seq, &head.Hash, &head.Mac)
	if err != nil {
		return unaudited(err)
	}
	head.Seq = e.Seq - 1
	id, err := uuid.NewV7()
	if err != nil {
		return unaudited(err)
	}
	e.ID, e.At = id.String(), s.now().Truncate(time.Microsecond)
	e.Clean()
	e.Hash = key.Hash(e, key.Behind(head))
	err = t.Later(ctx, `INSERT INTO audit (`+auditColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		e.Lane, e.Seq, e.ID, micros(e.At), e.ProjectID, e.Action, string(e.Outcome), string(e.Actor.Kind), e.Actor.ID,
		e.Target.Kind, e.Target.ID, e.Address, e.RequestID, e.DetailText(), e.Hash)
	if err != nil {
		return unaudited(err)
	}
	err = t.Later(ctx, `UPDATE audit_heads SET hash = $2, mac = $3 WHERE lane = $1`, e.Lane, e.Hash, key.Mac(audit.EndOfLane, e.Lane, e.Seq, e.Hash))
	if err != nil {
		return unaudited(err)
	}
	return nil
}

const auditColumns = `lane, seq, id, at, project_id, action, outcome, actor_kind, actor_id, target_kind, target_id, address, request_id, detail, hash`

// lane gives the lane to write to: on PostgreSQL, where transactions run at once, they
// take turns, so that few wait for another's commit.
func (s *Store) lane() int {
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
		Kind: problem.Unavailable, Code: "temporarily_unavailable", Message: "the audit trail cannot be written, and nothing is changed without it", RetryAfter: time.Second,
	}, err)
}
