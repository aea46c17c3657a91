package store

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/password"
)

// A spy is a database that records the queries that read rows.
type spy struct {
	database.DB
	asked []query
}

func (s *spy) Read() database.Tx { return spyTx{s.DB.Read(), s} }

type spyTx struct {
	database.Tx
	spy *spy
}

func (t spyTx) Query(ctx context.Context, sql string, args ...any) (database.Rows, error) {
	t.spy.asked = append(t.spy.asked, query{sql, args})
	return t.Tx.Query(ctx, sql, args...)
}

func (t spyTx) Row(ctx context.Context, sql string, args ...any) database.Scanner {
	t.spy.asked = append(t.spy.asked, query{sql, args})
	return t.Tx.Row(ctx, sql, args...)
}

// one is the project whose lists are read. The id of each row ends with the row's number.
const one = "01900000-0000-7000-8000-000000000000"

// mid is the number of a row in project one that is not hidden.
const mid = 8_032

func idAt(i int) string { return fmt.Sprintf("01900000-0000-7000-8000-%d", 100_000_000_000+i) }

// fill creates n rows in each table. The rows are numbered in groups of the size every. The first
// row of each group belongs to project one, and the others to another project. A quarter of project
// one's subscribers and addresses are hidden. A sixteenth of its rows are rooms and agents.
func fill(t testing.TB, c Config, s *Store, n, every int) {
	t.Helper()
	const (
		id     = `'01900000-0000-7000-8000-' || CAST(100000000000 + i AS TEXT)`
		owner  = `'01900000-0000-7000-8000-' || CAST(100000000000 + i / 100 AS TEXT)`
		hidden = `CASE WHEN k % 4 = 0 THEN 1 ELSE 0 END`
	)

	rows := fmt.Sprintf(`WITH RECURSIVE n (i, k) AS (
		SELECT CAST(0 AS BIGINT), CAST(0 AS BIGINT)
		UNION ALL SELECT i + 1, (i + 1) / %d FROM n WHERE i < %d) `, every, n-1)
	project := fmt.Sprintf(`'01900000-0000-7000-8000-00000000000' || CASE WHEN i = k * %d THEN '0' ELSE '1' END`, every)

	filled(t, c, s,
		rows+`INSERT INTO projects (id, name, record_rate, created, updated)
			SELECT '01900000-0000-7000-8000-00000000000' || CAST(i AS TEXT), 'p', 1, 1, 1 FROM n WHERE i < 2`,
		rows+`INSERT INTO subscribers
				(id, project_id, email, reference, first_name, last_name, display_name, disabled, created, updated)
			SELECT `+id+`, `+project+`, 's' || CAST(i AS TEXT), 'ref-' || CAST(i AS TEXT),
				CASE WHEN k % 8 = 0 THEN 'Ada' ELSE 'F' || CAST(i AS TEXT) END,
				'Love' || CAST(i AS TEXT), 'Countess ' || CAST(i AS TEXT), `+hidden+`, i, i FROM n`,
		rows+`INSERT INTO resources (id, project_id, type, display_name, fields, created, updated)
			SELECT `+id+`, `+project+`, CASE WHEN k % 16 = 1 THEN 'ai_agent' ELSE 'call_flow' END,
				'r', '{}', i, i FROM n`,
		rows+`INSERT INTO addresses (id, project_id, resource_id, type, context, name, display_name, created, hidden)
			SELECT `+id+`, `+project+`, `+id+`, CASE WHEN k % 16 = 1 THEN 'room' ELSE 'subscriber' END, 'private',
				'a' || CAST(100000 + (i * 7919) % 800011 AS TEXT) || '-' || CAST(i AS TEXT),
				'Ada ' || CAST(i AS TEXT), i, `+hidden+` FROM n`,
		rows+`INSERT INTO sip_addresses (id, project_id, resource_id, name, "user", fields, created, updated)
			SELECT `+id+`, `+project+`, `+id+`, 's' || CAST(i AS TEXT), '*', '{}', i, i FROM n`,
		rows+`INSERT INTO sip_credentials (id, project_id, subscriber_id, username, fields, secrets, created, updated)
			SELECT `+id+`, `+project+`, `+owner+`, 's' || CAST(i AS TEXT), '{}', '', i, i FROM n`,
		rows+`INSERT INTO resource_versions (id, project_id, resource_id, number, document_version, fields, created)
			SELECT `+id+`, `+project+`, `+owner+`, i, 1, '{}', i FROM n`,
		`ANALYZE`,
	)
}

// A lister reads one page of a list.
type lister struct {
	name string
	list func(s *Store, q page.Query) (next string, err error)
	// few means that the list is searched by a part of a name, or has few rows in total. PostgreSQL
	// sorts the rows if it expects only a few.
	few bool
}

// lists returns all lists of package fabric that have pages.
func lists() (all []lister) {
	ctx := context.Background()
	addresses := func(name string, f fabric.AddressFilter) {
		for _, l := range []struct {
			order        string
			byName, desc bool
		}{{"created_at", false, false}, {"created_at desc", false, true}, {"name", true, false},
			{"name desc", true, true}} {
			f.ByName, f.Descending = l.byName, l.desc
			all = append(all, lister{"addresses" + name + " by " + l.order,
				func(s *Store, q page.Query) (string, error) {
					p, err := s.ListAddresses(ctx, one, f, q)
					return p.Next, err
				}, f.DisplayName != ""})
		}
	}

	addresses("", fabric.AddressFilter{})
	addresses(" of a type", fabric.AddressFilter{Type: fabric.TypeSubscriber})
	addresses(" of a rare type", fabric.AddressFilter{Type: fabric.TypeRoom})
	addresses(" with a part of a name", fabric.AddressFilter{DisplayName: "ada"})
	addresses(" of a type with a part of a name",
		fabric.AddressFilter{Type: fabric.TypeSubscriber, DisplayName: "ada"})
	sought := func(text string) lister {
		return lister{"subscribers by " + text, func(s *Store, q page.Query) (string, error) {
			if q.From != "" {
				q.From = foundIn(s, text, q.From)
			}
			p, err := s.SearchSubscribers(ctx, one, text, q)
			return p.Next, err
		}, false}
	}

	return append(all,
		lister{"resources and subscribers", func(s *Store, q page.Query) (string, error) {
			p, err := s.ListThings(ctx, one, fabric.ThingFilter{}, q)
			return p.Next, err
		}, false},
		lister{"resources and subscribers by a text", func(s *Store, q page.Query) (string, error) {
			p, err := s.ListThings(ctx, one, fabric.ThingFilter{Text: "ada"}, q)
			return p.Next, err
		}, true},
		lister{"resources of a kind by a text", func(s *Store, q page.Query) (string, error) {
			p, err := s.ListThings(ctx, one, fabric.ThingFilter{Text: "a", Type: "ai_agent"}, q)
			return p.Next, err
		}, false},
		lister{"resources of a kind", func(s *Store, q page.Query) (string, error) {
			p, err := s.ListResources(ctx, one, "ai_agent", q)
			return p.Next, err
		}, false},
		lister{"subscribers", func(s *Store, q page.Query) (string, error) {
			p, err := s.ListSubscribers(ctx, one, q)
			return p.Next, err
		}, false},
		sought("ada"), sought("s"), sought("ref-"), sought("ada love"), sought("love ada"),
		sought("countess"), sought("nobody"), sought("zoé"),
		lister{"SIP addresses", func(s *Store, q page.Query) (string, error) {
			p, err := s.ListSIPAddresses(ctx, one, q)
			return p.Next, err
		}, false},
		lister{"SIP credentials", func(s *Store, q page.Query) (string, error) {
			p, err := s.ListSIPCredentials(ctx, idAt(mid/100), q)
			return p.Next, err
		}, false},
		lister{"versions", func(s *Store, q page.Query) (string, error) {
			p, err := s.ListVersions(ctx, idAt(mid/100), q)
			return p.Next, err
		}, false},
		lister{"a resource's addresses", func(s *Store, q page.Query) (string, error) {
			p, err := s.ListAddresses(ctx, one, fabric.AddressFilter{ResourceID: idAt(mid)}, q)
			return p.Next, err
		}, false},
		lister{"a guest's addresses", func(s *Store, q page.Query) (string, error) {
			p, err := s.ListAddresses(ctx, one, fabric.AddressFilter{IDs: []string{idAt(mid), idAt(mid + 32)}}, q)
			return p.Next, err
		}, true},
	)
}

// foundIn returns the key of a page that begins with the given row, in the results of a search for
// text.
func foundIn(s *Store, text, id string) string {
	sub, err := s.FindSubscriber(context.Background(), one, id)
	for term, b := range newSearch(text).terms {
		if err == nil && b.matches(sub) {
			return (&foundSubscriber{sub, term}).String()
		}
	}
	return ""
}

// TestPlans shows that each page of a list is read in the order of an index, and that reading
// begins at the page's first row. No query scans a table or sorts its result.
func TestPlans(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		fill(t, c, s, 2*mid, 32)
		for _, l := range lists() {
			watch := &spy{DB: s.db}
			spied := newStore(&core{now: s.now, db: watch})
			if _, err := l.list(spied, page.Query{Size: 50}); err != nil {
				t.Fatalf("%s: %v", l.name, err)
			}
			if _, err := l.list(spied, page.Query{Size: 50, From: idAt(mid)}); err != nil {
				t.Fatalf("%s: %v", l.name, err)
			}

			for _, q := range watch.asked {
				plan := explain(t, s, q, c.URL != "")
				if step := costly.FindString(plan); step != "" && !(l.few && c.URL != "") {
					t.Errorf("%s: %s in the plan of\n%s\n%s", l.name, step, q.sql, plan)
				}
			}
		}
	})
}

// TestResourceAddressesPlan shows that SQLite finds a resource's addresses by the resource, not
// among all addresses of the project. A call looks up the addresses of its caller.
func TestResourceAddressesPlan(t *testing.T) {
	s := opened(t, Config{Dir: t.TempDir(), Audit: auditKey(t)})
	watch := &spy{DB: s.db}
	spied := newStore(&core{now: s.now, db: watch})
	for _, byName := range []bool{false, true} {
		f := fabric.AddressFilter{ResourceID: idAt(1), ByName: byName}
		if _, err := spied.ListAddresses(t.Context(), one, f, page.Query{Size: 20}); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range watch.asked {
		if plan := explain(t, s, q, false); !strings.Contains(plan, "addresses_resource (resource_id=?)") {
			t.Errorf("the plan of\n%s\nis %s, want the index of the resource", q.sql, plan)
		}
	}
}

// TestSearchStops shows that a search reads a limited number of rows per page, and that the next
// page continues where it stopped.
func TestSearchStops(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		filled(t, c, s,
			`INSERT INTO projects (id, name, record_rate, created, updated) VALUES ('`+one+`', 'p', 1, 1, 1)`,
			`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
				INSERT INTO subscribers (id, project_id, email, first_name, display_name, created, updated)
				SELECT '01900000-0000-7000-8000-' || CAST(100000000000 + i AS TEXT), '`+
				one+`', 'ada' || CAST(i AS TEXT), 'Ada', CASE WHEN i = 2345 THEN 'Bo' ELSE 'Cy' END, 0, 0 FROM n`,
		)
		for text, want := range map[string]int{"ada bo": 1, "ada": 2500, "ada di": 0} {
			n, pages := 0, 0
			for q := (page.Query{Size: 50}); ; {
				found, err := s.SearchSubscribers(t.Context(), one, text, q)
				if err != nil {
					t.Fatal(err)
				}
				if pages > 0 && found.Prev == "" {
					t.Errorf("the search for %q has no link back from %s", text, q.From)
				}
				n, pages = n+len(found.Items), pages+1
				if q.From = found.Next; q.From == "" {
					break
				}
			}

			if least := max(want, 5000) / 1000; n != want || pages < least || pages > 60 {
				t.Errorf("the search for %q found %d rows on %d pages, want %d", text, n, pages, want)
			}
		}
	})
}

// TestGoneWebhooksPlan shows that the deliveries of deleted webhooks are found without reading all
// deliveries.
func TestGoneWebhooksPlan(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		filled(t, c, s,
			`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
				INSERT INTO webhook_deliveries (webhook_id, id, event, subject, body, state, created, queued, due)
				SELECT 'w' || CAST(i % 10 AS TEXT), CAST(i AS TEXT), 'e', 's', '{}', 'pending', 0, 0, 0 FROM n`,
			`ANALYZE`,
		)
		watch := &spy{DB: s.db}
		if err := newStore(&core{now: s.now, db: watch}).ForgetDeliveries(t.Context(), time.Time{},
			time.Time{}); err != nil {
			t.Fatal(err)
		}

		plan := explain(t, s, watch.asked[0], c.URL != "")
		scan := regexp.MustCompile(`SCAN webhook_deliveries|Seq Scan on webhook_deliveries`)
		if step := scan.FindString(plan); step != "" {
			t.Errorf("%s in the plan of\n%s\n%s", step, watch.asked[0].sql, plan)
		}
		if n, _, err := s.Webhooks.Queue().Backlog(t.Context()); n != 0 || err != nil {
			t.Errorf("Backlog = %d, %v, want no deliveries of deleted webhooks", n, err)
		}
	})
}

// explain returns the database's plan for a query.
func explain(t *testing.T, s *Store, q query, server bool) string {
	t.Helper()
	sql, scan := "EXPLAIN QUERY PLAN ", func(row scanner) (line string, err error) {
		var a, b, c int
		return line, row.Scan(&a, &b, &c, &line)
	}
	if server {
		sql, scan = "EXPLAIN ", func(row scanner) (line string, err error) { return line, row.Scan(&line) }
	}
	lines, err := gather(t.Context(), s.read(), "asking for a plan", scan, sql+q.sql, q.args...)
	if err != nil {
		t.Fatalf("%v of %s", err, q.sql)
	}
	return strings.Join(lines, "\n")
}

// costly matches steps in a plan whose cost grows with the number of rows: reading a whole table or
// index, sorting, and collecting all rows before the first one is returned.
var costly = regexp.MustCompile(
	`SCAN \w+( USING .*)?(\n|$)|USE TEMP B-TREE|Seq Scan|(^|-> +)(Incremental )?Sort|Bitmap|Hash`)

// TestImportedHashes shows that the kinds of imported password hashes are found with an index, in
// byte order. The result contains no hashes that this version made.
func TestImportedHashes(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		own, err := password.New(1).Hash(t.Context(), "fathom lantern")
		if err != nil {
			t.Fatal(err)
		}
		fill(t, c, s, 2*mid, 32)
		hashes := []string{own, "", "$2b$12$a", "$2b$12$b", "$argon2id$v=19$m=19456,t=2,p=16$a", "scrypt$a"}
		for i, hash := range hashes {
			filled(t, c, s, fmt.Sprintf(`UPDATE subscribers SET password_hash = '%s' WHERE id = '%s'`, hash, idAt(i)))
		}

		watch := &spy{DB: s.db}
		spied := newStore(&core{now: s.now, db: watch})
		after := ""
		for _, want := range append(hashes[2:], "") {
			got, err := spied.NextImported(t.Context(), after)
			if got != want || err != nil {
				t.Errorf("NextImported after %q = %q, %v, want %q", after, got, err, want)
			}
			after = want
		}

		for _, q := range watch.asked {
			plan := explain(t, s, q, c.URL != "")
			if step := costly.FindString(plan); step != "" || !strings.Contains(plan, "subscribers_imported") {
				t.Errorf("%s in the plan of\n%s\n%s", step, q.sql, plan)
			}
		}
	})
}
