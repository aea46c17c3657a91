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
	w.Operators = operator.New(operator.Config{Store: w.rows, Passwords: password.Weak(2),
		Limits: limit.New(live, rates), Sessions: live, Now: w.clock})
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
	n := map[string]int{}
	for _, e := range found.Items {
		n[e.Detail["reason"]+" "+e.Detail["limit"]]++
	}
	return n
}

func (w *guarded) signIn(email, secret, network string) error {
	_, _, err := w.SignIn(context.Background(), email, secret, operator.Visitor{Network: network}, nil)
	return err
}

func is(t *testing.T, doing string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v", doing, err, want)
	}
}

// TestGuesses shows that a limited number of passwords is checked, no matter how many requests
// arrive at the same time. A known network is not locked out. Exceeded limits are recorded once a
// minute.
func TestGuesses(t *testing.T) {
	w := newGuarded(t, limit.Rates{limit.LoginPerAccount: limit.Of(4, time.Hour),
		limit.LoginPerDevice: limit.Of(4, time.Hour)})

	o := w.create(t, "ann@example.com", owner)
	is(t, "the first login", w.signIn(o.Email, good, "192.0.2.1"), nil)

	// Concurrently guess the passwords of a known and an unknown account, from many networks.
	for _, email := range []string{o.Email, "nobody@example.com"} {
		var looked atomic.Int64
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if errors.Is(w.signIn(email, "wrong", fmt.Sprintf("198.51.%d.7", i)), problem.Unauthenticated) {
					looked.Add(1)
				}
			})
		}
		wg.Wait()
		if looked.Load() != 4 {
			t.Errorf("%d guesses for %s were checked, want 4", looked.Load(), email)
		}
	}

	if got := w.refusals(t); got["wrong email or password "] != 8 || got["too many tries login_per_account"] != 2 {
		t.Errorf("the audit trail has %v, want 8 guesses and one refusal per account for too many tries", got)
	}

	// The account is locked, except for the known network.
	is(t, "the right password from elsewhere", w.signIn(o.Email, good, "203.0.113.9"), problem.RateLimited)
	is(t, "the right password from the known network", w.signIn(o.Email, good, "192.0.2.1"), nil)

	w.ahead.Add(int64(2 * time.Minute))
	is(t, "another attempt", w.signIn(o.Email, good, "203.0.113.9"), problem.RateLimited)
	if got := w.refusals(t)["too many tries login_per_account"]; got != 3 {
		t.Errorf("after two minutes, the audit trail has %d refusals for too many tries, want 3", got)
	}

	// The known network has its own limit.
	for range 4 {
		is(t, "a wrong password there", w.signIn(o.Email, "wrong", "192.0.2.1"), problem.Unauthenticated)
	}
	is(t, "one more attempt from the known network", w.signIn(o.Email, good, "192.0.2.1"), problem.RateLimited)

	w.ahead.Add(int64(15 * time.Minute))
	is(t, "a quarter of an hour later", w.signIn(o.Email, good, "192.0.2.1"), nil)
}

// TestKnownPlace shows that a network becomes known only after a login from it has passed all
// required factors. If a second factor is set up, the password alone is not enough.
func TestKnownPlace(t *testing.T) {
	w := newGuarded(t, limit.Rates{limit.LoginPerAccount: limit.Of(2, time.Hour)})
	o := w.create(t, "ann@example.com", owner)
	from := operator.Visitor{Network: "192.0.2.1"}

	s, _, err := w.SignIn(t.Context(), o.Email, good, from, func(operator.Operator) (bool, error) {
		return true, nil
	})
	is(t, "SignIn", err, nil)
	if w.KnowsPlace(t.Context(), o, from) {
		t.Error("a password alone makes a network known")
	}

	_, _, err = w.Raise(t.Context(), o, s, from, "otp")
	is(t, "Raise", err, nil)
	if !w.KnowsPlace(t.Context(), o, from) ||
		w.KnowsPlace(t.Context(), o, operator.Visitor{Network: "192.0.2.2"}) ||
		w.KnowsPlace(t.Context(), o, operator.Visitor{}) {
		t.Error("want the login's network known and no other")
	}
}

// TestSprayingFromRange shows that a whole IPv6 /48 or IPv4 /24 gets fewer attempts than its
// networks would get in total.
func TestSprayingFromRange(t *testing.T) {
	w := newGuarded(t, limit.Rates{limit.LoginPerNetwork: limit.Of(3, time.Hour),
		limit.LoginPerRange: limit.Of(10, time.Hour)})

	for _, tt := range []struct{ pattern, elsewhere string }{{"2001:db8:1:%d::/64", "2001:db8:2:1::/64"},
		{"198.51.100.%d", "198.51.101.1"}} {
		looked := 0
		for i := range 60 {
			if errors.Is(w.signIn(fmt.Sprintf("person%d@example.com", i), "Summer2026!",
				fmt.Sprintf(tt.pattern, i/3)), problem.Unauthenticated) {
				looked++
			}
		}

		if looked != 10 {
			t.Errorf("%d passwords from networks like %s were checked, want 10", looked, tt.pattern)
		}
		is(t, "a guess from another range", w.signIn("ann@example.com", "wrong", tt.elsewhere),
			problem.Unauthenticated)
	}

	if got := w.refusals(t); got["too many tries login_per_range"] != 2 {
		t.Errorf("the audit trail has %v, want one event for each range", got)
	}
}

// TestRefusedFactors shows that rejected second-factor codes are recorded, and that too many
// attempts are recorded once a minute.
func TestRefusedFactors(t *testing.T) {
	w := newGuarded(t, nil)
	o := w.create(t, "ann@example.com", owner)

	for range 3 {
		is(t, "RefuseFactor", w.RefuseFactor(t.Context(), o, problem.New(problem.Invalid, "wrong_code", "")), nil)
		is(t, "RefuseFactor", w.RefuseFactor(t.Context(), o,
			problem.New(problem.RateLimited, "too_many_codes", "")), nil)
	}

	if got := w.refusals(t); got["wrong_code "] != 3 || got["too many tries too_many_codes"] != 1 {
		t.Errorf("the audit trail has %v, want 3 wrong codes and one refusal for too many tries", got)
	}
}
