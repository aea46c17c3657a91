package operator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// LinkLife is how long a link is good.
const LinkLife = 24 * time.Hour

// A Link lets whoever has it in, once: as a new operator, or as one there is that
// forgot its password. Only the SHA-256 of its token is kept.
type Link struct {
	ID         string
	Hash       string
	OperatorID string // who may set a new password; "" for one to come
	Email      string // of the one to come; "" lets it say
	Role       Membership
	MadeBy     string // e-mail of who made it; "" for the command line
	Created    time.Time
	Expires    time.Time
	Used       time.Time // zero while it is good
}

// Invite makes a link for an operator to come, and gives its token this once. An
// e-mail of "" lets whoever comes say its own.
func (a *Operators) Invite(ctx context.Context, email string, role Membership, by string) (Link, string, error) {
	l := Link{Role: role, MadeBy: by}
	if email != "" {
		if err := fabric.CheckEmail("email", email); err != nil {
			return Link{}, "", err
		}
		l.Email = fabric.NormalizeEmail(email)
		if _, err := a.c.Store.FindOperatorByEmail(ctx, l.Email); err == nil {
			return Link{}, "", problem.Taken("email", "somebody with that e-mail is an operator already")
		}
	}
	return a.createLink(ctx, l, false)
}

// First makes the link for the first operator, an owner. Where there is an operator, or
// such a link that is good, it is problem.Conflict.
func (a *Operators) First(ctx context.Context) (Link, string, error) {
	return a.createLink(ctx, Link{Role: Membership{Role: Owner}}, true)
}

// Recover makes a link by which an operator sets a new password.
func (a *Operators) Recover(ctx context.Context, id, by string) (Link, string, error) {
	o, err := a.Find(ctx, id)
	if err != nil {
		return Link{}, "", err
	}
	return a.createLink(ctx, Link{OperatorID: o.ID, Email: o.Email, Role: Membership{Role: Viewer},
		MadeBy: by}, false)
}

func (a *Operators) createLink(ctx context.Context, l Link, alone bool) (Link, string, error) {
	if err := checkRoles([]Membership{l.Role}); err != nil {
		return Link{}, "", err
	}
	l, token := a.fresh(l)
	if err := a.c.Store.CreateOperatorLink(ctx, l, alone); err != nil {
		return Link{}, "", fmt.Errorf("creating link: %w", err)
	}
	return l, token, nil
}

// fresh returns a link a token that nobody has seen, and its time.
func (a *Operators) fresh(l Link) (Link, string) {
	token := strings.ToLower(rand.Text() + rand.Text())
	l.ID, l.Hash, l.Created = newID(), hashToken(token), a.now()
	l.Expires = l.Created.Add(LinkLife)
	return l, token
}

// IsOver reports whether the time of a link has passed.
func (l Link) IsOver(now time.Time) bool { return !now.Before(l.Expires) }

// Invitations returns a page of the links for operators to come that were not used, the newest
// first: those that are good, and those that have been over for less than a day.
func (a *Operators) Invitations(ctx context.Context, q page.Query) (page.Page[Link], error) {
	return a.c.Store.ListInvitations(ctx, q)
}

// Withdraw ends an invitation: nobody comes in by its link any more. One that was used, or
// never was one, is problem.NotFound.
func (a *Operators) Withdraw(ctx context.Context, id string) (Link, error) {
	return a.c.Store.WithdrawInvitation(ctx, id, a.now())
}

// Renew makes the link of an invitation anew, for another day, and gives its token this
// once; the link before it ends.
func (a *Operators) Renew(ctx context.Context, id, by string) (l Link, token string, err error) {
	l, err = a.c.Store.RenewInvitation(ctx, id, func(old Link) Link {
		l, token = a.fresh(Link{Email: old.Email, Role: old.Role, MadeBy: by})
		return l
	})
	return l, token, err
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// errOver is the one answer to a link that is not good: it says not why.
var errOver = problem.New(problem.NotFound, "link_over", "the link was used, is older than a day, or never was one")

// FindLink returns the link of a token while it is good. It does not use it up.
func (a *Operators) FindLink(ctx context.Context, token string) (Link, error) {
	l, err := a.c.Store.FindOperatorLink(ctx, hashToken(token))
	if problem.First(err) != nil && problem.First(err).Kind == problem.NotFound {
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

// Use lets whoever has a link in: it makes the operator, or sets the password of the
// one it is for. What is wrong with the input leaves the link good.
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
	in.Roles, in.Disabled = []Membership{l.Role}, nil
	o, err := a.make(ctx, in)
	if err != nil {
		return Operator{}, err
	}
	o, err = a.c.Store.UseOperatorLink(ctx, l.Hash, o, a.now())
	if p := problem.First(err); p != nil && p.Kind == problem.NotFound {
		return Operator{}, errOver
	}
	return o, err
}
