package store

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/password"
)

// TestPlans shows that each page of a list is read in the order of an index, and that reading
// begins at the page's first row. No query scans a table or sorts its result.
func TestPlans(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s := opened(t, c)
		fill(t, c, s, 2*mid, 32)
		for _, l := range lists() {
			t.Run(l.name, func(t *testing.T) {
				watch := &spy{DB: s.db}
				spied := newStore(&core{now: s.now, db: watch})
				for _, from := range []string{"", idAt(mid)} {
					if _, err := l.list(spied, page.Query{Size: 50, From: from}); err != nil {
						t.Fatal(err)
					}
				}

				isPostgres := c.URL != ""
				for _, q := range watch.asked {
					plan := explain(t, s, q, isPostgres)
					if l.few && isPostgres {
						continue
					}
					if step := costly.FindString(plan); step != "" {
						t.Errorf("%s in the plan of\n%s\n%s", step, q.sql, plan)
					}
				}
			})
		}
	})
}

// TestResourceAddressesPlan shows that SQLite finds a resource's addresses by the resource, not
// among all addresses of the project. Every call looks up its caller's addresses.
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
			rows, pages := countFound(t, s, text)
			if rows != want {
				t.Errorf("the search for %q found %d rows, want %d", text, rows, want)
			}
			if pages < 5 || pages > 60 {
				t.Errorf("the search for %q has %d pages, want 5 to 60", text, pages)
			}
		}
	})
}

// countFound follows a search to its last page, and returns the numbers of rows and pages.
func countFound(t *testing.T, s *Store, text string) (rows, pages int) {
	t.Helper()
	for q := (page.Query{Size: 50}); ; {
		found, err := s.SearchSubscribers(t.Context(), one, text, q)
		if err != nil {
			t.Fatal(err)
		}
		if pages > 0 && found.Prev == "" {
			t.Errorf("the search for %q has no previous page at %s", text, q.From)
		}
		rows += len(found.Items)
		pages++
		if found.Next == "" {
			return rows, pages
		}
		q.From = found.Next
	}
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
		spied := newStore(&core{now: s.now, db: watch})
		if err := spied.ForgetDeliveries(t.Context(), time.Time{}, time.Time{}); err != nil {
			t.Fatal(err)
		}

		plan := explain(t, s, watch.asked[0], c.URL != "")
		scan := regexp.MustCompile(`SCAN webhook_deliveries|Seq Scan on webhook_deliveries`)
		if step := scan.FindString(plan); step != "" {
			t.Errorf("%s in the plan of\n%s\n%s", step, watch.asked[0].sql, plan)
		}
		n, _, err := s.Webhooks.Queue().Backlog(t.Context())
		if err != nil || n != 0 {
			t.Errorf("Backlog = %d, %v, want no deliveries of deleted webhooks", n, err)
		}
	})
}

// manyDeliveries is more than the number of deliveries that one transaction deletes or changes.
const manyDeliveries = 2*sweepBatch + 1

// addDeliveries creates the webhook w of the project p with manyDeliveries pending deliveries. On
// PostgreSQL, a trigger then refuses statements of the given kind that affect more than sweepBatch
// deliveries.
func addDeliveries(t *testing.T, c Config, statement string) *Store {
	t.Helper()
	s, _, _ := grantRows(t, c)
	hook := fabric.Webhook{ID: "w", ProjectID: "p", URL: "https://example.com", Enabled: true}
	if err := s.CreateWebhook(t.Context(), hook, 1); err != nil {
		t.Fatal(err)
	}

	filled(t, c, s, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO webhook_deliveries (webhook_id, id, event, subject, body, state, created, queued, due)
		SELECT 'w', CAST(i AS TEXT), 'e', 's', '{}', 'pending', 0, 0, 0 FROM n`, manyDeliveries))
	if c.URL == "" {
		return s
	}
	filled(t, c, s,
		fmt.Sprintf(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN
				IF (SELECT count(*) FROM old) > %d THEN RAISE ''too many''; END IF;
				RETURN NULL;
			END'`, sweepBatch),
		`CREATE TRIGGER refused AFTER `+statement+` ON webhook_deliveries REFERENCING OLD TABLE AS old
			FOR EACH STATEMENT EXECUTE FUNCTION refuse()`,
	)
	return s
}

// wantBacklog fails the test unless n deliveries to webhooks are pending.
func wantBacklog(t *testing.T, s *Store, n int) {
	t.Helper()
	if got, _, err := s.Webhooks.Queue().Backlog(t.Context()); err != nil || got != n {
		t.Errorf("Backlog = %d, %v, want %d", got, err, n)
	}
}

// TestManyDeliveries shows that the deliveries of a deleted webhook are deleted in short transactions.
// One statement for all of them could exceed the time limit.
func TestManyDeliveries(t *testing.T) {
	c := Config{URL: preparedServer(t), Audit: auditKey(t), Patience: time.Minute}
	s := addDeliveries(t, c, "DELETE")
	if err := s.DeleteWebhook(t.Context(), "p", "w"); err != nil {
		t.Error(err)
	}
	wantBacklog(t, s, 0)
}

// TestManyDeadLetters shows that many deliveries die in short transactions, and are queued again in
// short transactions. The event of each transaction contains the number of deliveries queued in it.
func TestManyDeadLetters(t *testing.T) { EachDatabase(t, testManyDeadLetters) }

func testManyDeadLetters(t *testing.T, c Config) {
	ctx := t.Context()
	s := addDeliveries(t, c, "UPDATE")
	now := time.Now()
	if err := s.ExpireDeliveries(ctx, now, now); err != nil {
		t.Fatal(err)
	}
	wantBacklog(t, s, 0)

	n, err := s.RedeliverDead(ctx, "w", now)
	if err != nil || n != manyDeliveries {
		t.Errorf("RedeliverDead = %d, %v, want %d", n, err, manyDeliveries)
	}
	wantBacklog(t, s, manyDeliveries)

	filter := audit.Filter{Action: "deliveries.redelivered"}
	events, err := s.ListAudit(ctx, filter, page.Query{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	var counts []string
	for _, e := range events.Items {
		counts = append(counts, e.Detail["deliveries"])
	}
	slices.Sort(counts)
	if got := strings.Join(counts, " "); got != "1 500 500" {
		t.Errorf("the events contain the numbers %s, want 1 500 500", got)
	}
}

// TestSweepsPlan shows that each step of a sweep deletes rows by their primary key. It must not search
// twice for all rows that meet the condition.
func TestSweepsPlan(t *testing.T) {
	s := opened(t, Config{Dir: t.TempDir(), Audit: auditKey(t)})
	sweeps := []string{forgetLetters}
	for _, q := range []queue{s.Webhooks.queue(), s.Logouts.queue(), s.Callbacks.queue()} {
		for _, condition := range []string{
			`state = 'delivered' AND ended < $2 OR state = 'dead' AND ended < $3`,
			`state = 'pending' AND queued < $2 AND queued < $3`,
		} {
			sweeps = append(sweeps, q.names.Replace(`DELETE FROM {deliveries}`+firstWhere(condition)))
		}
	}
	for _, sql := range sweeps {
		plan := explain(t, s, query{sql, []any{sweepBatch, 0, 0}}, false)
		if first, _, _ := strings.Cut(plan, "\n"); !strings.Contains(first, "sqlite_autoindex") {
			t.Errorf("the plan of\n%s\nis\n%s\nwant the primary key first", sql, plan)
		}
	}
}

// fewRows lists tables with few rows. Deleting a row that they reference may read the whole table.
var fewRows = []string{"callback_receivers", "dark_logos", "logos", "operator_links", "resource_versions"}

// TestForeignKeysPlan shows that when a row is deleted, an index finds the rows that refer to it. All
// other changes to an SQLite file would otherwise wait until a whole table has been read.
func TestForeignKeysPlan(t *testing.T) {
	s := opened(t, Config{Dir: t.TempDir(), Audit: auditKey(t)})
	type key struct{ table, column string }
	scan := func(row scanner) (k key, err error) {
		err = row.Scan(&k.table, &k.column)
		return k, err
	}
	keys, err := gather(t.Context(), s.read(), "listing foreign keys", scan, `SELECT m.name, k."from"
		FROM sqlite_master m, pragma_foreign_key_list(m.name) k WHERE m.type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}

	checked := 0
	for _, k := range keys {
		if slices.Contains(fewRows, k.table) {
			continue
		}
		checked++
		q := query{`SELECT rowid FROM ` + k.table + ` WHERE ` + k.column + ` = $1`, []any{"x"}}
		if plan := explain(t, s, q, false); strings.Contains(plan, "SCAN") {
			t.Errorf("%s has no index of %s: %s", k.table, k.column, plan)
		}
	}
	if checked < 40 {
		t.Errorf("only %d foreign keys were checked, want at least 40", checked)
	}
}

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
			if err != nil || got != want {
				t.Errorf("NextImported after %q = %q, %v, want %q", after, got, err, want)
			}
			after = want
		}

		for _, q := range watch.asked {
			plan := explain(t, s, q, c.URL != "")
			if step := costly.FindString(plan); step != "" {
				t.Errorf("%s in the plan of\n%s\n%s", step, q.sql, plan)
			}
			if !strings.Contains(plan, "subscribers_imported") {
				t.Errorf("the plan of\n%s\nis %s, want the index subscribers_imported", q.sql, plan)
			}
		}
	})
}
