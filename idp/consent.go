package idp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// A ConsentStore keeps what subscribers have agreed to.
type ConsentStore interface {
	// FindConsent returns the scopes that a subscriber has agreed to for a client.
	FindConsent(ctx context.Context, subscriberID, clientID string) ([]string, error)
	// AddConsent adds scopes to them, or writes the first.
	AddConsent(ctx context.Context, subscriberID, clientID string, scopes []string, now time.Time) error
	// RevokeConsent revokes a consent and ends the client's grants, in one transaction.
	// If there is neither, it returns problem.NotFound.
	RevokeConsent(ctx context.Context, subscriberID, clientID string, now time.Time,
		ending func(grantID string) revocation.Revocation) error
	// ListApps returns the clients that a subscriber has agreed to, or that have a valid
	// grant of the subscriber's, by name.
	ListApps(ctx context.Context, projectID, subscriberID string, now time.Time) ([]App, error)
	// Record writes the audit event of a decision that changes no row.
	Record(ctx context.Context, e audit.Event) error
}

// An App is a client that a subscriber has agreed to, or that has a grant of the
// subscriber's.
type App struct {
	ClientID, Name string
	FirstParty     bool
	Scopes         []string  // agreed to, or granted if no consent is needed
	Since          time.Time // when they were agreed to or granted
}

// Consents are what people have agreed that apps may have.
type Consents struct {
	*core
	store ConsentStore
}

// Covers reports whether a client may have the scopes without asking: it is the
// operator's own, or the subscriber has agreed to all of them before.
func (cs *Consents) Covers(ctx context.Context, c Client, subscriberID string, scopes []string) (bool, error) {
	if c.FirstParty {
		return true, nil
	}
	agreed, err := cs.store.FindConsent(ctx, subscriberID, c.ID)
	if err != nil {
		return false, problem.IgnoreNotFound(err)
	}
	return !slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(agreed, s) }), nil
}

// needed returns the rights of a request that must be agreed to when its code is
// redeemed, so that a consent revoked or given meanwhile counts. nil means that no
// consent is needed.
func (c Client) needed(a AuthRequest) []string {
	if c.FirstParty {
		return nil
	}
	return append([]string{}, c.Rights(a)...)
}

// Add records that a subscriber agreed to the scopes for a client, in addition to earlier
// ones.
func (cs *Consents) Add(ctx context.Context, c Client, subscriberID string, scopes []string) error {
	return cs.store.AddConsent(ctx, subscriberID, c.ID, scopes, cs.Now())
}

// Deny records that a subscriber did not agree.
func (cs *Consents) Deny(ctx context.Context, c Client, s Login) error {
	e := audit.Of("consent.given", s.ProjectID, "subscriber", s.SubscriberID).By(
		audit.Subscriber, s.SubscriberID).With("client", c.ID)
	if err := cs.store.Record(ctx, e.Refuse("the subscriber denied it")); err != nil {
		return fmt.Errorf("recording a denied consent: %w", err)
	}
	return nil
}

// Revoke revokes what a subscriber has agreed to for a client, which must ask again. It
// ends all that the client has of the subscriber's logins: refresh tokens and access
// tokens, here at once and on other nodes within a second.
func (cs *Consents) Revoke(ctx context.Context, subscriberID, clientID string) error {
	ctx = context.WithoutCancel(ctx) // finish even if the caller is gone
	ending := func(grantID string) revocation.Revocation {
		return cs.revocationOf(revocation.Grant, grantRef(grantID))
	}
	err := cs.store.RevokeConsent(ctx, subscriberID, clientID, cs.Now(), ending)
	if errors.Is(err, problem.NotFound) {
		return err
	}
	return errors.Join(err, cs.Revocations.Sync(ctx))
}

// Apps returns the clients with access to a subscriber's account, by name.
func (cs *Consents) Apps(ctx context.Context, projectID, subscriberID string) ([]App, error) {
	return cs.store.ListApps(ctx, projectID, subscriberID, cs.Now())
}
