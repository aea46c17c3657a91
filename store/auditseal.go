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

// SealAudit writes a code to the end of each lane that is still empty, so that a lane that is
// emptied later differs from it.
//
// If no lane was ever written to and there is no key ring, this is a new installation. Then the
// lanes get an unpredictable beginning, and each key created from then on is bound to it. Somebody
// may set the ring aside, have the emptied trail sealed as a new one, and put the ring back; but
// that ring does not belong to the trail. If there is a ring, an emptied trail gets no codes, and
// verification finds it.
func (s *Audit) SealAudit(ctx context.Context) error {
	key := s.auditKey.Load()
	heads, err := s.AuditHeads(ctx)
	if err != nil || key == nil || !unsealed(key, heads) {
		return err
	}
	err = s.change(ctx, audit.None("codes of empty lanes"), func(t tx) error {
		if _, err := t.Exec(ctx, `UPDATE audit_heads SET seq = seq`); err != nil {
			return err
		}

		heads, err := t.auditHeads(ctx) // again, now that they are locked
		if err != nil || !unsealed(key, heads) {
			return err
		}
		if slices.ContainsFunc(heads, func(h audit.Head) bool { return !h.Bare() }) {
			return t.sealEarlier(ctx, key, heads)
		}
		ring, err := t.ringBonds(ctx)
		if err != nil || len(ring) > 0 {
			return err
		}
		return t.begin(ctx, key, heads)
	})
	if err != nil {
		return fmt.Errorf("sealing the ends of audit lanes: %w", err)
	}
	return nil
}

// unsealed reports whether no lane has a code of its end yet, other than those that were written
// with an event.
func unsealed(key *audit.Key, heads []audit.Head) bool {
	return !slices.ContainsFunc(heads, func(h audit.Head) bool { return !key.Earlier(h) })
}

// sealEarlier seals the lanes of a trail some of which have events that were written before empty
// lanes had codes.
func (t tx) sealEarlier(ctx context.Context, key *audit.Key, heads []audit.Head) error {
	for _, h := range heads {
		_, err := t.Exec(ctx, `UPDATE audit_heads SET mac = $2 WHERE lane = $1`,
			h.Lane, key.Mac(audit.EndOfLane, h.Lane, h.Seq, h.Hash))
		if err != nil {
			return err
		}
	}
	return nil
}

// begin writes one beginning to all lanes.
func (t tx) begin(ctx context.Context, key *audit.Key, heads []audit.Head) error {
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

// A ringBond says which beginning of the trail a key of the ring is bound to.
type ringBond struct{ kid, bound string }

func (t tx) ringBonds(ctx context.Context) ([]ringBond, error) {
	scan := func(row scanner) (k ringBond, err error) { return k, row.Scan(&k.kid, &k.bound) }
	return gather(ctx, t, "reading what the ring is bound to", scan, `SELECT kid, bound FROM ring ORDER BY kid`)
}

// binder returns a func that binds new keys to the beginning of the trail. It binds none if the
// ring has keys that are not bound to it: a fault of the ring must stay visible while keys rotate.
func (c *core) binder(ctx context.Context, t tx) (bind func(kid string) string, err error) {
	nothing := func(string) string { return "" }
	key := c.auditKey.Load()
	if key == nil {
		return nothing, nil
	}
	var beginning string
	err = t.Row(ctx, `SELECT pruned_hash FROM audit_heads
		WHERE pruned_seq = 0 AND pruned_hash <> '' ORDER BY lane LIMIT 1`).Scan(&beginning)
	if errors.Is(err, sql.ErrNoRows) { // pruned
		return nothing, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the beginning of the audit trail: %w", err)
	}

	ring, err := t.ringBonds(ctx)
	if err != nil || unbound(key, ring, beginning) != "" {
		return nothing, err
	}
	return func(kid string) string { return key.Bind(kid, beginning) }, nil
}

// unbound returns a key of the ring that is not bound to a beginning of the trail, or "".
func unbound(key *audit.Key, ring []ringBond, beginning string) string {
	for _, k := range ring {
		if !key.Binds(k.kid, beginning, k.bound) {
			return k.kid
		}
	}
	return ""
}

// verifyRing returns a break for a lane whose beginning the key ring is not bound to.
func (s *Audit) verifyRing(ctx context.Context, key *audit.Key, heads []audit.Head) (broken, err error) {
	ring, err := s.read().ringBonds(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range heads {
		if !h.Begun() {
			continue
		}
		if kid := unbound(key, ring, h.PrunedHash); kid != "" {
			return &audit.Break{Lane: h.Lane, Seq: 1, What: "the lane was started without the key " +
				kid + " of the ring that is stored next to it: all earlier events may be missing"}, nil
		}
	}
	return nil, nil
}
