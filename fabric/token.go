package fabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/uuid7"
	"github.com/selvage/selvage/keys"
)

// Tokens issues, opens and revokes fabric tokens.
type Tokens struct {
	*core
	store        TokenStore
	sealers      map[TokenKind]*keys.Sealer
	subscribers  *Subscribers
	addresses    *Addresses
	embedKeys    *EmbedKeys
	applications *applications
}

// A TokenStore stores a family of refresh tokens once one of its tokens has been used; see [Stores].
type TokenStore interface {
	// RotateFamily marks a family's refresh token of one generation as used. Only one of several
	// concurrent callers gets used = true. Any other use revokes the family: the revocation is
	// committed, and RotateFamily returns used = false without an error.
	RotateFamily(ctx context.Context, u FamilyUse) (used bool, err error)
	// ListFamilies returns the families of a subscriber's refresh tokens, newest first.
	ListFamilies(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[Family], error)
	// RevokeFamily revokes a family of a subscriber. A family that is already revoked is
	// left unchanged.
	RevokeFamily(ctx context.Context, projectID, subscriberID string, r revocation.Revocation) error
	// RevokeToken writes a revocation of a token of the project. If it revokes a family that has a
	// row, it also revokes the row.
	RevokeToken(ctx context.Context, projectID string, r revocation.Revocation) error
}

// A TokenKind is the purpose of a token. A token of one kind is never accepted as a token of
// another kind.
type TokenKind string

// The kinds of tokens.
const (
	SAT     TokenKind = "sat"     // acts as a subscriber
	Guest   TokenKind = "guest"   // reaches a few addresses
	Invite  TokenKind = "invite"  // reaches one address of the subscriber who invites
	Refresh TokenKind = "refresh" // exchanged once for its successor and a new SAT or guest token
	Service TokenKind = "service" // an OAuth client acting for its project (client_credentials)
	Access  TokenKind = "access"  // a JWT access token issued to a subscriber; never sealed
)

// A Token holds the claims of an opened and checked token.
type Token struct {
	Kind         TokenKind
	ID           string // jti
	Issuer       string
	ProjectID    string
	SubscriberID string
	ClientID     string // the OAuth client or application that the token was issued for
	SessionID    string // sid: the login that the token came from
	GrantID      string // the OAuth grant that the token came from
	FamilyID     string // shared by a refresh token and everything issued from it
	KeyID        string // the API key or operator that issued the token
	IssuerID     string // the OAuth client that requested the token, which may differ from ClientID
	ParentID     string // the family of the SAT that was used to issue the token
	Generation   int64  // how many times the family of a refresh token was already refreshed
	Scope        []string
	Claims       []string // claims that userinfo returns in addition to those of the scope
	AddressIDs   []string // addresses that a guest or invite token may reach
	Binding      string   // cnf: the key or certificate that the holder must have, see package cnf
	Embedded     bool     // KeyID is the id of an embed key, which is public
	IssuedAt     time.Time
	RootedAt     time.Time // when the token's first ancestor was issued; zero if it has none
	ExpiresAt    time.Time

	SealedBy string // the id of the ring's key; "" if the token is not sealed
}

// Caller returns the id under which uses of the token are counted. This is the id of its subscriber
// or client. Guest and invite tokens are counted under their own ids.
func (t Token) Caller() string {
	switch t.Kind {
	case SAT, Access:
		return t.SubscriberID
	case Service:
		return t.ClientID
	}
	return t.ID
}

// Began returns when the holder of the token got the first token of its family. If the token was issued
// with a SAT, root returns an earlier time, that of the subscriber's own tokens.
func (t Token) Began() time.Time {
	at, ok := uuid7.Time(t.FamilyID)
	switch {
	case t.Kind == Guest && ok:
		return at
	case t.Kind == Invite: // its family is that of the SAT, and it is never refreshed
		return t.IssuedAt
	}
	return t.root()
}

// skew is the maximum difference between the clocks of two nodes.
const skew = time.Minute

// newSealers returns a sealer for each kind of token, each with its own keys. The header shows only
// whether a token is a refresh token.
func newSealers(ring *keys.Ring, host string) map[TokenKind]*keys.Sealer {
	sealers := make(map[TokenKind]*keys.Sealer)
	for _, kind := range []TokenKind{SAT, Guest, Invite, Service} {
		sealers[kind] = ring.Sealer("fabric "+string(kind), "SAT", host)
	}
	sealers[Refresh] = ring.Sealer("fabric "+string(Refresh), "Refresh", host)
	return sealers
}

// Seal returns the token in the sealed form that clients present. It fills in an empty ID, Issuer
// or IssuedAt.
func (ts *Tokens) Seal(t Token) (string, error) {
	sealer := ts.sealers[t.Kind]
	if sealer == nil {
		return "", fmt.Errorf("encrypting token: unknown kind %q", t.Kind)
	}
	if t.ID == "" {
		t.ID = newID()
	}
	if t.Issuer == "" {
		t.Issuer = ts.c.Issuer
	}
	if t.IssuedAt.IsZero() {
		t.IssuedAt = ts.now()
	}
	if ts.c.Issued != nil && t.Kind != Refresh {
		ts.c.Issued(t.ProjectID)
	}
	return sealer.Seal(&claims{t})
}

// unsealToken opens a token. Refresh tokens are not cached, because each is used only once.
func unsealToken(sealer *keys.Sealer, kind TokenKind, raw string) (c *claims, kid string, ok bool) {
	if kind == Refresh {
		c = new(claims)
		kid, ok = sealer.OpenBy(raw, c)
		return c, kid, ok
	}
	v, kid, ok := sealer.Remembered(raw, func(payload []byte) (any, error) {
		c := new(claims)
		return c, c.UnmarshalBinary(payload)
	})
	c, _ = v.(*claims)
	return c, kid, ok
}

// Inspect returns the claims of a token sealed by this ring, even if it is expired or revoked.
// Callers may show the result, but must not trust it.
func (ts *Tokens) Inspect(raw string, kinds ...TokenKind) (Token, bool) {
	for _, kind := range kinds {
		sealer := ts.sealers[kind]
		if sealer == nil {
			continue
		}

		c, kid, ok := unsealToken(sealer, kind, raw)
		if !ok {
			continue
		}

		t := c.Token
		if t.Kind != kind {
			continue
		}

		t.SealedBy = kid
		t.Scope, t.Claims, t.AddressIDs = slices.Clip(t.Scope), slices.Clip(t.Claims), slices.Clip(t.AddressIDs)
		return t, true
	}

	return Token{}, false
}

// Open returns the claims of a sealed token of one of the kinds. The token must be from this
// issuer, not expired and not revoked, and its login must not have ended. Otherwise, Open returns
// problem.Unauthenticated without a reason.
func (ts *Tokens) Open(ctx context.Context, raw string, kinds ...TokenKind) (Token, error) {
	t, ok := ts.Inspect(raw, kinds...)
	if !ok {
		return Token{}, problem.NoCredentials().Because("no key of this server opens the token as this kind")
	}
	if ts.expired(t) {
		return Token{}, problem.NoCredentials().Because("the token has expired, or another issuer made it")
	}
	return t, ts.Check(ctx, t)
}

func (ts *Tokens) expired(t Token) bool {
	now := ts.now()
	return t.Issuer != ts.c.Issuer || !now.Before(t.ExpiresAt) || t.IssuedAt.After(now.Add(skew))
}

// Check returns an error if anything on which the token depends was revoked or has ended since the
// token was issued. It checks nothing else, so it also works for tokens that were not sealed here.
func (ts *Tokens) Check(ctx context.Context, t Token) error {
	if err := ts.Revoked(t); err != nil || t.SessionID == "" {
		return err
	}
	return ts.c.Live(ctx, t.SessionID)
}

// Heard returns a number that changes whenever this node learns of a revocation or of a change of
// the key ring. Callers that keep tokens for a long time, such as open sockets, must call
// [Tokens.Revoked] again when it changes.
func (ts *Tokens) Heard() int64 { return ts.c.Revocations.Heard() + ts.c.Ring.Heard() }

// Revoked is like [Tokens.Check], but makes only the checks that read nothing but memory. They are
// sufficient for a token that Check has accepted before, because the end of a login is also a
// revocation.
func (ts *Tokens) Revoked(t Token) error {
	if t.SealedBy != "" && !ts.c.Ring.Trusts(t.SealedBy) {
		return problem.NoCredentials().Because("the key that sealed the token was retired")
	}

	return ts.c.Revocations.Check(t.root(), t.subjects()...)
}

// subjects returns the subjects whose revocation also revokes the token. Some ids may be empty.
func (t Token) subjects() []revocation.Subject {
	return []revocation.Subject{
		{Kind: revocation.Token, ID: t.ID},
		{Kind: revocation.Family, ID: t.FamilyID},
		{Kind: revocation.Grant, ID: t.GrantID},
		{Kind: revocation.Session, ID: t.SessionID},
		{Kind: revocation.Subscriber, ID: t.SubscriberID},
		{Kind: revocation.Client, ID: t.ClientID},
		{Kind: revocation.Client, ID: t.IssuerID},
		{Kind: revocation.Family, ID: t.ParentID},
		{Kind: revocation.Key, ID: t.KeyID},
		{Kind: revocation.Project, ID: t.ProjectID},
	}
}

// Known returns the number of the latest revocation that this node has read.
func (ts *Tokens) Known() int64 { return ts.c.Revocations.Known() }

// root returns the time to compare with revocations. This is when the token's first ancestor was
// issued or, without an ancestor, the token itself. A node that has not yet read a revocation may
// issue a token from a revoked token. Because of the root, the new token is revoked as well.
func (t Token) root() time.Time {
	if t.RootedAt.IsZero() {
		return t.IssuedAt
	}
	return t.RootedAt
}

// reaches reports whether the token may reach an address of its project. A SAT may reach all
// addresses.
func (t Token) reaches(addressID string) bool {
	return t.Kind == SAT || slices.Contains(t.AddressIDs, addressID)
}

// RevokeByHand revokes all tokens that an operator has created manually or is creating at the
// moment, and all tokens that came from them; see [Issuer].
func (ts *Tokens) RevokeByHand(ctx context.Context, operatorID string) error {
	return ts.c.Revocations.Revoke(ctx, revocationUntil(revocation.Key, operatorID, ts.now().Add(disablingTakes)))
}

// Revoke revokes a token immediately. Revoking a refresh token also revokes all tokens that came
// from it.
func (ts *Tokens) Revoke(ctx context.Context, t Token) error {
	kind, id := revocation.Token, t.ID
	if t.Kind == Refresh {
		kind, id = revocation.Family, t.FamilyID
	}
	if err := ts.store.RevokeToken(ctx, t.ProjectID, permanentRevocation(kind, id, ts.now())); err != nil {
		return fmt.Errorf("revoking token: %w", err)
	}
	return ts.c.Revocations.Sync(ctx)
}

// RevokeRaw revokes the sealed token or the embed key in raw, which must belong to the project.
// Revoking a refresh token also revokes all tokens that came from it. Revoking an embed key also
// revokes all tokens that were issued for it.
func (ts *Tokens) RevokeRaw(ctx context.Context, projectID, raw string) error {
	if raw == "" {
		return problem.Missing("token")
	}
	k, err := ts.embedKeys.Find(ctx, raw)
	if err != nil && !errors.Is(err, problem.Forbidden) {
		return err
	}
	if err == nil && k.ProjectID == projectID {
		return ts.embedKeys.Revoke(ctx, k)
	}

	t, ok := ts.Inspect(raw, SAT, Guest, Invite, Refresh)
	if !ok || t.ProjectID != projectID || t.Issuer != ts.c.Issuer {
		return &problem.Error{
			Kind:    problem.Invalid,
			Code:    "token_invalid",
			Param:   "token",
			Message: "the project has no such token",
		}
	}
	return ts.Revoke(ctx, t)
}
