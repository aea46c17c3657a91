package idp

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/keys"
)

// A client with the profile FAPI2 pushes its requests and authenticates with a key or a
// certificate. It gets only tokens that are bound to a key or a certificate (FAPI 2.0 Security
// Profile, section 5.3.2). It may sign its requests, and may ask for signed responses and signed
// introspection (FAPI 2.0 Message Signing).

// These are the longest lifetimes of codes and of pushed requests under FAPI2.
const (
	maxFAPICode   = time.Minute
	maxFAPIPushed = 10*time.Minute - time.Second
)

// idTokenAlg returns the default algorithm of ID tokens.
func (p Profile) idTokenAlg() keys.Use {
	if p == FAPI2 {
		return keys.ES256
	}
	return keys.RS256
}

// mustPush reports whether the client must push its authorization requests.
func (c Client) mustPush() bool { return c.RequirePushed || c.Profile == FAPI2 }

// keepsRefreshToken reports whether the client's refresh tokens are not rotated. Under FAPI2,
// rotation would add no protection, because the tokens are bound to the client and a key. With
// rotation, a client that does not receive a response would lose its refresh token.
func (c Client) keepsRefreshToken() bool { return c.Profile == FAPI2 }

// signingAlgorithms returns the algorithms that the client may sign with.
func (c Client) signingAlgorithms() []string {
	all := AssertionAlgorithms()
	if c.Profile == FAPI2 {
		all = slices.DeleteFunc(all, func(alg string) bool { return alg == string(jose.RS256) })
	}
	return all
}

// tokenAlgorithms returns the algorithms with which tokens for the client may be signed.
func (c Client) tokenAlgorithms() []keys.Use {
	all := slices.Clone(keys.Algorithms())
	if c.Profile == FAPI2 {
		all = slices.DeleteFunc(all, func(alg keys.Use) bool { return alg == keys.RS256 })
	}
	return all
}

// checkFAPI reports settings that a client with the profile FAPI2 may not have.
func (c *Client) checkFAPI(found *problems) {
	if c.Profile != FAPI2 {
		return
	}
	if c.AuthMethod != AuthPrivateKeyJWT && !c.ByCertificate() {
		found.add("auth_method", "a client of the profile fapi2 authenticates with %s, %s or %s",
			AuthPrivateKeyJWT, AuthTLS, AuthSelfSignedTLS)
	}
	if c.PKCEOptional {
		found.add("pkce", "the profile fapi2 requires PKCE")
	}
	if c.isImplicit() {
		found.add("response_type", "the profile fapi2 has only the response type code")
	}
	if c.May(GrantDevice) {
		found.add("grant", "the profile fapi2 has no device_code: its requests are pushed")
	}

	for _, uri := range c.RedirectURIs {
		if _, loopback := withoutLoopbackPort(uri); strings.HasPrefix(uri, "http:") && (c.Type != Native || !loopback) {
			found.add("redirect_uri", "%q must be https; under the profile fapi2, http is only for native clients "+
				"on 127.0.0.1 and [::1]", uri)
		}
	}
}

// checkProfile applies FAPI 2.0 Security Profile, section 5.3.2.1 to an assertion from a client
// with this profile. alg must be strong, and the audience must be the issuer, as a string.
func (as *Assertions) checkProfile(c Client, alg string, to assertionAudience) error {
	if c.Profile != FAPI2 {
		return nil
	}
	if !slices.Contains(c.signingAlgorithms(), alg) {
		return refuseAssertion("its alg %s is not one of %s", alg, strings.Join(c.signingAlgorithms(), ", "))
	}
	if to.isList || !slices.Equal(to.Audience, jwt.Audience{as.Issuer}) {
		return refuseAssertion("its aud must be the issuer alone, %s, and not a list", as.Issuer)
	}
	return nil
}

// keep extends the life of a refresh token that is not rotated, and stores the uses of the request.
// The token must be the current token of the grant.
func (gs *Grants) keep(ctx context.Context, g Grant, r Refreshing) error {
	g.IdleUntil = gs.Now().Add(gs.Lifetimes().RefreshIdle)
	if !sameHash(hashSecret(r.Token), g.RefreshHash) {
		return invalidGrant("the refresh token is not valid")
	}
	err := r.Uses.storeWith(func(due []Use) error {
		return gs.store.RotateGrant(ctx, g, g.RefreshHash, due...)
	})
	if p := problem.First(err); p != nil && p.Kind == problem.Conflict {
		return invalidGrant("the grant was revoked")
	}
	return err
}
