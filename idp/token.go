package idp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/keys"
)

// The typ headers of the JWTs that are minted. Each verifier names the one it
// takes, so that none passes for another (RFC 8725, section 3.11).
const (
	typAccess = "at+jwt" // RFC 9068, section 2.1
	typID     = "JWT"
)

// A TokenSet is what the token endpoint gives (RFC 6749, section 5.1).
type TokenSet struct {
	AccessToken  string
	ExpiresIn    time.Duration
	RefreshToken string // "" where none is given
	IDToken      string // "" without the scope openid
	Scope        []string
}

// minting is what differs between the ways to a TokenSet.
type minting struct {
	scope   []string
	nonce   string
	refresh string
	idToken bool
}

// mint makes the tokens of a grant.
func (p *Provider) mint(c Client, g Grant, sub fabric.Subscriber, m minting) (TokenSet, error) {
	t := fabric.Token{
		Kind: fabric.SAT, ProjectID: g.ProjectID, SubscriberID: g.SubscriberID, ClientID: c.ID, SessionID: g.SessionID, GrantID: grantRef(g.ID), Scope: m.scope,
	}
	if c.AccessToken == JWTToken {
		t.Kind = fabric.Access
	}
	access, err := p.access(c, &t, g.AuthTime, g.AMR)
	if err != nil {
		return TokenSet{}, err
	}
	set := TokenSet{AccessToken: access, ExpiresIn: t.ExpiresAt.Sub(t.IssuedAt), RefreshToken: m.refresh, Scope: m.scope}
	if m.idToken && slices.Contains(m.scope, "openid") {
		set.IDToken, err = p.idToken(c, g, sub, m, access)
	}
	return set, err
}

// ClientCredentials makes a service's own access token, for the scope asked (raw,
// "" means all it is registered for).
func (p *Provider) ClientCredentials(_ context.Context, c Client, rawScope string) (TokenSet, error) {
	scope := slices.DeleteFunc(slices.Clone(c.Scopes), func(s string) bool { return slices.Contains(loginScopes, s) })
	if strings.TrimSpace(rawScope) != "" {
		var err error
		if scope, err = c.allowedScopes(strings.Fields(rawScope)); err != nil {
			return TokenSet{}, err
		}
		if slices.ContainsFunc(scope, func(s string) bool { return slices.Contains(loginScopes, s) }) {
			return TokenSet{}, oauth("invalid_scope", "nobody logs in with client_credentials: openid, profile, email and offline_access have no meaning")
		}
	}
	t := fabric.Token{Kind: fabric.Service, ProjectID: c.ProjectID, ClientID: c.ID, Scope: scope}
	access, err := p.access(c, &t, time.Time{}, nil)
	if err != nil {
		return TokenSet{}, err
	}
	p.Observe("token_" + GrantClientCredentials)
	return TokenSet{AccessToken: access, ExpiresIn: t.ExpiresAt.Sub(t.IssuedAt), Scope: scope}, nil
}

// access seals or signs an access token, and fills in its id and times.
func (p *Provider) access(c Client, t *fabric.Token, authTime time.Time, amr []string) (string, error) {
	t.ID, t.Issuer, t.IssuedAt = uuid.NewString(), p.Issuer, p.Now()
	if c.AccessToken == FabricToken {
		t.ExpiresAt = t.IssuedAt.Add(p.Lifetimes().AccessFabric)
		return p.Fabric.Seal(*t)
	}
	t.ExpiresAt = t.IssuedAt.Add(p.Lifetimes().AccessJWT)
	claims := accessClaims{
		Issuer: t.Issuer, Subject: t.SubscriberID, Audience: p.Issuer, ClientID: c.ID, IssuedAt: t.IssuedAt.Unix(), Expires: t.ExpiresAt.Unix(), ID: t.ID,
		Scope: strings.Join(t.Scope, " "), SessionID: t.SessionID, GrantID: t.GrantID, ProjectID: t.ProjectID, AuthTime: seconds(authTime), AMR: amr,
	}
	if t.SubscriberID == "" {
		claims.Subject = c.ID // RFC 9068, section 2.2: nobody's token has its client for a subject
	}
	return p.Ring.Sign(keys.ES256, typAccess, claims)
}

func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// skew is how far the clocks of two nodes may be apart.
const skew = time.Minute

// accessClaims are those of RFC 9068, section 2.2, and three of our own.
type accessClaims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  string   `json:"aud"`
	ClientID  string   `json:"client_id"`
	IssuedAt  int64    `json:"iat"`
	Expires   int64    `json:"exp"`
	NotBefore int64    `json:"nbf,omitempty"` // we write none, and heed one
	ID        string   `json:"jti"`
	Scope     string   `json:"scope,omitempty"`
	SessionID string   `json:"sid,omitempty"`
	GrantID   string   `json:"grant_id,omitempty"`
	ProjectID string   `json:"project_id"`
	AuthTime  int64    `json:"auth_time,omitempty"`
	AMR       []string `json:"amr,omitempty"`
}

// idClaims are those of OpenID Connect Core, section 2.
type idClaims struct {
	Issuer     string   `json:"iss"`
	Subject    string   `json:"sub"`
	Audience   string   `json:"aud"`
	AZP        string   `json:"azp"`
	IssuedAt   int64    `json:"iat"`
	Expires    int64    `json:"exp"`
	AuthTime   int64    `json:"auth_time"`
	Nonce      string   `json:"nonce,omitempty"`
	AMR        []string `json:"amr,omitempty"`
	SessionID  string   `json:"sid,omitempty"`
	AccessHash string   `json:"at_hash,omitempty"`
}

func (p *Provider) idToken(c Client, g Grant, sub fabric.Subscriber, m minting, access string) (string, error) {
	now := p.Now()
	return p.Ring.Sign(c.IDTokenAlg, typID, idClaims{
		Issuer: p.Issuer, Subject: sub.ID, Audience: c.ID, AZP: c.ID, IssuedAt: now.Unix(), Expires: now.Add(p.Lifetimes().IDToken).Unix(),
		AuthTime: g.AuthTime.Unix(), Nonce: m.nonce, AMR: g.AMR, SessionID: g.SessionID, AccessHash: c.IDTokenAlg.HalfHash(access),
	})
}

// An IDHint is what an id_token_hint says: a login of ours, perhaps long ago.
type IDHint struct{ Subject, ClientID, SessionID string }

// OpenIDHint reads an ID token of ours. Its expiry does not matter (OpenID
// Connect RP-Initiated Logout, section 2); everything else does.
func (p *Provider) OpenIDHint(token string) (IDHint, bool) {
	payload, ok := p.Ring.VerifyJWS(token, typID)
	var c idClaims
	if !ok || json.Unmarshal(payload, &c) != nil || c.Issuer != p.Issuer || c.Subject == "" {
		return IDHint{}, false
	}
	return IDHint{c.Subject, c.Audience, c.SessionID}, true
}

// OpenAccessToken checks an access token of this issuer, sealed or JWT, and gives
// what it says. Every failure is problem.Unauthenticated.
func (p *Provider) OpenAccessToken(ctx context.Context, raw string) (fabric.Token, error) {
	if strings.Contains(raw, "..") { // a JWE with an empty key
		return p.Fabric.Open(ctx, raw, fabric.SAT, fabric.Service)
	}
	payload, ok := p.Ring.VerifyJWS(raw, typAccess)
	var c accessClaims
	if !ok || json.Unmarshal(payload, &c) != nil {
		return fabric.Token{}, problem.NoCredentials()
	}
	now := p.Now()
	t := fabric.Token{
		Kind: fabric.Access, ID: c.ID, Issuer: c.Issuer, ProjectID: c.ProjectID, SubscriberID: c.Subject, ClientID: c.ClientID,
		SessionID: c.SessionID, GrantID: c.GrantID, Scope: strings.Fields(c.Scope), IssuedAt: time.Unix(c.IssuedAt, 0), ExpiresAt: time.Unix(c.Expires, 0),
	}
	if c.GrantID == "" && c.Subject == c.ClientID {
		t.Kind, t.SubscriberID = fabric.Service, ""
	}
	whole := c.ID != "" && c.Subject != "" && c.ClientID != "" && c.ProjectID != "" && c.IssuedAt > 0
	timely := now.Before(t.ExpiresAt) && !t.IssuedAt.After(now.Add(skew)) && c.NotBefore <= now.Add(skew).Unix()
	if c.Issuer != p.Issuer || c.Audience != p.Issuer || !whole || !timely {
		return fabric.Token{}, problem.NoCredentials()
	}
	// iat counts seconds. A revocation of the subscriber, which holds for what was
	// issued before it, must not reach a token of a new login in the same second;
	// older ones of that second die with their login.
	check := t
	check.IssuedAt = t.IssuedAt.Add(time.Second - time.Microsecond)
	return t, p.Fabric.Check(ctx, check)
}

// revokeAccess ends one access token.
func (p *Provider) revokeAccess(ctx context.Context, t fabric.Token) error {
	return p.Revocations.Revoke(ctx, revocation.Revocation{Kind: revocation.Token, ID: t.ID, Until: t.ExpiresAt, Expires: t.ExpiresAt})
}

// Subscriber finds whom a token speaks for, unless it is disabled by now.
func (p *Provider) Subscriber(ctx context.Context, t fabric.Token) (fabric.Subscriber, error) {
	sub, err := p.Fabric.RecentSubscriber(ctx, t.ProjectID, t.SubscriberID)
	if err != nil {
		return sub, fmt.Errorf("finding subscriber: %w", err)
	}
	if sub.Disabled {
		return sub, problem.NoCredentials()
	}
	return sub, nil
}

// Consented reports whether a client may have the scopes without asking: it is
// the operator's own, or the subscriber agreed to all of them before.
func (p *Provider) Consented(ctx context.Context, c Client, subscriberID string, scopes []string) (bool, error) {
	if c.FirstParty {
		return true, nil
	}
	agreed, err := p.Store.FindConsent(ctx, subscriberID, c.ID)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	return !slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(agreed, s) }), nil
}

// Consent remembers that a subscriber agreed to a client's having the scopes.
func (p *Provider) Consent(ctx context.Context, c Client, subscriberID string, scopes []string) error {
	agreed, err := p.Store.FindConsent(ctx, subscriberID, c.ID)
	if err := ignoreNotFound(err); err != nil {
		return err
	}
	for _, s := range scopes {
		if !slices.Contains(agreed, s) {
			agreed = append(agreed, s)
		}
	}
	return p.Store.PutConsent(ctx, subscriberID, c.ID, agreed, p.Now())
}
