package factortest_test

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	sessions "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

const origin = "https://id.example"

// A world has two subscribers and their factors in a real database. Its clock stands still unless a
// test moves it, because the code of an app is valid for only half a minute.
type world struct {
	began time.Time
	*factor.Factors
	rows       *store.Store
	ada, grace factor.Owner
	ahead      atomic.Int64
}

func (w *world) now() time.Time { return w.began.Add(time.Duration(w.ahead.Load())) }

// pass moves the clock forward by d.
func (w *world) pass(d time.Duration) { w.ahead.Add(int64(d)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newWorld(t *testing.T, change func(*factor.Config)) *world {
	t.Helper()
	w, dir, ctx := &world{began: time.Now()}, storetest.Dir(t), t.Context()
	rows := storetest.Open(t, dir, w.now)
	w.rows = rows
	sessionStore, err := sessions.Open(ctx, sessions.Config{Dir: dir, Now: w.now})
	must(t, err)
	t.Cleanup(func() { _ = sessionStore.Close() })
	ring := storetest.Ring(t, dir, rows, w.now)
	c := factor.Config{Store: rows, Sessions: sessionStore, Ring: ring, AuthURL: origin, Now: w.now}
	if change != nil {
		change(&c)
	}

	w.Factors, err = factor.New(c)
	must(t, err)
	f := fabric.New(fabric.Config{
		Stores:      rows.Fabric(),
		Ring:        ring,
		Revocations: revocation.New(rows, w.now),
		Now:         w.now,
	})
	p, err := f.Projects.Create(ctx, "Acme")
	must(t, err)

	newOwner := func(email string) factor.Owner {
		s, err := f.Subscribers.Create(ctx, p.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
		return factor.Owner{Kind: factor.Subscriber, ID: s.ID}
	}
	w.ada, w.grace = newOwner("ada@example.com"), newOwner("grace@example.com")
	return w
}

// app sets up an authenticator app and returns its secret.
func (w *world) app(t *testing.T, owner factor.Owner) string {
	t.Helper()
	setup, err := w.BeginTOTP(t.Context(), owner, "flow", "Acme", "ada@example.com")
	must(t, err)
	must(t, w.ConfirmTOTP(t.Context(), owner, false, "flow", factortest.Code(setup.Secret, w.now())))
	return setup.Secret
}

func TestSetUpTOTP(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	setup, err := w.BeginTOTP(ctx, w.ada, "flow", "Acme: Dialer", "ada@example.com")
	must(t, err)
	if _, err := png.Decode(bytes.NewReader(setup.PNG)); err != nil {
		t.Errorf("the QR code is not a PNG: %v", err)
	}
	if want := "otpauth://totp/Acme%20%20Dialer:ada@example.com?"; !strings.HasPrefix(setup.URL, want) {
		t.Errorf("the URL is %s, want it to begin with %s", setup.URL, want)
	}
	again, err := w.BeginTOTP(ctx, w.ada, "flow", "Acme", "ada@example.com")
	if err != nil || again.Secret != setup.Secret {
		t.Errorf("BeginTOTP again returns the secret %q, %v, want %q again", again.Secret, err, setup.Secret)
	}

	code := factortest.Code(setup.Secret, w.now())
	if err := w.ConfirmTOTP(ctx, w.grace, false, "flow", code); !errors.Is(err, factor.ErrPending) {
		t.Errorf("confirming the app of another owner: %v, want ErrPending", err)
	}
	if err := w.ConfirmTOTP(ctx, w.ada, false, "flow", "000000"); !errors.Is(err, factor.ErrWrong) {
		t.Errorf("confirming with a wrong code: %v, want ErrWrong", err)
	}
	if set, err := w.Has(ctx, w.ada); err != nil || set.Any() {
		t.Errorf("before the confirmation, ada has %+v, %v, want no factors", set, err)
	}

	must(t, w.ConfirmTOTP(ctx, w.ada, false, "flow", code))
	if set, err := w.Has(ctx, w.ada); err != nil || !set.TOTP || set.Passkeys {
		t.Errorf("after the confirmation, ada has %+v, %v, want only the app", set, err)
	}
	if err := w.CheckTOTP(ctx, w.ada, "", code); !errors.Is(err, factor.ErrUsed) {
		t.Errorf("the code that confirmed the app, used again: %v, want ErrUsed", err)
	}
}

func TestCheckTOTP(t *testing.T) {
	w := newWorld(t, func(c *factor.Config) { c.Guesses = 100 })
	ctx := t.Context()
	secret := w.app(t, w.ada)
	w.pass(time.Minute)
	codeIn := func(d time.Duration) string { return factortest.Code(secret, w.now().Add(d)) }
	early := codeIn(30 * time.Second)

	for _, tt := range []struct {
		name string
		code string
		want error
	}{
		{"a code two steps late", codeIn(-time.Minute), factor.ErrWrong},
		{"a code two steps early", codeIn(time.Minute), factor.ErrWrong},
		{"a code that is not digits", "ABCDEF", factor.ErrWrong},
		{"empty", "", factor.ErrWrong},
		{"a code one step early, with a space", early[:3] + " " + early[3:], nil},
		{"the current code after that", codeIn(0), factor.ErrUsed},
	} {
		if err := w.CheckTOTP(ctx, w.ada, "", tt.code); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}

	if err := w.CheckTOTP(ctx, w.grace, "", early); !errors.Is(err, factor.ErrWrong) {
		t.Errorf("another owner's code: %v, want ErrWrong", err)
	}
}

// TestTOTPOnce shows that only one of several callers that use the same code succeeds.
func TestTOTPOnce(t *testing.T) {
	w := newWorld(t, func(c *factor.Config) { c.Guesses = 1000 })
	secret := w.app(t, w.ada)
	w.pass(time.Minute)
	code := factortest.Code(secret, w.now())
	if won := race(func() error { return w.CheckTOTP(context.Background(), w.ada, "", code) }); won != 1 {
		t.Errorf("%d of 50 callers succeeded with one code, want 1", won)
	}
	codes, err := w.NewCodes(t.Context(), w.ada)
	must(t, err)
	if won := race(func() error { return w.UseCode(context.Background(), w.ada, "", codes[3]) }); won != 1 {
		t.Errorf("%d of 50 callers succeeded with one recovery code, want 1", won)
	}
}

// race runs try fifty times concurrently and returns how many of the runs succeeded.
func race(try func() error) int64 {
	var callers sync.WaitGroup
	var succeeded atomic.Int64
	for range 50 {
		callers.Go(func() {
			if try() == nil {
				succeeded.Add(1)
			}
		})
	}
	callers.Wait()
	return succeeded.Load()
}

// TestGuesses shows that no more codes are checked than the limit allows, even if many are tried
// concurrently. Later tries are refused, even with the right code.
func TestGuesses(t *testing.T) {
	w := newWorld(t, nil)
	secret := w.app(t, w.ada)
	codes, err := w.NewCodes(t.Context(), w.ada)
	must(t, err)
	w.pass(time.Minute)
	var wrong, limited atomic.Int64
	race(func() error {
		switch err := w.CheckTOTP(context.Background(), w.ada, "", "000000"); {
		case errors.Is(err, problem.RateLimited):
			limited.Add(1)
		case errors.Is(err, factor.ErrWrong):
			wrong.Add(1)
		}
		return nil
	})

	if n := wrong.Load(); n != 6 {
		t.Errorf("%d of 50 guesses were checked, want 6", n)
	}
	if n := limited.Load(); n != 44 {
		t.Errorf("%d of 50 guesses were refused, want 44", n)
	}

	code := factortest.Code(secret, w.now())
	if err := w.CheckTOTP(t.Context(), w.ada, "", code); !errors.Is(err, problem.RateLimited) {
		t.Errorf("the right code after the guesses: %v, want RateLimited", err)
	}
	if err := w.UseCode(t.Context(), w.ada, "", codes[0]); !errors.Is(err, problem.RateLimited) {
		t.Errorf("a recovery code after the guesses: %v, want RateLimited", err)
	}

	if err := w.UseCode(t.Context(), w.grace, "", "aaaaa-aaaaa"); !errors.Is(err, factor.ErrWrong) {
		t.Errorf("another owner after the guesses: %v, want ErrWrong", err)
	}

	// A place that the owner is known to use has its own count, with the same limit.
	wrong.Store(0)
	race(func() error {
		if errors.Is(w.CheckTOTP(context.Background(), w.ada, "device b", "000000"), factor.ErrWrong) {
			wrong.Add(1)
		}
		return nil
	})
	if n := wrong.Load(); n != 6 {
		t.Errorf("%d of 50 guesses from a known place were checked, want 6", n)
	}

	must(t, w.CheckTOTP(t.Context(), w.ada, "device a", code))
	if err := w.UseCode(t.Context(), w.ada, "", codes[0]); !errors.Is(err, problem.RateLimited) {
		t.Errorf("after the owner succeeded, a guess from elsewhere: %v, want it refused", err)
	}

	w.pass(factor.GuessWindow + time.Second)
	must(t, w.CheckTOTP(t.Context(), w.ada, "", factortest.Code(secret, w.now())))
}

func TestRecoveryCodes(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	first, err := w.FirstCodes(ctx, w.ada)
	must(t, err)
	if again, err := w.FirstCodes(ctx, w.ada); err != nil || again != nil {
		t.Errorf("FirstCodes again = %v, %v, want none", again, err)
	}

	slices.Sort(first)
	if different := slices.Compact(slices.Clone(first)); len(different) != factor.CodeCount {
		t.Errorf("%d of the codes %v are different, want %d", len(different), first, factor.CodeCount)
	}

	typed := " " + strings.ToUpper(strings.ReplaceAll(first[0], "-", ""))
	must(t, w.UseCode(ctx, w.ada, "", typed))
	for _, tt := range []struct {
		name  string
		owner factor.Owner
		code  string
	}{
		{name: "a code that was already used", owner: w.ada, code: first[0]},
		{name: "another owner's code", owner: w.grace, code: first[1]},
		{name: "an unknown code", owner: w.ada, code: "aaaaa-aaaaa"},
		{name: "an empty code", owner: w.ada, code: ""},
	} {
		if err := w.UseCode(ctx, tt.owner, "", tt.code); !errors.Is(err, factor.ErrWrong) {
			t.Errorf("%s: %v, want ErrWrong", tt.name, err)
		}
	}

	if left, err := w.RecoveryCodes(ctx, w.ada); err != nil || left.Left != 9 {
		t.Errorf("remaining codes: %+v, %v, want 9", left, err)
	}

	_, err = w.NewCodes(ctx, w.ada)
	must(t, err)
	if err := w.UseCode(ctx, w.ada, "", first[1]); !errors.Is(err, factor.ErrWrong) {
		t.Errorf("a code from before the replacement: %v, want ErrWrong", err)
	}
}
