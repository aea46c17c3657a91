package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
)

// many is the number of events that manyEvents writes. It is larger than the
// number of events that the queries for two pages may read.
const many = 12_000

// manyEvents fills the trail. Every fortieth event has an operator as its actor. One operator has
// created a key, which created another one, and so on, up to ten keys. Every 4,000th event renames
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
		watch := &spy{DB: s.db}
		spied := newStore(&core{now: s.now, db: watch})
		for name, l := range map[string]struct {
			filter      audit.Filter
			want, pages int // expected events and pages; a page also ends once its query has read enough rows
		}{
			"all":                 {audit.Filter{}, many, 12},
			"of a project":        {audit.Filter{ProjectID: "p1"}, many / 2, 6},
			"rare":                {audit.Filter{Action: "project"}, 3, 3},
			"whole action":        {audit.Filter{Action: "project.updated"}, 3, 3},
			"unknown action":      {audit.Filter{Action: "project.up"}, 0, 3},
			"of an unknown actor": {audit.Filter{Actor: "nobody"}, 0, 3},
			"of an operator":      {audit.Filter{Actor: "bob", ActorKind: audit.Operator}, 299, 1},
			"of no operator":      {audit.Filter{Actor: "sub50", ActorKind: audit.Operator}, 0, 1},
			"on one":              {audit.Filter{Target: "key7000"}, 1, 3},
			"refused":             {audit.Filter{ProjectID: "p0", Outcome: audit.Refused}, 0, 2},
			"of a time": {audit.Filter{Since: time.UnixMilli(0x019000000000),
				Until: time.UnixMilli(0x019000000001)}, many, 12},
			"rare in a time": {audit.Filter{
				Action: "project",
				Since:  time.UnixMilli(0x019000000000),
				Until:  time.UnixMilli(0x019000000001),
			}, 3, 3},
		} {
			for order, list := range map[string]func(f audit.Filter, q page.Query) (page.Page[audit.Event], error){
				"newest first": func(f audit.Filter, q page.Query) (page.Page[audit.Event], error) {
					return spied.ListAudit(t.Context(), f, q)
				},
				"oldest first": func(f audit.Filter, q page.Query) (page.Page[audit.Event], error) {
					return spied.ExportAudit(t.Context(), f, q)
				},
			} {
				there, back, pages := walk(t, list, l.filter)
				if len(there) != l.want || pages != l.pages {
					t.Errorf("%s, %s: %d on %d pages, want %d on %d", name, order, len(there), pages, l.want, l.pages)
				}

				slices.Reverse(there)
				if back = slices.Compact(back); l.pages > 1 && !slices.Equal(back, there) {
					t.Errorf("%s, %s: %d events backward, %d forward", name, order, len(back), len(there))
				}
			}

			for _, q := range watch.asked {
				// PostgreSQL may scan or sort a trail of this size if the filter matches few of its
				// events.
				plan := explain(t, s, q, c.URL != "")
				inOrder := strings.ReplaceAll(plan, "SCAN audit USING INDEX audit_id", "")
				inOrder = strings.ReplaceAll(inOrder, "SCAN audit USING COVERING INDEX audit_id", "")
				if step := costly.FindString(inOrder); step != "" && (c.URL == "" || l.pages == 12 || l.pages == 6) {
					t.Errorf("%s: %s in the plan of\n%s\n%s", name, step, q.sql, plan)
				}
				if strings.Contains(q.sql, byActor) && !strings.Contains(plan, "audit_actor") {
					t.Errorf("%s: the plan does not use the index audit_actor:\n%s\n%s", name, q.sql, plan)
				}
			}

			watch.asked = nil
		}
	})
}

// walk reads a list page by page to its end, and from its last page back to the first. It returns
// the ids in the order in which it read them, and the number of pages.
func walk(t *testing.T, list func(audit.Filter, page.Query) (page.Page[audit.Event], error), f audit.Filter) (
	there, back []string, pages int) {
	t.Helper()
	ask := page.Query{Size: page.MaxSize}
	for {
		found, err := list(f, ask)
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
		found, err := list(f, ask)
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

// TestSecretsShown shows that the secrets an operator saw are found, including those seen through a
// chain of keys, and that secrets seen by others are not. The query does not read the whole trail.
func TestSecretsShown(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		manyEvents(t, c, s)
		watch := &spy{DB: s.db}
		spied := newStore(&core{now: s.now, db: watch})
		for who, want := range map[string]int{"ann": 10, "key5": 7, "bob": 0, "nobody": 0} {
			found, err := spied.SecretsShown(t.Context(), who)
			if err != nil || len(found) != want || want > 0 && found[0].Target.ID != "key12" {
				t.Errorf("%s saw %d secrets, %v, want %d", who, len(found), err, want)
			}
		}

		plan := explain(t, s, watch.asked[0], c.URL != "")
		if strings.Count(plan, "audit_actor") != 4 || strings.Contains(plan, "AUTOMATIC") ||
			strings.Contains(plan, "SCAN audit") || strings.Contains(plan, "Seq Scan on audit") {
			t.Errorf("the plan scans the trail, or lacks audit_actor four times:\n%s\n%s", watch.asked[0].sql, plan)
		}
	})
}
