package operator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/store/storetest"
)

// A desk is a world with the owner ann, who signs in and opens sessions.
type desk struct {
	*world
	t   *testing.T
	ann operator.Operator
}

func newDesk(t *testing.T) desk {
	w := newWorld(t)
	return desk{world: w, t: t, ann: w.create(t, "ann@example.com", owner)}
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
	for _, tt := range []struct{ email, password string }{
		{"ann@example.com", "wrong"},
		{"bob@example.com", good},
		{"ann@example.com", ""},
		{"\x00", good},
	} {
		_, _, err := d.SignIn(t.Context(), tt.email, tt.password, operator.Visitor{}, nil)
		if !errors.Is(err, problem.Unauthenticated) {
			t.Errorf("SignIn(%q, %q) = %v, want Unauthenticated", tt.email, tt.password, err)
		}
	}
}

// TestSessionEnds shows that a session can be opened only with its own cookie. It ends after an
// hour without use, and after twelve hours in any case.
func TestSessionEnds(t *testing.T) {
	d := newDesk(t)
	s, cookie := d.begin()
	_, used := d.begin()
	if !d.opens(cookie) {
		t.Error("a session does not open with its own cookie")
	}
	for _, other := range []string{cookie[1:] + "A", ""} {
		if d.opens(other) {
			t.Errorf("a session opens with the cookie %q, want only %q", other, cookie)
		}
	}

	d.now = d.now.Add(40 * time.Minute)
	if !d.opens(used) {
		t.Error("a used session has ended")
	}
	d.now = d.now.Add(40 * time.Minute)
	if d.opens(cookie) {
		t.Error("a session that was unused for more than an hour opens")
	}
	if !d.opens(used) {
		t.Error("a session that was used 40 minutes ago does not open")
	}
	if d.IsFresh(s) {
		t.Error("a session that began more than an hour ago counts as fresh")
	}

	_, cookie = d.begin()
	for range 12 {
		d.now = d.now.Add(59 * time.Minute)
		d.opens(cookie)
	}
	if !d.opens(cookie) {
		t.Error("a used session that began less than twelve hours ago has ended")
	}
	d.now = d.now.Add(13 * time.Minute)
	if d.opens(cookie) {
		t.Error("a session opens after twelve hours")
	}
}

// TestShortIdle shows that a session that is used again and again does not end, even if it may be unused
// for less than a minute.
func TestShortIdle(t *testing.T) {
	w := newWorld(t)
	w.Operators = operator.New(operator.Config{
		Store: storetest.Rows(t),
		Idle:  30 * time.Second,
		Now:   func() time.Time { return w.now },
	})
	d := desk{world: w, t: t, ann: w.create(t, "ann@example.com", owner)}
	_, cookie := d.begin()
	for i := range 10 {
		d.now = d.now.Add(20 * time.Second)
		if !d.opens(cookie) {
			t.Fatalf("a session that is used every 20 s has ended after %d uses", i)
		}
	}
	d.now = d.now.Add(31 * time.Second)
	if d.opens(cookie) {
		t.Error("a session that was unused for 31 s opens")
	}
}

// TestRaise shows that Raise adds a factor to a session and replaces its cookie.
func TestRaise(t *testing.T) {
	d := newDesk(t)
	s, cookie := d.begin()
	raised, next, err := d.Raise(t.Context(), d.ann, s, operator.Visitor{}, "otp")
	if err != nil {
		t.Fatal(err)
	}
	if d.opens(cookie) {
		t.Error("the previous cookie opens the session after Raise")
	}
	if !d.opens(next) {
		t.Error("the new cookie does not open the session after Raise")
	}
	if !d.IsFresh(raised) {
		t.Error("the session is not fresh after Raise")
	}
	if amr := strings.Join(raised.AMR, " "); amr != "pwd otp" {
		t.Errorf("the session was authenticated by %q, want pwd otp", amr)
	}

	if err := d.EndSession(t.Context(), d.ann.ID, raised.ID); err != nil {
		t.Errorf("EndSession = %v", err)
	}
	if d.opens(next) {
		t.Error("an ended session opens")
	}
}

// TestDisabled shows that disabling an operator ends the operator's sessions.
func TestDisabled(t *testing.T) {
	d := newDesk(t)
	_, cookie := d.begin()
	d.create(t, "bob@example.com", owner) // one owner must remain
	yes := true
	_, err := d.Update(t.Context(), d.ann.ID, operator.Input{Disabled: &yes}, "")
	if err != nil {
		t.Fatal(err)
	}
	if d.opens(cookie) {
		t.Error("a session of a disabled operator opens")
	}
}
