package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/selvage/selvage/internal/audit"
)

// firstAudited is the schema from which on there is an audit trail.
const firstAudited = 26

// SealAudit returns each lane that is still empty a code of its end, so that one which is
// emptied later differs from it.
//
// Where no lane was ever written to and there is no key ring, an installation begins: the
// lanes get a beginning that nobody can foresee, and the keys that are made from then on are
// bound to it. So whoever puts the ring aside, has an emptied trail taken for a new one, and
// puts the ring back, has a ring that does not belong to the trail. Beside a ring that is
// there a trail that was emptied whole stays without codes, and is found. An upgrade from
// before there was a trail begins one all the same, and says so in it.
func (s *Audit) SealAudit(ctx context.Context) error {
	key := s.auditKey.Load()
	heads, err := s.AuditHeads(ctx)
	if err != nil || key == nil || !unsealed(key, heads) {
		return err
	}
	e := audit.Of("audit.begun", "", "audit", "").With("schema", strconv.FormatInt(s.from, 10))
	err = s.change(ctx, e, func(t tx) error {
		if _, err := t.Exec(ctx, `UPDATE audit_heads SET seq = seq`); err != nil {
			return err
		}
		heads, err := gather(ctx, t, "reading ends of audit lanes", scanHead,
			`SELECT `+headColumns+` FROM audit_heads ORDER BY lane`)
		if err != nil || !unsealed(key, heads) {
			t.event.Drop()
			return err
		}
		if slices.ContainsFunc(heads, func(h audit.Head) bool { return !h.Bare() }) {
			t.event.Drop()
			return t.sealEarlier(ctx, key, heads)
		}
		ring, err := t.ringBonds(ctx)
		if err != nil {
			return err
		}
		upgraded := s.from < firstAudited && len(ring) > 0
		if !upgraded {
			t.event.Drop()
		}
		if len(ring) > 0 && !upgraded {
			return nil
		}
		return t.begin(ctx, key, heads, ring)
	})
	if err != nil {
		return fmt.Errorf("sealing the ends of audit lanes: %w", err)
	}
	return nil
}

// unsealed reports whether the ends of all lanes are as they were before empty ones had a
// code.
func unsealed(key *audit.Key, heads []audit.Head) bool {
	return !slices.ContainsFunc(heads, func(h audit.Head) bool { return !key.Earlier(h) })
}

// sealEarlier returns the lanes of a trail codes, of which some have events that a server
// wrote before empty ones had any.
func (t tx) sealEarlier(ctx context.Context, key *audit.Key, heads []audit.Head) error {
	for _, h := range heads {
		if _, err := t.Exec(ctx, `UPDATE audit_heads SET mac = $2 WHERE lane = $1`, h.Lane, key.Mac(audit.EndOfLane, h.Lane, h.Seq, h.Hash)); err != nil {
			return err
		}
	}
	return nil
}

// begin returns all lanes one beginning, and binds the keys to it that are there.
func (t tx) begin(ctx context.Context, key *audit.Key, heads []audit.Head, ring []ringBond) error {
	beginning := rand.Text()
	for _, h := range heads {
		_, err := t.Exec(ctx, `UPDATE audit_heads SET hash = $2, mac = $3, pruned_hash = $2, pruned_mac = $4 WHERE lane = $1`,
			h.Lane, beginning, key.Mac(audit.EndOfLane, h.Lane, 0, beginning),
			key.Mac(audit.PrunedUntil, h.Lane, 0, beginning))
		if err != nil {
			return err
		}
	}
	for _, k := range ring {
		if _, err := t.Exec(ctx, `UPDATE ring SET bound = $2 WHERE kid = $1`, k.kid, key.Bind(k.kid, beginning)); err != nil {
			return err
		}
	}
	return nil
}

// A ringBond says to which beginning of the trail a key of the ring is bound.
type ringBond struct{ kid, bound string }

func (t tx) ringBonds(ctx context.Context) ([]ringBond, error) {
	scan := func(row scanner) (k ringBond, err error) { return k, row.Scan(&k.kid, &k.bound) }
	return gather(ctx, t, "reading what the ring is bound to", scan, `SELECT kid, bound FROM ring ORDER BY kid`)
}

// binder returns what binds new keys to the beginning of the trail. Beside keys that are not
// bound to it none are: what is wrong with a ring is not forgotten as its keys take turns.
func (s *core) binder(ctx context.Context, t tx) (bind func(kid string) string, err error) {
	nothing := func(string) string { return "" }
	key := s.auditKey.Load()
	if key == nil {
		return nothing, nil
	}
	var beginning string
	err = t.Row(ctx, `SELECT pruned_hash FROM audit_heads WHERE pruned_seq = 0 AND pruned_hash <> '' ORDER BY lane LIMIT 1`).Scan(&beginning)
	if errors.Is(err, sql.ErrNoRows) { // from before there were beginnings, or pruned
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

// unbound returns a key of the ring that is not bound to a beginning of the trail; "" if there
// is none.
func unbound(key *audit.Key, ring []ringBond, beginning string) string {
	for _, k := range ring {
		if !key.Binds(k.kid, beginning, k.bound) {
			return k.kid
		}
	}
	return ""
}

// verifyRing tells of a lane whose beginning is not that of the key ring, if there is one.
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
			return &audit.Break{Lane: h.Lane, Seq: 1, What: "the lane was begun without the key " +
				kid + " of the ring, which was put beside it: all before it may be gone"}, nil
		}
	}
	return nil, nil
}
