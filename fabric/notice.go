package fabric

import (
	"context"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/mail"
)

// canEnter reports whether somebody can have signed in to an account before a change: by
// a password, or where the change sets the first one, by a passkey.
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

// notices are what the subscriber is to know of the change: that its password is
// another, or is there where passkeys alone were, and that mails go elsewhere now. Who
// was never known to have the address hears of that alone which it asked for itself.
func (c SubscriberChange) notices(s Subscriber, now time.Time, entered bool, from audit.Origin) (all []mail.Letter) {
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
	case c.PasswordHash == nil || !entered:
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
