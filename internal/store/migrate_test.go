package store

import "testing"

func TestSchemaVersion(t *testing.T) { EachDatabase(t, testSchemaVersion) }

func testSchemaVersion(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	current, known, err := s.SchemaVersion(t.Context())
	if current != known || known < 4 || err != nil {
		t.Errorf("SchemaVersion = %d, %d, %v, want what this binary makes, twice", current, known, err)
	}
}
