package store

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/audit"
)

// TestPruneAudit shows that events older than a given time are deleted from the beginning of each
// lane. The rest can be verified, but not if the new beginning is forged.
func TestPruneAudit(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		began := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
		clock := began
		c.Now = func() time.Time { return clock }
		s := trail(t, c)
		clock = began.Add(time.Hour)
		for range 3 {
			if err := s.Record(t.Context(), audit.Of("login", "", "subscriber", "s")); err != nil {
				t.Fatal(err)
			}
		}

		node := opened(t, c)
		node.lanes = 1
		clock = began.Add(2 * time.Hour)
		prune := func(before time.Time) {
			t.Helper()
			var both sync.WaitGroup
			for _, n := range []*Store{s, node} {
				both.Go(func() {
					if err := n.PruneAudit(t.Context(), before); err != nil {
						t.Errorf("PruneAudit: %v", err)
					}
				})
			}
			both.Wait()
		}

		prune(began)
		if n, broken := verified(t, s); n != 8 || broken != nil {
			t.Errorf("without old events VerifyAudit = %d events, %v, want 8", n, broken)
		}

		prune(began.Add(time.Minute))
		if n, broken := verified(t, s); n != 4 || broken != nil {
			t.Errorf("after pruning VerifyAudit = %d events, %v, want the three later and the pruning", n, broken)
		}

		head, err := s.auditHead(t.Context(), 0)
		if err != nil || head.PrunedSeq != 5 || head.Seq != 9 {
			t.Errorf("the lane is %+v, %v, want it pruned up to 5", head, err)
		}

		for _, sql := range []string{
			`DELETE FROM audit WHERE seq = 6`,
			`DELETE FROM audit WHERE seq = 6; UPDATE audit_heads SET pruned_seq = 6 WHERE lane = 0`,
			`DELETE FROM audit WHERE seq = 6;
				UPDATE audit_heads SET pruned_seq = 6, pruned_hash = 'x', pruned_mac = mac WHERE lane = 0`,
			`UPDATE audit_heads SET pruned_hash = 'x' WHERE lane = 0`,
			`UPDATE audit_heads SET pruned_seq = 0, pruned_hash = '', pruned_mac = '' WHERE lane = 0`,
		} {
			keepTrail(t, s)
			tamper(t, s, sql)
			if _, broken := verified(t, s); broken == nil {
				t.Errorf("after %s: VerifyAudit found nothing", sql)
			}
			restoreTrail(t, s)
		}

		prune(began.Add(90 * time.Minute))
		if n, broken := verified(t, s); n != 2 || broken != nil {
			t.Errorf("after a second pruning VerifyAudit = %d events, %v, want the 2 of the prunings", n, broken)
		}
	})
}

// TestPruneBrokenAudit shows that events after a break in the chain are not deleted, so that the
// break can still be found.
func TestPruneBrokenAudit(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := trail(t, c)
		tamper(t, s, `UPDATE audit SET actor_id = 'x' WHERE seq = 3`)
		var b *audit.Break
		if err := s.PruneAudit(t.Context(), time.Now().Add(time.Hour)); !errors.As(err, &b) || b.Seq != 3 {
			t.Errorf("PruneAudit = %v, want a break at 3", err)
		}
		if _, broken := verified(t, s); len(broken) != 1 || !errors.As(broken[0], &b) || b.Seq != 3 {
			t.Errorf("VerifyAudit after it = %v, want a break at 3", broken)
		}
	})
}
