package store

import (
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

func TestDeletedNames(t *testing.T) { EachDatabase(t, testDeletedNames) }

// testDeletedNames shows that the name of a deleted subscriber is kept in its project, until the
// subscriber is erased or the time has passed.
func testDeletedNames(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx, sub := t.Context(), plantCanary(t, s)
	if _, err := s.FindDeletedName(ctx, "p", sub.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("a name before the deletion: %v, want not found", err)
	}
	end := revocation.Revocation{Kind: revocation.Subscriber, ID: sub.ID, Until: time.Now().Add(time.Hour),
		Expires: time.Now().Add(time.Hour)}
	if err := s.DeleteSubscriber(ctx, "p", end); err != nil {
		t.Fatal(err)
	}

	kept := func(want string) {
		t.Helper()
		name, err := s.FindDeletedName(ctx, "p", sub.ID)
		if name != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, problem.NotFound) {
			t.Errorf("FindDeletedName = %q, %v, want %q", name, err, want)
		}
		ids, err := s.FindDeletedNamed(ctx, "p", "Canary@Example.com", 10)
		if err != nil || len(ids) == 1 != (want != "") {
			t.Errorf("FindDeletedNamed = %v, %v, want the one with %q", ids, err, want)
		}
	}
	kept("canary@example.com")
	if _, err := s.FindDeletedName(ctx, "other", sub.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("the name in another project: %v, want not found", err)
	}
	if ids, err := s.FindDeletedNamed(ctx, "other", "canary@example.com", 10); err != nil || len(ids) > 0 {
		t.Errorf("by name in another project: %v, %v", ids, err)
	}
	if _, err := s.EraseSubscriber(ctx, "other", eraser(sub.ID), time.Now()); !errors.Is(err, problem.NotFound) {
		t.Errorf("erased by another project: %v, want not found", err)
	}
	if err := s.ForgetDeletedNames(ctx, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	kept("canary@example.com")

	e, err := s.EraseSubscriber(ctx, "p", eraser(sub.ID), time.Now())
	if err != nil || e.Found || e.Deleted["names"] != 1 {
		t.Errorf("EraseSubscriber = %+v, %v, want one name", e, err)
	}
	kept("")

	if err := s.DeleteSubscriber(ctx, "p", revocation.Revocation{Kind: revocation.Subscriber, ID: "s",
		Until: end.Until, Expires: end.Expires}); err != nil {
		t.Fatal(err)
	}
	if name, err := s.FindDeletedName(ctx, "p", "s"); name == "" || err != nil {
		t.Fatalf("the name of another one: %q, %v", name, err)
	}
	if err := s.ForgetDeletedNames(ctx, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FindDeletedName(ctx, "p", "s"); !errors.Is(err, problem.NotFound) {
		t.Errorf("after its time: %v, want not found", err)
	}
}
