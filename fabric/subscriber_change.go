package fabric

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// A SubscriberChange holds the fields of a subscriber that a [SubscriberStore] writes; nil fields
// are left unchanged.
type SubscriberChange struct {
	Email        *string
	Verified     *bool
	Claims       *StandardClaims
	Locale       *string // changes only the claim locale; nil if Claims is set
	PasswordHash *string
	Disabled     *bool
	RecordCalls  *RecordCalls
	Forwarding   ForwardingInput
	Proof        *Proof
	Epoch        *int64        // see SubscriberInput; if it differs, the error is problem.Conflict
	Letters      []mail.Letter // letters queued together with the change
	By           *Rights       // rights that the caller must still have; nil if the change requires none
	Profile
}

// Update changes the fields that are set. Setting a new password or disabling the subscriber ends
// its logins and tokens. If in.Rights do not include Management, Update returns
// problem.Unauthenticated for a new password, email or RecordCalls, and for a claim that an email or
// telephone number is verified.
func (ss *Subscribers) Update(
	ctx context.Context, projectID, id string, in SubscriberInput,
) (Subscriber, error) {
	s, err := ss.Find(ctx, projectID, id)
	if err != nil {
		return Subscriber{}, err
	}
	if err := in.Check(false); err != nil {
		return Subscriber{}, err
	}
	return ss.update(ctx, s, in)
}

// update applies checked input to a subscriber. If the input changes nothing, update writes nothing.
func (ss *Subscribers) update(ctx context.Context, s Subscriber, in SubscriberInput) (Subscriber, error) {
	hash, err := ss.newHash(ctx, s, in.Password)
	if err != nil {
		return Subscriber{}, err
	}

	c := SubscriberChange{
		Email:        in.Email,
		PasswordHash: hash,
		Disabled:     in.Disabled,
		Verified:     in.Verified,
		Claims:       in.Claims,
		Locale:       in.Locale,
		RecordCalls:  in.RecordCalls,
		Forwarding:   in.Forwarding.change(s.Forwarding),
		Proof:        in.Proof,
		Epoch:        in.Epoch,
		Profile:      in.Profile,
	}
	if in.Claims != nil && in.Locale != nil {
		claims := *in.Claims
		claims.Locale = *in.Locale
		c.Claims, c.Locale = &claims, nil
	}
	if in.Email != nil {
		email := NormalizeEmail(*in.Email)
		c.Email = &email
	}
	if in.Disabled != nil && !*in.Disabled && !s.Disabled {
		c.Disabled = nil // already enabled: a concurrent disable must stay
	}
	if in.Email == nil && in.Verified != nil && *in.Verified == s.Verified {
		c.Verified = nil // unchanged: an email that is changed concurrently must stay unverified
	}
	if in.RecordCalls != nil && *in.RecordCalls == s.RecordCalls {
		c.RecordCalls = nil // unchanged: a concurrent change with Management must stay
	}
	if !c.differs(s) {
		return s, nil
	}
	if c.needsManagement(s) {
		if !in.Rights.Has(Management) {
			return Subscriber{}, problem.NoCredentials().Because("this change needs the scope Management")
		}
		c.By = in.Rights
	}

	couldEnter, err := ss.canEnter(ctx, s, c)
	if err != nil {
		return Subscriber{}, err
	}

	now := ss.now()
	c.Letters = c.notices(s, now, couldEnter, audit.From(ctx))
	end := c.ends(s, now, couldEnter)
	defer ss.caches.forget()
	s, err = ss.store.UpdateSubscriber(ctx, s.ProjectID, s.ID, c, now, end)
	if err != nil || end == nil {
		return s, err
	}

	return s, ss.c.Revocations.Sync(ctx)
}

// differs reports whether the change would change s.
func (c SubscriberChange) differs(s Subscriber) bool {
	return c.Proof != nil || c.PasswordHash != nil || c.Email != nil && *c.Email != s.Email ||
		c.Disabled != nil && *c.Disabled != s.Disabled || c.Verified != nil && *c.Verified != s.Verified ||
		c.Claims != nil && !reflect.DeepEqual(*c.Claims, s.Claims) ||
		c.Locale != nil && *c.Locale != s.Claims.Locale || c.RecordCalls != nil ||
		c.Forwarding != ForwardingInput{} || c.Profile.differs(s.Person)
}

// needsManagement reports whether only credentials with Management may make the change. This is the
// case if it changes whether calls are recorded. It is also the case for a new password, and for a
// new email, to which a link can be sent: both could let somebody else sign in as the subscriber. Finally,
// it is the case if an email or telephone number becomes verified, because apps may take this as proof of
// who somebody is.
func (c SubscriberChange) needsManagement(s Subscriber) bool {
	return c.PasswordHash != nil || c.RecordCalls != nil || c.Email != nil && *c.Email != s.Email ||
		c.Verified != nil && *c.Verified && !s.Verified || c.Claims != nil && c.Claims.verifyMore(s.Claims)
}

// Begins reports whether the change increments the subscriber's Epoch.
func (c SubscriberChange) Begins() bool {
	return c.PasswordHash != nil || c.Proof != nil && c.Proof.Ends
}

// disablingTakes is longer than the duration of a commit. It is added to a revocation, so that
// disabling a subscriber also revokes a token that is being issued.
const disablingTakes = 5 * time.Second

// ends returns the revocation that the change requires, or nil. If it was not possible to sign in before
// (couldEnter), a first password revokes nothing.
func (c SubscriberChange) ends(s Subscriber, now time.Time, couldEnter bool) *revocation.Revocation {
	var r revocation.Revocation
	switch {
	case c.Disabled != nil && *c.Disabled && !s.Disabled:
		r = revocationUntil(revocation.Subscriber, s.ID, now.Add(disablingTakes))
	case c.PasswordHash != nil && couldEnter, c.Proof != nil && c.Proof.Ends:
		r = revocationUntil(revocation.Subscriber, s.ID, now)
	default:
		return nil
	}
	return &r
}

// Delete deletes a subscriber with its addresses, and ends its logins and tokens.
func (ss *Subscribers) Delete(ctx context.Context, projectID, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("subscriber")
	}
	defer ss.caches.forget()
	end := permanentRevocation(revocation.Subscriber, id, ss.now())
	if err := ss.store.DeleteSubscriber(ctx, projectID, end); err != nil {
		return err
	}
	return ss.c.Revocations.Sync(ctx)
}

// Revoke ends a subscriber's logins and grants, and all its tokens, stored or not. It also ends the
// guest tokens that the subscriber requested, and the sockets of all these tokens. The subscriber
// may get new tokens immediately.
func (ss *Subscribers) Revoke(ctx context.Context, projectID, id string) error {
	s, err := ss.Find(ctx, projectID, id)
	if err != nil {
		return err
	}
	now := ss.now()
	end := revocationUntil(revocation.Subscriber, s.ID, now)
	defer ss.caches.forget() // the next tokens must see the change
	if _, err := ss.store.UpdateSubscriber(ctx, s.ProjectID, s.ID, SubscriberChange{}, now, &end); err != nil {
		return fmt.Errorf("revoking subscriber: %w", err)
	}
	return ss.c.Revocations.Sync(ctx)
}
