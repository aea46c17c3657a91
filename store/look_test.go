package store_test

import (
	"context"
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
	if err := s.CreateSubscriber(context.Background(), sub, address); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Newest(t.Context()); err != nil || got.Before(before) || got.After(time.Now()) {
		t.Errorf("Newest = %v, %v, want the last second", got, err)
	}
}

// TestLook shows that Look creates no database, and that opening one read-only changes nothing.
func TestLook(t *testing.T) {
	c := store.Config{Dir: t.TempDir(), Audit: storetest.Key()}
	if _, known, err := store.Look(t.Context(), c); !errors.Is(err, fs.ErrNotExist) || known == 0 {
		t.Errorf("Look without a database = schema %d, %v, want the known schema and not exist", known, err)
	}

	s, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	p := newProject(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r, known, err := store.Look(t.Context(), c); err != nil || r.Schema != known {
		t.Errorf("Look = %+v, %v, want schema %d", r, err, known)
	}

	c.ReadOnly = true
	if s, err = store.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if has, err := s.HasRecordings(t.Context()); err != nil || has {
		t.Errorf("HasRecordings = %v, %v, want false", has, err)
	}

	p.ID = newID()
	if err := s.CreateProject(t.Context(), p); !errors.Is(err, database.ErrReadOnly) {
		t.Errorf("a change = %v, want ErrReadOnly", err)
	}
}
