package idp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// These are the parts that an authorization response can contain. A response type is a set of
// parts, separated by spaces (OAuth 2.0 Multiple Response Type Encoding Practices, section 3).
const (
	ResponseCode    = "code"
	ResponseIDToken = "id_token"
	ResponseToken   = "token"
)

// responseTypes are the supported response types of the code flow, the implicit flow and the hybrid flow
// (OpenID Connect Core, section 3). A client without response types may use only the first one. Every
// other response type must be registered, because tokens in an authorization response can leak and be
// injected (RFC 9700, section 2.1.2).
var responseTypes = []string{"code", "id_token", "id_token token", "code id_token", "code token",
	"code id_token token"}

// ResponseTypes returns the supported response types.
func ResponseTypes() []string { return slices.Clone(responseTypes) }

// canonicalResponseType returns a response type with its parts in the same order as in responseTypes.
func canonicalResponseType(raw string) string {
	parts := strings.Fields(raw)
	order := []string{ResponseCode, ResponseIDToken, ResponseToken}
	slices.SortFunc(parts, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return strings.Join(parts, " ")
}

// Returns reports whether the response to the request contains the given part: ResponseCode,
// ResponseIDToken or ResponseToken.
func (a AuthRequest) Returns(part string) bool {
	if a.ResponseType == "" {
		return part == ResponseCode
	}
	return slices.Contains(strings.Fields(a.ResponseType), part)
}

// Answers reports whether the client is registered for a response type.
func (c Client) Answers(responseType string) bool {
	if (AuthRequest{ResponseType: responseType}).Returns(ResponseCode) && !c.May(GrantCode) {
		return false
	}
	return slices.Contains(c.ResponseTypes, responseType) || len(c.ResponseTypes) == 0 && responseType == ResponseCode
}

// isImplicit reports whether the client is registered for a response type with tokens.
func (c Client) isImplicit() bool {
	return slices.ContainsFunc(c.ResponseTypes, func(t string) bool { return t != ResponseCode })
}

// checkResponseTypes puts the client's response types in canonical form and reports invalid ones.
func (c *Client) checkResponseTypes(found *problems) {
	c.ResponseTypes = slices.Clone(c.ResponseTypes)
	for i, t := range c.ResponseTypes {
		c.ResponseTypes[i] = canonicalResponseType(t)
		switch a := (AuthRequest{ResponseType: c.ResponseTypes[i]}); {
		case !slices.Contains(responseTypes, a.ResponseType):
			found.add("response_type", "%q is not one of %s", t, strings.Join(responseTypes, ", "))
		case a.Returns(ResponseCode) && !c.May(GrantCode):
			found.add("response_type", "%q needs the grant %s", t, GrantCode)
		case a.Returns(ResponseToken) && c.mustBind():
			found.add("response_type", "%q returns a token that cannot be bound to a key", t)
		}
	}
}

// checkImplicit applies the rules for a request whose response contains tokens. If the response
// contains an ID token, the request must have a nonce (OpenID Connect Core, sections 3.2.2.1 and
// 3.3.2.11).
func (a *AuthRequest) checkImplicit(c Client) error {
	if a.Returns(ResponseIDToken) && a.Nonce == "" {
		return oauth("invalid_request", "nonce is missing; response_type %s requires one", a.ResponseType)
	}
	if !slices.Contains(a.Scope, "openid") {
		return oauth("invalid_scope", "response_type %s requires the scope openid", a.ResponseType)
	}
	if a.Returns(ResponseToken) && c.mustBind() {
		return oauth("unauthorized_client", "this client's tokens are bound to a key; get them at the token endpoint")
	}
	if !a.Returns(ResponseCode) {
		a.Scope = claimScopesIn(a.Scope)
	}
	return nil
}

// claimScopesIn returns those of the given scopes that are openid or request claims. Tokens in an
// authorization response have no other scopes.
func claimScopesIn(scope []string) []string {
	return slices.DeleteFunc(slices.Clone(scope), func(s string) bool { return s != "openid" && len(ClaimsOf(s)) == 0 })
}

// directFor is how long an access token in an authorization response is valid.
const directFor = 10 * time.Minute

// IssueDirect returns the tokens in the response to a request that login s answers. code is the
// code in the same response, or "". Like redeeming a code, issuing these tokens creates a grant.
//
// The access token is valid only at userinfo. If there is no access token and no code, the ID token
// contains the claims of the requested scopes (OpenID Connect Core, section 5.4).
func (gs *Grants) IssueDirect(ctx context.Context, c Client, a AuthRequest, s Login, code string) (TokenSet, error) {
	gone := oauth("login_required", "the login ended or the consent was revoked in the meantime")
	sub, err := gs.findSubscriber(ctx, s.ProjectID, s.SubscriberID, s.ID)
	if errors.Is(err, errDead) {
		return TokenSet{}, gone
	}
	if err != nil {
		return TokenSet{}, err
	}

	rights := c.rightsToConsent(a)
	a.Scope = claimScopesIn(a.Scope)
	g, _, err := gs.create(c, codeOf(a, s))
	if err != nil {
		return TokenSet{}, err
	}

	g.RefreshHash, g.Seed = "", ""
	g.Expires = g.Created.Add(gs.Lifetimes().IDToken)
	g.IdleUntil = g.Expires
	// RedeemCode needs the hash of a code. No code is redeemed here, so use the hash of a random
	// string.
	err = gs.store.RedeemCode(ctx, RedeemedCode{
		Hash:     session.Digest(randomToken()),
		GrantID:  g.ID,
		ClientID: c.ID,
		Rights:   rights,
		Expires:  g.Created,
	}, g)
	if errors.Is(err, problem.NotFound) {
		return TokenSet{}, gone
	}
	if err != nil {
		return TokenSet{}, err
	}
	return gs.tokens.mintDirect(c, g, sub, a, code)
}

// mintDirect creates the tokens in the response to a request.
func (ts *Tokens) mintDirect(c Client, g Grant, sub fabric.Subscriber, a AuthRequest, code string) (TokenSet, error) {
	set, m := TokenSet{Scope: g.Scope}, minting{scope: g.Scope, nonce: a.Nonce, code: code}
	if a.Returns(ResponseToken) {
		now := ts.Now()
		var err error
		set.AccessToken, err = ts.signAccess(c, fabric.Token{
			Kind:         fabric.Access,
			ID:           uuid.NewString(),
			Issuer:       ts.Issuer,
			ProjectID:    g.ProjectID,
			SubscriberID: g.SubscriberID,
			ClientID:     c.ID,
			SessionID:    g.SessionID,
			GrantID:      grantRef(g.ID),
			Scope:        m.scope,
			Claims:       c.onlyClaims(g.left(g.Claims.Userinfo, m.scope)),
			IssuedAt:     now,
			ExpiresAt:    now.Add(directFor),
		}, ts.userinfoURL(), g.AuthTime, g.AMR)
		if err != nil {
			return set, err
		}
		set.ExpiresIn = directFor
	}

	if !a.Returns(ResponseIDToken) {
		return set, nil
	}
	ts.Observe("id_token")
	var err error
	set.IDToken, err = ts.idToken(c, g, sub, m, set.AccessToken)
	return set, err
}

// userinfoURL is the audience of access tokens that are valid only at userinfo.
func (ts *Tokens) userinfoURL() string { return ts.Issuer + "oauth/userinfo" }
