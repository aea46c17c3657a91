package store_test

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/database"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

func TestNewest(t *testing.T) {
	s, p := fabricRows(t, store.Config{Dir: t.TempDir()})
	before := time.Now().Add(-time.Second)
	sub, address := subscriber(p, "ada@example.com", "", "ada")
	if err := s.CreateSubscriber(t.Context(), sub, address); err != nil {
		t.Fatal(err)
	}
	newest, err := s.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if newest.Before(before) || newest.After(time.Now()) {
		t.Errorf("Newest = %v, want a past time after %v", newest, before)
	}
}

// TestLook shows that Look creates no database, and that a database that was opened read-only cannot be
// changed.
func TestLook(t *testing.T) {
	c := store.Config{Dir: t.TempDir(), Audit: storetest.Key()}
	_, known, err := store.Look(t.Context(), c)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Look without a database = %v, want %v", err, fs.ErrNotExist)
	}
	if known == 0 {
		t.Error("Look without a database does not return the known schema")
	}

	s, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	p := newProject(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	report, known, err := store.Look(t.Context(), c)
	if err != nil || report.Schema != known {
		t.Errorf("Look = schema %d, %v, want %d", report.Schema, err, known)
	}

	c.ReadOnly = true
	if s, err = store.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	has, err := s.HasRecordings(t.Context())
	if err != nil || has {
		t.Errorf("HasRecordings = %v, %v, want false", has, err)
	}

	p.ID = newID()
	if err := s.CreateProject(t.Context(), p); !errors.Is(err, database.ErrReadOnly) {
		t.Errorf("a change of a read-only database: got %v, want ErrReadOnly", err)
	}
}
