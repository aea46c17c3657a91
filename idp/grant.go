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

// A Grant is the right of a client to tokens for a subscriber. It is created when a code is
// redeemed, or when an authorization response contains tokens. It lasts until its refresh token
// expires, its login ends, or it is revoked.
type Grant struct {
	ID, ProjectID, ClientID, SubscriberID string
	SessionID                             string
	Scope                                 []string
	Claims                                Claims
	Resources                             []string // possible audiences of access tokens; empty means the issuer
	AuthTime                              time.Time
	AMR                                   []string
	Binding                               string    // what its tokens are bound to; see package cnf
	RefreshHash                           string    // SHA-256 of the refresh token; may be ""
	Seed                                  string    // sealed; with the previous token, it yields the current one
	Rotated                               time.Time // when the current token was created; zero for the first token
	Created                               time.Time
	IdleUntil, Expires                    time.Time // when an unused refresh token expires, and any other
	Revoked                               time.Time
}

// A GrantStore stores grants and redeemed codes.
type GrantStore interface {
	// RedeemCode writes the grant of a code. If the code with this hash was redeemed before,
	// RedeemCode returns problem.Conflict. If the login has ended, the consent was revoked, or the
	// client or subscriber was deleted in the meantime, it returns problem.NotFound.
	RedeemCode(ctx context.Context, c RedeemedCode, g Grant) error
	FindRedeemedCode(ctx context.Context, hash string) (RedeemedCode, error)
	FindGrant(ctx context.Context, id string) (Grant, error)
	// FindConsent returns the rights that a subscriber has granted to a client.
	FindConsent(ctx context.Context, subscriberID, clientID string) ([]string, error)
	// RotateGrant writes the refresh token of an active grant: its hash, Seed, Rotated and
	// IdleUntil. If the stored hash differs from old, the token was already used, and RotateGrant
	// returns problem.Conflict. It also stores the given uses in the same transaction; see UseStore.
	RotateGrant(ctx context.Context, g Grant, old string, uses ...Use) error
	// RevokeGrant ends a grant and revokes its access tokens, in one transaction.
	RevokeGrant(ctx context.Context, id string, now time.Time, r revocation.Revocation) error
	// RevokeToken writes the revocation of an access token of the project.
	RevokeToken(ctx context.Context, projectID string, r revocation.Revocation) error
}

// Grants manages the rights of clients to tokens.
type Grants struct {
	*core
	store  GrantStore
	logins *Logins
	tokens *Tokens
}

// create returns the grant for a code. It also returns a refresh token if the client is registered
// for refresh tokens. A client whose access tokens are JWTs also needs the scope offline_access.
func (gs *Grants) create(c Client, code Code) (g Grant, refresh string, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return g, "", fmt.Errorf("creating grant id: %w", err)
	}

	now, lifetimes := gs.Now(), gs.Lifetimes()
	g = Grant{
		ID:           id.String(),
		ProjectID:    code.ProjectID,
		ClientID:     c.ID,
		SubscriberID: code.SubjectID,
		SessionID:    code.SessionID,
		Scope:        code.Request.Scope,
		Claims:       code.Request.Claims,
		Resources:    code.Request.Resources,
		AuthTime:     code.AuthTime,
		AMR:          code.AMR,
		Created:      now,
		IdleUntil:    now.Add(lifetimes.RefreshIdle),
		Expires:      now.Add(lifetimes.RefreshAbsolute),
	}

	if c.includesRefresh(g.Scope) {
		refresh, g.RefreshHash = newRefreshToken(id)
	}
	return g, refresh, nil
}

// includesRefresh reports whether a grant with these scopes includes a refresh token.
func (c Client) includesRefresh(scopes []string) bool {
	return c.May(GrantRefresh) && (c.AccessToken == FabricToken || slices.Contains(c.only(scopes), "offline_access"))
}

// grantRef returns the name of a grant in access tokens. It differs from the ID, because the ID is
// part of the refresh token.
func grantRef(id string) string { return session.Digest(id) }

// errDead is the error for token requests whose login has ended, or whose subscriber or consent no
// longer permits tokens.
var errDead = invalidGrant("the subscriber is disabled, has signed out, or has revoked the consent")

// findSubscriber returns the subscriber of new tokens. If the subscriber is missing or disabled, or
// the login has ended, it returns errDead.
func (gs *Grants) findSubscriber(ctx context.Context, projectID, subscriberID, sid string) (fabric.Subscriber, error) {
	sub, err := gs.Subscribers.FindSubscriber(ctx, projectID, subscriberID)
	if errors.Is(err, problem.NotFound) {
		return fabric.Subscriber{}, errDead
	}
	if err != nil {
		return fabric.Subscriber{}, fmt.Errorf("finding subscriber: %w", err)
	}
	if sub.Disabled {
		return fabric.Subscriber{}, errDead
	}
	return sub, gs.checkLogin(ctx, sid)
}

// checkLogin returns errDead if a login has ended.
func (gs *Grants) checkLogin(ctx context.Context, sid string) error {
	err := gs.logins.Live(ctx, sid)
	if errors.Is(err, problem.Unauthenticated) {
		return errDead
	}
	return err
}

// findHolder returns the subscriber for the tokens of a grant whose row is about to be written.
// Writing the row fails if the subscriber was disabled or deleted. findHolder therefore reads the
// subscriber only if the ID token needs more than the ID.
func (gs *Grants) findHolder(ctx context.Context, g Grant) (fabric.Subscriber, error) {
	if len(g.Claims.IDToken) > 0 {
		return gs.findSubscriber(ctx, g.ProjectID, g.SubscriberID, g.SessionID)
	}
	return fabric.Subscriber{ID: g.SubscriberID, ProjectID: g.ProjectID}, gs.checkLogin(ctx, g.SessionID)
}

// Revoke ends a grant, with its refresh token and its access tokens.
func (gs *Grants) Revoke(ctx context.Context, id string) error {
	ctx = context.WithoutCancel(ctx) // revoke even if the client disconnects
	tokens := gs.revocationOf(revocation.Grant, grantRef(id))
	if err := gs.store.RevokeGrant(ctx, id, gs.Now(), tokens); err != nil {
		return fmt.Errorf("revoking grant: %w", err)
	}
	return gs.Revocations.Sync(ctx)
}

// RevokeToken revokes a token that the client presents (RFC 7009). If it is a refresh token, the
// grant ends. If it is an access token, only the token is revoked. A refresh token that was used
// before, or that is forged, also ends the grant that it names, as at the token endpoint. Otherwise
// a thief who used the token first would keep access. RevokeToken ignores tokens of other
// clients and invalid tokens, and returns no error.
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

	// Any other token can only be an access token.
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
	return gs.revokeAccess(ctx, t)
}

// revokeAccess revokes a single access token.
func (gs *Grants) revokeAccess(ctx context.Context, t fabric.Token) error {
	err := gs.store.RevokeToken(ctx, t.ProjectID, revocation.Revocation{
		Kind:    revocation.Token,
		ID:      t.ID,
		Until:   t.ExpiresAt,
		Expires: t.ExpiresAt,
	})
	if err != nil {
		return fmt.Errorf("revoking token: %w", err)
	}
	return gs.Revocations.Sync(ctx)
}
