package store

import (
	"context"
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

// once calls try fifty times concurrently. It fails unless one call succeeds and all others return
// an error of the kind lost.
func once(t *testing.T, what string, try func(i int) error, lost problem.Kind) {
	t.Helper()
	var all sync.WaitGroup
	var won atomic.Int64
	for i := range 50 {
		all.Go(func() {
			switch err := try(i); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, lost):
				t.Errorf("%s: %v, want %s", what, err, lost)
			}
		})
	}

	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%s: %d of 50 won, want 1", what, won.Load())
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
		once(t, "setting up the first factor", func(i int) error {
			if i%2 == 0 {
				return s.CreateTOTP(t.Context(), factor.TOTP{ID: fmt.Sprint("f", i), Owner: first}, true)
			}
			return s.CreatePasskey(t.Context(), factor.Passkey{
				ID:         fmt.Sprint("f", i),
				Owner:      first,
				Credential: fmt.Sprint("f", i),
				Record:     []byte("{}"),
			}, true)
		}, problem.Forbidden)
	})
}

// TestLastPasskeyStays shows that people who remove all their passkeys at the same time keep one, if
// they need it to sign in.
func TestLastPasskeyStays(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		owner := newOwner(t, s, "u")
		for i := range 50 {
			p := factor.Passkey{ID: fmt.Sprint(i), Owner: owner, Credential: fmt.Sprint(i), Record: []byte("{}")}
			if err := s.CreatePasskey(t.Context(), p, false); err != nil {
				t.Fatal(err)
			}
		}

		var refused atomic.Int64
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				err := s.DeletePasskey(t.Context(), owner, fmt.Sprint(i), true)
				if errors.Is(err, factor.ErrLastPasskey) {
					refused.Add(1)
				} else if err != nil {
					t.Errorf("DeletePasskey = %v", err)
				}
			})
		}
		all.Wait()

		left, err := s.ListPasskeys(t.Context(), owner)
		if err != nil || len(left) != 1 || refused.Load() != 1 {
			t.Errorf("%d passkeys are left, %d removals were refused, %v; want 1 and 1", len(left), refused.Load(), err)
		}
	})
}

// TestTOTPOnce shows that an owner can have only one authenticator app, and that the code of a time
// step can be used only once.
func TestTOTPOnce(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		once(t, "setting up an app", func(i int) error {
			return s.CreateTOTP(t.Context(), factor.TOTP{ID: fmt.Sprint(i), Owner: ada, Sealed: "x", Step: 7}, false)
		}, problem.Conflict)

		app, err := s.FindTOTP(t.Context(), ada)
		if err != nil {
			t.Fatal(err)
		}
		app.Step++
		once(t, "using the code of a step", func(int) error { return s.UseTOTP(t.Context(), app) }, problem.Conflict)
	})
}

// TestPasskeyOnce shows that a credential can be stored once, and that a value of its counter can
// be used once.
func TestPasskeyOnce(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		once(t, "a credential", func(i int) error {
			return s.CreatePasskey(t.Context(), factor.Passkey{
				ID:         fmt.Sprint(i),
				Owner:      ada,
				Credential: "c",
				Record:     []byte("{}"),
				Count:      3,
			}, false)
		}, problem.Conflict)

		p, err := s.FindPasskey(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		p.Count = 4
		once(t, "a count", func(int) error { return s.UsePasskey(t.Context(), p, 3) }, problem.Conflict)
	})
}

// TestRecoveryCodesOnce shows that if several callers concurrently replace the codes, one set
// remains, and that a code can be used once.
func TestRecoveryCodesOnce(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		ctx := t.Context()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				hashes := make([]string, 10)
				for k := range hashes {
					hashes[k] = fmt.Sprint(i, "-", k)
				}
				if err := s.ReplaceRecoveryCodes(ctx, ada, hashes, time.Now()); err != nil {
					t.Error(err)
				}
			})
		}

		all.Wait()
		if codes, err := s.FindRecoveryCodes(ctx, ada); err != nil || codes.Left != 10 || codes.Created.IsZero() {
			t.Errorf("after twenty sets of codes: %+v, %v, want the ten of one set", codes, err)
		}

		if err := s.ReplaceRecoveryCodes(ctx, ada, []string{"h"}, time.Now()); err != nil {
			t.Fatal(err)
		}
		once(t, "using a recovery code", func(int) error { return s.TakeRecoveryCode(ctx, ada, "h") }, problem.NotFound)
	})
}

// TestFactorsOfDeletedOwners shows that factors are deleted with their owners, and that none can be
// created for unknown owners.
func TestFactorsOfDeletedOwners(t *testing.T) {
	EachDatabase(t, func(t *testing.T, c Config) {
		s, _, _ := grantRows(t, c)
		ctx := t.Context()
		own := func(o factor.Owner) error {
			return errors.Join(s.CreateTOTP(ctx, factor.TOTP{ID: "t" + o.ID, Owner: o}, false),
				s.CreatePasskey(ctx, factor.Passkey{
					ID:         "p" + o.ID,
					Owner:      o,
					Credential: o.ID,
					Record:     []byte("{}"),
				}, false),
				s.ReplaceRecoveryCodes(ctx, o, []string{"h"}, time.Now()))
		}

		grace := newOwner(t, s, "g")
		if err := errors.Join(own(ada), own(grace)); err != nil {
			t.Fatal(err)
		}

		gone := func(o factor.Owner) {
			t.Helper()
			set, err := s.HasFactors(ctx, o)
			codes, err2 := s.FindRecoveryCodes(ctx, o)
			if err := errors.Join(err, err2); err != nil || set.Any() || codes.Left > 0 {
				t.Errorf("%s has %+v and %d codes (%v), want nothing", o, set, codes.Left, err)
			}
			if err := own(o); !errors.Is(err, problem.NotFound) {
				t.Errorf("creating factors for a deleted %s: %v, want NotFound", o, err)
			}
		}

		if err := s.DeleteSubscriber(ctx, "p",
			revocation.Revocation{Kind: revocation.Subscriber, ID: "s"}); err != nil {
			t.Fatal(err)
		}
		gone(ada)
		if set, err := s.HasFactors(context.Background(), grace); err != nil || !set.Passkeys || !set.TOTP {
			t.Errorf("the other owner's factors: %+v, %v, want both", set, err)
		}

		if err := s.DeleteProject(ctx, revocation.Revocation{Kind: revocation.Project, ID: "p"}); err != nil {
			t.Fatal(err)
		}
		gone(grace)
	})
}
