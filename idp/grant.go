package idp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/session"
)

// A Grant is what a redeemed code gave: the right of a client to a subscriber's
// tokens, for as long as its refresh token is used and its login is not ended.
type Grant struct {
	ID, ProjectID, ClientID, SubscriberID string
	SessionID                             string
	Scope                                 []string
	AuthTime                              time.Time
	AMR                                   []string
	RefreshHash                           string // SHA-256 of the refresh token; "" where none was given
	Created                               time.Time
	IdleUntil, Expires                    time.Time // when the refresh token dies unused, and when in any case
	Revoked                               time.Time
}

// newGrant makes the grant of a code, with a refresh token where the client may
// have one: beside a fabric access token always, else for offline_access.
func (p *Provider) newGrant(c Client, code Code) (g Grant, refresh string, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return g, "", fmt.Errorf("making grant id: %w", err)
	}
	now, l := p.Now(), p.Lifetimes()
	g = Grant{
		ID: id.String(), ProjectID: code.ProjectID, ClientID: c.ID, SubscriberID: code.SubjectID, SessionID: code.SessionID,
		Scope: code.Request.Scope, AuthTime: code.AuthTime, AMR: code.AMR, Created: now,
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

// A refresh token is the grant's id and a secret of 256 bits, so that the grant
// is found even by a token that is not its current one.
func newRefreshToken(grant uuid.UUID) (token, hash string) {
	token = base64.RawURLEncoding.EncodeToString(grant[:]) + "." + randomToken()
	return token, hashSecret(token)
}

// grantRef is how access tokens name their grant: not by its id, which would be
// half of its refresh token.
func grantRef(id string) string { return session.Digest(id) }

func grantOf(token string) (id uuid.UUID, ok bool) {
	head, secret, found := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(head)
	if !found || err != nil || len(raw) != len(id) || len(secret) != len(randomToken()) {
		return id, false
	}
	return uuid.UUID(raw), true
}

// Refresh replaces a refresh token and mints new tokens, for the scope asked
// (raw, "" means all) if it is no wider than what was granted. A token that was
// used before revokes the grant (RFC 9700, section 4.14.2).
func (p *Provider) Refresh(ctx context.Context, c Client, token, rawScope string) (TokenSet, error) {
	id, ok := grantOf(token)
	if !ok {
		return TokenSet{}, invalidGrant("the refresh token is not valid")
	}
	g, err := p.refreshable(ctx, c, id.String())
	if err != nil {
		return TokenSet{}, err
	}
	scope, err := narrowed(c.only(g.Scope), rawScope)
	if err != nil {
		return TokenSet{}, err
	}
	sub, err := p.living(ctx, g.ProjectID, g.SubscriberID, g.SessionID)
	if err != nil {
		return TokenSet{}, err
	}
	next, hash := newRefreshToken(id)
	err = p.Store.RotateGrant(ctx, g.ID, hashSecret(token), hash, p.Now().Add(p.Lifetimes().RefreshIdle))
	if errors.Is(err, problem.Conflict) {
		if err := p.RevokeGrant(ctx, g.ID); err != nil {
			return TokenSet{}, err
		}
		return TokenSet{}, invalidGrant("the refresh token was used before; the grant is revoked")
	}
	if err != nil {
		return TokenSet{}, err
	}
	p.Observe("token_" + GrantRefresh)
	return p.mint(c, g, sub, minting{scope: scope, refresh: next, idToken: true})
}

// refreshable finds a grant that this client may still refresh.
func (p *Provider) refreshable(ctx context.Context, c Client, id string) (Grant, error) {
	g, err := p.Store.FindGrant(ctx, id)
	if errors.Is(err, problem.NotFound) {
		return g, invalidGrant("the refresh token is not valid")
	}
	if err != nil {
		return g, fmt.Errorf("reading grant: %w", err)
	}
	now := p.Now()
	switch {
	case g.ClientID != c.ID || g.RefreshHash == "":
		return g, invalidGrant("the refresh token is not valid")
	case !c.mayKeepGoing(g.Scope):
		return g, invalidGrant("the client may not refresh any more")
	case !g.Revoked.IsZero():
		return g, invalidGrant("the grant was revoked")
	case !now.Before(g.IdleUntil) || !now.Before(g.Expires):
		return g, invalidGrant("the refresh token has expired")
	}
	return g, nil
}

// only gives those of the scopes that the client may still have.
func (c Client) only(scopes []string) []string {
	return slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !slices.Contains(c.Scopes, s) })
}

// narrowed gives the scope asked by a refresh (RFC 6749, section 6).
func narrowed(granted []string, raw string) ([]string, error) {
	asked := strings.Fields(raw)
	if len(asked) == 0 {
		return granted, nil
	}
	if len(asked) > maxScopes {
		return nil, oauth("invalid_scope", "more than %d scopes", maxScopes)
	}
	known, unknown := canonicalScopes(asked)
	for _, s := range known {
		if !slices.Contains(granted, s) {
			unknown = append(unknown, s)
		}
	}
	if len(unknown) > 0 {
		return nil, oauth("invalid_scope", "the scope is wider than what was granted")
	}
	return known, nil
}

// errDead is the answer where tokens of a login are asked for that was ended.
var errDead = invalidGrant("the subscriber is disabled or has signed out")

// living finds the subscriber that tokens are made for, unless it is disabled or
// its login was ended.
func (p *Provider) living(ctx context.Context, projectID, subscriberID, sid string) (fabric.Subscriber, error) {
	sub, err := p.Subscribers.FindSubscriber(ctx, projectID, subscriberID)
	switch {
	case errors.Is(err, problem.NotFound):
		return sub, errDead
	case err != nil:
		return sub, fmt.Errorf("finding subscriber: %w", err)
	case sub.Disabled:
		return sub, errDead
	}
	if err := p.Live(ctx, sid); errors.Is(err, problem.Unauthenticated) {
		return sub, errDead
	} else if err != nil {
		return sub, err
	}
	return sub, nil
}

// RevokeGrant ends a grant: its refresh token and its access tokens.
func (p *Provider) RevokeGrant(ctx context.Context, id string) error {
	ctx = context.WithoutCancel(ctx) // a replay is answered so even if its author hangs up
	if err := p.Store.RevokeGrant(ctx, id, p.Now(), p.ending(revocation.Grant, grantRef(id))); err != nil {
		return fmt.Errorf("revoking grant: %w", err)
	}
	return p.Revocations.Sync(ctx)
}

// Revoke ends a token that the client presents: a refresh token with its grant,
// an access token alone (RFC 7009). A token of another client, or no token at
// all, is no error and changes nothing.
func (p *Provider) Revoke(ctx context.Context, c Client, token string) error {
	if id, ok := grantOf(token); ok {
		g, err := p.Store.FindGrant(ctx, id.String())
		if err != nil {
			return ignoreNotFound(err)
		}
		if g.ClientID != c.ID || g.RefreshHash != hashSecret(token) {
			return nil
		}
		return p.RevokeGrant(ctx, g.ID)
	}
	t, err := p.OpenAccessToken(ctx, token)
	if errors.Is(err, problem.Unauthenticated) {
		return nil
	}
	if err != nil {
		return err
	}
	if t.ClientID != c.ID {
		return nil
	}
	return p.revokeAccess(ctx, t)
}
