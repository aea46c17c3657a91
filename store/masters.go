package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/keys"
)

var masterTable = table[keys.MasterRecord]{
	name:    "master_keys",
	thing:   "master key",
	columns: `generation, fingerprint, sealed, leaked, replaced, resealed`,
	fields: func(m *keys.MasterRecord) []any {
		return []any{&m.Generation, &m.Fingerprint, &m.Sealed, &m.Leaked, &m.Replaced, &m.Resealed}
	},
}

// MasterKeys returns the records of all master keys, oldest first. There are no records until the
// first rotation.
func (s *Ring) MasterKeys(ctx context.Context) ([]keys.MasterRecord, error) {
	return masterTable.gather(ctx, s.watch(), `ORDER BY generation`)
}

// ReplaceMaster stores a new master key, and the ring sealed with it. In one transaction, it
//
//   - replaces the records of master keys, and the ring, if neither was changed in the meantime,
//   - locks the lanes of the audit trail,
//   - authenticates the records of the lanes with the new key if the previous key authenticated
//     them, so that tampering remains detectable,
//   - authenticates its own event, and all later events, with the new key.
//
// The error is [problem.Conflict] if the ring or the master key was changed in the meantime.
//
// to is the audit key that is derived from the new master key.
func (s *Ring) ReplaceMaster(ctx context.Context, p keys.Replacement, to *audit.Key) error {
	from := s.auditKey.Load()
	newest := p.Masters[len(p.Masters)-1]
	before := p.Masters[len(p.Masters)-2]
	e := audit.Of("master_key.replaced", "", "master_key", newest.Fingerprint).With(
		"before", before.Fingerprint, "leaked", strconv.FormatBool(before.Leaked))
	if err := e.Check(); err != nil {
		return err
	}

	return s.changeOnce(ctx, e, func(t tx) error {
		if err := t.ring().countRing(ctx); err != nil {
			return err
		}
		if err := t.ring().putMasters(ctx, p); err != nil {
			return err
		}

		heads, err := t.ring().lockLanes(ctx, from.Generation())
		if err != nil {
			return err
		}
		if err := t.ring().resealRing(ctx, p.Ring, heads, from, to); err != nil {
			return err
		}

		if err := t.ring().rewriteSpans(ctx, from, to); err != nil {
			return err
		}
		for _, h := range heads {
			if err := t.ring().endSpan(ctx, h, from, to); err != nil {
				return err
			}
		}
		*t.keys = to
		return nil
	})
}

// lockLanes locks the lanes of the audit trail until the transaction ends, and returns their ends.
// The error is errRingChanged if the lanes belong to another generation of master keys.
func (t ringTx) lockLanes(ctx context.Context, generation int64) ([]audit.Head, error) {
	if _, err := t.Exec(ctx, `UPDATE audit_heads SET seq = seq`); err != nil {
		return nil, fmt.Errorf("locking audit lanes: %w", err)
	}
	heads, err := t.auditHeads(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(heads, func(h audit.Head) bool { return h.Generation != generation }) {
		return nil, errRingChanged
	}
	return heads, nil
}

// putMasters replaces the records of master keys. The error is errRingChanged if another process
// has replaced them.
func (t ringTx) putMasters(ctx context.Context, p keys.Replacement) error {
	known, err := masterTable.gather(ctx, t.tx, `ORDER BY generation`)
	if err != nil {
		return err
	}
	if len(known) > 0 && len(known) != len(p.Masters)-1 || len(known) == 0 && len(p.Masters) != 2 {
		return errRingChanged
	}

	if _, err := t.Exec(ctx, `DELETE FROM master_keys`); err != nil {
		return fmt.Errorf("replacing master keys: %w", err)
	}
	for _, m := range p.Masters {
		err := t.Later(ctx, `INSERT INTO master_keys (`+masterTable.columns+`) VALUES ($1, $2, $3, $4, $5, $6)`,
			m.Generation, m.Fingerprint, m.Sealed, flag(m.Leaked), micros(m.Replaced), micros(m.Resealed))
		if err != nil {
			return fmt.Errorf("inserting master key: %w", err)
		}
	}
	return nil
}

// resealRing stores the ring sealed with the new master key. Keys that were bound to the beginning
// of the trail remain bound to it.
func (t ringTx) resealRing(
	ctx context.Context, ring []keys.ResealedKey, heads []audit.Head, from, to *audit.Key,
) error {
	beginning := ""
	if i := slices.IndexFunc(heads, audit.Head.Begun); i >= 0 {
		beginning = heads[i].PrunedHash
	}

	bindings, err := t.ringBindings(ctx)
	if err != nil {
		return err
	}

	for _, k := range bindings {
		bound := k.bound
		if beginning != "" && from.Binds(k.kid, beginning, k.bound) {
			bound = to.Bind(k.kid, beginning)
		}

		var r keys.ResealedKey // stays empty for a key without a secret
		if i := slices.IndexFunc(ring, func(r keys.ResealedKey) bool { return r.Kid == k.kid }); i >= 0 {
			r = ring[i]
		}
		res, err := t.Exec(ctx, `UPDATE ring SET sealed = $2, bound = $3 WHERE kid = $1 AND sealed = $4`,
			k.kid, r.New, bound, r.Old)
		if err := requireRowOr(errRingChanged, res, err, "ring key"); err != nil {
			return err
		}
	}
	return nil
}

// rewriteSpans authenticates the records of earlier spans with the new key, if the old key
// authenticated them.
func (t ringTx) rewriteSpans(ctx context.Context, from, to *audit.Key) error {
	spans, err := spanTable.gather(ctx, t.tx, `ORDER BY lane, generation`)
	if err != nil {
		return err
	}

	for _, s := range spans {
		if !from.SealsSpan(s) {
			continue
		}
		err := t.Later(ctx, `UPDATE audit_spans SET mac = $3 WHERE lane = $1 AND generation = $2`,
			s.Lane, s.Generation, to.SpanMac(s))
		if err != nil {
			return fmt.Errorf("updating audit spans: %w", err)
		}
	}
	return nil
}

// endSpan ends the span of a lane that was written with the old key. The new key authenticates a
// lane only if the old key authenticated it.
func (t ringTx) endSpan(ctx context.Context, h audit.Head, from, to *audit.Key) error {
	mac, pruned := h.Mac, h.PrunedMac
	if from.Ends(h) {
		mac = to.Mac(audit.EndOfLane, h.Lane, h.Seq, h.Hash)
	}
	if h.PrunedMac == from.Mac(audit.PrunedUntil, h.Lane, h.PrunedSeq, h.PrunedHash) {
		pruned = to.Mac(audit.PrunedUntil, h.Lane, h.PrunedSeq, h.PrunedHash)
	}
	err := t.Later(ctx, `UPDATE audit_heads SET mac = $2, pruned_mac = $3, generation = $4 WHERE lane = $1`,
		h.Lane, mac, pruned, to.Generation())
	if err != nil {
		return fmt.Errorf("updating ends of audit lanes: %w", err)
	}

	span := audit.Span{Lane: h.Lane, Generation: from.Generation(), Seq: h.Seq, Hash: h.Hash}
	err = t.Later(ctx, `INSERT INTO audit_spans (`+spanTable.columns+`) VALUES ($1, $2, $3, $4, $5)`,
		span.Lane, span.Generation, span.Seq, span.Hash, to.SpanMac(span))
	if err != nil {
		return fmt.Errorf("inserting audit span: %w", err)
	}
	return nil
}

// MarkResealed records that at the given time, all secrets were sealed with the newest master key,
// which has the given generation.
func (s *Ring) MarkResealed(ctx context.Context, generation int64, at time.Time) error {
	return s.once(ctx, audit.None("progress"), func(t tx) error {
		_, err := t.Exec(ctx, `UPDATE master_keys SET resealed = $2 WHERE generation = $1`, generation, micros(at))
		if err != nil {
			return fmt.Errorf("updating master key: %w", err)
		}
		return nil
	})
}
