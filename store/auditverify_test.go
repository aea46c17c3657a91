package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/audit"
)

func verified(t *testing.T, s *Store) (count int64, broken []error) {
	t.Helper()
	r, err := s.VerifyAudit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Lanes {
		count += l.Count
	}
	return count, r.Broken
}

// wantIntact fails the test unless verification finds this number of events, and nothing broken.
func wantIntact(t *testing.T, s *Store, want int64) {
	t.Helper()
	count, broken := verified(t, s)
	if broken != nil {
		t.Fatalf("VerifyAudit found %v, want nothing broken", broken)
	}
	if count != want {
		t.Fatalf("VerifyAudit found %d events, want %d", count, want)
	}
}

// wantBroken fails the test unless verification finds a break after a change to the trail.
func wantBroken(t *testing.T, s *Store, change string) {
	t.Helper()
	if _, broken := verified(t, s); len(broken) == 0 {
		t.Errorf("after %s VerifyAudit found no break, want one", change)
	}
}

// wantBreak fails the test unless err, which the named method returned, is a break at an event.
func wantBreak(t *testing.T, method string, err error, seq int64) {
	t.Helper()
	var b *audit.Break
	if !errors.As(err, &b) {
		t.Fatalf("%s = %v, want a break", method, err)
	}
	if seq != anywhere && b.Seq != seq {
		t.Errorf("%s = a break at %d, want %d", method, b.Seq, seq)
	}
}

// anywhere stands for any position of a break.
const anywhere = -1

// tamper runs statements, separated by semicolons, that write no event.
func tamper(t *testing.T, s *Store, sql string) {
	t.Helper()
	err := s.change(t.Context(), audit.None("a test"), func(tx tx) error {
		for statement := range strings.SplitSeq(sql, ";") {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// keepTrail copies the audit trail, so that restoreTrail can undo the changes that a test makes to
// it.
func keepTrail(t *testing.T, s *Store) {
	t.Helper()
	tamper(t, s, `CREATE TABLE kept_events AS SELECT * FROM audit;
		CREATE TABLE kept_heads AS SELECT * FROM audit_heads`)
}

// restoreTrail restores what keepTrail has copied.
func restoreTrail(t *testing.T, s *Store) {
	t.Helper()
	tamper(t, s, `DELETE FROM audit; INSERT INTO audit SELECT * FROM kept_events;
		DELETE FROM audit_heads; INSERT INTO audit_heads SELECT * FROM kept_heads;
		DROP TABLE kept_events; DROP TABLE kept_heads`)
}

// insertRing adds a key to the ring, as a new installation does at its first start.
const insertRing = `INSERT INTO ring (kid, use, state, sealed, created) VALUES ('k', 'seal', 'current', '', 0)`

// TestAuditTampering shows that verification finds any change that is made to the audit trail
// without the master key.
func TestAuditTampering(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := trail(t, c)
		wantIntact(t, s, 5)

		for column := range strings.SplitSeq(auditColumns, ", ") {
			var seq int64 = 3
			value := "'x'"
			switch column {
			case "lane", "seq":
				seq = anywhere
				value = column + " + 7"
			case "at":
				value = column + " + 7"
			}
			t.Run(column, func(t *testing.T) {
				wantTamperingFound(t, s, "UPDATE audit SET "+column+" = "+value+" WHERE seq = 3", seq)
			})
		}

		for _, tt := range []struct {
			name, sql string
			seq       int64 // where the chain is broken
		}{
			{"detail with another fact", `UPDATE audit SET detail = '{"name":"z"}' WHERE seq = 2`, 2},
			{"first event deleted", `DELETE FROM audit WHERE seq = 1`, 1},
			{"one event deleted", `DELETE FROM audit WHERE seq = 3`, 3},
			{"last event deleted", `DELETE FROM audit WHERE seq = 5`, 5},
			{"last three events deleted", `DELETE FROM audit WHERE seq > 2`, 3},
			{"all events deleted", `DELETE FROM audit`, 1},
			{"one event twice", `INSERT INTO audit SELECT * FROM audit WHERE seq = 3`, 3},
			{"invented event", `INSERT INTO audit SELECT lane, 6, 'x', at, project_id, action, outcome, actor_kind,
				actor_id, target_kind, target_id, address, request_id, detail, hash FROM audit WHERE seq = 5`, 6},
			{"two events exchanged", `UPDATE audit SET seq = 7 - seq WHERE seq IN (3, 4)`, 3},
			{"renumbered over a gap",
				`UPDATE audit SET seq = CASE WHEN seq = 5 THEN 4 ELSE 9 END WHERE seq IN (4, 5)`, 4},
			{"moved to another lane", `UPDATE audit SET lane = 1 WHERE seq = 5`, anywhere},
			{"cut, with a matching end", `UPDATE audit_heads SET seq = 4,
				hash = (SELECT hash FROM audit WHERE seq = 4) WHERE lane = 0`, 4},
			{"started again", `UPDATE audit_heads SET seq = 0, hash = '', mac = '' WHERE lane = 0`, 1},
			{"marked as pruned", `UPDATE audit_heads SET pruned_seq = 3,
				pruned_hash = (SELECT hash FROM audit WHERE seq = 3) WHERE lane = 0`, 3},
			{"emptied, as if nothing was ever written",
				`UPDATE audit_heads SET seq = 0, hash = '', mac = ''; DELETE FROM audit`, 1},
			{"emptied, with the end of an empty lane",
				`UPDATE audit_heads SET seq = 0, hash = '', mac = (SELECT mac FROM audit_heads WHERE lane = 1)
				WHERE lane = 0; DELETE FROM audit`, 1},
			{"lane without an end", `DELETE FROM audit_heads WHERE lane = 0`, 0},
		} {
			t.Run(tt.name, func(t *testing.T) { wantTamperingFound(t, s, tt.sql, tt.seq) })
		}
	})
}

// wantTamperingFound changes a trail of five events with sql and then restores it. The test fails
// unless verification finds the change at the given event.
func wantTamperingFound(t *testing.T, s *Store, sql string, seq int64) {
	t.Helper()
	keepTrail(t, s)
	tamper(t, s, sql)
	_, broken := verified(t, s)
	restoreTrail(t, s)
	wantIntact(t, s, 5)

	if len(broken) == 0 {
		t.Fatalf("after %s: VerifyAudit found no break, want one", sql)
	}
	wantBreak(t, "VerifyAudit after "+sql, broken[0], seq)
}

// TestAuditOfAnotherKey shows that a trail written with one master key cannot be verified with
// another one.
func TestAuditOfAnotherKey(t *testing.T) {
	s := trail(t, Config{Dir: t.TempDir(), Audit: auditKey(t)})
	other, err := audit.NewKey([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	s.AuditBy(other)
	wantBroken(t, s, "another key was set,")
}

// TestAuditTamperingStays shows that tampering with the end of a lane is still found after the
// server has restarted and written more events.
func TestAuditTamperingStays(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := trail(t, c)
		for _, tt := range []struct {
			name, sql string
			seq       int64 // where the chain is broken
		}{
			{"the last ones cut off", `DELETE FROM audit WHERE seq > 3; UPDATE audit_heads SET seq = 3,
				hash = (SELECT hash FROM audit WHERE seq = 3) WHERE lane = 0`, 4},
			{"one lane emptied", `DELETE FROM audit WHERE lane = 0;
				UPDATE audit_heads SET seq = 0, hash = '', mac = '' WHERE lane = 0`, 1},
			{"all lanes emptied", `DELETE FROM audit; UPDATE audit_heads SET seq = 0, hash = '', mac = ''`, 1},
		} {
			t.Run(tt.name, func(t *testing.T) {
				keepTrail(t, s)
				tamper(t, s, insertRing)
				tamper(t, s, tt.sql)
				again, err := Open(t.Context(), c) // must not treat the database as a new installation
				if err != nil {
					t.Fatal(err)
				}

				again.lanes = 1
				for range 3 {
					if err := again.Record(t.Context(), audit.Of("login", "", "subscriber", "s")); err != nil {
						t.Fatal(err)
					}
				}

				_, broken := verified(t, again)
				if err := again.Close(); err != nil {
					t.Error(err)
				}
				restoreTrail(t, s)
				tamper(t, s, `DELETE FROM ring`)

				if len(broken) == 0 {
					t.Fatal("VerifyAudit found nothing")
				}
				wantBreak(t, "VerifyAudit", broken[0], tt.seq)
			})
		}
	})
}

// TestAuditOfEarlier shows that a trail from a version that wrote no codes for empty lanes gets
// these codes once, and remains valid.
func TestAuditOfEarlier(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := trail(t, c)
		key := s.auditKey.Load()
		removeBeginnings(t, s, key)
		heads, err := s.AuditHeads(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		mac := key.Mac("end 1", 0, heads[0].Seq, heads[0].Hash)
		tamper(t, s, `UPDATE audit_heads SET mac = '';
			UPDATE audit_heads SET mac = '`+mac+`' WHERE lane = 0;
			`+insertRing)
		again := opened(t, c)
		again.lanes = 3
		for range 6 {
			if err := again.Record(t.Context(), audit.Of("login", "", "subscriber", "s")); err != nil {
				t.Fatal(err)
			}
		}

		wantIntact(t, again, 11)

		// During an upgrade, a server with the earlier version may still be running.
		tamper(t, s, `UPDATE audit_heads SET mac = '`+lastMac(t, again, key, "end 1")+`' WHERE lane = 0`)
		if err := s.Record(t.Context(), audit.Of("login", "", "subscriber", "s")); err != nil {
			t.Fatal(err)
		}

		wantIntact(t, again, 12)
	})
}

// removeBeginnings converts the trail to the form of earlier versions, which did not record the
// beginning of lanes. In this form, the first event is not chained to anything.
func removeBeginnings(t *testing.T, s *Store, key *audit.Key) {
	t.Helper()
	events, err := s.ReadLane(t.Context(), 0, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var last string // the hash of the previous event
	for _, e := range events {
		last = key.Hash(e, e.DetailText(), last)
		tamper(t, s, fmt.Sprintf(`UPDATE audit SET hash = '%s' WHERE lane = 0 AND seq = %d`, last, e.Seq))
	}
	tamper(t, s, `UPDATE audit_heads SET hash = '', pruned_hash = '', pruned_mac = '';
		UPDATE audit_heads SET hash = '`+last+`' WHERE lane = 0`)
}

// lastMac returns the code that authenticates the end of lane 0.
func lastMac(t *testing.T, s *Store, key *audit.Key, what string) string {
	t.Helper()
	head, err := s.auditHead(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return key.Mac(what, 0, head.Seq, head.Hash)
}
