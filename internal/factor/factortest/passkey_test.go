package factortest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/problem"
)

// passkey creates a passkey for o.
func (w *world) passkey(t *testing.T, o factor.Owner, a *factortest.Authenticator) factor.Passkey {
	t.Helper()
	options, err := w.BeginPasskey(t.Context(), o, "flow", "ada@example.com", "Ada")
	must(t, err)
	p, err := w.CreatePasskey(t.Context(), o, false, "flow", " Laptop ", a.Create(options))
	must(t, err)
	return p
}

// logIn uses a passkey, which must belong to o unless o is nil.
func (w *world) logIn(t *testing.T, o *factor.Owner, a *factortest.Authenticator) (factor.Passkey, error) {
	t.Helper()
	options, err := w.BeginLogin(t.Context(), "login", o)
	must(t, err)
	return w.CheckPasskey(t.Context(), "login", a.Get(options))
}

func TestPasskey(t *testing.T) {
	w := newWorld(t, nil)
	device := &factortest.Authenticator{Origin: origin, Counts: true}
	made := w.passkey(t, w.ada, device)
	if made.Name != "Laptop" || made.Synced || made.AMR()[0] != "hwk" {
		t.Errorf("the new passkey is %+v, want the Laptop, not synced", made)
	}

	for _, o := range []*factor.Owner{nil, &w.ada} {
		p, err := w.logIn(t, o, device)
		if err != nil || p.Owner != w.ada || p.ID != made.ID {
			t.Errorf("logging in (owner named: %v) = %+v, %v, want ada's passkey", o != nil, p, err)
		}
	}

	all, err := w.rows.ListPasskeys(t.Context(), w.ada)
	must(t, err)
	if len(all) != 1 || all[0].Count != 2 || all[0].Used.IsZero() {
		t.Errorf("the stored passkey is %+v, want one that was used twice", all)
	}

	synced := w.passkey(t, w.ada, &factortest.Authenticator{Origin: origin, Synced: true})
	if !synced.BackedUp || synced.AMR()[0] != "swk" {
		t.Errorf("a synced passkey: %+v, want it backed up", synced)
	}
}

func TestPasskeyRefused(t *testing.T) {
	w := newWorld(t, nil)
	mine, theirs := &factortest.Authenticator{Origin: origin, Counts: true}, &factortest.Authenticator{Origin: origin}
	w.passkey(t, w.ada, mine)
	w.passkey(t, w.grace, theirs)
	unknown := &factortest.Authenticator{Origin: origin}
	unknown.Create([]byte(`{"challenge":"","user":{"id":""}}`))

	tests := []struct {
		name   string
		owner  *factor.Owner
		device *factortest.Authenticator
		lie    func(a *factortest.Authenticator)
		want   error
	}{
		{"a different origin", nil, mine, func(a *factortest.Authenticator) {
			a.Origin = "https://id.example.evil.example"
		}, factor.ErrRefused},
		{"a different port", nil, mine, func(a *factortest.Authenticator) { a.Origin = origin + ":8443" },
			factor.ErrRefused},
		{"without TLS", nil, mine, func(a *factortest.Authenticator) { a.Origin = "http://id.example" },
			factor.ErrRefused},
		{"another relying party", nil, mine, func(a *factortest.Authenticator) { a.RPID = "example" },
			factor.ErrRefused},
		{"no user verification", nil, mine, func(a *factortest.Authenticator) { a.Unverified = true },
			factor.ErrRefused},
		{"another owner's user handle", nil, mine, func(a *factortest.Authenticator) {
			a.Handle = []byte(w.grace.String())
		}, factor.ErrRefused},
		{"no user handle", nil, mine, func(a *factortest.Authenticator) { a.Handle = []byte{} }, factor.ErrRefused},
		{"unknown here", nil, unknown, nil, factor.ErrUnknown},
		{"another owner's", &w.ada, theirs, nil, factor.ErrRefused},
		{"become backed up", nil, mine, func(a *factortest.Authenticator) { a.Synced = true }, factor.ErrRefused},
	}

	for _, tt := range tests {
		lying := *tt.device
		if tt.lie != nil {
			tt.lie(&lying)
		}
		if p, err := w.logIn(t, tt.owner, &lying); !errors.Is(err, tt.want) {
			t.Errorf("%s: %+v, %v, want %v", tt.name, p, err, tt.want)
		}
	}

	// A copy of the passkey with an older counter is refused. The original still works.
	copied := *mine
	if _, err := w.logIn(t, nil, mine); err != nil {
		t.Fatalf("the original: %v, want success", err)
	}
	if _, err := w.logIn(t, nil, &copied); !errors.Is(err, factor.ErrCloned) {
		t.Errorf("a copy whose counter is behind: %v, want ErrCloned", err)
	}
	if _, err := w.logIn(t, nil, mine); err != nil {
		t.Errorf("the original after the copy: %v, want success", err)
	}
}

// TestPasskeyChallenges shows that a challenge is valid in only one flow, and only once.
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

	if won := race(
		func() error { _, err := w.CheckPasskey(context.Background(), "one", answer); return err }); won != 1 {
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
		t.Errorf("a registration of another flow: %v, want ErrStale", err)
	}

	options, err = w.BeginPasskey(ctx, w.ada, "mine", "a", "A")
	must(t, err)
	other.Unverified = true
	if _, err := w.CreatePasskey(ctx, w.ada, false, "mine", "",
		other.Create(options)); !errors.Is(err, factor.ErrRefused) {
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
	all, err := w.List(ctx, w.ada)
	must(t, err)
	if len(all) != 3 || all[0].Name != "Phone" || all[1].Type != factor.TypeTOTP || all[2].Left != factor.CodeCount {
		t.Fatalf("the list is %+v, want the passkey Phone, the app and all recovery codes", all)
	}

	for _, f := range all[:2] {
		if err := w.Remove(ctx, w.grace, f.ID); !errors.Is(err, problem.NotFound) {
			t.Errorf("another owner removes a %s: %v, want NotFound", f.Type, err)
		}
	}
	if err := w.Rename(ctx, w.grace, p.ID, "Mine"); !errors.Is(err, problem.NotFound) {
		t.Errorf("another owner renames a passkey: %v, want NotFound", err)
	}

	must(t, w.Remove(ctx, w.ada, all[0].ID))
	must(t, w.Remove(ctx, w.ada, all[1].ID))
	if left, err := w.List(ctx, w.ada); err != nil || len(left) != 0 {
		t.Errorf("remaining factors: %+v, %v, want none, not even recovery codes", left, err)
	}
}

func TestNoHostName(t *testing.T) {
	w := newWorld(t, func(c *factor.Config) { c.AuthURL = "http://127.0.0.1:8080" })
	if w.Passkeys() {
		t.Error("a host without a name has passkeys")
	}
	if _, err := w.BeginLogin(t.Context(), "login", nil); !errors.Is(err, factor.ErrNone) {
		t.Errorf("beginning a login: %v, want ErrNone", err)
	}
}
