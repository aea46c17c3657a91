package idp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// AssertionType is the client_assertion_type of private_key_jwt (RFC 7523,
// section 2.2).
const AssertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// These are the limits of an assertion.
const (
	maxAssertion = 8 << 10
	maxAhead     = 10 * time.Minute // how far the exp of an assertion may be in the future
	clientSkew   = 10 * time.Second // how far a client's clock may be ahead
	usedFor      = skew             // how long a use is remembered after exp, because clocks differ
)

// refuseAssertion returns the error for a bad assertion. The error may contain the reason, because
// only the author of the assertion sees it.
func refuseAssertion(format string, args ...any) error {
	return problem.New(problem.Unauthenticated, "invalid_client", "client_assertion: "+format, args...)
}

func errNotAssertion() error {
	return refuseAssertion("it is not a compact JWT signed by one of %s", strings.Join(AssertionAlgorithms(), ", "))
}

// Assertions verifies the signed assertions with which clients authenticate.
type Assertions struct {
	*core
	clients *Clients
	remote  keyring
	local   *cache.Cache[keySet]
}

// An Assertion authenticates a client with private_key_jwt (OpenID Connect Core, section
// 9; RFC 7523, section 3).
type Assertion struct {
	JWT       string
	ClientID  string   // client_id of the request; may be ""
	Audiences []string // audiences that name this server
}

// Verify returns the client that made an assertion. It adds the assertion's use to uses, because an
// assertion can be used only once, on all nodes together. If the assertion is invalid, Verify
// returns problem.Unauthenticated.
func (as *Assertions) Verify(ctx context.Context, a Assertion, uses *Uses) (Client, error) {
	if len(a.JWT) > maxAssertion {
		return Client{}, refuseAssertion("it is longer than %d bytes", maxAssertion)
	}

	token, err := jwt.ParseSigned(a.JWT, assertionAlgorithms)
	if err != nil {
		return Client{}, fmt.Errorf("%w: %w", errNotAssertion(), err)
	}
	if len(token.Headers) != 1 {
		return Client{}, errNotAssertion()
	}
	var claims assertionClaims
	if err := token.UnsafeClaimsWithoutVerification(&claims); err != nil {
		return Client{}, fmt.Errorf("%w: %w", refuseAssertion("its claims are invalid"), err)
	}
	claims.Audience = claims.To.Audience

	// Do not trust the claims yet. First the signature must be verified with a key of the client
	// that the claims name.
	c, err := as.findClient(ctx, a, claims.Claims)
	if err != nil {
		return c, err
	}

	if err := as.checkSignature(ctx, c, token); err != nil {
		return c, err
	}
	if err := as.checkProfile(c, token.Headers[0].Algorithm, claims.To); err != nil {
		return c, err
	}

	if err := checkAssertion(claims.Claims, a.Audiences, as.Now()); err != nil {
		return c, err
	}
	uses.Add(useOf(c, claims.Claims))
	return c, nil
}

// assertionClaims holds the claims of an assertion.
type assertionClaims struct {
	jwt.Claims
	To assertionAudience `json:"aud"`
}

// An assertionAudience is the audience of an assertion. isList reports whether it was written as a list.
type assertionAudience struct {
	jwt.Audience
	isList bool
}

// UnmarshalJSON reads a string or a list of strings (RFC 7519, section 4.1.3).
func (a *assertionAudience) UnmarshalJSON(raw []byte) error {
	a.isList = bytes.HasPrefix(raw, []byte("["))
	return json.Unmarshal(raw, &a.Audience)
}

// findClient returns the client that an assertion names. It does not verify the signature.
func (as *Assertions) findClient(ctx context.Context, a Assertion, claims jwt.Claims) (Client, error) {
	switch {
	case claims.Subject == "" || claims.Issuer != claims.Subject:
		return Client{}, refuseAssertion("iss and sub must both be the client_id")
	case a.ClientID != "" && a.ClientID != claims.Subject:
		return Client{}, refuseAssertion("its sub is not the client_id of the request")
	}
	c, err := as.clients.Find(ctx, claims.Subject)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return Client{}, err
	}
	if err != nil || c.AuthMethod != AuthPrivateKeyJWT {
		return c, refuseAssertion("the client is unknown, or not registered for private_key_jwt")
	}
	return c, nil
}

// checkSignature verifies the signature with one of the client's keys that match the header. It
// never uses a key from the assertion itself (RFC 8725, section 3.10).
func (as *Assertions) checkSignature(ctx context.Context, c Client, token *jwt.JSONWebToken) error {
	head := token.Headers[0]
	typ, _ := head.ExtraHeaders[jose.HeaderType].(string)
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	if !slices.Contains([]string{"", "jwt", "client-authentication+jwt"}, typ) {
		return refuseAssertion("its typ %q belongs to a different kind of JWT", head.ExtraHeaders[jose.HeaderType])
	}

	if c.AssertionAlg != "" && head.Algorithm != c.AssertionAlg {
		return refuseAssertion("its alg must be %s, which the client is registered for", c.AssertionAlg)
	}

	err := as.verify(ctx, c, token)
	var why unverified
	if errors.As(err, &why) {
		return refuseAssertion("%s", why)
	}
	return err
}

// An unverified error is shown to the client. It explains why a signature could not be verified.
type unverified string

func (u unverified) Error() string { return string(u) }

// verify verifies the signature of a JWT with one of the client's keys, and reads the claims into each
// destination. If no key verifies the signature, it returns an unverified error.
func (as *Assertions) verify(ctx context.Context, c Client, token *jwt.JSONWebToken, claims ...any) error {
	head := token.Headers[0]
	candidates, err := as.keysOf(ctx, c, matchHeader(head.KeyID, jose.SignatureAlgorithm(head.Algorithm)))
	if err != nil {
		return err
	}
	for _, key := range candidates {
		if token.Claims(verificationKey(key, jose.SignatureAlgorithm(head.Algorithm)), claims...) == nil {
			return nil
		}
	}

	if len(candidates) == 0 {
		return unverified(fmt.Sprintf("the client's key set has no key for alg %s and kid %q",
			head.Algorithm, head.KeyID))
	}
	return unverified("its signature is not by the client's key")
}

// checkAssertion applies RFC 7523, section 3 to the signed claims.
func checkAssertion(c jwt.Claims, audiences []string, now time.Time) error {
	soon := now.Add(clientSkew)
	switch {
	case !slices.ContainsFunc(c.Audience, func(aud string) bool { return slices.Contains(audiences, aud) }):
		return refuseAssertion("its aud must be the issuer, %s, or the URL of the token endpoint", audiences[0])
	case c.Expiry == nil:
		return refuseAssertion("its exp is missing")
	case !now.Before(c.Expiry.Time()):
		return refuseAssertion("it has expired")
	case c.Expiry.Time().After(soon.Add(maxAhead)):
		return refuseAssertion("its exp is more than %s ahead", maxAhead)
	case c.NotBefore != nil && c.NotBefore.Time().After(soon), c.IssuedAt != nil && c.IssuedAt.Time().After(soon):
		return refuseAssertion("its nbf or iat is in the future")
	case c.ID == "":
		return refuseAssertion("its jti is missing")
	}

	return nil
}

// useOf returns the use of an assertion. The client and the jti identify the use.
func useOf(c Client, claims jwt.Claims) Use {
	made := claims.Expiry.Time().Add(-maxAhead - clientSkew) // no earlier use was possible
	if claims.IssuedAt != nil {
		made = claims.IssuedAt.Time()
	}
	return Use{
		Hash:    session.Digest(c.ID + " " + claims.ID),
		Made:    made,
		Expires: claims.Expiry.Time().Add(usedFor),
		Refusal: refuseAssertion("it was used before; each assertion needs a unique jti"),
	}
}
