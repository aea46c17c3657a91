package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/store"
)

func newOperator(t *testing.T, rows *store.Store, email string, roles ...operator.Membership) operator.Operator {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Microsecond)
	o := operator.Operator{
		ID:           newID(),
		Email:        email,
		Name:         "Ann",
		PasswordHash: "hash",
		Roles:        roles,
		Created:      now,
		Updated:      now,
	}
	if err := rows.CreateOperator(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	return o
}

var ownerOfAll = operator.Membership{Role: operator.Owner}

func TestOperators(t *testing.T) { store.EachDatabase(t, testOperators) }

func testOperators(t *testing.T, c store.Config) {
	ctx := context.Background()
	rows, p := fabricRows(t, c)
	o := newOperator(t, rows, "ann@example.com", ownerOfAll)
	v := newOperator(t, rows, "bob@example.com", operator.Membership{ProjectID: p.ID, Role: operator.Viewer})
	for _, find := range []func() (operator.Operator, error){
		func() (operator.Operator, error) { return rows.FindOperator(ctx, v.ID) },
		func() (operator.Operator, error) { return rows.FindOperatorByEmail(ctx, v.Email) },
	} {
		if got, err := find(); err != nil || got.Email != v.Email || len(got.Roles) != 1 ||
			got.Roles[0] != v.Roles[0] || !got.Created.Equal(v.Created) {
			t.Errorf("found %+v, %v, want %+v", got, err, v)
		}
	}

	again := o
	again.ID = newID()
	if err := rows.CreateOperator(ctx, again); !errors.Is(err, problem.Conflict) {
		t.Errorf("CreateOperator with an email in use = %v, want a conflict", err)
	}

	again.Email, again.Roles = "new@example.com", []operator.Membership{{ProjectID: newID(), Role: operator.Admin}}
	if err := rows.CreateOperator(ctx, again); !errors.Is(err, problem.NotFound) {
		t.Errorf("CreateOperator in an unknown project = %v, want not found", err)
	}
	if _, err := rows.FindOperator(ctx, again.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("an operator that was not created: FindOperator = %v, want not found", err)
	}

	all, err := rows.ListOperators(ctx, operator.Filter{}, page.Query{Size: 1})
	if err != nil || len(all.Items) != 1 || all.Items[0].ID != o.ID || len(all.Items[0].Roles) != 1 ||
		all.Next != v.ID {
		t.Errorf("ListOperators = %+v, %v, want the first of two", all, err)
	}

	name := "Other"
	got, err := rows.UpdateOperator(ctx, v.ID,
		operator.Change{
			Name: &name,
			Roles: []operator.Membership{{Role: operator.Admin},
				{ProjectID: p.ID, Role: operator.Viewer}},
		}, time.Now(), "")
	if err != nil || got.Name != name || len(got.Roles) != 2 || got.PasswordHash != "hash" {
		t.Errorf("UpdateOperator = %+v, %v, want the new name and roles", got, err)
	}

	owner := factor.Owner{Kind: factor.Operator, ID: v.ID}
	if err := rows.CreateTOTP(ctx, factor.TOTP{ID: newID(), Owner: owner}, false); err != nil {
		t.Fatal(err)
	}
	if err := rows.DeleteOperator(ctx, v.ID); err != nil {
		t.Error(err)
	}

	if set, err := rows.HasFactors(ctx, owner); err != nil || set.Any() {
		t.Errorf("a deleted operator has factors: %+v, %v", set, err)
	}
	if err := rows.DeleteOperator(ctx, v.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("DeleteOperator again = %v, want not found", err)
	}
}

func TestLastOwner(t *testing.T) { store.EachDatabase(t, testLastOwner) }

// testLastOwner shows that if all owners are removed concurrently, one of them remains.
func testLastOwner(t *testing.T, c store.Config) {
	ctx := context.Background()
	rows, _ := fabricRows(t, c)
	all := make([]operator.Operator, crowd)
	for i := range all {
		all[i] = newOperator(t, rows, newID()+"@example.com", ownerOfAll)
	}

	yes := true
	went, errs := race(func(i int) (bool, error) {
		var err error
		switch i % 3 {
		case 0:
			err = rows.DeleteOperator(ctx, all[i].ID)
		case 1:
			_, err = rows.UpdateOperator(ctx, all[i].ID, operator.Change{Disabled: &yes}, time.Now(), "")
		default:
			_, err = rows.UpdateOperator(
				ctx, all[i].ID, operator.Change{Roles: []operator.Membership{{Role: operator.Admin}}}, time.Now(), "")
		}
		if errors.Is(err, problem.Conflict) {
			return false, nil
		}
		return err == nil, err
	})
	if went != crowd-1 || len(errs) > 0 {
		t.Errorf("%d of %d owners were removed, with errors %v, want all but one", went, crowd, errs)
	}
}

func TestOperatorSessions(t *testing.T) { store.EachDatabase(t, testOperatorSessions) }

func testOperatorSessions(t *testing.T, c store.Config) {
	ctx := context.Background()
	rows, _ := fabricRows(t, c)
	o, now := newOperator(t, rows, "ann@example.com", ownerOfAll), time.Now().UTC().Truncate(time.Microsecond)
	begin := func(browser string) operator.Session {
		s := operator.Session{
			ID:         newID(),
			OperatorID: o.ID,
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

	s, other := begin("one"), begin("two")
	if err := rows.CreateOperatorSession(ctx, operator.Session{ID: newID(), OperatorID: o.ID, Browser: "three"},
		"another hash"); !errors.Is(err, problem.Conflict) {
		t.Errorf("CreateOperatorSession after a new password = %v, want a conflict", err)
	}

	got, who, err := rows.FindOperatorSession(ctx, "one")
	if err != nil || got.ID != s.ID || !got.Expires.Equal(s.Expires) || !got.Proven || who.ID != o.ID ||
		len(who.Roles) != 1 {
		t.Errorf("FindOperatorSession = %+v, %+v, %v, want the session and its operator", got, who, err)
	}

	s.AMR, s.Fresh = []string{"pwd", "otp"}, now.Add(time.Minute)
	won, errs := race(func(i int) (bool, error) {
		next := s
		next.Browser = newID()
		err := rows.RaiseOperatorSession(ctx, next, "one")
		if errors.Is(err, problem.Conflict) {
			return false, nil
		}
		return err == nil, err
	})
	if won != 1 || len(errs) > 0 {
		t.Errorf("RaiseOperatorSession: %d of %d won with errors %v, want 1", won, crowd, errs)
	}

	if _, _, err := rows.FindOperatorSession(ctx, "one"); !errors.Is(err, problem.NotFound) {
		t.Errorf("the previous cookie: FindOperatorSession = %v, want not found", err)
	}
	if err := rows.SeeOperatorSession(ctx, s.ID, now.Add(time.Minute)); err != nil {
		t.Error(err)
	}
	if all, err := rows.ListOperatorSessions(ctx, o.ID, now); err != nil || len(all) != 2 ||
		all[1].Seen.Equal(now) || len(all[1].AMR) != 2 {
		t.Errorf("ListOperatorSessions = %+v, %v, want both", all, err)
	}

	if err := rows.EndOperatorSession(ctx, o.ID, "", s.ID, now); err != nil {
		t.Error(err)
	}
	if got, _, err := rows.FindOperatorSession(ctx, "two"); err != nil || got.Ended.IsZero() {
		t.Errorf("a session ended with the others: FindOperatorSession = %+v, %v, want it ended", got, err)
	}

	hash := "new"
	if _, err := rows.UpdateOperator(ctx, o.ID, operator.Change{PasswordHash: &hash}, now, ""); err != nil {
		t.Error(err)
	}
	if all, err := rows.ListOperatorSessions(ctx, o.ID, now); err != nil || len(all) != 0 {
		t.Errorf("ListOperatorSessions after a new password = %+v, %v, want none", all, err)
	}

	if err := rows.RaiseOperatorSession(ctx, other, "two"); !errors.Is(err, problem.Conflict) {
		t.Errorf("RaiseOperatorSession of an ended session = %v, want a conflict", err)
	}
}

func TestOperatorLinks(t *testing.T) { store.EachDatabase(t, testOperatorLinks) }

func testOperatorLinks(t *testing.T, c store.Config) {
	ctx := context.Background()
	rows, _ := fabricRows(t, c)
	now := time.Now().UTC().Truncate(time.Microsecond)
	link := func() operator.Link {
		return operator.Link{ID: newID(), Hash: newID(), Role: ownerOfAll, Created: now, Expires: now.Add(time.Hour)}
	}

	made, errs := race(func(int) (bool, error) {
		err := rows.CreateOperatorLink(ctx, link(), true)
		if errors.Is(err, problem.Conflict) {
			return false, nil
		}
		return err == nil, err
	})
	if made != 1 || len(errs) > 0 {
		t.Errorf("links for the first operator: %d of %d were created, with errors %v, want 1", made, crowd, errs)
	}

	l := link()
	if err := rows.CreateOperatorLink(ctx, l, false); err != nil {
		t.Fatal(err)
	}

	newOne := func() operator.Operator {
		return operator.Operator{
			ID:           newID(),
			Email:        newID() + "@example.com",
			PasswordHash: "hash",
			Roles:        []operator.Membership{l.Role},
			Created:      now,
			Updated:      now,
		}
	}

	taken := newOne()
	taken.Email = newOperator(t, rows, "ann@example.com").Email
	if _, err := rows.UseOperatorLink(ctx, l.Hash, taken, now); !errors.Is(err, problem.Conflict) {
		t.Errorf("UseOperatorLink with an email in use = %v, want a conflict", err)
	}
	if _, err := rows.UseOperatorLink(ctx, l.Hash, newOne(), l.Expires); !errors.Is(err, problem.NotFound) {
		t.Errorf("UseOperatorLink of an expired link = %v, want not found", err)
	}

	used, errs := race(func(int) (bool, error) {
		_, err := rows.UseOperatorLink(ctx, l.Hash, newOne(), now)
		if errors.Is(err, problem.NotFound) {
			return false, nil
		}
		return err == nil, err
	})
	if all, err := rows.ListOperators(ctx, operator.Filter{}, page.Query{Size: crowd}); used != 1 || len(errs) > 0 ||
		err != nil || len(all.Items) != 2 {
		t.Errorf("UseOperatorLink: %d of %d won, errors %v; there are %d operators, %v, want 1 and 2", used, crowd,
			errs, len(all.Items), err)
	}

	if got, err := rows.FindOperatorLink(ctx, l.Hash); err != nil || got.Used.IsZero() || got.Role != l.Role {
		t.Errorf("FindOperatorLink = %+v, %v, want it used", got, err)
	}
	if err := rows.SweepOperators(ctx, now.Add(2*time.Hour)); err != nil {
		t.Error(err)
	}
	if _, err := rows.FindOperatorLink(ctx, l.Hash); !errors.Is(err, problem.NotFound) {
		t.Errorf("a swept link: FindOperatorLink = %v, want not found", err)
	}
}
