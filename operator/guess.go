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
		account = limit.Count{Name: limit.LoginPerDevice,
			Who: strings.Join([]string{"operator", o.ID, from.Network}, "\n")}
	}
	counts := append([]limit.Count{account}, networkCounts(from)...)
	return counts, a.take(ctx, o, counts)
}

// networkCounts are what is counted of a network, whoever it tries to be.
func networkCounts(from Visitor) []limit.Count {
	return []limit.Count{{Name: limit.LoginPerNetwork, Who: "operator\n" + from.Network},
		{Name: limit.LoginPerRange, Who: "operator\n" + limit.Range(from.Network)}}
}

// CountPasskey counts a passkey that is about to be looked at, by its network, as a guess of
// a password is: each that is refused is a row of the audit trail.
// [Operators.SignInByPasskey] and [Operators.ReturnPasskey] give the try of a good one back.
func (a *Operators) CountPasskey(ctx context.Context, from Visitor) error {
	return a.take(ctx, Operator{}, networkCounts(from))
}

// ReturnPasskey returns back the try of a passkey that was good.
func (a *Operators) ReturnPasskey(ctx context.Context, from Visitor) {
	a.c.Limits.ReturnAll(ctx, networkCounts(from))
}

// AdmitPrompt counts a question for a passkey that anybody may have asked, by its network:
// each is kept until it is answered, or over.
func (a *Operators) AdmitPrompt(ctx context.Context, from Visitor) error {
	return a.c.Limits.Pass(ctx, limit.AuthorizePerNetwork, "operator\n"+from.Network)
}

// take takes one of each count, and writes down once a minute that there were too many.
func (a *Operators) take(ctx context.Context, o Operator, counts []limit.Count) error {
	over, err := a.c.Limits.TakeAll(ctx, counts)
	if errors.Is(err, problem.RateLimited) {
		if unsaid := a.throttled(ctx, o, string(over.Name)+" "+over.Who, "limit", string(over.Name)); unsaid != nil {
			return unsaid
		}
	}
	return err
}

// throttledEvery is how often it is written down that a count has stopped somebody.
const throttledEvery = time.Minute

// throttled writes down that a count has stopped somebody, unless that was just done.
func (a *Operators) throttled(ctx context.Context, o Operator, count string, facts ...string) error {
	if a.c.Sessions != nil {
		err := a.c.Sessions.Add(ctx, session.Key{Kind: "operator-throttled", ID: session.Digest(count)}, nil,
			throttledEvery)
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

// placeKey names a network of an operator under the password that it has: with another, it
// is anybody's again.
func placeKey(o Operator, from Visitor, shown string) session.Key {
	return session.Key{Kind: "operator-place",
		ID: session.Digest(strings.Join([]string{o.ID, session.Digest(o.PasswordHash), from.Network, shown}, " "))}
}

// What was shown at a place.
const (
	allAsked   = ""            // whatever was asked for, be it a password alone
	twoFactors = "two factors" // more than a password
)

// KnowsPlace reports whether an operator has signed in from a network before, lately, under
// the password of now.
func (a *Operators) KnowsPlace(ctx context.Context, o Operator, from Visitor) bool {
	return a.knows(ctx, o, from, allAsked)
}

// ProvenPlace is KnowsPlace where a second factor was shown there, too. What a password
// alone has made known may be of anybody who had it before there was a factor.
func (a *Operators) ProvenPlace(ctx context.Context, o Operator, from Visitor) bool {
	return a.knows(ctx, o, from, twoFactors)
}

func (a *Operators) knows(ctx context.Context, o Operator, from Visitor, shown string) bool {
	if a.c.Sessions == nil || from.Network == "" {
		return false
	}
	_, err := a.c.Sessions.Get(ctx, placeKey(o, from, shown))
	return err == nil && o.ID != ""
}

// knowPlace remembers that an operator has signed in from a network, with all that was
// asked of it.
func (a *Operators) knowPlace(ctx context.Context, o Operator, from Visitor, s Session) {
	if a.c.Sessions == nil || from.Network == "" {
		return
	}
	_ = a.c.Sessions.Put(ctx, placeKey(o, from, allAsked), nil, knownFor) // it is a stranger's place else
	if s.TwoFactors() {
		_ = a.c.Sessions.Put(ctx, placeKey(o, from, twoFactors), nil, knownFor)
	}
}

// toldEvery is how often an operator is told that somebody signs in from a network that was
// not seen before: who has the password, and goes no further, sends no flood.
const toldEvery = time.Hour

// unseen reports whether an operator is to be told that it signs in from a network.
func (a *Operators) unseen(ctx context.Context, o Operator, from Visitor) bool {
	if a.KnowsPlace(ctx, o, from) {
		return false
	}
	if a.c.Sessions == nil {
		return true
	}
	err := a.c.Sessions.Add(ctx, placeKey(o, from, "told"), nil, toldEvery)
	return !errors.Is(err, problem.Conflict)
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
		err = errors.Join(problem.New(problem.Unauthenticated, "wrong_credentials", "The password is wrong."),
			a.refused(ctx, o, "wrong password"))
	}
	return err
}

// SetPassword changes the password of an operator who knows the one before. All its
// sessions end but keep.
func (a *Operators) SetPassword(ctx context.Context, o Operator, before, secret string, from Visitor, keep string) (Operator, error) {
	err := a.Prove(ctx, o, before, from)
	if errors.Is(err, problem.Unauthenticated) {
		return o, problem.BadParam("current", "the password you have now is wrong")
	}
	if err != nil {
		return o, err
	}
	return a.Update(ctx, o.ID, Input{Password: &secret}, keep)
}
