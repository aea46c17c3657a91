package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/store/storetest"
)

// A world holds Operators on a real store, with its own clock.
type world struct {
	*operator.Operators
	now time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	w.Operators = operator.New(operator.Config{Store: storetest.Rows(t), Now: func() time.Time { return w.now }})
	return w
}

const good = "a loom of one's own"

func (w *world) create(t *testing.T, email string, roles ...operator.Membership) operator.Operator {
	t.Helper()
	secret := good
	o, err := w.Create(context.Background(), operator.Input{Email: &email, Password: &secret, Roles: roles})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var owner = operator.Membership{Role: operator.Owner}

// TestRoles shows the permissions of each role, in its own project and in others.
func TestRoles(t *testing.T) {
	may := func(roles ...operator.Membership) string {
		var is []string
		o := operator.Operator{Roles: roles}
		for _, a := range operator.Actions() {
			switch err := o.Check(a, "here"); {
			case err == nil:
				is = append(is, string(a))
			case errors.Is(err, problem.NotFound):
				is = append(is, "-")
			}
		}
		return strings.Join(is, " ")
	}

	in := func(r operator.Role) operator.Membership { return operator.Membership{ProjectID: "here", Role: r} }
	all := func(r operator.Role) operator.Membership { return operator.Membership{Role: r} }

	tests := []struct {
		roles []operator.Membership
		want  string
	}{
		{[]operator.Membership{all(operator.Owner)},
			"read write delete_project make_project keep_operators keep_ring keep_backups"},
		{[]operator.Membership{all(operator.Admin)}, "read write"},
		{[]operator.Membership{all(operator.Viewer)}, "read"},
		{[]operator.Membership{in(operator.Owner)}, "read write delete_project"},
		{[]operator.Membership{in(operator.Admin)}, "read write"},
		{[]operator.Membership{in(operator.Viewer)}, "read"},
		{[]operator.Membership{all(operator.Viewer), in(operator.Admin)}, "read write"},
		{[]operator.Membership{all(operator.Admin), in(operator.Viewer)}, "read write"},
		{[]operator.Membership{{ProjectID: "there", Role: operator.Owner}}, "- - -"},
		{nil, "- - -"},
	}

	for _, tt := range tests {
		if got := may(tt.roles...); got != tt.want {
			t.Errorf("%v may %q, want %q", tt.roles, got, tt.want)
		}
	}
}

// TestCreate shows that emails are normalized and unique, and that weak passwords are refused.
func TestCreate(t *testing.T) {
	w := newWorld(t)
	o := w.create(t, " Ann@EXAMPLE.com", owner)
	if got, err := w.Find(context.Background(), "aNN@example.com"); err != nil || got.ID != o.ID ||
		got.Email != "ann@example.com" {
		t.Errorf("Find with another spelling of the email = %+v, %v", got, err)
	}

	for _, tt := range []struct{ email, password, param string }{
		{"ann@example.com", good, "email"},
		{"nobody", good, "email"},
		{"bob@example.com", "short", "password"},
		{"bob@example.com", "elevenchars", "password"},
	} {
		_, err := w.Create(context.Background(),
			operator.Input{Email: &tt.email, Password: &tt.password, Roles: []operator.Membership{owner}})
		if p := problem.First(err); p == nil || p.Param != tt.param {
			t.Errorf("Create(%q, %q) = %v, want a problem on %s", tt.email, tt.password, err, tt.param)
		}
	}
}

// A desk is a world with the owner ann, who signs in and opens sessions.
type desk struct {
	*world
	t   *testing.T
	ann operator.Operator
}

func newDesk(t *testing.T) desk {
	w := newWorld(t)
	return desk{w, t, w.create(t, "ann@example.com", owner)}
}

// begin signs ann in, and returns the session and its cookie.
func (d desk) begin() (operator.Session, string) {
	d.t.Helper()
	s, cookie, err := d.SignIn(d.t.Context(), "ANN@example.com", good, operator.Visitor{}, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return s, cookie
}

// opens reports whether a cookie opens one of ann's sessions.
func (d desk) opens(cookie string) bool {
	d.t.Helper()
	_, who, err := d.Open(d.t.Context(), cookie)
	if err != nil && !errors.Is(err, problem.Unauthenticated) {
		d.t.Error(err)
	}
	return err == nil && who.ID == d.ann.ID
}

func TestSignInRefused(t *testing.T) {
	d := newDesk(t)
	for _, tt := range [][2]string{{"ann@example.com", "wrong"}, {"bob@example.com", good},
		{"ann@example.com", ""}, {"\x00", good}} {
		_, _, err := d.SignIn(t.Context(), tt[0], tt[1], operator.Visitor{}, nil)
		if !errors.Is(err, problem.Unauthenticated) {
			t.Errorf("SignIn(%q) = %v, want Unauthenticated", tt, err)
		}
	}
}

// TestSessionEnds shows that a session can be opened only with its own cookie. It ends after an
// hour without use, and after twelve hours in any case.
func TestSessionEnds(t *testing.T) {
	d := newDesk(t)
	s, cookie := d.begin()
	_, used := d.begin()
	if !d.opens(cookie) || d.opens(cookie[1:]+"A") || d.opens("") {
		t.Error("a session opens with a different cookie, or does not open with its own")
	}

	d.now = d.now.Add(40 * time.Minute)
	if !d.opens(used) {
		t.Error("a used session has ended")
	}
	d.now = d.now.Add(40 * time.Minute)
	if d.opens(cookie) || !d.opens(used) {
		t.Error("a session that was unused for an hour opens, or a used one does not open")
	}
	if d.IsFresh(s) {
		t.Error("a session that began an hour ago counts as fresh")
	}

	_, cookie = d.begin()
	for range 12 {
		d.now = d.now.Add(59 * time.Minute)
		d.opens(cookie)
	}
	if !d.opens(cookie) {
		t.Error("a session that was used for less than twelve hours has ended")
	}
	if d.now = d.now.Add(13 * time.Minute); d.opens(cookie) {
		t.Error("a session opens after twelve hours")
	}
}

// TestRaise shows that Raise adds a factor to a session and replaces its cookie.
func TestRaise(t *testing.T) {
	d := newDesk(t)
	s, cookie := d.begin()
	raised, next, err := d.Raise(t.Context(), d.ann, s, operator.Visitor{}, "otp")
	if err != nil || d.opens(cookie) || !d.opens(next) || !d.IsFresh(raised) ||
		strings.Join(raised.AMR, " ") != "pwd otp" {
		t.Errorf("Raise = %+v, %v; the previous cookie opens: %v", raised, err, d.opens(cookie))
	}

	if err := d.EndSession(t.Context(), d.ann.ID, raised.ID); err != nil || d.opens(next) {
		t.Errorf("EndSession = %v, and the session opens: %v", err, d.opens(next))
	}
}

// TestDisabled shows that disabling an operator ends the operator's sessions.
func TestDisabled(t *testing.T) {
	d := newDesk(t)
	_, cookie := d.begin()
	d.create(t, "bob@example.com", owner) // one owner must remain
	yes := true
	_, err := d.Update(t.Context(), d.ann.ID, operator.Input{Disabled: &yes}, "")
	if err != nil || d.opens(cookie) {
		t.Errorf("Update(disabled) = %v, and a session opens: %v", err, d.opens(cookie))
	}
}

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

	email, secret, weak := "ann@example.com", good, "password"
	if _, err := w.Use(ctx, token, operator.Input{Email: &email, Password: &weak}); !errors.Is(err, problem.Invalid) {
		t.Errorf("Use with a weak password = %v, want invalid", err)
	}

	input := operator.Input{Email: &email, Password: &secret, Roles: []operator.Membership{{Role: operator.Viewer}}}
	if o, err := w.Use(ctx, token, input); err != nil || o.In("") != operator.Owner {
		t.Errorf("Use = %+v, %v, want an owner", o, err)
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
	got, err := d.Use(ctx, token, operator.Input{Email: &other, Password: &secret, Roles: []operator.Membership{owner}})
	if err != nil || got.Email != "bob@example.com" || got.In("") != operator.Viewer {
		t.Errorf("Use of an invitation with a different email and role = %+v, %v", got, err)
	}

	_, late, err := d.Invite(ctx, "", operator.Membership{Role: operator.Viewer}, "")
	if err != nil {
		t.Fatal(err)
	}
	d.now = d.now.Add(operator.LinkLife)
	_, err = d.Use(ctx, late, operator.Input{Email: &other, Password: &secret})
	if !errors.Is(err, problem.NotFound) {
		t.Errorf("Use of yesterday's link = %v, want not found", err)
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
	got, err := d.Use(ctx, token, operator.Input{Password: &next})
	if err != nil || got.ID != d.ann.ID || got.In("") != operator.Owner {
		t.Errorf("Use for a new password = %+v, %v", got, err)
	}
	if _, _, err := d.Open(ctx, cookie); !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("a session from before the new password: Open = %v, want unauthenticated", err)
	}
}

// TestRenewAndWithdraw shows that renewing an invitation invalidates its previous link, and that
// withdrawing an invitation invalidates its link.
func TestRenewAndWithdraw(t *testing.T) {
	ctx, d := t.Context(), newDesk(t)
	l, before, err := d.Invite(ctx, "eve@example.com", operator.Membership{Role: operator.Viewer}, d.ann.Email)
	if err != nil {
		t.Fatal(err)
	}

	again, after, err := d.Renew(ctx, l.ID, d.ann.Email)
	if err != nil || again.Email != l.Email || again.Role != l.Role {
		t.Errorf("Renew = %+v, %v, want an invitation like %+v", again, err, l)
	}
	if _, err := d.FindLink(ctx, before); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindLink of a renewed link = %v, want not found", err)
	}
	if _, err := d.FindLink(ctx, after); err != nil {
		t.Errorf("FindLink of the new link = %v", err)
	}

	if _, err := d.Withdraw(ctx, again.ID); err != nil {
		t.Errorf("Withdraw = %v", err)
	}
	if _, err := d.FindLink(ctx, after); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindLink of a withdrawn link = %v, want not found", err)
	}
}
