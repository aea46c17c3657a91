package idp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// An IDHint is the content of an id_token_hint. The login that it names may have ended long ago.
// Subject and SessionID may be pairwise. [Subjects.SubscriberOf] and [Subjects.SessionOf] convert
// them to the ids of the subscriber and the login.
type IDHint struct{ Subject, ClientID, SessionID string }

// OpenIDHint reads an ID token issued here, and verifies everything except its expiry (OpenID
// Connect RP-Initiated Logout, section 2).
func (ts *Tokens) OpenIDHint(token string) (IDHint, bool) {
	payload, ok := ts.Ring.VerifyJWS(token, typID)
	if !ok {
		return IDHint{}, false
	}
	var c idClaims
	if err := json.Unmarshal(payload, &c); err != nil {
		return IDHint{}, false
	}
	if c.Issuer != ts.Issuer || c.Subject == "" || c.Expires == 0 {
		return IDHint{}, false
	}
	return IDHint{Subject: c.Subject, ClientID: c.Audience, SessionID: c.SessionID}, true
}

// IsUnverifiable reports whether a token looks like an ID token of this issuer whose key was revoked or
// deleted. Anyone can make such a token, so its content must not be used.
func (ts *Tokens) IsUnverifiable(token string) bool {
	payload, ok := ts.Ring.ReadLost(token, typID)
	if !ok {
		return false
	}
	var c idClaims
	return json.Unmarshal(payload, &c) == nil && c.Issuer == ts.Issuer
}

// Open checks an access token of this issuer, sealed or JWT, and returns its content. If the token
// is invalid or has another audience, Open returns problem.Unauthenticated.
func (ts *Tokens) Open(ctx context.Context, raw string) (fabric.Token, error) {
	t, audience, err := ts.Inspect(ctx, raw)
	if err != nil {
		return fabric.Token{}, err
	}
	if audience != ts.Issuer {
		return fabric.Token{}, problem.NoCredentials().Because("the token is for another resource")
	}
	return t, nil
}

// OpenForUserinfo is like Open, but also accepts tokens that are valid only at userinfo.
func (ts *Tokens) OpenForUserinfo(ctx context.Context, raw string) (fabric.Token, error) {
	t, audience, err := ts.Inspect(ctx, raw)
	if err != nil {
		return fabric.Token{}, err
	}
	if audience != ts.Issuer && audience != ts.userinfoURL() {
		return fabric.Token{}, problem.NoCredentials().Because("the token is for another resource")
	}
	return t, nil
}

// Inspect is like OpenForUserinfo, but also accepts a token for any of the client's resources, and
// returns the audience. Use it to describe or revoke a token, but not to grant access.
func (ts *Tokens) Inspect(ctx context.Context, raw string) (t fabric.Token, audience string, err error) {
	if strings.Contains(raw, "..") { // a JWE without an encrypted key
		sealed, err := ts.Fabric.Tokens.Open(ctx, raw, fabric.SAT, fabric.Service)
		if err != nil {
			return fabric.Token{}, "", err
		}
		return sealed, ts.Issuer, nil
	}

	var c accessClaims
	payload, ok := ts.Ring.VerifyJWS(raw, typAccess)
	if !ok || json.Unmarshal(payload, &c) != nil {
		return fabric.Token{}, "", problem.NoCredentials().Because(
			"the token is not signed with a key of this server")
	}
	t, err = ts.readAccess(ctx, c)
	if err != nil {
		return fabric.Token{}, "", err
	}
	if c.Audience == ts.Issuer || c.Audience == ts.userinfoURL() {
		return t, c.Audience, nil
	}

	client, err := ts.Client(ctx, t)
	if err != nil {
		return fabric.Token{}, "", err
	}
	if !slices.Contains(client.Resources, c.Audience) {
		return fabric.Token{}, "", problem.NoCredentials().Because(
			"the token is for a resource that the client does not have")
	}
	return t, c.Audience, nil
}

// readAccess checks the claims of a JWT access token. It does not check that this server is the
// audience.
func (ts *Tokens) readAccess(ctx context.Context, c accessClaims) (fabric.Token, error) {
	t := fabric.Token{
		Kind:         fabric.Access,
		ID:           c.ID,
		Issuer:       c.Issuer,
		ProjectID:    c.ProjectID,
		SubscriberID: c.Subject,
		ClientID:     c.ClientID,
		SessionID:    c.SessionID,
		GrantID:      c.GrantID,
		Scope:        strings.Fields(c.Scope),
		Claims:       c.Claims,
		IssuedAt:     time.Unix(c.IssuedAt, 0),
		ExpiresAt:    time.Unix(c.Expires, 0),
		Binding:      c.Confirmation.Binding(),
	}

	isService := c.GrantID == "" && c.Subject == c.ClientID
	if isService {
		t.Kind, t.SubscriberID = fabric.Service, ""
	}
	if _, ok := pairwiseSubject(c.Subject); ok && !isService { // an imported client's ID may look pairwise
		client, err := ts.Client(ctx, t)
		if err != nil {
			return fabric.Token{}, err
		}
		t.SubscriberID = ts.subjects.SubscriberOf(client, c.Subject)
		t.SessionID = ts.subjects.SessionOf(client, c.SessionID)
	}

	isWhole := c.ID != "" && c.Subject != "" && c.ClientID != "" && c.ProjectID != "" &&
		c.Audience != "" && c.IssuedAt > 0
	now := ts.Now()
	latestStart := now.Add(skew)
	isValidNow := now.Before(t.ExpiresAt) && !t.IssuedAt.After(latestStart) && c.NotBefore <= latestStart.Unix()
	if c.Issuer != ts.Issuer || !isWhole || !isValidNow {
		return fabric.Token{}, problem.NoCredentials().Because(
			"the token is incomplete or expired, or another issuer made it")
	}

	// iat has a resolution of seconds. Revoking a subscriber's tokens must not revoke the token of
	// a new login in the same second. Older tokens from that second are invalid because their login
	// has ended.
	latest := t
	latest.IssuedAt = t.IssuedAt.Add(time.Second - time.Microsecond)
	if err := ts.Fabric.Tokens.Check(ctx, latest); err != nil {
		return fabric.Token{}, err
	}
	return t, nil
}

// Client returns the client to which a token was issued.
func (ts *Tokens) Client(ctx context.Context, t fabric.Token) (Client, error) {
	c, err := ts.clients.Find(ctx, t.ClientID)
	if errors.Is(err, problem.NotFound) {
		return Client{}, problem.NoCredentials().Because("the client of the token was deleted")
	}
	if err != nil {
		return Client{}, err
	}
	return c, nil
}

// Subscriber returns the subscriber of a token. If the subscriber has been disabled, it returns
// problem.Unauthenticated.
func (ts *Tokens) Subscriber(ctx context.Context, t fabric.Token) (fabric.Subscriber, error) {
	sub, err := ts.Fabric.Subscribers.Recent(ctx, t.ProjectID, t.SubscriberID)
	if err != nil {
		return fabric.Subscriber{}, fmt.Errorf("finding subscriber: %w", err)
	}
	if sub.Disabled {
		return fabric.Subscriber{}, problem.NoCredentials().Because("the subscriber is disabled")
	}
	return sub, nil
}
