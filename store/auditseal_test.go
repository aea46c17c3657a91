package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/keys"
)

// founded returns a store with a trail and a key ring.
func founded(t *testing.T, c Config) *Store {
	t.Helper()
	s := trail(t, c)
	newRing(t, s, "old")
	if _, broken := verified(t, s); broken != nil {
		t.Fatalf("VerifyAudit of the new trail finds %v", broken)
	}
	return s
}

func newRing(t *testing.T, s *Store, name string) {
	t.Helper()
	var added []keys.Record
	for _, use := range []keys.Use{keys.RS256, keys.Seal} {
		added = append(added, keys.Record{
			Kid:     name + string(use),
			Use:     use,
			State:   keys.Current,
			Created: time.Now(),
		})
	}
	if err := s.ChangeRing(t.Context(), nil, added); err != nil {
		t.Fatal(err)
	}
}

// moveRing removes the key ring and empties the trail. It returns the store of another process,
// such as a command, which treats the database as a new installation.
func moveRing(t *testing.T, c Config, s *Store) *Store {
	t.Helper()
	tamper(t, s, `CREATE TABLE kept_ring AS SELECT * FROM ring; DELETE FROM ring; DELETE FROM audit;
		UPDATE audit_heads SET seq = 0, hash = '', mac = '', pruned_seq = 0, pruned_hash = '', pruned_mac = ''`)
	again := opened(t, c)
	again.lanes = 1
	if _, broken := verified(t, again); broken != nil {
		t.Fatalf("VerifyAudit of a trail without a ring finds %v", broken)
	}
	return again
}

const restoredRing = `INSERT INTO ring SELECT * FROM kept_ring; DROP TABLE kept_ring`

// TestAuditBeginsWithRing shows that verification detects the following attack. An attacker with
// access to the database removes the ring, lets a process seal an emptied trail as a new one, and
// restores the ring. This is detected even if another ring was used in the meantime, or keys have
// rotated.
func TestAuditBeginsWithRing(t *testing.T) {
	for name, meanwhile := range map[string]func(*testing.T, *Store){
		"no other ring": func(*testing.T, *Store) {},
		"another ring, removed": func(t *testing.T, s *Store) {
			newRing(t, s, "new")
			tamper(t, s, `DELETE FROM ring`)
		},
		"another ring, half of it kept": func(t *testing.T, s *Store) {
			newRing(t, s, "new")
			tamper(t, s, `DELETE FROM ring WHERE use <> 'seal'; DELETE FROM kept_ring WHERE use = 'seal'`)
		},
		"another ring, and its codes": func(t *testing.T, s *Store) {
			newRing(t, s, "new")
			tamper(t, s, `UPDATE kept_ring SET bound = (SELECT bound FROM ring WHERE ring.use = kept_ring.use);
				DELETE FROM ring`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			EachDatabase(t, func(t *testing.T, c Config) {
				s := founded(t, c)
				again := moveRing(t, c, s)
				meanwhile(t, again)
				tamper(t, s, restoredRing)
				wantRingBreak(t, again)

				login := audit.Of("login", "", "subscriber", "s")
				if err := s.Record(t.Context(), login); err != nil { // this process was never stopped
					t.Fatal(err)
				}
				later := keys.Record{
					Kid:     "later",
					Use:     keys.ES256,
					State:   keys.Current,
					Created: time.Now(),
				}
				if err := s.ChangeRing(t.Context(), nil, []keys.Record{later}); err != nil {
					t.Fatal(err)
				}

				tamper(t, s, `DELETE FROM ring WHERE kid <> 'later'`) // as if the key had expired
				wantBroken(t, again, "key rotations")
			})
		})
	}
}

// wantRingBreak fails the test unless verification finds a ring that does not belong to the trail.
func wantRingBreak(t *testing.T, s *Store) {
	t.Helper()
	_, broken := verified(t, s)
	if len(broken) == 0 {
		t.Fatal("VerifyAudit found nothing, want a ring that does not belong to the trail")
	}
	var b *audit.Break
	if last := broken[len(broken)-1]; !errors.As(last, &b) || !strings.Contains(b.What, "of the ring") {
		t.Errorf("VerifyAudit found %v last, want a ring that does not belong to the trail", last)
	}
}

// TestAuditBeginning shows that the beginning of a lane cannot be forged or removed.
func TestAuditBeginning(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := founded(t, c)
		count, _ := verified(t, s)

		for _, sql := range []string{
			`UPDATE audit_heads SET pruned_hash = 'x' WHERE lane = 0`,
			`UPDATE audit_heads SET pruned_hash = '', pruned_mac = '' WHERE lane = 0`,
			`UPDATE audit_heads SET seq = 0, hash = pruned_hash, mac = pruned_mac WHERE lane = 0; DELETE FROM audit`,
		} {
			keepTrail(t, s)
			tamper(t, s, sql)
			wantBroken(t, s, sql)
			restoreTrail(t, s)
		}

		wantIntact(t, s, count)
	})
}

// TestEmptiedAudit shows that if there is a key ring, an emptied trail is not treated as a new one.
func TestEmptiedAudit(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := founded(t, c)
		tamper(t, s, `DELETE FROM audit; UPDATE ring SET bound = '';
			UPDATE audit_heads SET seq = 0, hash = '', mac = '', pruned_seq = 0, pruned_hash = '', pruned_mac = ''`)
		again := opened(t, c)
		wantBroken(t, again, "the trail was emptied,")

		heads, err := again.AuditHeads(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !heads[0].Bare() {
			t.Errorf("the end of the lane is %+v, want no code", heads[0])
		}
	})
}
