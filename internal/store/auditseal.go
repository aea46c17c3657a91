package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/selvage/selvage/internal/audit"
)

// firstAudited is the schema from which on there is an audit trail.
const firstAudited = 26

// SealAudit gives each lane that is still empty a code of its end, so that one which is
// emptied later differs from it. It does so once: where no lane has such a code yet, and
// either there are events, or there is no key ring and the installation begins. A trail
// that was emptied whole beside a ring that is there stays without, and is found.
func (s *Store) SealAudit(ctx context.Context) error {
	key := s.auditKey.Load()
	heads, err := s.AuditHeads(ctx)
	if err != nil || key == nil || !unsealed(key, heads) {
		return err
	}
	err = s.change(ctx, audit.None("the ends of lanes, before there are events"), func(t tx) error {
		if _, err := t.Exec(ctx, `UPDATE audit_heads SET seq = seq`); err != nil {
			return err
		}
		heads, err := gather(ctx, t, "reading ends of audit lanes", scanHead, `SELECT `+headColumns+` FROM audit_heads ORDER BY lane`)
		if err != nil || !unsealed(key, heads) {
			return err
		}
		if s.from >= firstAudited && !slices.ContainsFunc(heads, func(h audit.Head) bool { return !h.Bare() }) {
			var ring int
			if err := t.Row(ctx, `SELECT COUNT(*) FROM ring`).Scan(&ring); err != nil || ring > 0 {
				return err
			}
		}
		for _, h := range heads {
			if _, err := t.Exec(ctx, `UPDATE audit_heads SET mac = $2 WHERE lane = $1`, h.Lane, key.Mac(audit.EndOfLane, h.Lane, h.Seq, h.Hash)); err != nil {
				return err
			}
		}
		return nil
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
