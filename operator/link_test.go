package operator_test

import (
	"errors"
	"testing"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// TestFirstLink shows that the link for the first operator creates an owner, whatever role is
// requested. The link works only once.
func TestFirstLink(t *testing.T) {
	ctx, w := t.Context(), newWorld(t)
	_, token, err := w.First(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.First(ctx); !errors.Is(err, problem.Conflict) {
		t.Errorf("First again = %v, want a conflict", err)
	}

	email, weak := "ann@example.com", "password"
	_, err = w.Use(ctx, token, operator.Input{Email: &email, Password: &weak})
	if !errors.Is(err, problem.Invalid) {
		t.Errorf("Use with a weak password = %v, want invalid", err)
	}

	secret := good
	input := operator.Input{Email: &email, Password: &secret, Roles: []operator.Membership{{Role: operator.Viewer}}}
	first, err := w.Use(ctx, token, input)
	if err != nil {
		t.Fatalf("Use = %v", err)
	}
	if role := first.In(""); role != operator.Owner {
		t.Errorf("the first operator has the role %q, want %q", role, operator.Owner)
	}

	input.Roles = nil
	if _, err := w.Use(ctx, token, input); !errors.Is(err, problem.NotFound) {
		t.Errorf("Use again = %v, want not found", err)
	}
}

// TestInvitation shows that an invited person cannot change the email or the role in the
// invitation, and that the link of an invitation expires.
func TestInvitation(t *testing.T) {
	ctx, d := t.Context(), newDesk(t)
	_, token, err := d.Invite(ctx, "bob@example.com", operator.Membership{Role: operator.Viewer}, d.ann.Email)
	if err != nil {
		t.Fatal(err)
	}
	other, secret := "mallory@example.com", good
	bob, err := d.Use(ctx, token, operator.Input{Email: &other, Password: &secret, Roles: []operator.Membership{owner}})
	if err != nil {
		t.Fatalf("Use of an invitation with a different email and role = %v", err)
	}
	if bob.Email != "bob@example.com" {
		t.Errorf("the invited operator has the email %q, want bob@example.com", bob.Email)
	}
	if role := bob.In(""); role != operator.Viewer {
		t.Errorf("the invited operator has the role %q, want %q", role, operator.Viewer)
	}

	_, late, err := d.Invite(ctx, "", operator.Membership{Role: operator.Viewer}, "")
	if err != nil {
		t.Fatal(err)
	}
	d.now = d.now.Add(operator.LinkLife)
	_, err = d.Use(ctx, late, operator.Input{Email: &other, Password: &secret})
	if !errors.Is(err, problem.NotFound) {
		t.Errorf("Use of an expired link = %v, want not found", err)
	}
}

// TestRecover shows that a recovery link sets a new password and ends all existing sessions.
func TestRecover(t *testing.T) {
	ctx, d := t.Context(), newDesk(t)
	_, cookie := d.begin()
	_, token, err := d.Recover(ctx, d.ann.Email, "")
	if err != nil {
		t.Fatal(err)
	}

	next := "another loom of one's own"
	recovered, err := d.Use(ctx, token, operator.Input{Password: &next})
	if err != nil {
		t.Fatalf("Use of a recovery link = %v", err)
	}
	if recovered.ID != d.ann.ID {
		t.Errorf("Use of a recovery link returned the operator %s, want %s", recovered.ID, d.ann.ID)
	}
	if role := recovered.In(""); role != operator.Owner {
		t.Errorf("the operator has the role %q after the recovery, want %q", role, operator.Owner)
	}
	if _, _, err := d.Open(ctx, cookie); !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("a session from before the new password: Open = %v, want unauthenticated", err)
	}
}

// TestRenewAndWithdraw shows that renewing an invitation invalidates its previous link, and that
// withdrawing an invitation invalidates its link.
func TestRenewAndWithdraw(t *testing.T) {
	ctx, d := t.Context(), newDesk(t)
	invited, before, err := d.Invite(ctx, "eve@example.com", operator.Membership{Role: operator.Viewer}, d.ann.Email)
	if err != nil {
		t.Fatal(err)
	}

	renewed, after, err := d.Renew(ctx, invited.ID, d.ann.Email)
	if err != nil {
		t.Fatal(err)
	}
	if renewed.Email != invited.Email {
		t.Errorf("the renewed invitation has the email %q, want %q", renewed.Email, invited.Email)
	}
	if renewed.Role != invited.Role {
		t.Errorf("the renewed invitation has the role %q, want %q", renewed.Role, invited.Role)
	}
	if _, err := d.FindLink(ctx, before); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindLink of a renewed link = %v, want not found", err)
	}
	if _, err := d.FindLink(ctx, after); err != nil {
		t.Errorf("FindLink of the new link = %v", err)
	}

	if _, err := d.Withdraw(ctx, renewed.ID); err != nil {
		t.Errorf("Withdraw = %v", err)
	}
	if _, err := d.FindLink(ctx, after); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindLink of a withdrawn link = %v, want not found", err)
	}
}
