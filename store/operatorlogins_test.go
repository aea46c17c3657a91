package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/store"
)

func TestOperatorSessions(t *testing.T) { store.EachDatabase(t, testOperatorSessions) }

func testOperatorSessions(t *testing.T, c store.Config) {
	ctx := t.Context()
	rows, _ := fabricRows(t, c)
	ann := newOperator(t, rows, "ann@example.com", ownerOfAll)
	now := time.Now().UTC().Truncate(time.Microsecond)
	begin := func(browser string) operator.Session {
		t.Helper()
		s := operator.Session{
			ID:         newID(),
			OperatorID: ann.ID,
			Browser:    browser,
			Proven:     true,
			AMR:        []string{"pwd"},
			Began:      now,
			Fresh:      now,
			Seen:       now,
			Expires:    now.Add(time.Hour),
		}
		if err := rows.CreateOperatorSession(ctx, s, "hash"); err != nil {
			t.Fatal(err)
		}
		return s
	}

	list := func() []operator.Session {
		t.Helper()
		sessions, err := rows.ListOperatorSessions(ctx, ann.ID, now)
		if err != nil {
			t.Fatal(err)
		}
		return sessions
	}

	one, two := begin("one"), begin("two")
	three := operator.Session{ID: newID(), OperatorID: ann.ID, Browser: "three"}
	if err := rows.CreateOperatorSession(ctx, three, "another hash"); !errors.Is(err, problem.Conflict) {
		t.Errorf("CreateOperatorSession after a new password = %v, want a conflict", err)
	}

	got, who, err := rows.FindOperatorSession(ctx, "one")
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != one.ID {
		t.Errorf("FindOperatorSession = %s, want %s", got.ID, one.ID)
	}
	if !got.Expires.Equal(one.Expires) {
		t.Errorf("the session expires at %v, want %v", got.Expires, one.Expires)
	}
	if !got.Proven {
		t.Error("the session is not proven")
	}
	if who.ID != ann.ID {
		t.Errorf("the session is of the operator %s, want %s", who.ID, ann.ID)
	}
	if len(who.Roles) != 1 {
		t.Errorf("the operator of the session has the roles %v, want one", who.Roles)
	}

	raised := one
	raised.AMR = []string{"pwd", "otp"}
	raised.Fresh = now.Add(time.Minute)
	won := race(t, problem.Conflict, func(i int) error {
		next := raised
		next.Browser = newID()
		return rows.RaiseOperatorSession(ctx, next, "one")
	})
	if won != 1 {
		t.Errorf("%d of %d concurrent calls of RaiseOperatorSession succeed, want 1", won, crowd)
	}
	if _, _, err := rows.FindOperatorSession(ctx, "one"); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindOperatorSession with the previous cookie = %v, want not found", err)
	}
	if err := rows.SeeOperatorSession(ctx, one.ID, now.Add(time.Minute)); err != nil {
		t.Error(err)
	}

	sessions := list()
	if len(sessions) != 2 {
		t.Fatalf("ListOperatorSessions = %+v, want two sessions", sessions)
	}
	if sessions[1].Seen.Equal(now) {
		t.Errorf("the second session was seen at %v, want later", sessions[1].Seen)
	}
	if !slices.Equal(sessions[1].AMR, raised.AMR) {
		t.Errorf("the second session was proven with %q, want %q", sessions[1].AMR, raised.AMR)
	}

	if err := rows.EndOperatorSession(ctx, ann.ID, "", one.ID, now); err != nil {
		t.Error(err)
	}
	got, _, err = rows.FindOperatorSession(ctx, "two")
	if err != nil {
		t.Fatal(err)
	}
	if got.Ended.IsZero() {
		t.Error("EndOperatorSession of all sessions but one does not end another session")
	}

	hash := "new"
	if _, err := rows.UpdateOperator(ctx, ann.ID, operator.Change{PasswordHash: &hash}, now, ""); err != nil {
		t.Error(err)
	}
	if sessions := list(); len(sessions) != 0 {
		t.Errorf("ListOperatorSessions after a new password = %+v, want none", sessions)
	}

	if err := rows.RaiseOperatorSession(ctx, two, "two"); !errors.Is(err, problem.Conflict) {
		t.Errorf("RaiseOperatorSession of an ended session = %v, want a conflict", err)
	}
}
