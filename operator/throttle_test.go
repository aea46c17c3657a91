package operator_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/problem"
	sessions "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// A guarded world counts login attempts in a real session store.
type guarded struct {
	world
	rows  *store.Store
	ahead atomic.Int64
}

func (w *guarded) clock() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// newGuarded returns a world that limits login attempts to the given rates.
func newGuarded(t *testing.T, rates limit.Rates) *guarded {
	t.Helper()
	w := &guarded{}
	dir := storetest.Dir(t)
	w.rows = storetest.Open(t, dir, w.clock)
	live, err := sessions.Open(t.Context(), sessions.Config{Dir: dir, Now: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = live.Close() })
	w.Operators = operator.New(operator.Config{
		Store:     w.rows,
		Passwords: password.Weak(2),
		Limits:    limit.New(live, rates),
		Sessions:  live,
		Now:       w.clock,
	})
	return w
}

// refusals returns the number of refused logins for each reason and limit.
func (w *guarded) refusals(t *testing.T) map[string]int {
	t.Helper()
	found, err := w.rows.ListAudit(t.Context(), audit.Filter{Action: "login", Outcome: audit.Refused},
		page.Query{Size: 500})
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, e := range found.Items {
		counts[e.Detail["reason"]+" "+e.Detail["limit"]]++
	}
	return counts
}

func (w *guarded) signIn(email, secret, network string) error {
	_, _, err := w.SignIn(context.Background(), email, secret, operator.Visitor{Network: network}, nil)
	return err
}

// wantError fails the test unless err is want. what describes the call that returned err.
func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v", what, err, want)
	}
}

// TestGuesses shows that a limited number of passwords is checked, no matter how many requests
// arrive at the same time. A known network is not locked out. Exceeded limits are recorded at most
// once a minute.
func TestGuesses(t *testing.T) {
	w := newGuarded(t, limit.Rates{
		limit.LoginPerAccount: limit.Of(4, time.Hour),
		limit.LoginPerDevice:  limit.Of(4, time.Hour),
	})
	const known, elsewhere = "192.0.2.1", "203.0.113.9"

	o := w.create(t, "ann@example.com", owner)
	wantError(t, "the first login", w.signIn(o.Email, good, known), nil)

	// Concurrently guess the passwords of a known and an unknown account, from many networks.
	for _, email := range []string{o.Email, "nobody@example.com"} {
		var checked atomic.Int64
		var guesses sync.WaitGroup
		for i := range 20 {
			guesses.Go(func() {
				err := w.signIn(email, "wrong", fmt.Sprintf("198.51.%d.7", i))
				if errors.Is(err, problem.Unauthenticated) {
					checked.Add(1)
				}
			})
		}
		guesses.Wait()
		if checked.Load() != 4 {
			t.Errorf("%d guesses for %s were checked, want 4", checked.Load(), email)
		}
	}

	refusals := w.refusals(t)
	if n := refusals["wrong email or password "]; n != 8 {
		t.Errorf("the audit trail has %d guesses, want 8: %v", n, refusals)
	}
	if n := refusals["too many tries login_per_account"]; n != 2 {
		t.Errorf("the audit trail has %d refusals for too many tries, want one per account: %v", n, refusals)
	}

	// The account is locked, except for the known network.
	wantError(t, "the right password from elsewhere", w.signIn(o.Email, good, elsewhere), problem.RateLimited)
	wantError(t, "the right password from the known network", w.signIn(o.Email, good, known), nil)

	w.ahead.Add(int64(2 * time.Minute))
	wantError(t, "another attempt", w.signIn(o.Email, good, elsewhere), problem.RateLimited)
	if got := w.refusals(t)["too many tries login_per_account"]; got != 3 {
		t.Errorf("after two minutes, the audit trail has %d refusals for too many tries, want 3", got)
	}

	// The known network has its own limit.
	for range 4 {
		refused := w.signIn(o.Email, "wrong", known)
		wantError(t, "a wrong password from the known network", refused, problem.Unauthenticated)
	}
	wantError(t, "one more attempt from the known network", w.signIn(o.Email, good, known), problem.RateLimited)

	w.ahead.Add(int64(15 * time.Minute))
	wantError(t, "a quarter of an hour later", w.signIn(o.Email, good, known), nil)
}

// TestKnownPlace shows that a network becomes known only after a login from it has passed all
// required factors. If a second factor is set up, the password alone is not enough.
func TestKnownPlace(t *testing.T) {
	w := newGuarded(t, limit.Rates{limit.LoginPerAccount: limit.Of(2, time.Hour)})
	o := w.create(t, "ann@example.com", owner)
	from := operator.Visitor{Network: "192.0.2.1"}

	needsFactor := func(operator.Operator) (bool, error) { return true, nil }
	s, _, err := w.SignIn(t.Context(), o.Email, good, from, needsFactor)
	wantError(t, "SignIn", err, nil)
	if w.KnowsPlace(t.Context(), o, from) {
		t.Error("a password alone makes a network known")
	}

	_, _, err = w.Raise(t.Context(), o, s, from, "otp")
	wantError(t, "Raise", err, nil)
	if !w.KnowsPlace(t.Context(), o, from) {
		t.Error("a login with both factors does not make its network known")
	}
	for _, other := range []operator.Visitor{{Network: "192.0.2.2"}, {}} {
		if w.KnowsPlace(t.Context(), o, other) {
			t.Errorf("the network %q is known, want only that of the login", other.Network)
		}
	}
}

// TestSprayingFromRange shows that a whole IPv6 /48 or IPv4 /24 gets fewer attempts than its
// networks would get in total.
func TestSprayingFromRange(t *testing.T) {
	w := newGuarded(t, limit.Rates{
		limit.LoginPerNetwork: limit.Of(3, time.Hour),
		limit.LoginPerRange:   limit.Of(10, time.Hour),
	})

	for _, tt := range []struct{ pattern, elsewhere string }{
		{pattern: "2001:db8:1:%d::/64", elsewhere: "2001:db8:2:1::/64"},
		{pattern: "198.51.100.%d", elsewhere: "198.51.101.1"},
	} {
		checked := 0
		for i := range 60 {
			email, network := fmt.Sprintf("person%d@example.com", i), fmt.Sprintf(tt.pattern, i/3)
			err := w.signIn(email, "Summer2026!", network)
			if errors.Is(err, problem.Unauthenticated) {
				checked++
			}
		}
		if checked != 10 {
			t.Errorf("%d passwords from networks like %s were checked, want 10", checked, tt.pattern)
		}

		err := w.signIn("ann@example.com", "wrong", tt.elsewhere)
		wantError(t, "a guess from another range", err, problem.Unauthenticated)
	}

	refusals := w.refusals(t)
	if n := refusals["too many tries login_per_range"]; n != 2 {
		t.Errorf("the audit trail has %d events about a range, want one for each of two: %v", n, refusals)
	}
}

// TestRefusedFactors shows that rejected second-factor codes are recorded, and that too many
// attempts are recorded once a minute.
func TestRefusedFactors(t *testing.T) {
	w := newGuarded(t, nil)
	o := w.create(t, "ann@example.com", owner)
	wrongCode := problem.New(problem.Invalid, "wrong_code", "")
	tooMany := problem.New(problem.RateLimited, "too_many_codes", "")
	for range 3 {
		wantError(t, "RefuseFactor", w.RefuseFactor(t.Context(), o, wrongCode), nil)
		wantError(t, "RefuseFactor", w.RefuseFactor(t.Context(), o, tooMany), nil)
	}

	refusals := w.refusals(t)
	if n := refusals["wrong_code "]; n != 3 {
		t.Errorf("the audit trail has %d wrong codes, want 3: %v", n, refusals)
	}
	if n := refusals["too many tries too_many_codes"]; n != 1 {
		t.Errorf("the audit trail has %d refusals for too many tries, want 1: %v", n, refusals)
	}
}
