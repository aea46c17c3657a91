package factortest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/problem"
)

// passkey creates a passkey for an owner.
func (w *world) passkey(t *testing.T, owner factor.Owner, a *factortest.Authenticator) factor.Passkey {
	t.Helper()
	options, err := w.BeginPasskey(t.Context(), owner, "flow", "ada@example.com", "Ada")
	must(t, err)
	passkey, err := w.CreatePasskey(t.Context(), owner, false, "flow", " Laptop ", a.Create(options))
	must(t, err)
	return passkey
}

// logIn logs in with a passkey. If owner is not nil, the passkey must belong to this owner.
func (w *world) logIn(t *testing.T, owner *factor.Owner, a *factortest.Authenticator) (factor.Passkey, error) {
	t.Helper()
	options, err := w.BeginLogin(t.Context(), "login", owner)
	must(t, err)
	return w.CheckPasskey(t.Context(), "login", a.Get(options))
}

func TestPasskey(t *testing.T) {
	w := newWorld(t, nil)
	device := &factortest.Authenticator{Origin: origin, Counts: true}
	made := w.passkey(t, w.ada, device)
	if made.Name != "Laptop" {
		t.Errorf("the name is %q, want Laptop", made.Name)
	}
	if made.Synced {
		t.Error("the passkey is synced, want one that is bound to the device")
	}
	if amr := made.AMR()[0]; amr != "hwk" {
		t.Errorf("the first authentication method is %q, want hwk", amr)
	}

	for name, owner := range map[string]*factor.Owner{"without an owner": nil, "as ada": &w.ada} {
		used, err := w.logIn(t, owner, device)
		if err != nil {
			t.Fatalf("logging in %s: %v", name, err)
		}
		if used.Owner != w.ada {
			t.Errorf("logging in %s returns the owner %v, want %v", name, used.Owner, w.ada)
		}
		if used.ID != made.ID {
			t.Errorf("logging in %s returns the passkey %s, want %s", name, used.ID, made.ID)
		}
	}

	stored, err := w.rows.ListPasskeys(t.Context(), w.ada)
	must(t, err)
	if len(stored) != 1 {
		t.Fatalf("ada has %d passkeys, want 1", len(stored))
	}
	if stored[0].Count != 2 {
		t.Errorf("the stored counter is %d, want 2, one for each login", stored[0].Count)
	}
	if stored[0].Used.IsZero() {
		t.Error("the stored passkey was never used, want the time of the last login")
	}
}

func TestSyncedPasskey(t *testing.T) {
	w := newWorld(t, nil)
	synced := w.passkey(t, w.ada, &factortest.Authenticator{Origin: origin, Synced: true})
	if !synced.BackedUp {
		t.Errorf("the passkey is %+v, want it backed up", synced)
	}
	if amr := synced.AMR()[0]; amr != "swk" {
		t.Errorf("the first authentication method is %q, want swk", amr)
	}
}

func TestPasskeyRefused(t *testing.T) {
	w := newWorld(t, nil)
	device := &factortest.Authenticator{Origin: origin, Counts: true}
	w.passkey(t, w.ada, device)

	for name, lie := range map[string]func(a *factortest.Authenticator){
		"a different origin": func(a *factortest.Authenticator) {
			a.Origin = "https://id.example.evil.example"
		},
		"a different port":            func(a *factortest.Authenticator) { a.Origin = origin + ":8443" },
		"without TLS":                 func(a *factortest.Authenticator) { a.Origin = "http://id.example" },
		"a different relying party":   func(a *factortest.Authenticator) { a.RPID = "example" },
		"no user verification":        func(a *factortest.Authenticator) { a.Unverified = true },
		"another owner's user handle": func(a *factortest.Authenticator) { a.Handle = []byte(w.grace.String()) },
		"no user handle":              func(a *factortest.Authenticator) { a.Handle = []byte{} },
		"a new backup state":          func(a *factortest.Authenticator) { a.Synced = true },
	} {
		lying := *device
		lie(&lying)
		if p, err := w.logIn(t, nil, &lying); !errors.Is(err, factor.ErrRefused) {
			t.Errorf("%s: logging in = %+v, %v, want ErrRefused", name, p, err)
		}
	}

	unknown := &factortest.Authenticator{Origin: origin}
	unknown.Create([]byte(`{"challenge":"","user":{"id":""}}`))
	if p, err := w.logIn(t, nil, unknown); !errors.Is(err, factor.ErrUnknown) {
		t.Errorf("logging in with an unknown passkey = %+v, %v, want ErrUnknown", p, err)
	}

	others := &factortest.Authenticator{Origin: origin}
	w.passkey(t, w.grace, others)
	if p, err := w.logIn(t, &w.ada, others); !errors.Is(err, factor.ErrRefused) {
		t.Errorf("logging in with another owner's passkey = %+v, %v, want ErrRefused", p, err)
	}
}

// TestClonedPasskey shows that a copy of a passkey with an older counter is refused, and that the
// original still works.
func TestClonedPasskey(t *testing.T) {
	w := newWorld(t, nil)
	original := &factortest.Authenticator{Origin: origin, Counts: true}
	w.passkey(t, w.ada, original)
	clone := *original
	if _, err := w.logIn(t, nil, original); err != nil {
		t.Fatalf("the original: %v, want success", err)
	}
	if _, err := w.logIn(t, nil, &clone); !errors.Is(err, factor.ErrCloned) {
		t.Errorf("a copy whose counter is behind: %v, want ErrCloned", err)
	}
	if _, err := w.logIn(t, nil, original); err != nil {
		t.Errorf("the original after the copy: %v, want success", err)
	}
}

// TestPasskeyChallenges shows that a challenge is valid in only one flow, only for the owner who began it,
// and only once.
func TestPasskeyChallenges(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	device := &factortest.Authenticator{Origin: origin}
	w.passkey(t, w.ada, device)
	options, err := w.BeginLogin(ctx, "one", nil)
	must(t, err)
	answer := device.Get(options)
	_, err = w.BeginLogin(ctx, "two", nil)
	must(t, err)
	if _, err := w.CheckPasskey(ctx, "two", answer); !errors.Is(err, factor.ErrRefused) {
		t.Errorf("the answer to another flow's challenge: %v, want ErrRefused", err)
	}

	won := race(func() error {
		_, err := w.CheckPasskey(context.Background(), "one", answer)
		return err
	})
	if won != 1 {
		t.Errorf("%d of 50 callers succeeded with one answer, want 1", won)
	}
	if _, err := w.CheckPasskey(ctx, "one", answer); !errors.Is(err, factor.ErrStale) {
		t.Errorf("the same answer again: %v, want ErrStale", err)
	}

	options, err = w.BeginPasskey(ctx, w.ada, "mine", "a", "A")
	must(t, err)
	other := &factortest.Authenticator{Origin: origin}
	answer = other.Create(options)
	if _, err := w.CreatePasskey(ctx, w.grace, false, "mine", "", answer); !errors.Is(err, factor.ErrStale) {
		t.Errorf("a registration by an owner who did not begin it: %v, want ErrStale", err)
	}

	options, err = w.BeginPasskey(ctx, w.ada, "mine", "a", "A")
	must(t, err)
	other.Unverified = true
	answer = other.Create(options)
	if _, err := w.CreatePasskey(ctx, w.ada, false, "mine", "", answer); !errors.Is(err, factor.ErrRefused) {
		t.Errorf("a registration without user verification: %v, want ErrRefused", err)
	}
}

func TestListAndRemove(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	p := w.passkey(t, w.ada, &factortest.Authenticator{Origin: origin})
	w.app(t, w.ada)
	_, err := w.NewCodes(ctx, w.ada)
	must(t, err)
	must(t, w.Rename(ctx, w.ada, p.ID, "Phone"))
	factors, err := w.List(ctx, w.ada)
	must(t, err)
	if len(factors) != 3 {
		t.Fatalf("ada has %d factors, want 3: %+v", len(factors), factors)
	}
	passkey, app, codes := factors[0], factors[1], factors[2]
	if passkey.Name != "Phone" {
		t.Errorf("the name of the passkey is %q, want Phone", passkey.Name)
	}
	if app.Type != factor.TypeTOTP {
		t.Errorf("the type of the second factor is %s, want %s", app.Type, factor.TypeTOTP)
	}
	if codes.Left != factor.CodeCount {
		t.Errorf("%d recovery codes are left, want %d", codes.Left, factor.CodeCount)
	}

	for _, f := range factors[:2] {
		if err := w.Remove(ctx, w.grace, f.ID); !errors.Is(err, problem.NotFound) {
			t.Errorf("another owner removes a %s: %v, want problem.NotFound", f.Type, err)
		}
	}
	if err := w.Rename(ctx, w.grace, p.ID, "Mine"); !errors.Is(err, problem.NotFound) {
		t.Errorf("another owner renames a passkey: %v, want problem.NotFound", err)
	}

	must(t, w.Remove(ctx, w.ada, passkey.ID))
	must(t, w.Remove(ctx, w.ada, app.ID))
	if left, err := w.List(ctx, w.ada); err != nil || len(left) != 0 {
		t.Errorf("remaining factors: %+v, %v, want none, not even recovery codes", left, err)
	}
}

func TestNoHostName(t *testing.T) {
	w := newWorld(t, func(c *factor.Config) { c.AuthURL = "http://127.0.0.1:8080" })
	if w.Passkeys() {
		t.Error("passkeys are offered at an IP address, want none without a host name")
	}
	if _, err := w.BeginLogin(t.Context(), "login", nil); !errors.Is(err, factor.ErrNone) {
		t.Errorf("beginning a login: %v, want ErrNone", err)
	}
}
