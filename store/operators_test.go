package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	if err := rows.CreateOperator(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o
}

var ownerOfAll = operator.Membership{Role: operator.Owner}

func TestOperators(t *testing.T) { store.EachDatabase(t, testOperators) }

func testOperators(t *testing.T, c store.Config) {
	ctx := t.Context()
	rows, p := fabricRows(t, c)
	owner := newOperator(t, rows, "ann@example.com", ownerOfAll)
	viewer := newOperator(t, rows, "bob@example.com", operator.Membership{ProjectID: p.ID, Role: operator.Viewer})
	found, err := rows.FindOperator(ctx, viewer.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(viewer, found); diff != "" {
		t.Errorf("FindOperator (-want +got):\n%s", diff)
	}
	found, err = rows.FindOperatorByEmail(ctx, viewer.Email)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(viewer, found); diff != "" {
		t.Errorf("FindOperatorByEmail (-want +got):\n%s", diff)
	}

	again := owner
	again.ID = newID()
	if err := rows.CreateOperator(ctx, again); !errors.Is(err, problem.Conflict) {
		t.Errorf("CreateOperator with an email in use = %v, want a conflict", err)
	}

	again.Email = "new@example.com"
	again.Roles = []operator.Membership{{ProjectID: newID(), Role: operator.Admin}}
	if err := rows.CreateOperator(ctx, again); !errors.Is(err, problem.NotFound) {
		t.Errorf("CreateOperator in an unknown project = %v, want not found", err)
	}
	if _, err := rows.FindOperator(ctx, again.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("an operator that was not created: FindOperator = %v, want not found", err)
	}

	first, err := rows.ListOperators(ctx, operator.Filter{}, page.Query{Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]operator.Operator{owner}, first.Items); diff != "" {
		t.Errorf("the first page of ListOperators (-want +got):\n%s", diff)
	}
	if first.Next != viewer.ID {
		t.Errorf("the second page of ListOperators begins with %q, want %s", first.Next, viewer.ID)
	}

	name := "Other"
	update := operator.Change{
		Name: &name,
		Roles: []operator.Membership{
			{Role: operator.Admin},
			{ProjectID: p.ID, Role: operator.Viewer},
		},
	}
	changed, err := rows.UpdateOperator(ctx, viewer.ID, update, time.Now(), "")
	if err != nil {
		t.Fatal(err)
	}
	if changed.Name != name {
		t.Errorf("UpdateOperator returns the name %q, want %q", changed.Name, name)
	}
	if n := len(changed.Roles); n != 2 {
		t.Errorf("UpdateOperator returns %d roles, want 2", n)
	}
	if changed.PasswordHash != "hash" {
		t.Errorf("UpdateOperator changes the hash to %q, want no change", changed.PasswordHash)
	}

	ofViewer := factor.Owner{Kind: factor.Operator, ID: viewer.ID}
	if err := rows.CreateTOTP(ctx, factor.TOTP{ID: newID(), Owner: ofViewer}, false); err != nil {
		t.Fatal(err)
	}
	if err := rows.DeleteOperator(ctx, viewer.ID); err != nil {
		t.Error(err)
	}

	set, err := rows.HasFactors(ctx, ofViewer)
	if err != nil || set.Any() {
		t.Errorf("the factors of a deleted operator: %+v, %v, want none", set, err)
	}
	if err := rows.DeleteOperator(ctx, viewer.ID); !errors.Is(err, problem.NotFound) {
		t.Errorf("DeleteOperator again = %v, want not found", err)
	}
}

func TestLastOwner(t *testing.T) { store.EachDatabase(t, testLastOwner) }

// testLastOwner shows that if all owners are removed concurrently, one of them remains.
func testLastOwner(t *testing.T, c store.Config) {
	ctx := t.Context()
	rows, _ := fabricRows(t, c)
	owners := make([]operator.Operator, crowd)
	for i := range owners {
		owners[i] = newOperator(t, rows, newID()+"@example.com", ownerOfAll)
	}

	yes := true
	disabled := operator.Change{Disabled: &yes}
	madeAdmin := operator.Change{Roles: []operator.Membership{{Role: operator.Admin}}}
	removed := race(t, problem.Conflict, func(i int) error {
		id := owners[i].ID
		switch i % 3 {
		case 0:
			return rows.DeleteOperator(ctx, id)
		case 1:
			_, err := rows.UpdateOperator(ctx, id, disabled, time.Now(), "")
			return err
		default:
			_, err := rows.UpdateOperator(ctx, id, madeAdmin, time.Now(), "")
			return err
		}
	})
	if removed != crowd-1 {
		t.Errorf("%d of %d owners were removed, want all but one", removed, crowd)
	}
}
