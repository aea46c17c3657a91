package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// PruneAudit deletes events from before the time before at the beginning of each lane. It first verifies
// the lane's chain, and stops where the chain is broken, so that traces of tampering remain. It
// stores the position and hash of the last deleted event with an authentication code, so that the
// lane can be verified from there on. If the key ring is not bound to the trail, PruneAudit deletes
// nothing. If the master key is replaced in the meantime, PruneAudit begins again with the new key.
func (s *Audit) PruneAudit(ctx context.Context, before time.Time) error {
	for {
		key := s.auditKey.Load()
		if key == nil {
			return errors.New("pruning audit trail: there is no key")
		}

		err := s.pruneLanes(ctx, key, before)
		var broken *audit.Break
		if !errors.As(err, &broken) || !s.rekeyed(ctx, key) {
			return err
		}
	}
}

// pruneLanes verifies all lanes with the key, and prunes them.
func (s *Audit) pruneLanes(ctx context.Context, key *audit.Key, before time.Time) error {
	spans, err := s.read().auditSpans(ctx)
	if err != nil {
		return err
	}
	heads, err := s.AuditHeads(ctx)
	if err != nil {
		return err
	}
	broken, err := s.verifyRing(ctx, key, heads)
	if broken != nil || err != nil {
		return fmt.Errorf("pruning audit trail: %w", errors.Join(broken, err))
	}

	var errs []error
	for _, head := range heads {
		if err := s.pruneLane(ctx, key, head, spans[head.Lane], before); err != nil {
			errs = append(errs, fmt.Errorf("pruning audit trail: %w", err))
		}
	}
	return errors.Join(errs...)
}

// pruneLane verifies a lane from its beginning, and deletes the verified events from before the time
// before. It stops at the first event that is newer, or with an error where the chain is broken.
func (s *Audit) pruneLane(
	ctx context.Context, key *audit.Key, head audit.Head, spans []audit.Span, before time.Time,
) error {
	v, err := key.Verify(head, spans...)
	for more := true; more && err == nil; {
		at := v.At()
		events, readErr := s.ReadLane(ctx, head.Lane, at.Seq, auditBatch)
		if readErr != nil {
			return readErr
		}

		more = len(events) == auditBatch
		for _, e := range events {
			if !e.At.Before(before) {
				more = false
				break
			}
			if err = v.Next(e); err != nil {
				break
			}
		}

		// Delete the verified events even if the chain is broken after them.
		if v.At().Seq > at.Seq {
			if err := s.prune(ctx, at, v.At(), before); err != nil {
				return err
			}
		}
	}
	return err
}

// prune deletes the events in a lane after the position from, up to and including the position to.
// If another node has just deleted these events, prune does nothing.
func (s *Audit) prune(ctx context.Context, from, to audit.Head, before time.Time) error {
	e := audit.Of("audit.pruned", "", "audit", strconv.Itoa(to.Lane)).With(
		"from", strconv.FormatInt(from.Seq+1, 10), "until", strconv.FormatInt(to.Seq, 10), "before", date(before))
	return s.change(ctx, e, func(t tx) error {
		// The master key may have been replaced since the events were verified. The change is undone if
		// this key is not the newest.
		key := s.auditKey.Load()
		*t.keys = key
		res, err := t.Exec(ctx, `UPDATE audit_heads SET pruned_seq = $3, pruned_hash = $4, pruned_mac = $5
				WHERE lane = $1 AND pruned_seq = $2`,
			to.Lane, from.Seq, to.Seq, to.Hash, key.Mac(audit.PrunedUntil, to.Lane, to.Seq, to.Hash))
		err = requireRow(res, err, "lane")
		if errors.Is(err, problem.NotFound) {
			t.event.Drop()
			return nil
		}
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, `DELETE FROM audit WHERE lane = $1 AND seq <= $2`, to.Lane, to.Seq)
		return err
	})
}
