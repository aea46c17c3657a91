package operator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// LinkLife is how long a link is valid.
const LinkLife = 24 * time.Hour

// A Link can be used only once, by anyone who has it, to create an operator or to set an operator's new
// password. Only the SHA-256 of its token is stored.
type Link struct {
	ID         string
	Hash       string
	OperatorID string // the operator whose password the link resets; "" for an invitation
	Email      string // the operator's email; if "", the new operator chooses one
	Role       Membership
	MadeBy     string // email of the operator who created the link; "" on the command line
	Created    time.Time
	Expires    time.Time
	Used       time.Time // zero if unused
}

// Invite creates an invitation and returns its token, which is not stored. If email is "", the new
// operator chooses an email.
func (a *Operators) Invite(ctx context.Context, email string, role Membership, by string) (Link, string, error) {
	l := Link{Role: role, MadeBy: by}
	if email != "" {
		if err := fabric.CheckEmail("email", email); err != nil {
			return Link{}, "", err
		}
		l.Email = fabric.NormalizeEmail(email)
		if _, err := a.c.Store.FindOperatorByEmail(ctx, l.Email); err == nil {
			return Link{}, "", problem.Taken("email", "an operator with this email already exists")
		}
	}
	return a.createLink(ctx, l, false)
}

// First creates the link for the first operator, who becomes an owner. If there is already an
// operator or a valid invitation, it returns problem.Conflict.
func (a *Operators) First(ctx context.Context) (Link, string, error) {
	return a.createLink(ctx, Link{Role: Membership{Role: Owner}}, true)
}

// Recover creates a link that lets an operator set a new password.
func (a *Operators) Recover(ctx context.Context, id, by string) (Link, string, error) {
	o, err := a.Find(ctx, id)
	if err != nil {
		return Link{}, "", err
	}
	l := Link{OperatorID: o.ID, Email: o.Email, Role: Membership{Role: Viewer}, MadeBy: by}
	return a.createLink(ctx, l, false)
}

// createLink creates a link and returns its token. If alone is set, there must be no operator and no
// valid invitation.
func (a *Operators) createLink(ctx context.Context, l Link, alone bool) (Link, string, error) {
	if err := checkRoles([]Membership{l.Role}); err != nil {
		return Link{}, "", err
	}
	l, token := a.withToken(l)
	if err := a.c.Store.CreateOperatorLink(ctx, l, alone); err != nil {
		return Link{}, "", fmt.Errorf("creating link: %w", err)
	}
	return l, token, nil
}

// withToken returns l with a new token and expiry.
func (a *Operators) withToken(l Link) (Link, string) {
	token := strings.ToLower(rand.Text() + rand.Text())
	l.ID = newID()
	l.Hash = hashToken(token)
	l.Created = a.now()
	l.Expires = l.Created.Add(LinkLife)
	return l, token
}

// IsOver reports whether the link has expired.
func (l Link) IsOver(now time.Time) bool { return !now.Before(l.Expires) }

// Invitations returns a page of the unused invitations, newest first. It includes invitations that
// expired less than a day ago.
func (a *Operators) Invitations(ctx context.Context, q page.Query) (page.Page[Link], error) {
	return a.c.Store.ListInvitations(ctx, q)
}

// Withdraw ends an invitation, so that its link no longer works. For a used or unknown invitation
// it returns problem.NotFound.
func (a *Operators) Withdraw(ctx context.Context, id string) (Link, error) {
	return a.c.Store.WithdrawInvitation(ctx, id, a.now())
}

// Renew replaces an invitation with a new one that is valid for another day. It returns the new
// token, which is not stored. The previous link stops working.
func (a *Operators) Renew(ctx context.Context, id, by string) (l Link, token string, err error) {
	l, err = a.c.Store.RenewInvitation(ctx, id, func(old Link) Link {
		l, token = a.withToken(Link{Email: old.Email, Role: old.Role, MadeBy: by})
		return l
	})
	return l, token, err
}

// hashToken returns the digest that is stored for a token.
func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// errOver is the error for every invalid link. It does not reveal the reason.
var errOver = problem.New(problem.NotFound, "link_over",
	"the link was used, is older than a day, or was never valid")

// FindLink returns the link with this token if it is valid. It does not use up the link.
func (a *Operators) FindLink(ctx context.Context, token string) (Link, error) {
	l, err := a.c.Store.FindOperatorLink(ctx, hashToken(token))
	if errors.Is(err, problem.NotFound) {
		return Link{}, errOver
	}
	if err != nil {
		return Link{}, err
	}
	if !l.Used.IsZero() || l.IsOver(a.now()) {
		return Link{}, errOver
	}
	return l, nil
}

// Use uses up a link. It creates the operator, or sets the existing operator's password. If the
// input is invalid, the link remains valid.
func (a *Operators) Use(ctx context.Context, token string, in Input) (Operator, error) {
	l, err := a.FindLink(ctx, token)
	if err != nil {
		return Operator{}, err
	}
	if in.Password == nil {
		return Operator{}, problem.Missing("password")
	}
	if l.Email != "" {
		in.Email = &l.Email
	}

	in.Roles = []Membership{l.Role}
	in.Disabled = nil
	o, err := a.build(ctx, in)
	if err != nil {
		return Operator{}, err
	}

	o, err = a.c.Store.UseOperatorLink(ctx, l.Hash, o, a.now())
	if errors.Is(err, problem.NotFound) {
		return Operator{}, errOver
	}
	return o, err
}
