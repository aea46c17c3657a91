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

// A world holds Operators over a real store, with its own clock.
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
			"read write delete_project make_project keep_operators keep_ring"},
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
		t.Errorf("Find by another spelling = %+v, %v", got, err)
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

// TestSessions follows sessions from the login to their end.
func TestSessions(t *testing.T) {
	ctx, w := context.Background(), newWorld(t)
	o := w.create(t, "ann@example.com", owner)

	for _, tt := range [][2]string{{"ann@example.com", "wrong"}, {"bob@example.com", good},
		{"ann@example.com", ""}, {"\x00", good}} {
		if _, _, err := w.SignIn(ctx, tt[0], tt[1], operator.Visitor{}, nil); !errors.Is(err, problem.Unauthenticated) {
			t.Errorf("SignIn(%q) = %v, want unauthenticated", tt, err)
		}
	}

	signIn := func() (operator.Session, string) {
		s, cookie, err := w.SignIn(ctx, "ANN@example.com", good, operator.Visitor{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s, cookie
	}
	opens := func(cookie string) bool {
		_, who, err := w.Open(ctx, cookie)
		if err != nil && !errors.Is(err, problem.Unauthenticated) {
			t.Error(err)
		}
		return err == nil && who.ID == o.ID
	}

	// A session is opened by its own cookie only.
	s, cookie := signIn()
	_, used := signIn()
	if !opens(cookie) || opens(cookie[1:]+"A") || opens("") {
		t.Error("a session opens with another cookie, or not with its own")
	}

	// A session ends after an hour without use.
	w.now = w.now.Add(40 * time.Minute)
	if !opens(used) {
		t.Error("a used session has ended")
	}
	w.now = w.now.Add(40 * time.Minute)
	if opens(cookie) || !opens(used) {
		t.Error("a session that was unused for an hour opens, or a used one does not")
	}

	if w.IsFresh(s) {
		t.Error("a session of an hour counts as fresh")
	}

	// Raise adds a factor, and replaces the cookie.
	s, cookie = signIn()
	raised, next, err := w.Raise(ctx, o, s, operator.Visitor{}, "otp")
	if err != nil || opens(cookie) || !opens(next) || !w.IsFresh(raised) ||
		strings.Join(raised.AMR, " ") != "pwd otp" {
		t.Errorf("Raise = %+v, %v; the previous cookie opens: %v", raised, err, opens(cookie))
	}

	if err := w.EndSession(ctx, o.ID, raised.ID); err != nil || opens(next) {
		t.Errorf("EndSession = %v, and the session opens: %v", err, opens(next))
	}

	// Even a used session ends after twelve hours.
	_, cookie = signIn()
	for range 12 {
		w.now = w.now.Add(59 * time.Minute)
		opens(cookie)
	}
	if !opens(cookie) {
		t.Error("a session that was used for less than twelve hours has ended")
	}
	if w.now = w.now.Add(13 * time.Minute); opens(cookie) {
		t.Error("a session opens after twelve hours")
	}

	// Disabling an operator ends its sessions.
	_, cookie = signIn()
	w.create(t, "bob@example.com", owner)
	yes := true
	if _, err := w.Update(ctx, o.ID, operator.Input{Disabled: &yes}, ""); err != nil || opens(cookie) {
		t.Errorf("Update(disabled) = %v, and a session opens: %v", err, opens(cookie))
	}
}

// TestLinks shows what the links of the first operator, of invitations and of recovery are valid
// for.
func TestLinks(t *testing.T) {
	ctx, w := context.Background(), newWorld(t)

	// The link of the first operator makes an owner, whatever role is requested. It works once.
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

	o, err := w.Use(ctx, token, operator.Input{Email: &email, Password: &secret,
		Roles: []operator.Membership{{Role: operator.Viewer}}})
	if err != nil || o.In("") != operator.Owner {
		t.Errorf("Use = %+v, %v, want an owner", o, err)
	}

	if _, err := w.Use(ctx, token, operator.Input{Email: &email, Password: &secret}); !errors.Is(err,
		problem.NotFound) {
		t.Errorf("Use again = %v, want not found", err)
	}

	// The email and role of an invitation cannot be changed by the invited person.
	_, token, err = w.Invite(ctx, "bob@example.com", operator.Membership{Role: operator.Viewer}, o.Email)
	if err != nil {
		t.Fatal(err)
	}
	other := "mallory@example.com"
	if got, err := w.Use(ctx, token, operator.Input{Email: &other, Password: &secret,
		Roles: []operator.Membership{owner}}); err != nil || got.Email != "bob@example.com" ||
		got.In("") != operator.Viewer {
		t.Errorf("Use of an invitation with another e-mail and role = %+v, %v", got, err)
	}

	// A recovery link sets a new password, and ends the sessions of the old one.
	_, cookie, err := w.SignIn(ctx, email, good, operator.Visitor{}, nil)
	if err != nil {
		t.Fatal(err)
	}

	_, token, err = w.Recover(ctx, email, "")
	next := "another loom of one's own"
	if err != nil {
		t.Fatal(err)
	}

	if got, err := w.Use(ctx, token, operator.Input{Password: &next}); err != nil || got.ID != o.ID ||
		got.In("") != operator.Owner {
		t.Errorf("Use for a new password = %+v, %v", got, err)
	}
	if _, _, err := w.Open(ctx, cookie); !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("a session from before the new password: Open = %v, want unauthenticated", err)
	}

	// A renewed link replaces the previous one, and a withdrawn link is invalid.
	l, before, err := w.Invite(ctx, "eve@example.com", operator.Membership{Role: operator.Viewer}, o.Email)
	if err != nil {
		t.Fatal(err)
	}

	again, after, err := w.Renew(ctx, l.ID, o.Email)
	if err != nil || again.Email != l.Email || again.Role != l.Role {
		t.Errorf("Renew = %+v, %v, want one like %+v", again, err, l)
	}

	if _, err := w.FindLink(ctx, before); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindLink of a renewed link = %v, want not found", err)
	}
	if _, err := w.FindLink(ctx, after); err != nil {
		t.Errorf("FindLink of the new link = %v", err)
	}

	if _, err := w.Withdraw(ctx, again.ID); err != nil {
		t.Errorf("Withdraw = %v", err)
	}
	if _, err := w.FindLink(ctx, after); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindLink of a withdrawn link = %v, want not found", err)
	}

	// Links expire.
	_, late, err := w.Invite(ctx, "", operator.Membership{Role: operator.Viewer}, "")
	w.now = w.now.Add(operator.LinkLife)
	if _, err2 := w.Use(ctx, late, operator.Input{Email: &other, Password: &secret}); err != nil ||
		!errors.Is(err2, problem.NotFound) {
		t.Errorf("Use of yesterday's link = %v, %v, want not found", err, err2)
	}
}
