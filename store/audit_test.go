package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// trail returns a store with five audit events.
func trail(t *testing.T, c Config) *Store {
	t.Helper()
	s := opened(t, c)
	s.lanes = 1 // makes the position of each event predictable
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		at := time.Now()
		if err := s.CreateProject(t.Context(),
			fabric.Project{ID: "p-" + name, Name: name, Created: at, Updated: at}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

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

func tamper(t *testing.T, s *Store, sql string) {
	t.Helper()
	err := s.change(t.Context(), audit.None("a test"), func(tx tx) error {
		for one := range strings.SplitSeq(sql, ";") {
			if _, err := tx.Exec(t.Context(), one); err != nil {
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
		if n, broken := verified(t, s); n != 5 || broken != nil {
			t.Fatalf("VerifyAudit = %d events, %v, want 5 and nothing broken", n, broken)
		}

		columns := strings.Split(auditColumns, ", ")
		for _, column := range columns {
			value := "'x'"
			if slices.Contains([]string{"lane", "seq", "at"}, column) {
				value = column + " + 7"
			}
			t.Run(column, func(t *testing.T) {
				restored(t, s, "UPDATE audit SET "+column+" = "+value+" WHERE seq = 3", 3)
			})
		}

		for _, tt := range []struct {
			name, sql string
			at        int64
		}{
			{"detail with another fact", `UPDATE audit SET detail = '{"name":"z"}' WHERE seq = 2`, 2},
			{"the first deleted", `DELETE FROM audit WHERE seq = 1`, 1},
			{"one deleted", `DELETE FROM audit WHERE seq = 3`, 3},
			{"the last deleted", `DELETE FROM audit WHERE seq = 5`, 5},
			{"the last three deleted", `DELETE FROM audit WHERE seq > 2`, 3},
			{"all deleted", `DELETE FROM audit`, 1},
			{"one twice", `INSERT INTO audit SELECT * FROM audit WHERE seq = 3`, 3},
			{"one invented", `INSERT INTO audit SELECT lane, 6, 'x', at, project_id, action, outcome, actor_kind,
				actor_id, target_kind, target_id, address, request_id, detail, hash FROM audit WHERE seq = 5`, 6},
			{"two exchanged", `UPDATE audit SET seq = 7 - seq WHERE seq IN (3, 4)`, 3},
			{"renumbered over a gap",
				`UPDATE audit SET seq = CASE WHEN seq = 5 THEN 4 ELSE 9 END WHERE seq IN (4, 5)`, 4},
			{"a different lane", `UPDATE audit SET lane = 1 WHERE seq = 5`, 5},
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
			{"no end", `DELETE FROM audit_heads WHERE lane = 0`, 0},
		} {
			t.Run(tt.name, func(t *testing.T) { restored(t, s, tt.sql, tt.at) })
		}
	})
}

// restored changes the trail with sql, checks that verification finds the change, and restores the
// trail.
func restored(t *testing.T, s *Store, sql string, at int64) {
	t.Helper()
	keepTrail(t, s)
	tamper(t, s, sql)
	_, broken := verified(t, s)
	var b *audit.Break
	if len(broken) == 0 || !errors.As(broken[0], &b) {
		t.Errorf("after %s: VerifyAudit found nothing", sql)
	} else if b.Seq != at && !strings.Contains(sql, "SET lane") && !strings.Contains(sql, "SET seq = seq") {
		t.Errorf("after %s: VerifyAudit found %v, want a break at %d", sql, b, at)
	}

	restoreTrail(t, s)
	if n, broken := verified(t, s); n != 5 || broken != nil {
		t.Fatalf("VerifyAudit of the restored trail = %d events, %v, want 5", n, broken)
	}
}

// TestAuditCrowd shows that the chains are complete after many concurrent changes on two nodes.
func TestAuditCrowd(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		var nodes []*Store
		for range 2 {
			s := opened(t, c)
			nodes = append(nodes, s)
		}

		var wg sync.WaitGroup
		errs := make([]error, 50) // few enough that the last writer does not wait too long
		for i := range errs {
			wg.Go(func() {
				e := audit.Of("test.done", "", "test", "x")
				errs[i] = nodes[i%2].change(context.Background(), e, func(tx tx) error {
					if i%5 == 0 {
						return problem.NoSuch("test")
					}
					return nil
				})
			})
		}

		wg.Wait()
		for i, err := range errs {
			if (err == nil) == (i%5 == 0) {
				t.Errorf("change %d: error %v, want one for every fifth change only", i, err)
			}
		}
		if n, broken := verified(t, nodes[0]); n != 40 || broken != nil {
			t.Errorf("VerifyAudit = %d events, %v, want 40 and nothing broken", n, broken)
		}
	})
}

// TestAuditTurns shows that if two processes take turns writing, each continues the chain where the
// other stopped. A change runs again if it finds that the end has moved, but takes effect only
// once.
func TestAuditTurns(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		var nodes [2]*Store
		for i := range nodes {
			s := opened(t, c)
			s.lanes = 1
			nodes[i] = s
		}

		for i, node := range []int{0, 0, 1, 1, 0, 1, 0, 0} {
			id := fmt.Sprint("p-", i)
			if err := nodes[node].CreateProject(t.Context(),
				fabric.Project{ID: id, Name: id, Created: time.Now(), Updated: time.Now()}); err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			if n, broken := verified(t, nodes[1-node]); n != int64(i)+1 || broken != nil {
				t.Fatalf("after %s: VerifyAudit = %d events, %v, want all and nothing broken", id, n, broken)
			}
		}
	})
}

// TestAuditFailsClosed shows that a change is not made if its event cannot be written.
func TestAuditFailsClosed(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		for _, tt := range []struct{ name, sql string }{
			{"no end of the lane", `DELETE FROM audit_heads`},
			{"no table", `ALTER TABLE audit RENAME TO audit_away`},
		} {
			t.Run(tt.name, func(t *testing.T) {
				s := trail(t, c)
				tamper(t, s, tt.sql)
				at := time.Now()
				err := s.CreateProject(t.Context(), fabric.Project{ID: "p-f", Name: "f", Created: at, Updated: at})
				if err == nil {
					t.Errorf("CreateProject succeeded")
				}

				if _, err := s.FindProject(t.Context(), "p-f"); !errors.Is(err, problem.NotFound) {
					t.Errorf("FindProject = %v, want NotFound", err)
				}
				if err := s.DeleteProject(t.Context(), revocation.Revocation{Kind: "project", ID: "p-a"}); err == nil {
					t.Errorf("DeleteProject succeeded")
				}
				if err := s.Record(t.Context(), audit.Of("login", "p-a", "subscriber", "s")); err == nil {
					t.Errorf("Record succeeded")
				}

				if p, err := s.ListProjects(t.Context(), page.Query{Size: 50}); err != nil || len(p.Items) < 5 {
					t.Errorf("ListProjects = %d, %v, want reads to succeed", len(p.Items), err)
				}
			})
			if c.URL != "" { // skip the other cases, which would share this database
				return
			}

			c.Dir = t.TempDir()
		}
	})
}

// TestAuditWithoutKey shows that without a key, a store changes nothing and returns
// problem.Unavailable.
func TestAuditWithoutKey(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.CreateProject(t.Context(), fabric.Project{ID: "p", Name: "p"}); !errors.Is(err, problem.Unavailable) {
		t.Errorf("CreateProject = %v, want Unavailable", err)
	}
	if err := s.change(t.Context(), audit.Event{}, func(tx) error { return nil }); err == nil {
		t.Error("a change without its event was made")
	}
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
	if _, broken := verified(t, s); len(broken) == 0 {
		t.Error("VerifyAudit with another key found nothing")
	}
}

// TestAuditTamperingStays shows that tampering with the end of a lane is still found after the
// server has restarted and written more events.
func TestAuditTamperingStays(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := trail(t, c)
		for _, tt := range []struct {
			name, sql string
			at        int64
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
				var b *audit.Break
				if len(broken) == 0 || !errors.As(broken[0], &b) || b.Seq != tt.at {
					t.Errorf("VerifyAudit = %v, want a break at %d", broken, tt.at)
				}
				if err := again.Close(); err != nil {
					t.Error(err)
				}

				restoreTrail(t, s)
				tamper(t, s, `DELETE FROM ring`)
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
		if _, err := unbegun(t, s, key); err != nil {
			t.Fatal(err)
		}

		heads, err := s.AuditHeads(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		earlier := `UPDATE audit_heads SET mac = ''; UPDATE audit_heads SET mac = '` + key.Mac(
			"end 1", 0, heads[0].Seq, heads[0].Hash) + `' WHERE lane = 0`
		tamper(t, s, earlier+`; `+insertRing)
		again := opened(t, c)
		again.lanes = 3
		for range 6 {
			if err := again.Record(t.Context(), audit.Of("login", "", "subscriber", "s")); err != nil {
				t.Fatal(err)
			}
		}

		if n, broken := verified(t, again); n != 11 || broken != nil {
			t.Errorf("VerifyAudit = %d events, %v, want 11 and nothing broken", n, broken)
		}
		// During an upgrade, a server with the earlier version may still be running.
		tamper(t, s, `UPDATE audit_heads SET mac = '`+lastMac(t, again, key, "end 1")+`' WHERE lane = 0`)
		if err := s.Record(t.Context(), audit.Of("login", "", "subscriber", "s")); err != nil {
			t.Fatal(err)
		}

		if n, broken := verified(t, again); n != 12 || broken != nil {
			t.Errorf("VerifyAudit after an earlier server = %d events, %v, want 12 and nothing broken", n, broken)
		}
	})
}

// unbegun converts the trail to the form of earlier versions, which did not record the beginning of
// lanes. In this form, the first event is not chained to anything.
func unbegun(t *testing.T, s *Store, key *audit.Key) (last string, err error) {
	t.Helper()
	events, err := s.ReadLane(t.Context(), 0, 0, 100)
	if err != nil {
		return "", err
	}
	for _, e := range events {
		last = key.Hash(e, e.DetailText(), last)
		tamper(t, s, fmt.Sprintf(`UPDATE audit SET hash = '%s' WHERE lane = 0 AND seq = %d`, last, e.Seq))
	}
	tamper(t, s, `UPDATE audit_heads SET hash = '', pruned_hash = '', pruned_mac = '';
		UPDATE audit_heads SET hash = '`+last+`' WHERE lane = 0`)
	return last, nil
}

func lastMac(t *testing.T, s *Store, key *audit.Key, what string) string {
	t.Helper()
	h, err := s.auditHead(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return key.Mac(what, 0, h.Seq, h.Hash)
}
