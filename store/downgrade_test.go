package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/selvage/selvage/fabric"
)

// TestBreaking shows which statements of migrations may disturb a running older version.
func TestBreaking(t *testing.T) {
	files := fstest.MapFS{
		"migrations/00001_schema.sql": {Data: []byte("-- +goose Up\nDROP TABLE a;")},
		"migrations/00002_add.sql": {Data: []byte(`-- +goose Up
			CREATE TABLE b (id TEXT PRIMARY KEY); -- DROP TABLE in a comment; too
			CREATE UNIQUE INDEX b_id ON b (id);
			CREATE INDEX c_id ON c (id) WHERE id <> '';
			ALTER TABLE c ADD COLUMN at BIGINT NOT NULL DEFAULT 0;
			ALTER TABLE c ADD COLUMN name TEXT;`)},
		"migrations/00003_change.sql": {Data: []byte(`-- +goose Up
			ALTER TABLE c ADD COLUMN new TEXT NOT NULL;
			CREATE UNIQUE INDEX c_name ON c (name);
			ALTER TABLE c RENAME COLUMN at TO since;
			UPDATE c SET name = '';
			DROP INDEX c_id;`)},
		"migrations/00004_later.sql": {Data: []byte("-- +goose Up\nDROP TABLE c;")},
	}

	got, err := breaking(files, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"schema 3: ALTER TABLE c ADD COLUMN new TEXT NOT NULL",
		"schema 3: CREATE UNIQUE INDEX c_name ON c (name)",
		"schema 3: ALTER TABLE c RENAME COLUMN at TO since",
		"schema 3: UPDATE c SET name = ''",
		"schema 3: DROP INDEX c_id",
	}
	if !slices.Equal(got, want) {
		t.Errorf("breaking = %q, want %q", got, want)
	}
}

// expected lists the parts of migrations that are not additive, but were examined and do not disturb
// a running older version.
var expected = []string{
	// At most one project has open client registration, and an older version opens none.
	"CREATE UNIQUE INDEX projects_open",
	// An older version writes links without an issuer. The newer version fills in the issuer at the
	// next login.
	"UPDATE upstream_links SET issuer",
	"DROP INDEX upstream_links_subject",
	"CREATE UNIQUE INDEX upstream_links_subject",
	// An older version never writes a media_key twice. It must not delete recordings during the
	// update, because it would delete a file that several recordings share.
	"DROP INDEX recordings_media",
}

// TestAdditive shows that an older version can run while another node updates the schema. No
// migration after the first removes anything that an older version uses. Each exception must be
// examined, added to expected, and described in the changelog.
func TestAdditive(t *testing.T) {
	newest, err := newestSchema(migrations)
	if err != nil {
		t.Fatal(err)
	}
	found, err := breaking(migrations, 1, newest)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range found {
		if !slices.ContainsFunc(expected, func(e string) bool { return strings.Contains(statement, e) }) {
			t.Errorf("this statement may disturb a running older version: %s", statement)
		}
	}
}

// TestCheckDowngrade shows that after an update, the copy from before it is reported, with the number
// of changes that a downgrade would lose.
func TestCheckDowngrade(t *testing.T) {
	c := Config{URL: "sqlite:selvage.db", Dir: t.TempDir(), Audit: auditKey(t)}
	create := func() (known int64) {
		t.Helper()
		s, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		p := fabric.Project{ID: newID(), Name: "Acme", ClientRegistration: fabric.ClientsOff}
		if err := s.CreateProject(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return s.known
	}

	known := create()
	before, err := CheckDowngrade(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if before.Copy != "" {
		t.Errorf("before the update the copy is %s, want none", before.Copy)
	}
	if before.Current != known {
		t.Errorf("before the update the current schema is %d, want %d", before.Current, known)
	}

	c.migrations = laterMigrations(t, int(known+1))
	create()
	after, err := CheckDowngrade(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if after.Current != known+1 {
		t.Errorf("after the update the current schema is %d, want %d", after.Current, known+1)
	}
	if after.Schema != known {
		t.Errorf("the copy has the schema %d, want %d", after.Schema, known)
	}
	if after.Lost != 1 {
		t.Errorf("%d changes are lost, want 1", after.Lost)
	}
	if len(after.Breaking) > 0 {
		t.Errorf("the breaking statements are %q, want none", after.Breaking)
	}
	if want := fmt.Sprint("selvage.db.schema-", known); !strings.HasSuffix(after.Copy, want) {
		t.Errorf("the copy is %s, want a name that ends with %s", after.Copy, want)
	}
}
