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

// knownFor is how long a network is remembered after a login from it.
const knownFor = 90 * 24 * time.Hour

// countAttempt counts a login attempt before the password is checked, so that concurrent attempts are also
// counted. It returns the counts that it has increased. Attempts for unknown accounts are counted in the
// same way, by normalized email. A network from which the operator has signed in before has its own
// count. Guesses from other networks therefore do not lock the operator out in that network.
// Exceeded limits are recorded at most once a minute.
func (a *Operators) countAttempt(
	ctx context.Context, email string, o Operator, from Visitor,
) ([]limit.Count, error) {
	account := limit.Count{Name: limit.LoginPerAccount, Who: "operator\n" + fabric.NormalizeEmail(email)}
	if a.KnowsPlace(ctx, o, from) {
		who := strings.Join([]string{"operator", o.ID, from.Network}, "\n")
		account = limit.Count{Name: limit.LoginPerDevice, Who: who}
	}
	counts := append([]limit.Count{account}, networkCounts(from)...)
	return counts, a.take(ctx, o, counts)
}

// networkCounts returns the counts for a network, regardless of the account.
func networkCounts(from Visitor) []limit.Count {
	return []limit.Count{
		{Name: limit.LoginPerNetwork, Who: "operator\n" + from.Network},
		{Name: limit.LoginPerRange, Who: "operator\n" + limit.Range(from.Network)},
	}
}

// CountPasskey counts a passkey against the limits of its network before the passkey is verified.
// It does so because each rejected passkey adds an event to the audit trail, as a wrong password
// does. [Operators.SignInByPasskey] and [Operators.ReturnPasskey] undo the count for a valid
// passkey.
func (a *Operators) CountPasskey(ctx context.Context, from Visitor) error {
	return a.take(ctx, Operator{}, networkCounts(from))
}

// ReturnPasskey undoes CountPasskey for a valid passkey.
func (a *Operators) ReturnPasskey(ctx context.Context, from Visitor) {
	a.c.Limits.ReturnAll(ctx, networkCounts(from))
}

// AdmitPrompt counts a passkey prompt against the limit of its network. Anyone may request prompts,
// and each prompt is stored until it is answered or expires.
func (a *Operators) AdmitPrompt(ctx context.Context, from Visitor) error {
	return a.c.Limits.Pass(ctx, limit.AuthorizePerNetwork, "operator\n"+from.Network)
}

// take takes one event from each count. It records an exceeded limit at most once a minute.
func (a *Operators) take(ctx context.Context, o Operator, counts []limit.Count) error {
	over, err := a.c.Limits.TakeAll(ctx, counts)
	if errors.Is(err, problem.RateLimited) {
		failed := a.recordThrottled(ctx, o, string(over.Name)+" "+over.Who, "limit", string(over.Name))
		if failed != nil {
			return failed
		}
	}
	return err
}

// throttledEvery is the minimum interval between two audit events about the same exceeded limit.
const throttledEvery = time.Minute

// recordThrottled records that a limit was exceeded, unless this was recorded within throttledEvery.
func (a *Operators) recordThrottled(ctx context.Context, o Operator, count string, facts ...string) error {
	if a.c.Sessions != nil {
		key := session.Key{Kind: "operator-throttled", ID: session.Digest(count)}
		err := a.c.Sessions.Add(ctx, key, nil, throttledEvery)
		if errors.Is(err, problem.Conflict) {
			return nil // recorded recently; after any other error, the refusal is recorded
		}
	}
	return a.recordRefusal(ctx, o, "too many tries", facts...)
}

// recordRefusal records a failed login. The event names the account only if the account exists, since people
// sometimes type a password into the email field.
func (a *Operators) recordRefusal(ctx context.Context, o Operator, reason string, facts ...string) error {
	e := audit.Of("login", "", "operator", o.ID).Refuse(reason).With(facts...)
	if err := a.c.Store.Record(ctx, e); err != nil {
		return fmt.Errorf("recording a login: %w", err)
	}
	return nil
}

// RefuseFactor records that an operator's second factor or passkey was rejected, and why. If a
// limit was exceeded, this is recorded at most once a minute.
func (a *Operators) RefuseFactor(ctx context.Context, o Operator, why error) error {
	p := problem.First(why)
	if p == nil {
		return nil
	}
	if p.Kind == problem.RateLimited {
		return a.recordThrottled(ctx, o, "second factor "+o.ID, "limit", p.Code)
	}
	return a.recordRefusal(ctx, o, p.Code)
}

// placeKey returns the key for a network from which an operator has signed in. It depends on the
// current password, so that all networks are forgotten when the password changes.
func placeKey(o Operator, from Visitor, shown string) session.Key {
	place := strings.Join([]string{o.ID, session.Digest(o.PasswordHash), from.Network, shown}, " ")
	return session.Key{Kind: "operator-place", ID: session.Digest(place)}
}

// allAsked and twoFactors describe what an operator showed when signing in from a network.
const (
	allAsked   = ""            // everything that was required, possibly only a password
	twoFactors = "two factors" // more than a password
)

// KnowsPlace reports whether an operator has recently signed in from a network with the current
// password.
func (a *Operators) KnowsPlace(ctx context.Context, o Operator, from Visitor) bool {
	return a.knows(ctx, o, from, allAsked)
}

// ProvenPlace reports whether an operator has recently signed in from a network with a second
// factor. If only the password was shown there, the network may belong to a thief who had the
// password before the operator set up a second factor.
func (a *Operators) ProvenPlace(ctx context.Context, o Operator, from Visitor) bool {
	return a.knows(ctx, o, from, twoFactors)
}

// knows reports whether an operator has recently signed in from a network. shown is allAsked or
// twoFactors.
func (a *Operators) knows(ctx context.Context, o Operator, from Visitor, shown string) bool {
	if a.c.Sessions == nil || from.Network == "" {
		return false
	}
	_, err := a.c.Sessions.Get(ctx, placeKey(o, from, shown))
	return err == nil && o.ID != ""
}

// knowPlace records that an operator has signed in from a network.
func (a *Operators) knowPlace(ctx context.Context, o Operator, from Visitor, s Session) {
	if a.c.Sessions == nil || from.Network == "" {
		return
	}
	_ = a.c.Sessions.Put(ctx, placeKey(o, from, allAsked), nil, knownFor) // on failure, the network stays unknown
	if s.TwoFactors() {
		_ = a.c.Sessions.Put(ctx, placeKey(o, from, twoFactors), nil, knownFor)
	}
}

// notifyEvery is the minimum interval between two notifications to an operator about logins from
// the same new network. It bounds the number of emails that a thief who has only the password can
// cause.
const notifyEvery = time.Hour

// isNewPlace reports whether to notify an operator of a login from a network.
func (a *Operators) isNewPlace(ctx context.Context, o Operator, from Visitor) bool {
	if a.KnowsPlace(ctx, o, from) {
		return false
	}
	if a.c.Sessions == nil {
		return true
	}
	err := a.c.Sessions.Add(ctx, placeKey(o, from, "told"), nil, notifyEvery)
	return !errors.Is(err, problem.Conflict)
}

// Prove checks the password of a signed-in operator. A wrong password counts against the limits.
func (a *Operators) Prove(ctx context.Context, o Operator, secret string, from Visitor) error {
	counts, err := a.countAttempt(ctx, o.Email, o, from)
	if err != nil {
		return err
	}
	ok, err := a.c.Passwords.Verify(ctx, o.PasswordHash, secret)
	if ok || err != nil {
		a.c.Limits.ReturnAll(ctx, counts)
		return err
	}
	wrong := problem.New(problem.Unauthenticated, "wrong_credentials", "The password is wrong.")
	return errors.Join(wrong, a.recordRefusal(ctx, o, "wrong password"))
}

// SetPassword changes an operator's password if the current password is right. It ends all the
// operator's sessions except the session with the id keep.
func (a *Operators) SetPassword(
	ctx context.Context, o Operator, current, secret string, from Visitor, keep string,
) (Operator, error) {
	err := a.Prove(ctx, o, current, from)
	if errors.Is(err, problem.Unauthenticated) {
		return o, problem.BadParam("current", "the current password is wrong")
	}
	if err != nil {
		return o, err
	}
	return a.Update(ctx, o.ID, Input{Password: &secret}, keep)
}
