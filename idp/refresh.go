package idp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// newRefreshToken returns a refresh token and its hash. The token consists of the grant's ID and a
// secret of 256 bits. With the ID, the grant is found even if the token is no longer the current
// one.
func newRefreshToken(grant uuid.UUID) (token, hash string) {
	token = base64.RawURLEncoding.EncodeToString(grant[:]) + "." + randomToken()
	return token, hashSecret(token)
}

func grantOf(token string) (id uuid.UUID, ok bool) {
	head, secret, found := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(head)
	if !found || err != nil || len(raw) != len(id) || len(secret) != tokenLength {
		return id, false
	}
	return uuid.UUID(raw), true
}

// grace is the time in which the previous refresh token still returns the current one. Clients need
// this time if they send two requests at once, or do not receive the response.
const grace = 10 * time.Second

// A Refreshing is a request to exchange a refresh token for new tokens (RFC 6749, section 6).
type Refreshing struct {
	Token     string
	Scope     string   // narrows the granted scope; "" means the whole granted scope
	Resources []string // must be among the granted resources (RFC 8707)
	Binding   string   // what the client proved to have, to which the new access token is bound; may be ""
	Uses      *Uses    // uses to store with the new refresh token, or before the grant is revoked
}

// Refresh replaces a refresh token and creates new tokens. If the grant is bound, the client must
// have the same key or certificate. Some clients may use a different key or certificate of the same
// kind; see mayRefresh.
//
// For a short time, a used token returns the same successor again, so that a grant never has more
// than one current token. After that time, using it again revokes the grant (RFC 9700, section
// 4.14.2).
func (gs *Grants) Refresh(ctx context.Context, c Client, r Refreshing) (TokenSet, error) {
	id, ok := grantOf(r.Token)
	if !ok {
		return TokenSet{}, unknown("the refresh token is not valid")
	}
	g, err := gs.findRefreshable(ctx, c, id.String())
	if err != nil {
		return TokenSet{}, err
	}

	if !c.mayRefresh(g.Binding, r.Binding) {
		return TokenSet{}, invalidGrant("the refresh token is bound to a key or certificate that the request lacks")
	}
	if err := c.checkBinding(r.Binding); err != nil {
		return TokenSet{}, err
	}

	// Check the scope, audience and subscriber before using the token up.
	scope, err := narrowed(c.only(g.Scope), r.Scope)
	if err != nil {
		return TokenSet{}, err
	}

	audience, err := gs.grantedAudience(c, g.Resources, r.Resources)
	if err != nil {
		return TokenSet{}, err
	}

	sub, err := gs.findHolder(ctx, g)
	if err != nil {
		return TokenSet{}, err
	}

	if err := gs.checkFabricAccess(ctx, c, g); err != nil {
		return TokenSet{}, err
	}

	next, err := gs.renew(ctx, c, g, r)
	if err != nil {
		return TokenSet{}, err
	}

	gs.Observe("token_" + GrantRefresh)
	return gs.tokens.mint(c, g, sub, minting{
		scope:    scope,
		audience: audience,
		refresh:  next,
		idToken:  true,
		binding:  r.Binding,
	})
}

// renew uses a refresh token and returns its successor, or "" if the client's tokens are not
// rotated.
func (gs *Grants) renew(ctx context.Context, c Client, g Grant, r Refreshing) (next string, err error) {
	if c.keepsRefreshToken() {
		return "", gs.keep(ctx, g, r)
	}
	next, err = gs.rotate(ctx, g, r)
	if !errors.Is(err, problem.Conflict) {
		return next, err
	}
	// The rotation has stored nothing, so store the uses now. This fails for a replay of the whole
	// request, which must not get the successor and must not revoke the grant.
	if err := r.Uses.Store(ctx); err != nil {
		return "", err
	}
	return gs.retry(ctx, c, g.ID, r.Token)
}

// checkFabricAccess returns an error if a client would get a fabric token although the subscriber
// has never consented to [FabricAccess]. This happens if the client's access tokens used to be
// JWTs.
func (gs *Grants) checkFabricAccess(ctx context.Context, c Client, g Grant) error {
	if c.FirstParty || c.AccessToken != FabricToken {
		return nil
	}
	agreed, err := gs.store.FindConsent(ctx, g.SubscriberID, c.ID)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return fmt.Errorf("finding consent: %w", err)
	}
	if !slices.Contains(agreed, FabricAccess) {
		return invalidGrant("the subscriber has not consented to fabric tokens for this client")
	}
	return nil
}

// rotate replaces the refresh token of a grant, and stores the uses of the request. If the token is
// not the current one, it stores nothing and returns problem.Conflict.
func (gs *Grants) rotate(ctx context.Context, g Grant, r Refreshing) (next string, err error) {
	seed := randomToken()
	if g.Seed, err = gs.Ring.SealSecret(SeedName(g.ID), []byte(seed)); err != nil {
		return "", err
	}
	next = refreshAfter(r.Token, seed)
	g.RefreshHash, g.Rotated = hashSecret(next), gs.Now()
	g.IdleUntil = g.Rotated.Add(gs.Lifetimes().RefreshIdle)
	return next, r.Uses.storeWith(func(due []Use) error {
		return gs.store.RotateGrant(ctx, g, hashSecret(r.Token), due...)
	})
}

// retry handles a refresh token that is not the current one. Within the grace period it returns the
// token's successor. After the grace period it revokes the grant.
func (gs *Grants) retry(ctx context.Context, c Client, id, token string) (next string, err error) {
	g, err := gs.findRefreshable(ctx, c, id) // read the grant again, because it has changed
	if err != nil {
		return "", err
	}
	if next, ok := gs.successor(g, token); ok {
		return next, nil
	}
	if err := gs.Revoke(audit.Because(ctx, "the refresh token was used before"), g.ID); err != nil {
		return "", err
	}
	return "", invalidGrant("the refresh token was used before; the grant is revoked")
}

// successor returns a grant's current refresh token if token is the previous one and the grace
// period has not ended.
func (gs *Grants) successor(g Grant, token string) (string, bool) {
	if !gs.Now().Before(g.Rotated.Add(grace)) {
		return "", false
	}
	seed, err := gs.Ring.OpenSecret(SeedName(g.ID), g.Seed)
	if err != nil {
		return "", false
	}
	next := refreshAfter(token, string(seed))
	return next, hashSecret(next) == g.RefreshHash
}

// refreshAfter returns the successor of a refresh token. It depends on both token and seed. Neither
// old tokens nor the database with all keys is enough to compute it.
func refreshAfter(token, seed string) string {
	head, _, _ := strings.Cut(token, ".")
	h := hmac.New(sha256.New, []byte(seed))
	h.Write([]byte(token))
	return head + "." + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil))
}

// SeedName returns the name that binds a grant's sealed seed to the grant.
func SeedName(id string) string { return "seed of " + id }

// findRefreshable returns a grant that this client may refresh.
func (gs *Grants) findRefreshable(ctx context.Context, c Client, id string) (Grant, error) {
	g, err := gs.store.FindGrant(ctx, id)
	if errors.Is(err, problem.NotFound) {
		return g, unknown("the refresh token is not valid")
	}
	if err != nil {
		return g, fmt.Errorf("reading grant: %w", err)
	}

	now := gs.Now()
	switch {
	case g.ClientID != c.ID || g.RefreshHash == "":
		return g, invalidGrant("the refresh token is not valid")
	case !c.includesRefresh(g.Scope):
		return g, invalidGrant("the client may no longer refresh tokens")
	case !g.Revoked.IsZero():
		return g, invalidGrant("the grant was revoked")
	case !now.Before(g.IdleUntil) || !now.Before(g.Expires):
		return g, invalidGrant("the refresh token has expired")
	}
	return g, nil
}

// only returns the given scopes that the client may still request.
func (c Client) only(scopes []string) []string {
	return slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !slices.Contains(c.Scopes, s) })
}

// narrowed returns the scopes that a refresh requests. They must be among the granted scopes (RFC 6749,
// section 6).
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
