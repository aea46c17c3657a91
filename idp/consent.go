package idp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Consented reports whether a client may have the scopes without asking: it is
// the operator's own, or the subscriber agreed to all of them before.
func (p *Provider) Consented(ctx context.Context, c Client, subscriberID string, scopes []string) (bool, error) {
	if c.FirstParty {
		return true, nil
	}
	agreed, err := p.Store.FindConsent(ctx, subscriberID, c.ID)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	return !slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(agreed, s) }), nil
}

// needed returns the rights of a request that must be agreed to when its code is
// redeemed: what was taken back meanwhile, and what is agreed to anew, decide then.
func (c Client) needed(a AuthRequest) []string {
	if c.FirstParty {
		return nil
	}
	return append([]string{}, a.Rights()...)
}

// Consent remembers that a subscriber agreed to a client's having the scopes, beside
// those of before.
func (p *Provider) Consent(ctx context.Context, c Client, subscriberID string, scopes []string) error {
	return p.Store.AddConsent(ctx, subscriberID, c.ID, scopes, p.Now())
}

// Deny notes that a subscriber did not agree.
func (p *Provider) Deny(ctx context.Context, c Client, s Session) error {
	e := audit.Of("consent.given", s.ProjectID, "subscriber", s.SubscriberID).By(
		audit.Subscriber, s.SubscriberID).With("client", c.ID)
	if err := p.Store.Record(ctx, e.Refuse("the subscriber denied it")); err != nil {
		return fmt.Errorf("noting a consent denied: %w", err)
	}
	return nil
}

// RevokeConsent takes back what a subscriber has agreed to for a client, which is
// asked anew, and ends all that the client has got of its logins: refresh tokens and
// access tokens, here at once and on other nodes within a second.
func (p *Provider) RevokeConsent(ctx context.Context, subscriberID, clientID string) error {
	ctx = context.WithoutCancel(ctx) // who asked for it may be gone; it is done all the same
	ending := func(grantID string) revocation.Revocation { return p.ending(revocation.Grant, grantRef(grantID)) }
	err := p.Store.RevokeConsent(ctx, subscriberID, clientID, p.Now(), ending)
	if errors.Is(err, problem.NotFound) {
		return err
	}
	return errors.Join(err, p.Revocations.Sync(ctx))
}
