package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// manyGrants is how many grants addGrants inserts for the client c: two full batches, and one grant more.
const manyGrants = 2*sweepBatch + 1

// addGrants inserts manyGrants grants and a consent for the client c, and one of each for another client. It
// returns the revocation with which c is deleted.
func addGrants(t *testing.T, c Config, s *Store) revocation.Revocation {
	t.Helper()
	filled(t, c, s,
		`INSERT INTO clients (id, project_id, name, type, profile, auth_method, grants, scopes, access_token,
				id_token_alg, created, updated)
			VALUES ('other', 'p', '', 'spa', 'default', 'none', '', '', 'fabric', 'RS256', 0, 0)`,
		fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO grants (id, project_id, client_id, subscriber_id, session_id, scope, auth_time, amr,
				created, idle_until, expires)
			SELECT 'g' || CAST(i AS TEXT), 'p', CASE WHEN i = 0 THEN 'other' ELSE 'c' END, 's', '', '', 0, '', 0, 0, 0
			FROM n`, manyGrants),
		`INSERT INTO consents (subscriber_id, client_id, scope, updated)
			VALUES ('s', 'c', '', 0), ('s', 'other', '', 0)`)
	end := time.Now().Add(24 * time.Hour)
	return revocation.Revocation{Kind: revocation.Client, ID: "c", Until: end, Expires: end}
}

// checkTokens returns the error for a token that is issued to the client c when the duration after has
// passed.
func checkTokens(t *testing.T, s *Store, after time.Duration) error {
	t.Helper()
	l := revocation.New(s, nil)
	if err := l.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l.Check(time.Now().Add(after), revocation.Subject{Kind: revocation.Client, ID: "c"})
}

// TestDeleteLargeClient shows that most grants and consents of a client are deleted before the client, if
// there are very many, and that those of other clients remain. The deletion is completed even if the request
// ends meanwhile.
func TestDeleteLargeClient(t *testing.T) { EachDatabase(t, testDeleteLargeClient) }

func testDeleteLargeClient(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	r := addGrants(t, c, s)
	refuseDeletion(t, c, s, "clients",
		fmt.Sprintf(`(SELECT COUNT(*) FROM grants WHERE client_id = OLD.id) > %d`, sweepBatch))

	ctx, cancel := context.WithCancel(t.Context())
	now := s.now
	s.now = func() time.Time { // first called in the first change that revokes tokens
		cancel()
		return now()
	}
	if err := s.DeleteClient(ctx, r); err != nil {
		t.Errorf("deleting a large client for a request that ends meanwhile = %v, want nil", err)
	}
	for _, table := range []string{"grants", "consents"} {
		left, err := gather(t.Context(), s.read(), "listing", scanID, `SELECT client_id FROM `+table)
		if err != nil || !slices.Equal(left, []string{"other"}) {
			t.Errorf("the remaining %s belong to the clients %q, %v, want only other", table, left, err)
		}
	}

	if _, err := s.FindClient(t.Context(), "c"); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindClient after DeleteClient = %v, want NotFound", err)
	}
	if err := checkTokens(t, s, 2*deleteFor); !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("checking a later token of the client = %v, want Unauthenticated", err)
	}
	actions := auditActions(t, s)
	for _, want := range []string{"client.deletion_begun", "client.deleted"} {
		if !slices.Contains(actions, want) {
			t.Errorf("the audit trail has the actions %q, want %s among them", actions, want)
		}
	}
}

// TestDeleteClientStops shows that the tokens of a client are revoked before its first grants are deleted.
// If the deletion stops after a batch, these tokens stay revoked, but tokens that are issued after the time
// for the deletion are valid.
func TestDeleteClientStops(t *testing.T) { EachDatabase(t, testDeleteClientStops) }

func testDeleteClientStops(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	r := addGrants(t, c, s)
	const left = manyGrants - sweepBatch
	refuseDeletion(t, c, s, "grants",
		fmt.Sprintf(`(SELECT COUNT(*) FROM grants WHERE client_id = OLD.client_id) <= %d`, left))

	if err := s.DeleteClient(t.Context(), r); err == nil {
		t.Error("DeleteClient succeeds, want an error about the second batch")
	}
	var n int
	err := s.read().Row(t.Context(), `SELECT COUNT(*) FROM grants WHERE client_id = 'c'`).Scan(&n)
	if err != nil || n != left {
		t.Errorf("%d grants are left, %v, want %d", n, err, left)
	}

	if err := checkTokens(t, s, 0); !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("checking a token of the client = %v, want Unauthenticated", err)
	}
	if err := checkTokens(t, s, 2*deleteFor); err != nil {
		t.Errorf("checking a token that is issued after the time for the deletion = %v, want nil", err)
	}
	if actions := auditActions(t, s); !slices.Contains(actions, "client.deletion_begun") {
		t.Errorf("the audit trail has the actions %q, want client.deletion_begun among them", actions)
	}
}
