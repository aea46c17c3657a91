package idp

import (
	"context"
	"errors"
	"slices"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// The supported response types (OpenID Connect Core, section 3): a code or, for clients registered
// for it, only an ID token. Access tokens are never sent in an authorization response (RFC 9700,
// section 2.1.2).
const (
	ResponseCode    = "code"
	ResponseIDToken = "id_token"
)

// ResponseTypes returns the supported response types.
func ResponseTypes() []string { return []string{ResponseCode, ResponseIDToken} }

// Answers reports whether the client is registered for a response type.
func (c Client) Answers(responseType string) bool {
	if responseType == ResponseCode && !c.May(GrantCode) {
		return false
	}
	return slices.Contains(c.ResponseTypes, responseType) || len(c.ResponseTypes) == 0 && responseType == ResponseCode
}

// checkImplicit applies the rules for a request whose only response is an ID token. The request
// must have a nonce (OpenID Connect Core, section 3.2.2.1). Scopes that would need an access token
// are dropped.
func (a *AuthRequest) checkImplicit() error {
	if a.Nonce == "" {
		return oauth("invalid_request", "nonce is missing; response_type id_token requires one")
	}
	if !slices.Contains(a.Scope, "openid") {
		return oauth("invalid_scope", "response_type id_token requires the scope openid")
	}
	a.Scope = slices.DeleteFunc(slices.Clone(a.Scope), func(s string) bool {
		return s != "openid" && len(ClaimsOf(s)) == 0
	})
	return nil
}

// IssueIDToken returns the ID token for a request that login s answers. The token contains the
// claims of the requested scopes, because the client gets no access token for userinfo (OpenID
// Connect Core, section 5.4). Like a code, it makes a grant.
func (gs *Grants) IssueIDToken(ctx context.Context, c Client, a AuthRequest, s Login) (string, error) {
	gone := oauth("login_required", "the login ended or the consent was revoked in the meantime")
	sub, err := gs.findSubscriber(ctx, s.ProjectID, s.SubscriberID, s.ID)
	if errors.Is(err, errDead) {
		return "", gone
	}
	if err != nil {
		return "", err
	}

	g, _, err := gs.create(c, codeOf(a, s))
	if err != nil {
		return "", err
	}
	g.RefreshHash, g.Seed = "", ""
	g.Expires = g.Created.Add(gs.Lifetimes().IDToken)
	g.IdleUntil = g.Expires
	// RedeemCode needs the hash of a code. There is none, so use that of a random string.
	err = gs.store.RedeemCode(ctx, RedeemedCode{Hash: session.Digest(randomToken()), GrantID: g.ID,
		ClientID: c.ID, Rights: c.needed(a), Expires: g.Created}, g)
	if errors.Is(err, problem.NotFound) {
		return "", gone
	}
	if err != nil {
		return "", err
	}
	gs.Observe("id_token")
	return gs.tokens.idToken(c, g, sub, minting{scope: g.Scope, nonce: a.Nonce}, "")
}
