package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

func TestCertificates(t *testing.T) { store.EachDatabase(t, testCertificates) }

func testCertificates(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, _ := fabricRows(t, c)
	if _, err := s.FindCertificate(ctx, "a.test"); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindCertificate of an unknown name = %v, want not found", err)
	}

	for _, sealed := range []string{"one", "two"} {
		if err := s.PutCertificate(ctx, "a.test", sealed); err != nil {
			t.Fatal(err)
		}
		if got, err := s.FindCertificate(ctx, "a.test"); err != nil || got != sealed {
			t.Errorf("FindCertificate = %q, %v, want %q", got, err, sealed)
		}
	}

	for range 2 { // the second call has nothing to delete
		if err := s.DeleteCertificate(ctx, "a.test"); err != nil {
			t.Errorf("DeleteCertificate = %v", err)
		}
	}
}

func TestClaimCertificate(t *testing.T) { store.EachDatabase(t, testClaimCertificate) }

func testClaimCertificate(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, _ := fabricRows(t, c)
	until := time.Now().Add(time.Minute)
	won := race(t, problem.Conflict, func(int) error { return s.ClaimCertificate(ctx, "a.test", until) })
	if won != 1 {
		t.Errorf("%d claims were granted, want 1", won)
	}

	if err := s.ReleaseCertificate(ctx, "a.test", until.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := s.ClaimCertificate(ctx, "a.test", until); !errors.Is(err, problem.Conflict) {
		t.Errorf("ClaimCertificate after another node's release = %v, want a conflict", err)
	}

	if err := s.ReleaseCertificate(ctx, "a.test", until); err != nil {
		t.Fatal(err)
	}
	if err := s.ClaimCertificate(ctx, "a.test", time.Now().Add(-time.Second)); err != nil {
		t.Errorf("ClaimCertificate after the release = %v, want no error", err)
	}
	if err := s.ClaimCertificate(ctx, "a.test", until); err != nil {
		t.Errorf("ClaimCertificate after the claim expired = %v, want no error", err)
	}
}
