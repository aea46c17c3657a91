package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/test/servers"
)

// addSubscribers inserts a number of subscribers into the project p. The first one has a factor.
func addSubscribers(t *testing.T, c Config, s *Store, n int) factor.Owner {
	t.Helper()
	statements := make([]string, n)
	for i := range n {
		statements[i] = fmt.Sprintf(`INSERT INTO subscribers (id, project_id, email, password_hash, created, updated)
			VALUES ('s%[1]d', 'p', '%[1]d@example.com', '', 0, 0)`, i)
	}
	filled(t, c, s, statements...)
	owner := factor.Owner{Kind: factor.Subscriber, ID: "s0"}
	if err := s.CreateTOTP(t.Context(), factor.TOTP{ID: "t", Owner: owner}, false); err != nil {
		t.Fatal(err)
	}
	return owner
}

// refuseDeletion adds a trigger that refuses to delete a row of a table while a condition is true, as if the
// server canceled the statement because it took too long. In the condition, OLD is the row.
func refuseDeletion(t *testing.T, c Config, s *Store, table, condition string) {
	t.Helper()
	if c.URL == "" {
		filled(t, c, s, `CREATE TRIGGER refuse BEFORE DELETE ON `+table+` WHEN `+condition+`
			BEGIN SELECT RAISE(ABORT, 'canceled'); END`)
		return
	}
	servers.SQL(t, c.URL, `CREATE FUNCTION refuse() RETURNS TRIGGER LANGUAGE plpgsql AS $$
		BEGIN
			IF `+condition+` THEN
				RAISE EXCEPTION 'canceled' USING ERRCODE = 'query_canceled';
			END IF;
			RETURN OLD;
		END $$;
		CREATE TRIGGER refuse BEFORE DELETE ON `+table+` FOR EACH ROW EXECUTE FUNCTION refuse();`)
}

// hasSubscribers is the condition that a project has subscribers.
const hasSubscribers = `EXISTS (SELECT 1 FROM subscribers WHERE project_id = OLD.id)`

// TestDeleteCanceledProject shows that a project is deleted even if the server cancels the statement
// because it takes too long, and even if the request ends meanwhile.
func TestDeleteCanceledProject(t *testing.T) {
	c := Config{URL: preparedServer(t), Audit: auditKey(t)}
	s, _, _ := grantRows(t, c)
	owner := addSubscribers(t, c, s, 2*emptyBatch+1)
	refuseDeletion(t, c, s, "projects", hasSubscribers)

	r := endOfP()
	if err := s.deleteProject(t.Context(), r); !database.IsCanceled(err) {
		t.Fatalf("deleting the project in one transaction = %v, want it canceled", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	now := s.now
	s.now = func() time.Time { // first called when the deletion begins
		cancel()
		return now()
	}
	if err := s.DeleteProject(ctx, r); err != nil {
		t.Fatalf("deleting a large project for a request that ends meanwhile = %v, want nil", err)
	}
	if _, err := s.FindProject(t.Context(), "p"); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindProject after DeleteProject = %v, want NotFound", err)
	}
	if set, err := s.HasFactors(t.Context(), owner); err != nil || set.Any() {
		t.Errorf("a subscriber has %+v, %v, want no factors", set, err)
	}
}

// TestDeleteLargeProject shows that the rows of a large project are deleted before the project. In an
// SQLite file, all other changes would otherwise wait for the deletion of all rows.
func TestDeleteLargeProject(t *testing.T) { EachDatabase(t, testDeleteLargeProject) }

func testDeleteLargeProject(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	addSubscribers(t, c, s, largeProject-1) // the project already has one
	refuseDeletion(t, c, s, "projects", hasSubscribers)
	if err := s.DeleteProject(t.Context(), endOfP()); err != nil {
		t.Fatalf("deleting a large project = %v, want nil", err)
	}
	if _, err := s.FindProject(t.Context(), "p"); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindProject after DeleteProject = %v, want NotFound", err)
	}
	actions := auditActions(t, s)
	for _, want := range []string{"project.deletion_begun", "project.deleted"} {
		if !slices.Contains(actions, want) {
			t.Errorf("the audit trail has the actions %q, want %s among them", actions, want)
		}
	}
}

// auditActions returns the actions in the audit trail.
func auditActions(t *testing.T, s *Store) (actions []string) {
	t.Helper()
	events, err := s.ListAudit(t.Context(), audit.Filter{}, page.Query{Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		actions = append(actions, e.Action)
	}
	return actions
}

// endOfP returns the revocation with which the project p is deleted.
func endOfP() revocation.Revocation {
	end := time.Now().Add(24 * time.Hour)
	return revocation.Revocation{Kind: revocation.Project, ID: "p", Until: end, Expires: end}
}

// endedProjects returns the ids of the projects whose tokens are revoked. It checks that no revocation
// lasts much longer than deleteFor.
func endedProjects(t *testing.T, s *Store) (ids []string) {
	t.Helper()
	found, _, err := s.RevocationsSince(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		if r.Kind != revocation.Project {
			continue
		}
		ids = append(ids, r.ID)
		if latest := time.Now().Add(2 * deleteFor); r.Until.After(latest) {
			t.Errorf("the tokens of %s are revoked until %s, want before %s", r.ID, r.Until, latest)
		}
	}
	return ids
}

// TestEmptyProject shows that emptying a project revokes its tokens and deletes nothing of other
// projects. If a recording of the project is on hold, nothing is changed.
func TestEmptyProject(t *testing.T) { EachDatabase(t, testEmptyProject) }

func testEmptyProject(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	owner := addSubscribers(t, c, s, 2)
	filled(t, c, s,
		`INSERT INTO projects (id, name, record_rate, created, updated) VALUES ('q', 'Q', 0, 0, 0)`,
		`INSERT INTO subscribers (id, project_id, email, password_hash, created, updated)
			VALUES ('other', 'q', 'a@example.com', '', 0, 0)`,
		`INSERT INTO recordings (id, sid, project_id, hold, from_address, to_address, direction, source, track,
				start_time, status, error_code, codec, sample_rate, channels, bits, frames, bytes, sha256, repairs,
				price, created, updated)
			VALUES ('r', 'r', 'p', 'a case', '', '', '', '', 'both', 0, 'completed', '', '', 0, 1, 0, 0, 0, '', '',
				0, 0, 0)`,
		`INSERT INTO callback_deliveries (id, project_id, receiver_id, sid, event, url, method, fields, state,
				created, queued, due)
			VALUES ('d', 'p', '', '', '', '', '', '', 'dead', 0, 0, 0)`,
		`INSERT INTO deleted_names (id, project_id, name, deleted) VALUES ('gone', 'p', 'Gone', 0)`)
	count := func(where string) (n int) {
		t.Helper()
		err := s.read().Row(t.Context(), `SELECT COUNT(*) FROM `+where).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}

	if err := s.emptyProject(t.Context(), endOfP()); !errors.Is(err, problem.Conflict) {
		t.Errorf("emptying a project with a recording on hold = %v, want Conflict", err)
	}
	if n := count(`subscribers WHERE project_id = 'p'`); n != 3 {
		t.Errorf("%d subscribers are left, want 3", n)
	}

	if ended := endedProjects(t, s); len(ended) != 0 {
		t.Errorf("the tokens of %q are revoked, want none", ended)
	}

	filled(t, c, s, `UPDATE recordings SET hold = ''`)
	if err := s.emptyProject(t.Context(), endOfP()); err != nil {
		t.Fatal(err)
	}
	if ended := endedProjects(t, s); !slices.Equal(ended, []string{"p"}) {
		t.Errorf("the tokens of %q are revoked, want those of p", ended)
	}
	for _, table := range []string{"recordings", "callback_deliveries", "subscribers", "clients", "deleted_names"} {
		if n := count(table + ` WHERE project_id = 'p'`); n != 0 {
			t.Errorf("%d rows are left in %s, want 0", n, table)
		}
	}
	if set, err := s.HasFactors(t.Context(), owner); err != nil || set.Any() {
		t.Errorf("a subscriber has %+v, %v, want no factors", set, err)
	}
	if n := count(`subscribers WHERE project_id = 'q'`); n != 1 {
		t.Errorf("%d subscribers of another project are left, want 1", n)
	}
}
