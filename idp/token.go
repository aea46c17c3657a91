package idp

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/cnf"
	"github.com/selvage/selvage/keys"
)

// These are the values of the typ header in access tokens and ID tokens. Each verifier accepts only
// one of them, so that a token cannot be used as another kind of token (RFC 8725, section 3.11).
const (
	typAccess = "at+jwt" // RFC 9068, section 2.1
	typID     = "JWT"
)

// A TokenSet is the response of the token endpoint (RFC 6749, section 5.1).
type TokenSet struct {
	AccessToken  string
	ExpiresIn    time.Duration
	RefreshToken string // may be ""
	IDToken      string // "" if the scope openid was not granted
	Scope        []string
	Bound        bool // whether the access token is bound to a key (RFC 9449)
}

// Tokens creates and reads tokens.
type Tokens struct {
	*core
	clients  *Clients
	subjects *Subjects
}

// A minting holds the parts of a TokenSet that depend on the request for it.
type minting struct {
	scope    []string
	nonce    string
	refresh  string
	idToken  bool
	code     string // authorization code in the same response; may be ""
	audience string // audience of the access token
	binding  string // what the access token is bound to; see package cnf
}

// mint creates the tokens for a grant.
func (ts *Tokens) mint(c Client, g Grant, sub fabric.Subscriber, m minting) (TokenSet, error) {
	t := fabric.Token{
		Kind:         fabric.SAT,
		ProjectID:    g.ProjectID,
		SubscriberID: g.SubscriberID,
		ClientID:     c.ID,
		SessionID:    g.SessionID,
		GrantID:      grantRef(g.ID),
		Scope:        m.scope,
		Claims:       c.onlyClaims(g.left(g.Claims.Userinfo, m.scope)),
		Binding:      m.binding,
	}
	if c.AccessToken == JWTToken {
		t.Kind = fabric.Access
	}

	access, err := ts.access(c, &t, m.audience, g.AuthTime, g.AMR)
	if err != nil {
		return TokenSet{}, err
	}

	set := TokenSet{
		AccessToken:  access,
		ExpiresIn:    t.ExpiresAt.Sub(t.IssuedAt),
		RefreshToken: m.refresh,
		Scope:        m.scope,
		Bound:        cnf.IsKey(m.binding),
	}
	if m.idToken && slices.Contains(m.scope, "openid") {
		set.IDToken, err = ts.idToken(c, g, sub, m, access)
		if err != nil {
			return TokenSet{}, err
		}
	}
	return set, nil
}

// ClientCredentials returns an access token for a service itself. rawScope is the requested scope;
// "" means all fabric scopes for which the service is registered. resources is empty or names the
// audience (RFC 8707). binding is what the client proved that it has; it may be "".
func (ts *Tokens) ClientCredentials(_ context.Context, c Client, rawScope string,
	resources []string, binding string) (TokenSet, error) {
	if err := c.checkBinding(binding); err != nil {
		return TokenSet{}, err
	}
	audience, err := ts.audience(c, resources)
	if err != nil {
		return TokenSet{}, err
	}

	scope := slices.DeleteFunc(slices.Clone(c.Scopes), func(s string) bool { return slices.Contains(loginScopes, s) })
	if strings.TrimSpace(rawScope) != "" {
		if scope, err = c.allowedScopes(strings.Fields(rawScope)); err != nil {
			return TokenSet{}, err
		}
		if slices.ContainsFunc(scope, func(s string) bool { return slices.Contains(loginScopes, s) }) {
			return TokenSet{}, oauth("invalid_scope",
				"client_credentials involves no login: scopes such as openid and profile have no meaning")
		}
	}

	t := fabric.Token{Kind: fabric.Service, ProjectID: c.ProjectID, ClientID: c.ID, Scope: scope, Binding: binding}
	access, err := ts.access(c, &t, audience, time.Time{}, nil)
	if err != nil {
		return TokenSet{}, err
	}
	ts.Observe("token_" + GrantClientCredentials)
	return TokenSet{
		AccessToken: access,
		ExpiresIn:   t.ExpiresAt.Sub(t.IssuedAt),
		Scope:       scope,
		Bound:       cnf.IsKey(binding),
	}, nil
}

// access sets the id, issuer and times of t, and returns t as a sealed or signed access token.
func (ts *Tokens) access(c Client, t *fabric.Token, audience string, authTime time.Time, amr []string) (string, error) {
	t.ID, t.Issuer, t.IssuedAt = uuid.NewString(), ts.Issuer, ts.Now()

	if c.AccessToken == FabricToken {
		t.ExpiresAt = t.IssuedAt.Add(ts.Lifetimes().AccessFabric)
		return ts.Fabric.Tokens.Seal(*t)
	}

	t.ExpiresAt = t.IssuedAt.Add(ts.Lifetimes().AccessJWT)
	return ts.signAccess(c, *t, audience, authTime, amr)
}

// signAccess returns an access token as a JWT (RFC 9068).
func (ts *Tokens) signAccess(c Client, t fabric.Token, audience string, authTime time.Time,
	amr []string) (string, error) {
	claims := accessClaims{
		Issuer:       t.Issuer,
		Subject:      ts.subjects.SubjectFor(c, t.SubscriberID),
		Audience:     audience,
		ClientID:     c.ID,
		IssuedAt:     t.IssuedAt.Unix(),
		Expires:      t.ExpiresAt.Unix(),
		ID:           t.ID,
		Scope:        strings.Join(t.Scope, " "),
		SessionID:    ts.subjects.SessionFor(c, t.SessionID),
		GrantID:      t.GrantID,
		ProjectID:    t.ProjectID,
		AuthTime:     unixSeconds(authTime),
		ACR:          acrOf(amr),
		AMR:          amr,
		Claims:       t.Claims,
		Confirmation: cnf.ClaimOf(t.Binding),
	}

	if t.SubscriberID == "" {
		claims.Subject = c.ID // without a subscriber, the client is the subject (RFC 9068, section 2.2)
	}

	return ts.Ring.SignUnique(keys.ES256, typAccess, claims) // the jti makes it unique
}

func unixSeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// skew is the maximum difference between the clocks of two nodes.
const skew = time.Minute

// accessClaims are the claims of RFC 9068, section 2.2, and a few claims of selvage.
type accessClaims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  string   `json:"aud"`
	ClientID  string   `json:"client_id"`
	IssuedAt  int64    `json:"iat"`
	Expires   int64    `json:"exp"`
	NotBefore int64    `json:"nbf,omitempty"` // never written, but checked
	ID        string   `json:"jti"`
	Scope     string   `json:"scope,omitempty"`
	SessionID string   `json:"sid,omitempty"`
	GrantID   string   `json:"grant_id,omitempty"`
	ProjectID string   `json:"project_id"`
	AuthTime  int64    `json:"auth_time,omitempty"`
	ACR       string   `json:"acr,omitempty"`
	AMR       []string `json:"amr,omitempty"`
	Claims    []string `json:"claims,omitempty"` // claims for userinfo, in addition to the claims of the scope

	Confirmation *cnf.Claim `json:"cnf,omitempty"`
}

// idClaims are the claims of OpenID Connect Core, section 2.
type idClaims struct {
	Issuer     string   `json:"iss"`
	Subject    string   `json:"sub"`
	Audience   string   `json:"aud"`
	AZP        string   `json:"azp"`
	IssuedAt   int64    `json:"iat"`
	Expires    int64    `json:"exp"`
	AuthTime   int64    `json:"auth_time"`
	Nonce      string   `json:"nonce,omitempty"`
	ACR        string   `json:"acr,omitempty"`
	AMR        []string `json:"amr,omitempty"`
	SessionID  string   `json:"sid,omitempty"`
	AccessHash string   `json:"at_hash,omitempty"`
	CodeHash   string   `json:"c_hash,omitempty"`
	Person
}

// idToken returns a signed ID token for access, the access token that it accompanies. access is ""
// if there is no access token.
func (ts *Tokens) idToken(c Client, g Grant, sub fabric.Subscriber, m minting, access string) (string, error) {
	now, names := ts.Now(), g.left(g.Claims.IDToken, m.scope)
	var accessHash, codeHash string
	if access != "" {
		accessHash = c.IDTokenAlg.HalfHash(access)
	}
	if m.code != "" {
		codeHash = c.IDTokenAlg.HalfHash(m.code)
	}

	sign := ts.Ring.SignUnique // the access token or the code makes it unique
	if access == "" && m.code == "" {
		sign = ts.Ring.Sign
		names = slices.Concat(names, ClaimsOf(m.scope...)) // the client cannot request userinfo
	}
	return sign(c.IDTokenAlg, typID, idClaims{
		Issuer:     ts.Issuer,
		Subject:    ts.subjects.SubjectFor(c, sub.ID),
		Audience:   c.ID,
		AZP:        c.ID,
		IssuedAt:   now.Unix(),
		Expires:    now.Add(ts.Lifetimes().IDToken).Unix(),
		AuthTime:   g.AuthTime.Unix(),
		Nonce:      m.nonce,
		ACR:        cmp.Or(g.Claims.ACR, acrOf(g.AMR)),
		AMR:        g.AMR,
		SessionID:  ts.sid(c, g),
		AccessHash: accessHash,
		CodeHash:   codeHash,
		Person:     PersonOf(sub, c.onlyClaims(names)),
	})
}

// sid returns the sid under which a client knows the login of a grant. It returns "" for a client
// with the profile FAPI2 that takes no part in logouts. FAPI 2.0 clients may not know claims that
// they did not request.
func (ts *Tokens) sid(c Client, g Grant) string {
	if c.Profile == FAPI2 && len(c.LogoutURIs) == 0 && c.BackchannelLogoutURI == "" && c.FrontchannelLogoutURI == "" {
		return ""
	}
	return ts.subjects.SessionFor(c, g.SessionID)
}
