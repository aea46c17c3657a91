package idp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/session"
)

// A Grant is the right of a client to tokens for a subscriber, made by redeeming a code.
// It lasts until its refresh token lapses or its login ends.
type Grant struct {
	ID, ProjectID, ClientID, SubscriberID string
	SessionID                             string
	Scope                                 []string
	Claims                                Claims
	Resources                             []string // possible audiences of access tokens; empty means the issuer
	AuthTime                              time.Time
	AMR                                   []string
	JKT                                   string    // thumbprint of the key that its tokens are bound to, or ""
	RefreshHash                           string    // SHA-256 of the refresh token, or ""
	Seed                                  string    // sealed; yields this refresh token from the previous one
	Rotated                               time.Time // when this one replaced it; zero for the first
	Created                               time.Time
	IdleUntil, Expires                    time.Time // when the refresh token expires if unused, and in any case
	Revoked                               time.Time
}

// A GrantStore keeps the rows of grants and of redeemed codes.
type GrantStore interface {
	// RedeemCode writes the grant of a code, unless the code with this hash was redeemed
	// before: then it returns problem.Conflict. If meanwhile the login was ended, the
	// consent revoked, or the client or subscriber deleted, it returns problem.NotFound.
	RedeemCode(ctx context.Context, c RedeemedCode, g Grant) error
	FindRedeemedCode(ctx context.Context, hash string) (RedeemedCode, error)
	FindGrant(ctx context.Context, id string) (Grant, error)
	// FindConsent returns what a subscriber has agreed to for a client.
	FindConsent(ctx context.Context, subscriberID, clientID string) ([]string, error)
	// RotateGrant writes the refresh token of an active grant (its hash, Seed, Rotated
	// and IdleUntil) if the hash is still old. problem.Conflict means that the token was
	// used before.
	RotateGrant(ctx context.Context, g Grant, old string) error
	// RevokeGrant ends a grant and its access tokens, in one transaction.
	RevokeGrant(ctx context.Context, id string, now time.Time, r revocation.Revocation) error
}

// Grants are what clients may have of people's logins.
type Grants struct {
	*core
	store  GrantStore
	logins *Logins
	tokens *Tokens
}

// create returns the grant of a code. It has a refresh token if the client may refresh:
// always with fabric access tokens, otherwise for offline_access.
func (gs *Grants) create(c Client, code Code) (g Grant, refresh string, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return g, "", fmt.Errorf("creating grant id: %w", err)
	}

	now, l := gs.Now(), gs.Lifetimes()
	g = Grant{
		ID: id.String(), ProjectID: code.ProjectID, ClientID: c.ID, SubscriberID: code.SubjectID,
		SessionID: code.SessionID,
		Scope:     code.Request.Scope, Claims: code.Request.Claims, Resources: code.Request.Resources,
		AuthTime: code.AuthTime, AMR: code.AMR, Created: now,
		IdleUntil: now.Add(l.RefreshIdle), Expires: now.Add(l.RefreshAbsolute),
	}

	if c.mayKeepGoing(g.Scope) {
		refresh, g.RefreshHash = newRefreshToken(id)
	}
	return g, refresh, nil
}

// mayKeepGoing reports whether a grant of these scopes comes with a refresh token.
func (c Client) mayKeepGoing(scopes []string) bool {
	return c.May(GrantRefresh) && (c.AccessToken == FabricToken || slices.Contains(c.only(scopes), "offline_access"))
}

// grantRef returns the name of a grant in access tokens. It is not the id, which is half
// of the refresh token.
func grantRef(id string) string { return session.Digest(id) }

// errDead is the answer to requests for tokens of a login that was ended.
var errDead = invalidGrant("the subscriber is disabled, has signed out, or has revoked the consent")

// findSubscriber returns the subscriber of new tokens, unless it is disabled or its login
// was ended.
func (gs *Grants) findSubscriber(ctx context.Context, projectID, subscriberID, sid string) (fabric.Subscriber, error) {
	sub, err := gs.Subscribers.FindSubscriber(ctx, projectID, subscriberID)
	switch {
	case errors.Is(err, problem.NotFound):
		return sub, errDead
	case err != nil:
		return sub, fmt.Errorf("finding subscriber: %w", err)
	case sub.Disabled:
		return sub, errDead
	}
	return sub, gs.checkLogin(ctx, sid)
}

// checkLogin returns errDead if a login was ended.
func (gs *Grants) checkLogin(ctx context.Context, sid string) error {
	err := gs.logins.Live(ctx, sid)
	if errors.Is(err, problem.Unauthenticated) {
		return errDead
	}
	return err
}

// findHolder returns the subscriber for the tokens of a grant whose row is about to be
// written. Writing that row fails if the subscriber was disabled or deleted, so the
// subscriber is only read if the ID token says more than who it is.
func (gs *Grants) findHolder(ctx context.Context, g Grant) (fabric.Subscriber, error) {
	if len(g.Claims.IDToken) > 0 {
		return gs.findSubscriber(ctx, g.ProjectID, g.SubscriberID, g.SessionID)
	}
	return fabric.Subscriber{ID: g.SubscriberID, ProjectID: g.ProjectID}, gs.checkLogin(ctx, g.SessionID)
}

// Revoke ends a grant: its refresh token and its access tokens.
func (gs *Grants) Revoke(ctx context.Context, id string) error {
	ctx = context.WithoutCancel(ctx) // revoke even if the client hangs up
	if err := gs.store.RevokeGrant(ctx, id, gs.Now(), gs.revocationOf(revocation.Grant, grantRef(id))); err != nil {
		return fmt.Errorf("revoking grant: %w", err)
	}
	return gs.Revocations.Sync(ctx)
}

// RevokeToken ends a token that the client presents: a refresh token with its grant, an access
// token alone (RFC 7009). A refresh token that was used before, or that is forged, ends
// the grant that it names, too, as it does at the token endpoint: otherwise a thief who
// used the token first would stay in. A token of another client, or no token at all, is
// no error and changes nothing.
func (gs *Grants) RevokeToken(ctx context.Context, c Client, token string) error {
	if id, ok := grantOf(token); ok {
		g, err := gs.store.FindGrant(ctx, id.String())
		if err != nil {
			return problem.IgnoreNotFound(err)
		}
		if g.ClientID != c.ID || g.RefreshHash == "" {
			return nil
		}
		return gs.Revoke(ctx, g.ID)
	}

	// Any other token is an access token, or none.
	t, _, err := gs.tokens.Inspect(ctx, token)
	if errors.Is(err, problem.Unauthenticated) {
		return nil
	}
	if err != nil {
		return err
	}
	if t.ClientID != c.ID {
		return nil
	}
	return gs.tokens.revoke(ctx, t)
}
