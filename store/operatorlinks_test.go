package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/store"
)

// invitations holds a project and an owner, ann, who invites operators.
type invitations struct {
	*store.Store
	project fabric.Project
	ann     operator.Operator
	now     time.Time
}

func newInvitations(t *testing.T, c store.Config) invitations {
	t.Helper()
	rows, p := fabricRows(t, c)
	now := time.Now().UTC().Truncate(time.Microsecond)
	return invitations{
		Store:   rows,
		project: p,
		ann:     newOperator(t, rows, "ann@example.com", ownerOfAll),
		now:     now,
	}
}

// create creates a link. If operatorID is "", the link is an invitation. Otherwise it lets that
// operator set a password.
func (in invitations) create(t *testing.T, email, operatorID string) operator.Link {
	t.Helper()
	l := operator.Link{
		ID:         newID(),
		Hash:       newID(),
		Email:      email,
		OperatorID: operatorID,
		Role:       operator.Membership{Role: operator.Viewer, ProjectID: in.project.ID},
		MadeBy:     in.ann.Email,
		Created:    in.now,
		Expires:    in.now.Add(time.Hour),
	}
	if err := in.CreateOperatorLink(t.Context(), l, false); err != nil {
		t.Fatal(err)
	}
	return l
}

// renew returns the link that replaces an invitation.
func (in invitations) renew(old operator.Link) operator.Link {
	return operator.Link{
		ID:      newID(),
		Hash:    newID(),
		Email:   old.Email,
		Role:    old.Role,
		MadeBy:  in.ann.Email,
		Created: in.now,
		Expires: in.now.Add(2 * time.Hour),
	}
}

// list returns the ids of the listed invitations.
func (in invitations) list(t *testing.T) (ids []string) {
	t.Helper()
	invited, err := page.Every(t.Context(), in.ListInvitations)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range invited {
		ids = append(ids, l.ID)
	}
	return ids
}

func TestOperatorLinks(t *testing.T) { store.EachDatabase(t, testOperatorLinks) }

func testOperatorLinks(t *testing.T, c store.Config) {
	ctx := t.Context()
	rows, _ := fabricRows(t, c)
	now := time.Now().UTC().Truncate(time.Microsecond)
	newLink := func() operator.Link {
		return operator.Link{ID: newID(), Hash: newID(), Role: ownerOfAll, Created: now, Expires: now.Add(time.Hour)}
	}

	created := race(t, problem.Conflict, func(int) error {
		return rows.CreateOperatorLink(ctx, newLink(), true)
	})
	if created != 1 {
		t.Errorf("%d of %d links for the first operator were created, want 1", created, crowd)
	}

	link := newLink()
	if err := rows.CreateOperatorLink(ctx, link, false); err != nil {
		t.Fatal(err)
	}

	newOne := func() operator.Operator {
		return operator.Operator{
			ID:           newID(),
			Email:        newID() + "@example.com",
			PasswordHash: "hash",
			Roles:        []operator.Membership{link.Role},
			Created:      now,
			Updated:      now,
		}
	}

	taken := newOne()
	taken.Email = newOperator(t, rows, "ann@example.com").Email
	if _, err := rows.UseOperatorLink(ctx, link.Hash, taken, now); !errors.Is(err, problem.Conflict) {
		t.Errorf("UseOperatorLink with an email in use = %v, want a conflict", err)
	}
	if _, err := rows.UseOperatorLink(ctx, link.Hash, newOne(), link.Expires); !errors.Is(err, problem.NotFound) {
		t.Errorf("UseOperatorLink of an expired link = %v, want not found", err)
	}

	used := race(t, problem.NotFound, func(int) error {
		_, err := rows.UseOperatorLink(ctx, link.Hash, newOne(), now)
		return err
	})
	if used != 1 {
		t.Errorf("UseOperatorLink succeeded %d times of %d, want once", used, crowd)
	}
	operators, err := rows.ListOperators(ctx, operator.Filter{}, page.Query{Size: crowd})
	if err != nil || len(operators.Items) != 2 {
		t.Errorf("there are %d operators, %v, want 2", len(operators.Items), err)
	}

	found, err := rows.FindOperatorLink(ctx, link.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if found.Used.IsZero() {
		t.Error("FindOperatorLink returns a used link as unused")
	}
	if found.Role != link.Role {
		t.Errorf("FindOperatorLink returns the role %+v, want %+v", found.Role, link.Role)
	}
	if err := rows.SweepOperators(ctx, now.Add(2*time.Hour)); err != nil {
		t.Error(err)
	}
	if _, err := rows.FindOperatorLink(ctx, link.Hash); !errors.Is(err, problem.NotFound) {
		t.Errorf("a swept link: FindOperatorLink = %v, want not found", err)
	}
}

func TestWithdrawInvitation(t *testing.T) { store.EachDatabase(t, testWithdrawInvitation) }

// testWithdrawInvitation shows that a withdrawn invitation can no longer be used, and is no longer
// listed.
func testWithdrawInvitation(t *testing.T, c store.Config) {
	ctx := t.Context()
	in := newInvitations(t, c)
	first := in.create(t, "bob@example.com", "")
	second := in.create(t, "eve@example.com", "")
	password := in.create(t, in.ann.Email, in.ann.ID)
	if got := in.list(t); !slices.Equal(got, []string{second.ID, first.ID}) {
		t.Errorf("ListInvitations = %v, want the second %v and the first %v", got, second.ID, first.ID)
	}
	if _, err := in.WithdrawInvitation(ctx, password.ID, in.now); !errors.Is(err, problem.NotFound) {
		t.Errorf("WithdrawInvitation of a link for a password = %v, want not found", err)
	}

	withdrawn, err := in.WithdrawInvitation(ctx, second.ID, in.now)
	if err != nil {
		t.Fatal(err)
	}
	if withdrawn.Email != second.Email {
		t.Errorf("WithdrawInvitation returns the invitation of %q, want %q", withdrawn.Email, second.Email)
	}
	if withdrawn.Role != second.Role {
		t.Errorf("WithdrawInvitation returns the role %+v, want %+v", withdrawn.Role, second.Role)
	}
	if got := in.list(t); !slices.Equal(got, []string{first.ID}) {
		t.Errorf("after a withdrawal %v are listed, want %v", got, first.ID)
	}

	newOne := operator.Operator{
		ID:           newID(),
		Email:        "eve@example.com",
		PasswordHash: "hash",
		Roles:        []operator.Membership{second.Role},
		Created:      in.now,
		Updated:      in.now,
	}
	if _, err := in.UseOperatorLink(ctx, second.Hash, newOne, in.now); !errors.Is(err, problem.NotFound) {
		t.Errorf("UseOperatorLink of a withdrawn invitation = %v, want not found", err)
	}
}

func TestRenewInvitation(t *testing.T) { store.EachDatabase(t, testRenewInvitation) }

// testRenewInvitation shows that renewing an invitation makes the old link invalid, that concurrent
// renewals create only one link, and that an unknown operator cannot renew an invitation.
func testRenewInvitation(t *testing.T, c store.Config) {
	ctx := t.Context()
	in := newInvitations(t, c)
	first := in.create(t, "bob@example.com", "")
	renewed := race(t, problem.NotFound, func(int) error {
		_, err := in.RenewInvitation(ctx, first.ID, in.renew)
		return err
	})
	if renewed != 1 {
		t.Fatalf("RenewInvitation succeeded %d times of %d, want once", renewed, crowd)
	}
	listed := in.list(t)
	if len(listed) != 1 {
		t.Fatalf("after the renewal %v are listed, want one", listed)
	}
	if listed[0] == first.ID {
		t.Fatalf("after the renewal the old invitation %s is listed", first.ID)
	}

	last := listed[0]
	byNobody := func(old operator.Link) operator.Link {
		link := in.renew(old)
		link.MadeBy = "nobody@example.com"
		return link
	}
	if _, err := in.RenewInvitation(ctx, last, byNobody); !errors.Is(err, problem.NotFound) {
		t.Errorf("RenewInvitation by an unknown operator = %v, want not found", err)
	}
	if got := in.list(t); !slices.Equal(got, []string{last}) {
		t.Errorf("after a refused renewal %v are listed, want %v", got, last)
	}
}

func TestLinksOfOperators(t *testing.T) { store.EachDatabase(t, testLinksOfOperators) }

// testLinksOfOperators shows that when operators lose the right to create links, the links that
// they have created become invalid, and they cannot create new ones.
func testLinksOfOperators(t *testing.T, c store.Config) {
	ctx := t.Context()
	rows, p := fabricRows(t, c)
	now := time.Now().UTC().Truncate(time.Microsecond)
	newOperator(t, rows, "stays@example.com", ownerOfAll)
	victim := newOperator(t, rows, "victim@example.com", ownerOfAll)
	link := func(by, forWhom string) operator.Link {
		return operator.Link{
			ID:         newID(),
			Hash:       newID(),
			OperatorID: forWhom,
			Role:       ownerOfAll,
			MadeBy:     by,
			Created:    now,
			Expires:    now.Add(time.Hour),
		}
	}

	isValid := func(l operator.Link) bool {
		t.Helper()
		found, err := rows.FindOperatorLink(ctx, l.Hash)
		if err != nil {
			t.Fatal(err)
		}
		return found.Used.IsZero()
	}

	update := func(c operator.Change) func(string) error {
		return func(id string) error {
			_, err := rows.UpdateOperator(ctx, id, c, now, "")
			return err
		}
	}
	roles := func(roles ...operator.Membership) func(string) error {
		return update(operator.Change{Roles: roles})
	}
	name, yes := "Other", true
	for _, tt := range []struct {
		what  string
		do    func(id string) error
		stays bool
	}{
		{"deleted", func(id string) error { return rows.DeleteOperator(ctx, id) }, false},
		{"disabled", update(operator.Change{Disabled: &yes}), false},
		{"made an admin", roles(operator.Membership{Role: operator.Admin}), false},
		{"made the owner of a project", roles(operator.Membership{ProjectID: p.ID, Role: operator.Owner}), false},
		{"given another name", update(operator.Change{Name: &name}), true},
		{"made an owner again", roles(ownerOfAll), true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			by := newOperator(t, rows, newID()+"@example.com", ownerOfAll)
			made := []operator.Link{link(by.Email, ""), link(by.Email, victim.ID)}
			others := []operator.Link{link("stays@example.com", ""), link("", "")}
			for _, l := range append(made, others...) {
				if err := rows.CreateOperatorLink(ctx, l, false); err != nil {
					t.Fatal(err)
				}
			}
			if err := tt.do(by.ID); err != nil {
				t.Fatal(err)
			}

			for _, l := range made {
				if valid := isValid(l); valid != tt.stays {
					t.Errorf("a link of an operator who was %s is valid: %v, want %v", tt.what, valid, tt.stays)
				}
			}

			for _, l := range others {
				if !isValid(l) {
					t.Errorf("a link that %q created is no longer valid", l.MadeBy)
				}
			}
			err := rows.CreateOperatorLink(ctx, link(by.Email, ""), false)
			if tt.stays && err != nil {
				t.Errorf("CreateOperatorLink by an operator who was %s = %v", tt.what, err)
			}
			if !tt.stays && err == nil {
				t.Errorf("CreateOperatorLink by an operator who was %s succeeds", tt.what)
			}
		})
	}
}
