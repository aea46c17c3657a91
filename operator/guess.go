package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// knownFor is how long a network is one from which an operator has signed in before.
const knownFor = 90 * 24 * time.Hour

// try counts a try before the password is looked at, so that tries at once count too, and
// gives what was counted. Known and unknown accounts are counted alike, by how an e-mail is
// compared. A network from which the operator has signed in before is counted by itself, so
// that strangers' guesses do not keep it out there. That there were too many is written
// down, once a minute for each count.
func (a *Operators) try(ctx context.Context, email string, o Operator, from Visitor) ([]limit.Count, error) {
	account := limit.Count{Name: limit.LoginPerAccount, Who: "operator\n" + fabric.NormalizeEmail(email)}
	if a.KnowsPlace(ctx, o, from) {
		account = limit.Count{Name: limit.LoginPerDevice, Who: strings.Join([]string{"operator", o.ID, from.Network}, "\n")}
	}
	counts := []limit.Count{
		account, {Name: limit.LoginPerNetwork, Who: "operator\n" + from.Network}, {Name: limit.LoginPerRange, Who: "operator\n" + limit.Range(from.Network)},
	}
	over, err := a.c.Limits.TakeAll(ctx, counts)
	if errors.Is(err, problem.RateLimited) {
		if unsaid := a.throttled(ctx, o, string(over.Name)+" "+over.Who, "limit", string(over.Name)); unsaid != nil {
			return nil, unsaid
		}
	}
	return counts, err
}

// throttledEvery is how often it is written down that a count has stopped somebody.
const throttledEvery = time.Minute

// throttled writes down that a count has stopped somebody, unless that was just done.
func (a *Operators) throttled(ctx context.Context, o Operator, count string, facts ...string) error {
	if a.c.Sessions != nil {
		err := a.c.Sessions.Add(ctx, session.Key{Kind: "operator-throttled", ID: session.Digest(count)}, nil, throttledEvery)
		if errors.Is(err, problem.Conflict) {
			return nil // while nobody can count, each is written down
		}
	}
	return a.refused(ctx, o, "too many tries", facts...)
}

// refused writes down that somebody could not sign in; whom it was about only where that
// is an operator, since people type passwords into the wrong field.
func (a *Operators) refused(ctx context.Context, o Operator, reason string, facts ...string) error {
	if err := a.c.Store.Record(ctx, audit.Of("login", "", "operator", o.ID).Refuse(reason).With(facts...)); err != nil {
		return fmt.Errorf("writing down a sign-in: %w", err)
	}
	return nil
}

// RefuseFactor writes down that an operator did not show a second factor, and why it was
// not taken: too many tries once a minute.
func (a *Operators) RefuseFactor(ctx context.Context, o Operator, why error) error {
	p := problem.First(why)
	if p == nil {
		return nil
	}
	if p.Kind == problem.RateLimited {
		return a.throttled(ctx, o, "second factor "+o.ID, "limit", p.Code)
	}
	return a.refused(ctx, o, p.Code)
}

func placeKey(o Operator, from Visitor) session.Key {
	return session.Key{Kind: "operator-place", ID: session.Digest(o.ID + " " + from.Network)}
}

// KnowsPlace reports whether an operator has signed in from a network before, lately.
func (a *Operators) KnowsPlace(ctx context.Context, o Operator, from Visitor) bool {
	if a.c.Sessions == nil || from.Network == "" {
		return false
	}
	_, err := a.c.Sessions.Get(ctx, placeKey(o, from))
	return err == nil && o.ID != ""
}

// knowPlace remembers that an operator has signed in from a network, with all that was
// asked of it.
func (a *Operators) knowPlace(ctx context.Context, id string, from Visitor) {
	if a.c.Sessions != nil && from.Network != "" {
		_ = a.c.Sessions.Put(ctx, placeKey(Operator{ID: id}, from), nil, knownFor) // it is a stranger's place else
	}
}

// Prove checks the password of an operator who is signed in, as one of its tries.
func (a *Operators) Prove(ctx context.Context, o Operator, secret string, from Visitor) error {
	counts, err := a.try(ctx, o.Email, o, from)
	if err != nil {
		return err
	}
	ok, err := a.c.Passwords.Verify(ctx, o.PasswordHash, secret)
	if ok || err != nil {
		a.c.Limits.ReturnAll(ctx, counts)
	}
	if err == nil && !ok {
		err = errors.Join(problem.New(problem.Unauthenticated, "wrong_credentials", "The password is wrong."), a.refused(ctx, o, "wrong password"))
	}
	return err
}

// SetPassword changes the password of an operator who knows the one before. All its
// sessions end but keep.
func (a *Operators) SetPassword(ctx context.Context, o Operator, before, secret string, from Visitor, keep string) error {
	err := a.Prove(ctx, o, before, from)
	if errors.Is(err, problem.Unauthenticated) {
		return problem.BadParam("current", "the password you have now is wrong")
	}
	if err != nil {
		return err
	}
	_, err = a.Update(ctx, o.ID, Input{Password: &secret}, keep)
	return err
}
