package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/selvage/selvage/internal/audit"
)

// Audit holds the audit trail: lanes of events, each chained to the one before it.
type Audit struct{ *core }

func scanEvent(row scanner) (e audit.Event, err error) {
	var at int64
	var detail string
	err = row.Scan(&e.Lane, &e.Seq, &e.ID, &at, &e.ProjectID, &e.Action, &e.Outcome, &e.Actor.Kind, &e.Actor.ID,
		&e.Target.Kind, &e.Target.ID, &e.Address, &e.RequestID, &detail, &e.Hash)
	if err != nil {
		return e, found(err, "audit event")
	}
	e.At = moment(at)
	e.ReadDetail(detail)
	return e, nil
}

// auditBatch bounds how many events are in memory at a time.
const auditBatch = 1000

const headColumns = `lane, seq, hash, mac, pruned_seq, pruned_hash, pruned_mac`

func scanHead(row scanner) (h audit.Head, err error) {
	err = row.Scan(&h.Lane, &h.Seq, &h.Hash, &h.Mac, &h.PrunedSeq, &h.PrunedHash, &h.PrunedMac)
	return h, err
}

// AuditHeads returns the ends of all lanes.
func (s *Audit) AuditHeads(ctx context.Context) ([]audit.Head, error) {
	return gather(ctx, s.read(), "reading ends of audit lanes", scanHead,
		`SELECT `+headColumns+` FROM audit_heads ORDER BY lane`)
}

func (s *Audit) auditHead(ctx context.Context, lane int) (audit.Head, error) {
	h, err := scanHead(s.read().Row(ctx, `SELECT `+headColumns+` FROM audit_heads WHERE lane = $1`, lane))
	return h, found(err, "end of an audit lane")
}

// An AuditReport is what a walk of all lanes has found.
type AuditReport struct {
	Lanes  []audit.Verifier
	Broken []error // of each lane the first break, an [audit.Break]
}

// VerifyAudit walks all lanes. The error is that of reading them.
func (s *Audit) VerifyAudit(ctx context.Context) (r AuditReport, err error) {
	key := s.auditKey.Load()
	if key == nil {
		return r, errors.New("verifying audit trail: there is no key")
	}
	heads, err := s.AuditHeads(ctx)
	if err != nil {
		return r, err
	}
	for lane := range serverLanes {
		if lane >= len(heads) || heads[lane].Lane != lane {
			r.Broken = append(r.Broken, &audit.Break{Lane: lane, What: "its end is gone"})
			return r, nil
		}
	}
	for _, head := range heads {
		v, broken, err := s.verifyLane(ctx, key, head)
		if err != nil {
			return r, err
		}
		if broken != nil {
			r.Broken = append(r.Broken, broken)
		}
		r.Lanes = append(r.Lanes, *v)
	}
	broken, err := s.verifyRing(ctx, key, heads)
	if broken != nil {
		r.Broken = append(r.Broken, broken)
	}
	return r, err
}

// verifyLane walks a lane, anew where it was pruned meanwhile.
func (s *Audit) verifyLane(ctx context.Context, key *audit.Key, head audit.Head) (v *audit.Verifier, broken, err error) {
	for {
		if v, broken = key.Verify(head); broken == nil {
			broken, err = s.walk(ctx, v, head)
		}
		if broken == nil || err != nil {
			return v, broken, err
		}
		now, err := s.auditHead(ctx, head.Lane)
		if err != nil || now.PrunedSeq <= head.PrunedSeq {
			return v, broken, err
		}
		head = now
	}
}

// walk returns a Verifier the events of a lane. Places that were taken twice come one after
// the other, too.
func (s *Audit) walk(ctx context.Context, v *audit.Verifier, head audit.Head) (broken, err error) {
	from, id := head.PrunedSeq, "~" // events in the place of those that were pruned are too many
	if from == 0 {
		from = -1 << 62
	}
	for {
		events, err := gather(ctx, s.read(), "reading audit trail", scanEvent, `SELECT `+auditColumns+` FROM audit
			WHERE lane = $1 AND (seq, id) > ($2, $3) ORDER BY lane, seq, id LIMIT $4`, head.Lane, from, id, auditBatch)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if broken := v.Next(e); broken != nil {
				return broken, nil
			}
			from, id = e.Seq, e.ID
		}
		if len(events) < auditBatch {
			now, err := s.auditHead(ctx, head.Lane)
			return v.End(now), err
		}
	}
}

// ReadLane returns events of a lane behind a place, in their order.
func (s *Audit) ReadLane(ctx context.Context, lane int, behind int64, most int) ([]audit.Event, error) {
	events, err := gather(ctx, s.read(), "reading audit trail", scanEvent, `SELECT `+auditColumns+` FROM audit
		WHERE lane = $1 AND seq > $2 ORDER BY lane, seq LIMIT $3`, lane, behind, most)
	if err != nil {
		return nil, fmt.Errorf("following: %w", err)
	}
	return events, nil
}
