package store

import (
	"bytes"
	"context"
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
		wantIntact(t, s, 8) // no event is old

		prune(began.Add(time.Minute))
		wantIntact(t, s, 4) // the three later events and the pruning

		head, err := s.auditHead(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if head.PrunedSeq != 5 {
			t.Errorf("the lane is pruned up to %d, want 5", head.PrunedSeq)
		}
		if head.Seq != 9 {
			t.Errorf("the last event of the lane is %d, want 9", head.Seq)
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
			wantBroken(t, s, sql)
			restoreTrail(t, s)
		}

		prune(began.Add(90 * time.Minute))
		wantIntact(t, s, 2) // the two prunings
	})
}

// TestPruneBrokenAudit shows that events after a break in the chain are not deleted, so that the
// break can still be found.
func TestPruneBrokenAudit(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := trail(t, c)
		tamper(t, s, `UPDATE audit SET actor_id = 'x' WHERE seq = 3`)
		err := s.PruneAudit(t.Context(), time.Now().Add(time.Hour))
		wantBreak(t, "PruneAudit", err, 3)

		_, broken := verified(t, s)
		if len(broken) != 1 {
			t.Fatalf("VerifyAudit after PruneAudit = %v, want one break", broken)
		}
		wantBreak(t, "VerifyAudit after PruneAudit", broken[0], 3)
	})
}

// TestPruneAuditAfterRotation shows that a process can prune the audit trail after another process has
// replaced the master key, even while the trail is being pruned. The trail can be verified afterwards.
func TestPruneAuditAfterRotation(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		masters := [][]byte{make([]byte, 32), bytes.Repeat([]byte("1"), 32)}
		s := opened(t, c)
		ring := ringOf(t, s, masters...)
		var nodes []*Store
		for range 2 {
			node := opened(t, c)
			other := ringOf(t, node, masters...)
			node.OnReplacedMaster(func(ctx context.Context) error { return other.Sync(ctx) })
			nodes = append(nodes, node)
		}
		for range 3 {
			if err := s.Record(t.Context(), audit.Of("login", "", "subscriber", "s")); err != nil {
				t.Fatal(err)
			}
		}

		// The first node has read the trail when the master key is replaced.
		reader, late := nodes[0], nodes[1]
		key := reader.auditKey.Load()
		heads, err := reader.AuditHeads(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := replaceMaster(t, s, ring, masters[1], masters[0]); err != nil {
			t.Fatal(err)
		}
		if err := ring.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Hour)
		for _, head := range heads {
			_ = reader.pruneLane(t.Context(), key, head, nil, later) // may find an event of the new key
		}
		if _, broken := verified(t, s); broken != nil {
			t.Fatalf("VerifyAudit after pruning during the rotation found %v, want nothing broken", broken)
		}

		if err := late.PruneAudit(t.Context(), later); err != nil {
			t.Errorf("PruneAudit with the key from before the rotation = %v, want nil", err)
		}
		if _, broken := verified(t, s); broken != nil {
			t.Errorf("VerifyAudit after pruning found %v, want nothing broken", broken)
		}
	})
}
