package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/store/storetest"
)

// A world holds Operators with a real store and a clock that tests can set.
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

// TestCreate shows that emails are normalized and unique, and that weak passwords are refused.
func TestCreate(t *testing.T) {
	w := newWorld(t)
	o := w.create(t, " Ann@EXAMPLE.com", owner)
	found, err := w.Find(t.Context(), "aNN@example.com")
	if err != nil {
		t.Fatalf("Find with another spelling of the email: %v", err)
	}
	if found.ID != o.ID {
		t.Errorf("Find with another spelling of the email returned %s, want %s", found.ID, o.ID)
	}
	if found.Email != "ann@example.com" {
		t.Errorf("the email is stored as %q, want ann@example.com", found.Email)
	}

	for _, tt := range []struct{ email, password, wantParam string }{
		{"ann@example.com", good, "email"},
		{"nobody", good, "email"},
		{"bob@example.com", "short", "password"},
		{"bob@example.com", "elevenchars", "password"},
		{"bob@example.com", "aaaaaaaaaaaaaa", "password"},
		{"bob@example.com", "éééééééééééééé", "password"},
	} {
		_, err := w.Create(t.Context(),
			operator.Input{Email: &tt.email, Password: &tt.password, Roles: []operator.Membership{owner}})
		p := problem.First(err)
		if p == nil {
			t.Errorf("Create(%q, %q) = %v, want a problem with %s", tt.email, tt.password, err, tt.wantParam)
			continue
		}
		if p.Param != tt.wantParam {
			t.Errorf("Create(%q, %q) has a problem with %s, want %s", tt.email, tt.password, p.Param, tt.wantParam)
		}
	}
}
