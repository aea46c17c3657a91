package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/selvage/selvage/internal/audit"
)

// SealAudit writes a code for the end of each lane, even if the lane has no events, unless a lane
// already has a code in the current form. A lane that is emptied later then has no valid code.
//
// If no lane was ever written to and there is no key ring, this is a new installation. The lanes
// then get an unpredictable beginning, and each key that is created from now on is bound to it.
// Without the binding, an attacker could remove the ring, let the server seal an emptied trail as a
// new one, and then restore the ring. The binding reveals this, because the restored ring is not
// bound to the new beginning. If there is a ring, an empty trail gets no codes, so that
// verification finds that it was emptied.
func (s *Audit) SealAudit(ctx context.Context) error {
	key := s.auditKey.Load()
	heads, err := s.AuditHeads(ctx)
	if err != nil {
		return err
	}
	if key == nil || !unsealed(key, heads) {
		return nil
	}

	err = s.change(ctx, audit.None("codes of empty lanes"), func(t tx) error {
		if _, err := t.Exec(ctx, `UPDATE audit_heads SET seq = seq`); err != nil {
			return err
		}

		heads, err := t.auditHeads(ctx) // read again, since they are locked now
		if err != nil {
			return err
		}
		if !unsealed(key, heads) {
			return nil
		}
		if slices.ContainsFunc(heads, func(h audit.Head) bool { return !h.Bare() }) {
			return t.ring().sealEarlier(ctx, key, heads)
		}
		ring, err := t.ring().ringBindings(ctx)
		if err != nil {
			return err
		}
		if len(ring) > 0 {
			return nil
		}
		return t.ring().begin(ctx, key, heads)
	})
	if err != nil {
		return fmt.Errorf("sealing the ends of audit lanes: %w", err)
	}
	return nil
}

// unsealed reports whether an earlier version wrote all heads. Such heads have no code, or a code
// in an older form.
func unsealed(key *audit.Key, heads []audit.Head) bool {
	return !slices.ContainsFunc(heads, func(h audit.Head) bool { return !key.Earlier(h) })
}

// sealEarlier seals the lanes of a trail from a version that wrote no codes for empty lanes.
func (t ringTx) sealEarlier(ctx context.Context, key *audit.Key, heads []audit.Head) error {
	for _, h := range heads {
		_, err := t.Exec(ctx, `UPDATE audit_heads SET mac = $2 WHERE lane = $1`,
			h.Lane, key.Mac(audit.EndOfLane, h.Lane, h.Seq, h.Hash))
		if err != nil {
			return err
		}
	}
	return nil
}

// begin writes the same unpredictable beginning to all lanes.
func (t ringTx) begin(ctx context.Context, key *audit.Key, heads []audit.Head) error {
	beginning := rand.Text()
	for _, h := range heads {
		_, err := t.Exec(ctx, `UPDATE audit_heads
				SET hash = $2, mac = $3, pruned_hash = $2, pruned_mac = $4 WHERE lane = $1`,
			h.Lane, beginning, key.Mac(audit.EndOfLane, h.Lane, 0, beginning),
			key.Mac(audit.PrunedUntil, h.Lane, 0, beginning))
		if err != nil {
			return err
		}
	}
	return nil
}

// A ringBinding names a key of the ring, and holds the code that binds it to the beginning of the
// trail.
type ringBinding struct{ kid, bound string }

func (t ringTx) ringBindings(ctx context.Context) ([]ringBinding, error) {
	scan := func(row scanner) (k ringBinding, err error) {
		err = row.Scan(&k.kid, &k.bound)
		return k, err
	}
	return gather(ctx, t.tx, "reading what the ring is bound to", scan, `SELECT kid, bound FROM ring ORDER BY kid`)
}

// binder returns a function that binds new keys to the beginning of the trail. If the beginning has
// been pruned, or there is no audit key, the function binds nothing. It also binds nothing if the
// ring has keys that are not bound to the beginning, so that the fault can still be found after
// keys have rotated.
func (c *core) binder(ctx context.Context, t tx) (bind func(kid string) string, err error) {
	nothing := func(string) string { return "" }
	key := c.auditKey.Load()
	if key == nil {
		return nothing, nil
	}
	var beginning string
	err = t.Row(ctx, `SELECT pruned_hash FROM audit_heads
		WHERE pruned_seq = 0 AND pruned_hash <> '' ORDER BY lane LIMIT 1`).Scan(&beginning)
	if errors.Is(err, sql.ErrNoRows) { // the beginning was pruned
		return nothing, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the beginning of the audit trail: %w", err)
	}

	ring, err := t.ring().ringBindings(ctx)
	if err != nil {
		return nil, err
	}
	if unbound(key, ring, beginning) != "" {
		return nothing, nil
	}
	return func(kid string) string { return key.Bind(kid, beginning) }, nil
}

// unbound returns the kid of a key in the ring that is not bound to the given beginning, or "".
func unbound(key *audit.Key, ring []ringBinding, beginning string) string {
	for _, k := range ring {
		if !key.Binds(k.kid, beginning, k.bound) {
			return k.kid
		}
	}
	return ""
}

// verifyRing returns a break if the key ring is not bound to the beginning of a lane. The break
// names the first such lane.
func (s *Audit) verifyRing(ctx context.Context, key *audit.Key, heads []audit.Head) (broken, err error) {
	ring, err := s.read().ring().ringBindings(ctx)
	if err != nil {
		return nil, err
	}

	for _, h := range heads {
		if !h.Begun() {
			continue
		}
		if kid := unbound(key, ring, h.PrunedHash); kid != "" {
			return &audit.Break{
				Lane: h.Lane,
				Seq:  1,
				What: "the lane was started without the key " +
					kid + " of the ring that is stored next to it: all earlier events may be missing",
			}, nil
		}
	}
	return nil, nil
}
