package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// ada is the owner that grantRows creates.
var ada = factor.Owner{Kind: factor.Subscriber, ID: "s"}

// wantOnce calls do fifty times concurrently. The test fails unless one call succeeds and all others
// return an error of the kind lost.
func wantOnce(t *testing.T, what string, lost problem.Kind, do func(i int) error) {
	t.Helper()
	var running sync.WaitGroup
	var won atomic.Int64
	for i := range 50 {
		running.Go(func() {
			switch err := do(i); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, lost):
				t.Errorf("%s: %v, want %s", what, err, lost)
			}
		})
	}
	running.Wait()
	if won.Load() != 1 {
		t.Errorf("%s: %d of 50 calls succeeded, want 1", what, won.Load())
	}
}

// newOwner creates a subscriber without factors.
func newOwner(t *testing.T, s *Store, id string) factor.Owner {
	t.Helper()
	err := s.change(t.Context(), audit.None("a test"), func(tx tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO subscribers
			(id, project_id, email, password_hash, created, updated)
			VALUES ($1, 'p', $1, 'hash', 0, 0)`, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return factor.Owner{Kind: factor.Subscriber, ID: id}
}

// TestFirstFactorOnce shows that only one of many concurrent callers sets up an owner's first
// factor.
func TestFirstFactorOnce(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		first := newOwner(t, s, "u")
		wantOnce(t, "setting up the first factor", problem.Forbidden, func(i int) error {
			id := fmt.Sprint("f", i)
			if i%2 == 0 {
				return s.CreateTOTP(t.Context(), factor.TOTP{ID: id, Owner: first}, true)
			}
			passkey := factor.Passkey{ID: id, Owner: first, Credential: id, Record: []byte("{}")}
			return s.CreatePasskey(t.Context(), passkey, true)
		})
	})
}

// TestLastPasskeyStays shows that people who remove all their passkeys at the same time keep one, if
// they need it to sign in.
func TestLastPasskeyStays(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		owner := newOwner(t, s, "u")
		for i := range 50 {
			id := fmt.Sprint(i)
			passkey := factor.Passkey{ID: id, Owner: owner, Credential: id, Record: []byte("{}")}
			if err := s.CreatePasskey(t.Context(), passkey, false); err != nil {
				t.Fatal(err)
			}
		}

		var refused atomic.Int64
		var deleting sync.WaitGroup
		for i := range 50 {
			deleting.Go(func() {
				err := s.DeletePasskey(t.Context(), owner, fmt.Sprint(i), true)
				switch {
				case errors.Is(err, factor.ErrLastPasskey):
					refused.Add(1)
				case err != nil:
					t.Errorf("DeletePasskey = %v", err)
				}
			})
		}
		deleting.Wait()
		if n := refused.Load(); n != 1 {
			t.Errorf("%d removals were refused, want 1", n)
		}

		left, err := s.ListPasskeys(t.Context(), owner)
		if err != nil || len(left) != 1 {
			t.Errorf("%d passkeys are left, %v, want 1", len(left), err)
		}
	})
}

// TestTOTPOnce shows that an owner can have only one authenticator app, and that the code of a time
// step can be used only once.
func TestTOTPOnce(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		wantOnce(t, "setting up an app", problem.Conflict, func(i int) error {
			app := factor.TOTP{ID: fmt.Sprint(i), Owner: ada, Sealed: "x", Step: 7}
			return s.CreateTOTP(t.Context(), app, false)
		})

		app, err := s.FindTOTP(t.Context(), ada)
		if err != nil {
			t.Fatal(err)
		}
		app.Step++
		wantOnce(t, "using the code of a step", problem.Conflict, func(int) error {
			return s.UseTOTP(t.Context(), app)
		})
	})
}

// TestPasskeyOnce shows that a credential can be stored once, and that a value of its counter can
// be used once.
func TestPasskeyOnce(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		wantOnce(t, "a credential", problem.Conflict, func(i int) error {
			passkey := factor.Passkey{
				ID:         fmt.Sprint(i),
				Owner:      ada,
				Credential: "c",
				Record:     []byte("{}"),
				Count:      3,
			}
			return s.CreatePasskey(t.Context(), passkey, false)
		})

		passkey, err := s.FindPasskey(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		passkey.Count = 4
		wantOnce(t, "a count", problem.Conflict, func(int) error {
			return s.UsePasskey(t.Context(), passkey, 3)
		})
	})
}

// TestRecoveryCodesOnce shows that if several callers concurrently replace the codes, one set
// remains, and that a code can be used once.
func TestRecoveryCodesOnce(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		ctx := t.Context()
		var replacing sync.WaitGroup
		for i := range 20 {
			replacing.Go(func() {
				hashes := make([]string, 10)
				for k := range hashes {
					hashes[k] = fmt.Sprint(i, "-", k)
				}
				if err := s.ReplaceRecoveryCodes(ctx, ada, hashes, time.Now()); err != nil {
					t.Error(err)
				}
			})
		}

		replacing.Wait()
		codes, err := s.FindRecoveryCodes(ctx, ada)
		if err != nil {
			t.Fatal(err)
		}
		if codes.Left != 10 {
			t.Errorf("%d codes are left, want the ten codes of one set", codes.Left)
		}
		if codes.Created.IsZero() {
			t.Error("the codes have no creation time")
		}

		if err := s.ReplaceRecoveryCodes(ctx, ada, []string{"h"}, time.Now()); err != nil {
			t.Fatal(err)
		}
		err = s.CreateRecoveryCodes(ctx, ada, []string{"i"}, time.Now())
		if !errors.Is(err, factor.ErrHasCodes) {
			t.Errorf("creating codes for an owner who has some = %v, want %v", err, factor.ErrHasCodes)
		}
		wantOnce(t, "using a recovery code", problem.NotFound, func(int) error {
			return s.TakeRecoveryCode(ctx, ada, "h")
		})
	})
}

// TestFactorsOfDeletedOwners shows that factors are deleted with their owners, and that no factors can
// be created for deleted owners.
func TestFactorsOfDeletedOwners(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		ctx := t.Context()
		addFactors := func(o factor.Owner) error {
			passkey := factor.Passkey{ID: "p" + o.ID, Owner: o, Credential: o.ID, Record: []byte("{}")}
			return errors.Join(
				s.CreateTOTP(ctx, factor.TOTP{ID: "t" + o.ID, Owner: o}, false),
				s.CreatePasskey(ctx, passkey, false),
				s.ReplaceRecoveryCodes(ctx, o, []string{"h"}, time.Now()),
			)
		}

		grace := newOwner(t, s, "g")
		for _, owner := range []factor.Owner{ada, grace} {
			if err := addFactors(owner); err != nil {
				t.Fatal(err)
			}
		}

		wantGone := func(o factor.Owner) {
			t.Helper()
			set, err := s.HasFactors(ctx, o)
			if err != nil || set.Any() {
				t.Errorf("%s has %+v, %v, want no factors", o, set, err)
			}
			codes, err := s.FindRecoveryCodes(ctx, o)
			if err != nil || codes.Left > 0 {
				t.Errorf("%s has %d recovery codes, %v, want none", o, codes.Left, err)
			}
			if err := addFactors(o); !errors.Is(err, problem.NotFound) {
				t.Errorf("creating factors for a deleted %s: %v, want NotFound", o, err)
			}
		}

		gone := revocation.Revocation{Kind: revocation.Subscriber, ID: ada.ID}
		if err := s.DeleteSubscriber(ctx, "p", gone); err != nil {
			t.Fatal(err)
		}
		wantGone(ada)
		set, err := s.HasFactors(ctx, grace)
		if err != nil {
			t.Fatal(err)
		}
		if want := (factor.Set{Passkeys: true, TOTP: true}); set != want {
			t.Errorf("the other owner's factors: %+v, want %+v", set, want)
		}

		if err := s.DeleteProject(ctx, revocation.Revocation{Kind: revocation.Project, ID: "p"}); err != nil {
			t.Fatal(err)
		}
		wantGone(grace)
	})
}
