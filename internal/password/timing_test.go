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
	all := accounts{
		"$argon2id$v=19$m=65536,t=1,p=4$c2FsdHNhbHQ$" + strings.Repeat("a", 43),
		"pbkdf2:sha256:1000$salt$" + key, "pbkdf2:sha256:260000$salt$" + key, "scrypt:16384:8:1$salt$" + key,
		"scrypt$one$4096$8$1$" + strings.Repeat("a", 44), "scrypt$two$4096$8$1$" + strings.Repeat("a", 44),
		"pbkdf2_sha1$5000$salt$" + strings.Repeat("a", 28),
	}
	for n := range 100 {
		all = append(all, bcryptOf(10, n), bcryptOf(12, n), bcryptOf(4, n),
			fmt.Sprintf("pbkdf2:sha256:1000$salt%02d$%s", n, key))
	}

	h, steps := New(1), 0
	h.NextImported = func(ctx context.Context, after string) (string, error) {
		steps++
		return all.next(ctx, after)
	}
	forms, err := h.imported(t.Context())
	got := slices.Sorted(maps.Values(forms))
	want := []string{"$2b$12$", "$argon2id$v=19$m=65536,t=1,p=4$", "pbkdf2:sha256:260000$", "pbkdf2_sha1$5000$",
		"scrypt:16384:8:1$"}
	if err != nil || !slices.EqualFunc(got, want, strings.HasPrefix) || steps != 10 {
		t.Errorf("imported = %q, %v in %d steps, want the beginnings %q in 10", got, err, steps, want)
	}
}

// TestPace shows how measurements affect the estimates.
func TestPace(t *testing.T) {
	p := newPace()
	w := func(amount int) work { return work{"bcrypt", amount} }
	want := func(what string, amount int, took time.Duration, known bool) {
		t.Helper()
		if got, ok := p.of(w(amount)); got.Round(time.Millisecond) != took || ok != known {
			t.Errorf("%s: of %d = %v, %v, want %v, %v", what, amount, got, ok, took, known)
		}
	}

	want("never measured", 1000, 0, false)
	p.observe(w(1000), 100*time.Millisecond)
	want("measured", 1000, 100*time.Millisecond, true)
	want("twice the work", 2000, 200*time.Millisecond, true)
	want("far more work", 4000, 400*time.Millisecond, false)

	p.observe(w(1000), 160*time.Millisecond)
	want("slower once", 1000, 160*time.Millisecond, true)
	p.observe(w(1000), 10*time.Millisecond)
	want("faster once", 1000, 150*time.Millisecond, true)
	p.observe(w(10), time.Second)
	want("little work", 1000, 150*time.Millisecond, true)
	p.observe(w(4000), 300*time.Millisecond)
	want("more work", 4000, 300*time.Millisecond, true)
}

// TestWait shows that all refused logins take the same time: the time of checking the slowest hash,
// plus a quarter. It does not matter which hash was checked, or whether the account exists.
func TestWait(t *testing.T) {
	const took, own = 240 * time.Millisecond, 30 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		h := Weak(1)
		h.NextImported = accounts{bcryptOf(12, 1), bcryptOf(4, 1)}.next
		h.pace.observe(work{"bcrypt", 1 << 12}, took)
		h.pace.observe(h.cost.work(), own)

		took := func(a Attempt) time.Duration {
			began := time.Now()
			a.Wait(t.Context())
			return time.Since(began)
		}
		if got := took(Attempt{of: h, began: time.Now()}); got != 300*time.Millisecond {
			t.Errorf("the wait after a check that took no time = %v, want 300 ms", got)
		}
		if got := took(Attempt{of: h, began: time.Now().Add(-250 * time.Millisecond)}); got != 50*time.Millisecond {
			t.Errorf("the wait after a check that took 250 ms = %v, want 50 ms", got)
		}
		if got := took(Attempt{of: h, began: time.Now().Add(-time.Second)}); got != 0 {
			t.Errorf("the wait after a check that took a second = %v, want none", got)
		}

		// The wait has a limit, ends when the request ends, and does not occupy a turn.
		h.pace.observe(work{"bcrypt", 1 << 12}, time.Hour)
		if got := took(Attempt{of: h, began: time.Now()}); got != maxWait {
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
		if got := took(Attempt{of: h, began: time.Now()}); got != 0 {
			t.Errorf("the wait without imported hashes = %v, want none", got)
		}
	})
}

// TestWaitMeasures shows that the first refusal measures how long imported hashes take, even if the
// refused account has no such hash.
func TestWaitMeasures(t *testing.T) {
	made, err := bcrypt.GenerateFromPassword([]byte("fathom lantern"), 6)
	if err != nil {
		t.Fatal(err)
	}
	h := Weak(1)
	h.NextImported = accounts{string(made)}.next

	a, err := h.Try(t.Context(), "", "fathom lantern")
	if a.OK || err != nil {
		t.Fatalf("Try without a hash = %v, %v, want false", a.OK, err)
	}
	a.Wait(t.Context())
	if took, known := h.pace.of(work{"bcrypt", 1 << 6}); !known || took == 0 {
		t.Errorf("bcrypt takes %v, known %v, want it measured", took, known)
	}
}
