package store

import (
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

func TestDeletedNames(t *testing.T) { EachDatabase(t, testDeletedNames) }

// testDeletedNames shows that the name of a deleted subscriber is kept in its project until the
// subscriber is erased, or ForgetDeletedNames deletes the name.
func testDeletedNames(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	sub := plantCanary(t, s)
	if _, err := s.FindDeletedName(ctx, "p", sub.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindDeletedName before the deletion: %v, want not found", err)
	}
	end := revocation.Revocation{
		Kind:    revocation.Subscriber,
		ID:      sub.ID,
		Until:   time.Now().Add(time.Hour),
		Expires: time.Now().Add(time.Hour),
	}
	if err := s.DeleteSubscriber(ctx, "p", end); err != nil {
		t.Fatal(err)
	}

	wantKept := func() {
		t.Helper()
		name, err := s.FindDeletedName(ctx, "p", sub.ID)
		if err != nil || name != sub.Email {
			t.Errorf("FindDeletedName = %q, %v, want %q", name, err, sub.Email)
		}
		if ids := findDeletedNamed(t, s, "p", "Canary@Example.com"); len(ids) != 1 {
			t.Errorf("FindDeletedNamed with %q = %v, want one id", sub.Email, ids)
		}
	}
	wantKept()
	if _, err := s.FindDeletedName(ctx, "other", sub.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindDeletedName in another project: %v, want not found", err)
	}
	if ids := findDeletedNamed(t, s, "other", "canary@example.com"); len(ids) > 0 {
		t.Errorf("FindDeletedNamed in another project = %v, want none", ids)
	}
	if _, err := s.EraseSubscriber(ctx, "other", erasureOf(sub.ID), time.Now()); !errors.Is(err, problem.NotFound) {
		t.Errorf("EraseSubscriber by another project: %v, want not found", err)
	}
	if err := s.ForgetDeletedNames(ctx, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantKept()

	eraseDeleted(t, s, erasureOf(sub.ID))
	if name, err := s.FindDeletedName(ctx, "p", sub.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindDeletedName after the erasure = %q, %v, want not found", name, err)
	}
	if ids := findDeletedNamed(t, s, "p", "Canary@Example.com"); len(ids) > 0 {
		t.Errorf("FindDeletedNamed after the erasure = %v, want none", ids)
	}

	another := end
	another.ID = "s"
	if err := s.DeleteSubscriber(ctx, "p", another); err != nil {
		t.Fatal(err)
	}
	name, err := s.FindDeletedName(ctx, "p", another.ID)
	if err != nil {
		t.Fatal(err)
	}
	if name == "" {
		t.Fatal("the name of another subscriber was not kept")
	}
	if err := s.ForgetDeletedNames(ctx, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FindDeletedName(ctx, "p", "s"); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindDeletedName after ForgetDeletedNames: %v, want not found", err)
	}
}

// findDeletedNamed returns the ids of the deleted subscribers with a name.
func findDeletedNamed(t *testing.T, s *Store, projectID, name string) []string {
	t.Helper()
	ids, err := s.FindDeletedNamed(t.Context(), projectID, name, 10)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
