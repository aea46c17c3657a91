package store_test

import (
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

func TestSigningKeyRace(t *testing.T) { store.EachDatabase(t, testSigningKeyRace) }

func testSigningKeyRace(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	won := race(t, problem.Conflict, func(int) error {
		key := fabric.SigningKey{ID: newID(), ProjectID: p.ID, Sealed: "x", Created: time.Now()}
		return s.CreateSigningKey(t.Context(), key)
	})
	if won != 1 {
		t.Errorf("%d of %d concurrent calls of CreateSigningKey succeed, want 1", won, crowd)
	}

	won = race(t, problem.Conflict, func(i int) error {
		starts := time.Now().Add(time.Duration(i) * time.Minute)
		next := fabric.SigningKey{ID: newID(), ProjectID: p.ID, Sealed: "y", Starts: starts}
		return s.RotateSigningKey(t.Context(), next, time.Time{}, false)
	})
	if won != 1 {
		t.Errorf("%d of %d concurrent calls of RotateSigningKey succeed, want 1", won, crowd)
	}
	signing := listSigningKeys(t, s, p.ID)
	if len(signing) != 2 {
		t.Fatalf("ListSigningKeys = %+v, want the old key and the next", signing)
	}
	if signing[1].Sealed != "y" {
		t.Errorf("the second signing key holds %s, want y", signing[1].Sealed)
	}

	alone := fabric.SigningKey{ID: newID(), ProjectID: p.ID, Sealed: "z", Starts: time.Now()}
	if err := s.RotateSigningKey(t.Context(), alone, time.Time{}, true); err != nil {
		t.Fatal(err)
	}
	signing = listSigningKeys(t, s, p.ID)
	if len(signing) != 1 {
		t.Fatalf("ListSigningKeys = %+v, want only the new key", signing)
	}
	if signing[0].ID != alone.ID {
		t.Errorf("the signing key is %s, want the new one %s", signing[0].ID, alone.ID)
	}
}

func listSigningKeys(t *testing.T, s *store.Store, projectID string) []fabric.SigningKey {
	t.Helper()
	signing, err := s.ListSigningKeys(t.Context(), projectID)
	if err != nil {
		t.Fatal(err)
	}
	return signing
}
