package fabric

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// A FamilyUse is one use of a refresh token.
type FamilyUse struct {
	ID           string
	ProjectID    string
	SubscriberID string // "" for guests
	ClientID     string
	Generation   int64
	Created      time.Time             // when the token was issued
	Used         time.Time             // the current time
	Expires      time.Time             // time by which both the token and its successor have expired
	Revocation   revocation.Revocation // written only if the token was already used
}

// badRefresh returns the error for an invalid refresh token. message says what is wrong with it, such
// as "has expired".
func badRefresh(code, message string) error {
	return &problem.Error{
		Kind:    problem.Invalid,
		Code:    code,
		Param:   "refresh_token",
		Message: "refresh_token " + message,
	}
}

// Refresh exchanges a refresh token for its successor and a new token. The new token has the same
// kind as the token that was issued with the refresh token. The refresh token must belong to the
// issuer's project. A refresh token can be used once. A second use revokes the whole family.
func (ts *Tokens) Refresh(ctx context.Context, by Issuer, raw string) (TokenPair, error) {
	began := ts.now()
	old, err := ts.openRefresh(ctx, by.ProjectID, raw)
	if err != nil {
		return TokenPair{}, err
	}
	if err := ts.checkHolder(ctx, old); err != nil {
		return TokenPair{}, err
	}

	next := old.successor(by)
	next.IssuedAt = began
	next.ExpiresAt = began.Add(TokenLifetime)
	used, err := ts.store.RotateFamily(ctx, FamilyUse{
		ID:           old.FamilyID,
		ProjectID:    old.ProjectID,
		SubscriberID: old.SubscriberID,
		ClientID:     old.ClientID,
		Generation:   old.Generation,
		Created:      old.IssuedAt,
		Used:         began,
		Expires:      later(old.ExpiresAt, next.ExpiresAt.Add(refreshMargin)),
		Revocation:   permanentRevocation(revocation.Family, old.FamilyID, began),
	})
	if err != nil {
		return TokenPair{}, fmt.Errorf("rotating family: %w", err)
	}
	if !used {
		err := badRefresh("token_invalid", "was used before")
		return TokenPair{}, errors.Join(err, ts.c.Revocations.Sync(ctx))
	}

	return ts.issue(next)
}

// successor returns the token that replaces the refresh token t, one generation later. It is
// revoked together with the issuer that requested the refresh, but not with the previous issuer.
func (t Token) successor(by Issuer) Token {
	t.ID = ""
	t.Kind = SAT
	if len(t.AddressIDs) > 0 {
		t.Kind = Guest
	}
	t.KeyID = by.KeyID
	t.IssuerID = by.ClientID
	t.Generation++
	t.RootedAt = t.root()
	return t
}

// openRefresh opens a refresh token. If the token is invalid, the error contains the reason.
func (ts *Tokens) openRefresh(ctx context.Context, projectID, raw string) (Token, error) {
	if raw == "" {
		return Token{}, problem.Missing("refresh_token")
	}

	t, ok := ts.Inspect(raw, Refresh)
	if !ok {
		return Token{}, ts.whyNoRefresh(raw)
	}
	if t.ProjectID != projectID || t.Issuer != ts.c.Issuer {
		return Token{}, badRefresh("token_invalid", "is invalid")
	}
	if ts.expired(t) {
		return Token{}, badRefresh("token_expired", "has expired")
	}

	err := ts.Check(ctx, t)
	if errors.Is(err, problem.Unauthenticated) {
		return Token{}, badRefresh("token_invalid", "was revoked")
	}
	if err != nil {
		return Token{}, err
	}
	return t, nil
}

// whyNoRefresh returns the reason why raw is not a valid refresh token.
func (ts *Tokens) whyNoRefresh(raw string) error {
	if _, ok := ts.Inspect(raw, SAT, Guest, Invite, Service); ok {
		return badRefresh("not_a_refresh_token", "is a different kind of token")
	}
	if strings.Count(raw, ".") != 4 {
		return badRefresh("invalid_token_format", "is not a token")
	}
	return badRefresh("token_invalid", "is invalid")
}

// checkHolder returns an error if the token's subscriber was deleted or disabled.
func (ts *Tokens) checkHolder(ctx context.Context, t Token) error {
	if t.SubscriberID == "" {
		return nil
	}
	inactive := badRefresh("token_invalid", "belongs to no active subscriber")
	s, err := ts.subscribers.Find(ctx, t.ProjectID, t.SubscriberID)
	if errors.Is(err, problem.NotFound) {
		return inactive
	}
	if err != nil {
		return fmt.Errorf("finding subscriber: %w", err)
	}
	if s.Disabled {
		return inactive
	}
	return nil
}

// A Family is a refresh token that was used at least once, together with all tokens that came from
// it. A refresh token that was never used has no Family, because issuing tokens writes nothing.
type Family struct {
	ID        string
	ClientID  string    // the OAuth client or application; "" for neither
	Created   time.Time // when the first token was issued; zero if unknown
	Used      time.Time // when the family was last refreshed
	Refreshes int64
	Expires   time.Time // when the last of the family's tokens expires
	Revoked   bool
}

// ListFamilies returns a page of the families of a subscriber's refresh tokens, newest first.
func (ts *Tokens) ListFamilies(
	ctx context.Context, projectID, id string, q page.Query,
) (page.Page[Family], error) {
	return listOf(ctx, ts.subscribers, projectID, id, q, ts.store.ListFamilies)
}

// RevokeFamily revokes a subscriber's used refresh token, and all tokens that came from it.
func (ts *Tokens) RevokeFamily(ctx context.Context, projectID, subscriberID, id string) error {
	subscriberID, ok := canonical(subscriberID)
	if !ok {
		return problem.NoSuch("token")
	}
	id, ok = canonical(id)
	if !ok {
		return problem.NoSuch("token")
	}
	revoked := permanentRevocation(revocation.Family, id, ts.now())
	if err := ts.store.RevokeFamily(ctx, projectID, subscriberID, revoked); err != nil {
		return err
	}
	return ts.c.Revocations.Sync(ctx)
}
