package store_test

import (
	"context"
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
	return invitations{rows, p, newOperator(t, rows, "ann@example.com", ownerOfAll), now}
}

// create creates a link. It is an invitation if operatorID is "", and otherwise sets the password
// of that operator.
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
	all, err := page.Every(t.Context(), in.ListInvitations)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		ids = append(ids, l.ID)
	}
	return ids
}

func TestWithdrawInvitation(t *testing.T) { store.EachDatabase(t, testWithdrawInvitation) }

// testWithdrawInvitation shows that a withdrawn invitation can no longer be used, and is no longer
// listed.
func testWithdrawInvitation(t *testing.T, c store.Config) {
	in, ctx := newInvitations(t, c), t.Context()
	first, second := in.create(t, "bob@example.com", ""), in.create(t, "eve@example.com", "")
	password := in.create(t, in.ann.Email, in.ann.ID)
	if got := in.list(t); !slices.Equal(got, []string{second.ID, first.ID}) {
		t.Errorf("ListInvitations = %v, want the second %v and the first %v", got, second.ID, first.ID)
	}
	if _, err := in.WithdrawInvitation(ctx, password.ID, in.now); !errors.Is(err, problem.NotFound) {
		t.Errorf("WithdrawInvitation of a link for a password = %v, want not found", err)
	}

	if got, err := in.WithdrawInvitation(ctx, second.ID, in.now); err != nil || got.Email != second.Email ||
		got.Role != second.Role {
		t.Errorf("WithdrawInvitation = %+v, %v, want the second", got, err)
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
	in, ctx := newInvitations(t, c), t.Context()
	first := in.create(t, "bob@example.com", "")
	renewed, errs := race(func(int) (bool, error) {
		_, err := in.RenewInvitation(ctx, first.ID, in.renew)
		if errors.Is(err, problem.NotFound) {
			return false, nil
		}
		return err == nil, err
	})
	got := in.list(t)
	if renewed != 1 || len(errs) > 0 || len(got) != 1 || got[0] == first.ID {
		t.Fatalf("RenewInvitation: %d of %d won with errors %v, and %v are listed", renewed, crowd, errs, got)
	}

	last := got[0]
	by := func(l operator.Link) operator.Link { l = in.renew(l); l.MadeBy = "nobody@example.com"; return l }
	if _, err := in.RenewInvitation(ctx, last, by); !errors.Is(err, problem.NotFound) {
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
	ctx := context.Background()
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

	good := func(l operator.Link) bool {
		got, err := rows.FindOperatorLink(ctx, l.Hash)
		if err != nil {
			t.Fatal(err)
		}
		return got.Used.IsZero()
	}

	update := func(c operator.Change) func(string) error {
		return func(id string) error { _, err := rows.UpdateOperator(ctx, id, c, now, ""); return err }
	}
	name, yes := "Other", true
	for _, tt := range []struct {
		what  string
		do    func(id string) error
		stays bool
	}{
		{"deleted", func(id string) error { return rows.DeleteOperator(ctx, id) }, false},
		{"disabled", update(operator.Change{Disabled: &yes}), false},
		{"made an admin", update(operator.Change{Roles: []operator.Membership{{Role: operator.Admin}}}), false},
		{"made the owner of a project", update(
			operator.Change{Roles: []operator.Membership{{ProjectID: p.ID, Role: operator.Owner}}}), false},
		{"given another name", update(operator.Change{Name: &name}), true},
		{"made an owner again", update(operator.Change{Roles: []operator.Membership{ownerOfAll}}), true},
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
				if good(l) != tt.stays {
					t.Errorf("a link of an operator who was %s is valid: %v, want %v", tt.what, !tt.stays, tt.stays)
				}
			}

			for _, l := range others {
				if !good(l) {
					t.Errorf("a link of another operator (%q) ended", l.MadeBy)
				}
			}
			if err := rows.CreateOperatorLink(ctx, link(by.Email, ""), false); (err == nil) != tt.stays {
				t.Errorf("CreateOperatorLink by an operator who was %s = %v", tt.what, err)
			}
		})
	}
}
