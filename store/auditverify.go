package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/selvage/selvage/internal/audit"
)

// auditBatch is the maximum number of events in memory at the same time.
const auditBatch = 1000

func scanEvent(row scanner) (e audit.Event, err error) {
	var at int64
	var detail string
	err = row.Scan(&e.Lane, &e.Seq, &e.ID, &at, &e.ProjectID, &e.Action, &e.Outcome, &e.Actor.Kind, &e.Actor.ID,
		&e.Target.Kind, &e.Target.ID, &e.Address, &e.RequestID, &detail, &e.Hash)
	if err != nil {
		return e, checkRow(err, "audit event")
	}
	e.At = moment(at)
	e.ReadDetail(detail)
	return e, nil
}

var headTable = table[audit.Head]{
	name:    "audit_heads",
	thing:   "end of an audit lane",
	columns: `lane, seq, hash, mac, pruned_seq, pruned_hash, pruned_mac, generation`,
	fields: func(h *audit.Head) []any {
		return []any{&h.Lane, &h.Seq, &h.Hash, &h.Mac, &h.PrunedSeq, &h.PrunedHash, &h.PrunedMac, &h.Generation}
	},
}

var spanTable = table[audit.Span]{
	name:    "audit_spans",
	thing:   "part of an audit lane",
	columns: `lane, generation, seq, hash, mac`,
	fields:  func(s *audit.Span) []any { return []any{&s.Lane, &s.Generation, &s.Seq, &s.Hash, &s.Mac} },
}

// auditSpans returns the parts of all lanes that were written with earlier master keys.
func (t tx) auditSpans(ctx context.Context) (map[int][]audit.Span, error) {
	spans, err := spanTable.gather(ctx, t, `ORDER BY lane, generation`)
	if err != nil {
		return nil, err
	}
	byLane := make(map[int][]audit.Span)
	for _, s := range spans {
		byLane[s.Lane] = append(byLane[s.Lane], s)
	}
	return byLane, nil
}

func (t tx) auditHeads(ctx context.Context) ([]audit.Head, error) {
	return headTable.gather(ctx, t, `ORDER BY lane`)
}

// AuditHeads returns the ends of all lanes.
func (s *Audit) AuditHeads(ctx context.Context) ([]audit.Head, error) {
	return s.read().auditHeads(ctx)
}

func (s *Audit) auditHead(ctx context.Context, lane int) (audit.Head, error) {
	return headTable.find(ctx, s.read(), `lane = $1`, lane)
}

// An AuditReport is the result of verifying all lanes.
type AuditReport struct {
	Lanes  []audit.Verifier
	Broken []error // the first break in each broken lane, as an [audit.Break]
}

// VerifyAudit verifies all lanes. The report contains the breaks. It returns an error only if
// reading fails or no key exists.
func (s *Audit) VerifyAudit(ctx context.Context) (AuditReport, error) {
	for {
		report, key, err := s.verifyAudit(ctx)
		if err != nil {
			return report, err
		}
		if len(report.Broken) == 0 || !s.rekeyed(ctx, key) {
			return report, nil
		}
	}
}

// rekeyed reports whether key is outdated, because the master key was replaced.
func (s *Audit) rekeyed(ctx context.Context, key *audit.Key) bool {
	if s.replaced == nil || s.replaced(ctx) != nil {
		return false
	}
	return s.auditKey.Load() != key
}

// verifyAudit verifies all lanes once. It also returns the key with which it verified them.
func (s *Audit) verifyAudit(ctx context.Context) (r AuditReport, key *audit.Key, err error) {
	key = s.auditKey.Load()
	if key == nil {
		return r, nil, errors.New("verifying audit trail: there is no key")
	}

	spans, err := s.read().auditSpans(ctx)
	if err != nil {
		return r, key, err
	}

	heads, err := s.AuditHeads(ctx)
	if err != nil {
		return r, key, err
	}

	for lane := range serverLanes {
		if lane >= len(heads) || heads[lane].Lane != lane {
			r.Broken = append(r.Broken, &audit.Break{Lane: lane, What: "its end is missing"})
			return r, key, nil
		}
	}

	for _, head := range heads {
		v, broken, err := s.verifyLane(ctx, key, head, spans[head.Lane])
		if err != nil {
			return r, key, err
		}
		if broken != nil {
			r.Broken = append(r.Broken, broken)
		}
		r.Lanes = append(r.Lanes, *v)
	}

	broken, err := s.verifyRing(ctx, key, heads)
	if err != nil {
		return r, key, err
	}
	if broken != nil {
		r.Broken = append(r.Broken, broken)
	}
	return r, key, nil
}

// verifyLane verifies a lane. If events are pruned during the verification, it starts again.
func (s *Audit) verifyLane(
	ctx context.Context, key *audit.Key, head audit.Head, spans []audit.Span,
) (v *audit.Verifier, broken, err error) {
	for {
		v, broken = key.Verify(head, spans...)
		if broken == nil {
			broken, err = s.verifyEvents(ctx, v, head)
		}
		if broken == nil || err != nil {
			return v, broken, err
		}

		now, err := s.auditHead(ctx, head.Lane)
		if err != nil {
			return v, broken, err
		}
		if now.PrunedSeq <= head.PrunedSeq {
			return v, broken, nil
		}
		head = now
	}
}

// verifyEvents passes the events of a lane to v. If two events have the same position, v gets both.
func (s *Audit) verifyEvents(ctx context.Context, v *audit.Verifier, head audit.Head) (broken, err error) {
	// Begin at the position of the last pruned event, where there should be no event.
	seq, id := head.PrunedSeq, "~"
	if seq == 0 {
		seq = -1 << 62
	}

	for {
		events, err := gather(ctx, s.read(), "reading audit trail", scanEvent, `SELECT `+auditColumns+` FROM audit
			WHERE lane = $1 AND (seq, id) > ($2, $3) ORDER BY lane, seq, id LIMIT $4`, head.Lane, seq, id, auditBatch)
		if err != nil {
			return nil, err
		}

		for _, e := range events {
			if broken := v.Next(e); broken != nil {
				return broken, nil
			}
			seq, id = e.Seq, e.ID
		}

		if len(events) < auditBatch {
			now, err := s.auditHead(ctx, head.Lane)
			if err != nil {
				return nil, err
			}
			return v.End(now), nil
		}
	}
}

// ReadLane returns the first events of a lane after a position, in order. It returns at most limit
// events.
func (s *Audit) ReadLane(ctx context.Context, lane int, after int64, limit int) ([]audit.Event, error) {
	events, err := gather(ctx, s.read(), "reading audit trail", scanEvent, `SELECT `+auditColumns+` FROM audit
		WHERE lane = $1 AND seq > $2 ORDER BY lane, seq LIMIT $3`, lane, after, limit)
	if err != nil {
		return nil, fmt.Errorf("reading lane %d: %w", lane, err)
	}
	return events, nil
}
