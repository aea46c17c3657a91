package fabric

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/problem"
)

// PasswordLength returns the minimum and the maximum length of a new password.
func (ss *Subscribers) PasswordLength() (least, most int) {
	return max(password.MinLength, ss.c.MinPassword), password.MaxLength
}

// hashPassword returns the hash of a subscriber's new password. It returns an error if the password
// is too easy to guess from what others may know about the subscriber.
func (ss *Subscribers) hashPassword(ctx context.Context, s Subscriber, secret string) (string, error) {
	if ss.c.Weak != nil {
		known := []string{s.Email, s.FirstName, s.LastName, s.DisplayName, s.Reference, s.CompanyName}
		if p, err := ss.projects.Find(ctx, s.ProjectID); err == nil {
			known = append(known, p.Name)
		}
		if err := ss.c.Weak(ctx, "password", secret, known...); err != nil {
			return "", err
		}
	}
	hash, err := ss.c.Passwords.Hash(ctx, secret)
	if err != nil {
		return "", fmt.Errorf("hashing password: %w", err)
	}
	return hash, nil
}

// newHash returns the hash to write for a password. It returns nil if secret is nil or empty, or is
// already the subscriber's password.
func (ss *Subscribers) newHash(ctx context.Context, s Subscriber, secret *string) (*string, error) {
	if secret == nil || *secret == "" {
		return nil, nil
	}
	if s.PasswordHash != "" {
		same, err := ss.c.Passwords.Verify(ctx, s.PasswordHash, *secret)
		if err != nil {
			return nil, fmt.Errorf("checking password: %w", err)
		}
		if same {
			return nil, nil
		}
	}
	hash, err := ss.hashPassword(ctx, s, *secret)
	return &hash, err
}

// ListFactors returns a subscriber's factors except the password. They always fit on one page.
func (ss *Subscribers) ListFactors(
	ctx context.Context, projectID, id string, _ page.Query,
) (page.Page[factor.Factor], error) {
	s, err := ss.Find(ctx, projectID, id)
	if err != nil || ss.c.Factors == nil {
		return page.Page[factor.Factor]{}, err
	}
	all, err := ss.c.Factors.List(ctx, factor.Owner{Kind: factor.Subscriber, ID: s.ID})
	return page.Page[factor.Factor]{Items: all}, err
}

// RemoveFactor removes a factor from a subscriber. id is the factor's id in the result of
// ListFactors.
func (ss *Subscribers) RemoveFactor(ctx context.Context, projectID, subscriberID, id string) error {
	s, err := ss.Find(ctx, projectID, subscriberID)
	if err != nil {
		return err
	}
	if canon, ok := canonical(id); ok {
		id = canon
	} else if id != factor.TypeRecovery {
		return problem.NoSuch("factor")
	}
	if ss.c.Factors == nil {
		return problem.NoSuch("factor")
	}
	return ss.c.Factors.Remove(ctx, factor.Owner{Kind: factor.Subscriber, ID: s.ID}, id)
}

// canEnter reports whether it was possible to sign in to the account before the change c: with a
// password or, if c sets the first password, with a passkey.
func (ss *Subscribers) canEnter(ctx context.Context, s Subscriber, c SubscriberChange) (bool, error) {
	if s.PasswordHash != "" {
		return true, nil
	}
	if c.PasswordHash == nil || ss.c.Factors == nil {
		return false, nil
	}
	set, err := ss.c.Factors.Has(ctx, factor.Owner{Kind: factor.Subscriber, ID: s.ID})
	return set.Passkeys, err
}

// notices returns the letters that inform the subscriber of a change. If it was possible to sign in
// before (couldEnter), one letter reports a new password. Another letter reports a changed email to the
// old email, if the old email is verified, or if the subscriber requested the change through a link.
func (c SubscriberChange) notices(
	s Subscriber, now time.Time, couldEnter bool, from audit.Origin,
) (all []mail.Letter) {
	if s.Email == "" {
		return nil
	}
	notice := func(kind mail.Kind) map[string]string {
		facts := from.Facts(now)
		all = append(all, mail.Letter{ID: newID(), ProjectID: s.ProjectID, SubscriberID: s.ID, Kind: kind,
			To: s.Email, Facts: facts, Created: now})
		return facts
	}

	switch {
	case c.PasswordHash == nil || !couldEnter:
	case s.PasswordHash == "":
		notice(mail.PasswordSet)
	default:
		notice(mail.PasswordChanged)
	}
	if c.Email != nil && *c.Email != s.Email && (s.Verified || c.Proof != nil) {
		notice(mail.AddressChanged)["new"] = *c.Email
	}
	return all
}

// Verify sends a subscriber a link that verifies its email. It returns an error if the subscriber has
// no email, has a verified email, or is disabled.
func (ss *Subscribers) Verify(ctx context.Context, projectID, id string) (Subscriber, error) {
	s, err := ss.Find(ctx, projectID, id)
	if err != nil {
		return s, err
	}

	switch {
	case s.Email == "":
		return s, problem.BadParam("email", "email is missing; the link needs an address")
	case s.Verified:
		return s, problem.BadParam("email_verified", "email_verified is already true")
	case s.Disabled:
		return s, problem.BadParam("disabled", "disabled subscribers are sent no links")
	}

	return s, ss.store.QueueLetter(ctx, mail.Letter{
		ID: newID(), ProjectID: s.ProjectID, SubscriberID: s.ID, Kind: mail.Verify, To: s.Email,
		Facts: map[string]string{}, Created: ss.now(),
	})
}
