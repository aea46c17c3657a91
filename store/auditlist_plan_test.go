package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

// many is the number of events that manyEvents writes. It is larger than the number of events that
// the queries for two pages may read.
const many = 12_000

// manyEvents fills the trail. Every fortieth event has an operator as its actor. One operator has
// created a key, which created another one, and so on, up to ten keys. Every 4,000th event updates
// a project.
func manyEvents(t *testing.T, c Config, s *Store) {
	t.Helper()
	filled(t, c, s,
		fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO audit (lane, seq, id, at, project_id, action, outcome, actor_kind, actor_id,
				target_kind, target_id, address, request_id, detail, hash)
			SELECT 0, i, '01900000-0000-7000-8000-' || CAST(100000000000 + i AS TEXT), i, 'p' || CAST(i %% 2 AS TEXT),
				CASE WHEN i %% 4000 = 2 THEN 'project.updated' WHEN i BETWEEN 3 AND 12 THEN 'api_key.created'
					ELSE 'token.issued' END, 'done',
				CASE WHEN i %% 40 = 3 THEN 'operator' WHEN i < 13 THEN 'api_key' ELSE 'subscriber' END,
				CASE WHEN i = 3 THEN 'ann' WHEN i BETWEEN 4 AND 12 THEN 'key' || CAST(i - 1 AS TEXT)
					WHEN i %% 40 = 3 THEN 'bob' ELSE 'sub' || CAST(i AS TEXT) END,
				'api_key', 'key' || CAST(i AS TEXT), '', '', '', '' FROM n`, many-1),
		`ANALYZE`,
	)
}

// TestAuditPages shows that no page of the audit trail requires reading the whole trail, whatever
// the filter. The pages together contain all matching events, both forward and backward.
func TestAuditPages(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		manyEvents(t, c, s)
		isPostgres := c.URL != ""
		for _, tt := range []struct {
			name   string
			filter audit.Filter
			want   int  // expected events
			pages  int  // expected pages; a page also ends once its query has read enough rows
			many   bool // PostgreSQL may neither scan nor sort, because many events match
		}{
			{name: "all", want: many, pages: 12, many: true},
			{name: "of a project", filter: audit.Filter{ProjectID: "p1"}, want: many / 2, pages: 6, many: true},
			{name: "rare", filter: audit.Filter{Action: "project"}, want: 3, pages: 3},
			{name: "whole action", filter: audit.Filter{Action: "project.updated"}, want: 3, pages: 3},
			{name: "unknown action", filter: audit.Filter{Action: "project.up"}, want: 0, pages: 3},
			{name: "of an unknown actor", filter: audit.Filter{Actor: "nobody"}, want: 0, pages: 3},
			{
				name:   "of an operator",
				filter: audit.Filter{Actor: "bob", ActorKind: audit.Operator},
				want:   299,
				pages:  1,
			},
			{
				name:   "of no operator",
				filter: audit.Filter{Actor: "sub50", ActorKind: audit.Operator},
				want:   0,
				pages:  1,
			},
			{name: "on one target", filter: audit.Filter{Target: "key7000"}, want: 1, pages: 3},
			{name: "refused", filter: audit.Filter{ProjectID: "p0", Outcome: audit.Refused}, want: 0, pages: 2},
			{
				name:   "in a time",
				filter: audit.Filter{Since: time.UnixMilli(0x019000000000), Until: time.UnixMilli(0x019000000001)},
				want:   many,
				pages:  12,
				many:   true,
			},
			{
				name: "rare in a time",
				filter: audit.Filter{
					Action: "project",
					Since:  time.UnixMilli(0x019000000000),
					Until:  time.UnixMilli(0x019000000001),
				},
				want:  3,
				pages: 3,
			},
		} {
			t.Run(tt.name, func(t *testing.T) {
				watch := &spy{DB: s.db}
				spied := newStore(&core{now: s.now, db: watch})
				for order, list := range map[string]listEvents{
					"newest first": spied.ListAudit,
					"oldest first": spied.ExportAudit,
				} {
					there, back, pages := walk(t, list, tt.filter)
					if len(there) != tt.want {
						t.Errorf("%s: %d events, want %d", order, len(there), tt.want)
					}
					if pages != tt.pages {
						t.Errorf("%s: %d pages, want %d", order, pages, tt.pages)
					}
					if pages > 1 {
						slices.Reverse(there)
						if back = slices.Compact(back); !slices.Equal(back, there) {
							t.Errorf("%s: %d events backward, want the %d forward", order, len(back), len(there))
						}
					}
				}

				for _, q := range watch.asked {
					plan := explain(t, s, q, isPostgres)
					inOrder := strings.ReplaceAll(plan, "SCAN audit USING INDEX audit_id", "")
					inOrder = strings.ReplaceAll(inOrder, "SCAN audit USING COVERING INDEX audit_id", "")
					// PostgreSQL may scan or sort a trail of this size if the filter matches few of its
					// events.
					if step := costly.FindString(inOrder); step != "" && (tt.many || !isPostgres) {
						t.Errorf("%s in the plan of\n%s\n%s", step, q.sql, plan)
					}
					if strings.Contains(q.sql, inActorIndex) && !strings.Contains(plan, "audit_actor") {
						t.Errorf("the plan does not use the index audit_actor:\n%s\n%s", q.sql, plan)
					}
				}
			})
		}
	})
}

// listEvents is a method that returns a page of the audit trail.
type listEvents func(context.Context, audit.Filter, page.Query) (page.Page[audit.Event], error)

// walk reads a list page by page to its end, and from its last page back to the first. It returns
// the ids in both directions, and the number of pages.
func walk(t *testing.T, list listEvents, f audit.Filter) (there, back []string, pages int) {
	t.Helper()
	ask := page.Query{Size: page.MaxSize}
	for {
		found, err := list(t.Context(), f, ask)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, e := range found.Items {
			there = append(there, e.ID)
		}
		if found.Next == "" {
			break
		}
		ask.From = found.Next
	}

	for ask.From != "" {
		found, err := list(t.Context(), f, ask)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range slices.Backward(found.Items) {
			back = append(back, e.ID)
		}
		ask.From = found.Prev
	}
	return there, back, pages
}

// TestSecretsShown shows that SecretsShown finds the secrets that an operator has seen, even through a
// chain of keys, and no secrets that only others have seen. It does not read the whole trail.
func TestSecretsShown(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		manyEvents(t, c, s)
		watch := &spy{DB: s.db}
		spied := newStore(&core{now: s.now, db: watch})
		for who, want := range map[string]int{"ann": 10, "key5": 7, "bob": 0, "nobody": 0} {
			found, err := spied.SecretsShown(t.Context(), who)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != want {
				t.Errorf("%s saw %d secrets, want %d", who, len(found), want)
			}
			if len(found) > 0 && found[0].Target.ID != "key12" {
				t.Errorf("the newest secret that %s saw is %s, want key12", who, found[0].Target.ID)
			}
		}

		sql := watch.asked[0].sql
		plan := explain(t, s, watch.asked[0], c.URL != "")
		if n := strings.Count(plan, "audit_actor"); n != 4 {
			t.Errorf("the plan mentions audit_actor %d times, want 4:\n%s\n%s", n, sql, plan)
		}
		for _, step := range []string{"AUTOMATIC", "SCAN audit", "Seq Scan on audit"} {
			if strings.Contains(plan, step) {
				t.Errorf("%q is in the plan, want no scan of the trail:\n%s\n%s", step, sql, plan)
			}
		}
	})
}
