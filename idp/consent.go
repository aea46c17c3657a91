package idp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// A ConsentStore stores the consents of subscribers.
type ConsentStore interface {
	// FindConsent returns the scopes to which a subscriber has consented for a client.
	FindConsent(ctx context.Context, subscriberID, clientID string) ([]string, error)
	// AddConsent adds scopes to a subscriber's consent for a client, and creates the consent if
	// necessary.
	AddConsent(ctx context.Context, subscriberID, clientID string, scopes []string, now time.Time) error
	// RevokeConsent revokes a consent and ends the client's grants, in one transaction. If there is
	// no consent and no grant, it returns problem.NotFound.
	RevokeConsent(ctx context.Context, subscriberID, clientID string, now time.Time,
		ending func(grantID string) revocation.Revocation) error
	// ListApps returns the clients to which a subscriber has consented, and clients with a valid
	// grant from the subscriber, sorted by name.
	ListApps(ctx context.Context, projectID, subscriberID string, now time.Time) ([]App, error)
	// Record writes an audit event for a decision that changes no row.
	Record(ctx context.Context, e audit.Event) error
}

// An App is a client to which a subscriber has consented, or which has a grant from the subscriber.
type App struct {
	ClientID   string
	Name       string
	FirstParty bool
	Scopes     []string  // scopes of the consent, or of the grant if no consent is needed
	Since      time.Time // time of the consent or grant
	OpenURL    string    // URL that starts a login at the client; may be ""
}

// Consents records which rights people have given to apps.
type Consents struct {
	*core
	store   ConsentStore
	clients *Clients
}

// Covers reports whether a client may have the scopes without asking the subscriber. This is the case if
// the client is first-party, or if the subscriber has already consented to all of the scopes.
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

// rightsToConsent returns the rights for which a request needs consent, or nil if it needs none. The
// consent is checked when the code is redeemed, so that it counts if it was revoked or given in the
// meantime.
func (c Client) rightsToConsent(a AuthRequest) []string {
	if c.FirstParty {
		return nil
	}
	return append([]string{}, c.Rights(a)...)
}

// Add records that a subscriber consented to scopes for a client, in addition to earlier scopes.
func (cs *Consents) Add(ctx context.Context, c Client, subscriberID string, scopes []string) error {
	return cs.store.AddConsent(ctx, subscriberID, c.ID, scopes, cs.Now())
}

// Deny records that a subscriber refused to consent.
func (cs *Consents) Deny(ctx context.Context, c Client, s Login) error {
	e := audit.Of("consent.given", s.ProjectID, "subscriber", s.SubscriberID).By(
		audit.Subscriber, s.SubscriberID).With("client", c.ID)
	if err := cs.store.Record(ctx, e.Refuse("the subscriber denied it")); err != nil {
		return fmt.Errorf("recording a denied consent: %w", err)
	}
	return nil
}

// Revoke revokes a subscriber's consent for a client, so that the client must ask again. It also
// revokes the client's refresh tokens and access tokens for the subscriber. This takes effect on this
// node immediately, and on the other nodes within a second.
func (cs *Consents) Revoke(ctx context.Context, subscriberID, clientID string) error {
	ctx = context.WithoutCancel(ctx) // finish even if the caller has disconnected
	ending := func(grantID string) revocation.Revocation {
		return cs.revocationOf(revocation.Grant, grantRef(grantID))
	}
	err := cs.store.RevokeConsent(ctx, subscriberID, clientID, cs.Now(), ending)
	if errors.Is(err, problem.NotFound) {
		return err
	}
	return errors.Join(err, cs.Revocations.Sync(ctx))
}

// Apps returns the clients with access to a subscriber's account, sorted by name.
func (cs *Consents) Apps(ctx context.Context, projectID, subscriberID string) ([]App, error) {
	apps, err := cs.store.ListApps(ctx, projectID, subscriberID, cs.Now())
	if err != nil {
		return nil, err
	}
	for i := range apps {
		c, err := cs.clients.Find(ctx, apps[i].ClientID)
		if problem.IgnoreNotFound(err) != nil { // not found: deleted in the meantime
			return nil, err
		}
		apps[i].OpenURL = c.initiateLogin(cs.Issuer)
	}
	return apps, nil
}

// initiateLogin returns the URL at which the client starts a login at the issuer (OpenID Connect
// Core, section 4). It returns "" if the client has none.
func (c Client) initiateLogin(issuer string) string {
	if c.InitiateLoginURI == "" {
		return ""
	}
	return withQuery(c.InitiateLoginURI, url.Values{"iss": {issuer}})
}
