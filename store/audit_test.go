package store

import (
	"context"
	"errors"
	"fmt"
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
		if err := s.CreateProject(t.Context(), projectNow("p-"+name, name)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// projectNow returns a project that is created now.
func projectNow(id, name string) fabric.Project {
	now := time.Now()
	return fabric.Project{ID: id, Name: name, Created: now, Updated: now}
}

// TestAuditCrowd shows that the chains are complete after many concurrent changes on two nodes.
func TestAuditCrowd(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		var nodes []*Store
		for range 2 {
			nodes = append(nodes, opened(t, c))
		}

		var wg sync.WaitGroup
		for i := range 50 { // few enough that the last writer does not wait too long
			var want error
			if i%5 == 0 {
				want = problem.NoSuch("test")
			}
			wg.Go(func() {
				e := audit.Of("test.done", "", "test", "x")
				err := nodes[i%2].change(context.Background(), e, func(tx) error { return want })
				if !errors.Is(err, want) {
					t.Errorf("change %d = %v, want %v", i, err, want)
				}
			})
		}
		wg.Wait()
		wantIntact(t, nodes[0], 40)
	})
}

// TestAuditTurns shows that if two processes take turns writing, each continues the chain where the
// other stopped. A change runs again if it finds that the end has moved, but takes effect only
// once.
func TestAuditTurns(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		var nodes [2]*Store
		for i := range nodes {
			nodes[i] = opened(t, c)
			nodes[i].lanes = 1
		}

		for i, node := range []int{0, 0, 1, 1, 0, 1, 0, 0} {
			id := fmt.Sprint("p-", i)
			if err := nodes[node].CreateProject(t.Context(), projectNow(id, id)); err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			wantIntact(t, nodes[1-node], int64(i)+1)
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
				if err := s.CreateProject(t.Context(), projectNow("p-f", "f")); err == nil {
					t.Error("CreateProject succeeded")
				}

				if _, err := s.FindProject(t.Context(), "p-f"); !errors.Is(err, problem.NotFound) {
					t.Errorf("FindProject = %v, want NotFound", err)
				}
				gone := revocation.Revocation{Kind: "project", ID: "p-a"}
				if err := s.DeleteProject(t.Context(), gone); err == nil {
					t.Error("DeleteProject succeeded")
				}
				login := audit.Of("login", "p-a", "subscriber", "s")
				if err := s.Record(t.Context(), login); err == nil {
					t.Error("Record succeeded")
				}

				projects, err := s.ListProjects(t.Context(), "", page.Query{Size: 50})
				if err != nil || len(projects.Items) < 5 {
					t.Errorf("ListProjects returned %d projects, %v, want at least 5", len(projects.Items), err)
				}
			})
			if c.URL != "" { // skip the other cases, which would share this database
				return
			}

			c.Dir = t.TempDir()
		}
	})
}

// TestAuditWithoutKey shows that a store without an audit key makes no changes. It returns
// problem.Unavailable.
func TestAuditWithoutKey(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.CreateProject(t.Context(), fabric.Project{ID: "p", Name: "p"})
	if !errors.Is(err, problem.Unavailable) {
		t.Errorf("CreateProject = %v, want Unavailable", err)
	}
	if err := s.change(t.Context(), audit.Event{}, func(tx) error { return nil }); err == nil {
		t.Error("a change without its event was made")
	}
}
