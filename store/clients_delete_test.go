package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/revocation"
)

// TestDeleteLargeClient shows that most grants and consents of a client are deleted before the client, if
// there are very many, and that those of other clients remain.
func TestDeleteLargeClient(t *testing.T) { EachDatabase(t, testDeleteLargeClient) }

func testDeleteLargeClient(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	addSubscribers(t, c, s, 1)
	const many = 2*sweepBatch + 1
	filled(t, c, s,
		`INSERT INTO clients (id, project_id, name, type, profile, auth_method, grants, scopes, access_token,
				id_token_alg, created, updated)
			VALUES ('other', 'p', '', 'spa', 'default', 'none', '', '', 'fabric', 'RS256', 0, 0)`,
		fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO grants (id, project_id, client_id, subscriber_id, session_id, scope, auth_time, amr,
				created, idle_until, expires)
			SELECT 'g' || CAST(i AS TEXT), 'p', CASE WHEN i = 0 THEN 'other' ELSE 'c' END, 's', '', '', 0, '', 0, 0, 0
			FROM n`, many),
		`INSERT INTO consents (subscriber_id, client_id, scope, updated)
			VALUES ('s', 'c', '', 0), ('s', 'other', '', 0)`)
	refuseDeletion(t, c, s, "clients",
		fmt.Sprintf(`(SELECT COUNT(*) FROM grants WHERE client_id = OLD.id) > %d`, sweepBatch))

	end := time.Now().Add(time.Hour)
	r := revocation.Revocation{Kind: revocation.Client, ID: "c", Until: end, Expires: end}
	if err := s.DeleteClient(t.Context(), r); err != nil {
		t.Fatalf("deleting a client with %d grants = %v, want nil", many, err)
	}
	for _, table := range []string{"grants", "consents"} {
		left, err := gather(t.Context(), s.read(), "listing", scanID, `SELECT client_id FROM `+table)
		if err != nil || !slices.Equal(left, []string{"other"}) {
			t.Errorf("the clients of the %s that are left are %q, %v, want other", table, left, err)
		}
	}
}
