package password

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// accounts lists the hashes of all accounts. Its method next serves as NextImported.
type accounts []string

func (a accounts) next(_ context.Context, after string) (string, error) {
	for _, text := range slices.Sorted(slices.Values(a)) {
		if text > after {
			return text, nil
		}
	}
	return "", nil
}

// bcryptOf returns a distinct bcrypt hash with the given cost for each n.
func bcryptOf(cost, n int) string { return fmt.Sprintf("$2b$%02d$%053d", cost, n) }

// TestImported shows that imported returns the most expensive hash for each algorithm, with one
// step for each form of hashes.
func TestImported(t *testing.T) {
	key := strings.Repeat("ab", 32)
	hashes := accounts{
		"$argon2id$v=19$m=65536,t=1,p=4$c2FsdHNhbHQ$" + strings.Repeat("a", 43),
		"pbkdf2:sha256:1000$salt$" + key,
		"pbkdf2:sha256:260000$salt$" + key,
		"scrypt:16384:8:1$salt$" + key,
		"scrypt$one$4096$8$1$" + strings.Repeat("a", 44),
		"scrypt$two$4096$8$1$" + strings.Repeat("a", 44),
		"pbkdf2_sha1$5000$salt$" + strings.Repeat("a", 28),
	}
	for n := range 100 {
		pbkdf2 := fmt.Sprintf("pbkdf2:sha256:1000$salt%02d$%s", n, key)
		hashes = append(hashes, bcryptOf(10, n), bcryptOf(12, n), bcryptOf(4, n), pbkdf2)
	}

	h, steps := New(1), 0
	h.NextImported = func(ctx context.Context, after string) (string, error) {
		steps++
		return hashes.next(ctx, after)
	}
	forms, err := h.imported(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	got := slices.Sorted(maps.Values(forms))
	want := []string{
		"$2b$12$",
		"$argon2id$v=19$m=65536,t=1,p=4$",
		"pbkdf2:sha256:260000$",
		"pbkdf2_sha1$5000$",
		"scrypt:16384:8:1$",
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("imported = %q, want hashes that begin with %q", got, want)
	}
	if steps != 10 {
		t.Errorf("imported takes %d steps, want 10", steps)
	}
}

// TestPace shows how measurements affect the estimates.
func TestPace(t *testing.T) {
	type prediction struct {
		Took  time.Duration
		Known bool
	}
	p := newPace()
	observe := func(amount int, took time.Duration) { p.observe(work{"bcrypt", amount}, took) }
	check := func(when string, amount int, want prediction) {
		t.Helper()
		took, known := p.of(work{"bcrypt", amount})
		if got := (prediction{took.Round(time.Millisecond), known}); got != want {
			t.Errorf("%s: the estimate for %d is %+v, want %+v", when, amount, got, want)
		}
	}

	check("never measured", 1000, prediction{})
	observe(1000, 100*time.Millisecond)
	check("measured", 1000, prediction{100 * time.Millisecond, true})
	check("twice the work", 2000, prediction{200 * time.Millisecond, true})
	check("far more work", 4000, prediction{400 * time.Millisecond, false})

	observe(1000, 160*time.Millisecond)
	check("slower once", 1000, prediction{160 * time.Millisecond, true})
	observe(1000, 10*time.Millisecond)
	check("faster once", 1000, prediction{150 * time.Millisecond, true})
	observe(10, time.Second)
	check("little work", 1000, prediction{150 * time.Millisecond, true})
	observe(4000, 300*time.Millisecond)
	check("more work", 4000, prediction{300 * time.Millisecond, true})
}

// TestWait shows that Wait extends a refused login to the time that checking the slowest hash
// takes, plus a quarter.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Weak(1)
		h.NextImported = accounts{bcryptOf(12, 1), bcryptOf(4, 1)}.next
		h.pace.observe(work{"bcrypt", 1 << 12}, 240*time.Millisecond)
		h.pace.observe(h.cost.work(), 30*time.Millisecond)

		// waitAfter returns how long Wait takes after a check that took the given time.
		waitAfter := func(check time.Duration) time.Duration {
			now := time.Now()
			Attempt{of: h, began: now.Add(-check)}.Wait(t.Context())
			return time.Since(now)
		}
		for check, want := range map[time.Duration]time.Duration{
			0:                      300 * time.Millisecond,
			250 * time.Millisecond: 50 * time.Millisecond,
			time.Second:            0,
		} {
			if got := waitAfter(check); got != want {
				t.Errorf("the wait after a check that took %v = %v, want %v", check, got, want)
			}
		}

		// The wait has a limit, ends when the request ends, and does not block other callers.
		h.pace.observe(work{"bcrypt", 1 << 12}, time.Hour)
		if got := waitAfter(0); got != maxWait {
			t.Errorf("the wait for a hash that takes an hour = %v, want %v", got, maxWait)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		go func() {
			if _, err := h.Verify(ctx, "", "fathom lantern"); err != nil {
				t.Errorf("Verify while another caller waits = %v, want success", err)
			}
		}()
		Attempt{of: h, began: began}.Wait(ctx)
		if got := time.Since(began); got != time.Second {
			t.Errorf("the wait in a request that ends after a second = %v, want one second", got)
		}

		// If no account has an imported hash, nothing waits.
		h.NextImported = accounts{}.next
		time.Sleep(formsFor + 1)
		if got := waitAfter(0); got != 0 {
			t.Errorf("the wait without imported hashes = %v, want none", got)
		}
	})
}

// TestWaitMeasures shows that the first refusal measures how long imported hashes take, even if the
// refused account has no such hash.
func TestWaitMeasures(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("fathom lantern"), 6)
	if err != nil {
		t.Fatal(err)
	}
	h := Weak(1)
	h.NextImported = accounts{string(hash)}.next

	attempt, err := h.Try(t.Context(), "", "fathom lantern")
	if err != nil || attempt.OK {
		t.Fatalf("Try without a hash = %v, %v, want false", attempt.OK, err)
	}
	attempt.Wait(t.Context())
	took, known := h.pace.of(work{"bcrypt", 1 << 6})
	if !known {
		t.Error("bcrypt was not measured")
	}
	if took == 0 {
		t.Error("bcrypt takes 0 s, want more")
	}
}
