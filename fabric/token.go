package fabric

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/keys"
)

// A TokenKind says what a token is for. A token of one kind is never taken for
// another.
type TokenKind string

// The kinds.
const (
	SAT     TokenKind = "sat"     // a subscriber acts
	Guest   TokenKind = "guest"   // someone may reach a few addresses
	Invite  TokenKind = "invite"  // someone may reach one address of the inviting subscriber
	Refresh TokenKind = "refresh" // gives its successor and a new SAT or guest token, once
	Service TokenKind = "service" // an OAuth client acts for its project (client_credentials)
	Access  TokenKind = "access"  // a subscriber's JWT access token of the issuer; never sealed
)

// A Token is what a token says once it is opened and checked.
type Token struct {
	Kind         TokenKind
	ID           string // jti
	Issuer       string
	ProjectID    string
	SubscriberID string
	ClientID     string // the OAuth client or application it was made for
	SessionID    string // sid: the login it was born of
	GrantID      string // the OAuth grant
	FamilyID     string // the refresh token and all that came from it
	KeyID        string // the API key it was made with
	IssuerID     string // the OAuth client it was made by, where that is not ClientID
	ParentID     string // the family of the SAT it was made with
	Generation   int64  // of a refresh token: how often its family was refreshed before
	Scope        []string
	AddressIDs   []string // what a guest or invite token may reach
	Fingerprint  string   // cnf.jkt: the thumbprint of the holder's key (RFC 7638)
	IssuedAt     time.Time
	ExpiresAt    time.Time

	sealedBy string // the key of the ring; "" if it was not sealed
}

// claims is a Token as it lies in the seal.
type claims struct {
	Kind         TokenKind `json:"k"`
	ID           string    `json:"jti"`
	Issuer       string    `json:"iss"`
	ProjectID    string    `json:"p"`
	SubscriberID string    `json:"s,omitempty"`
	ClientID     string    `json:"c,omitempty"`
	SessionID    string    `json:"sid,omitempty"`
	GrantID      string    `json:"g,omitempty"`
	FamilyID     string    `json:"f,omitempty"`
	KeyID        string    `json:"key,omitempty"`
	IssuerID     string    `json:"by,omitempty"`
	ParentID     string    `json:"pf,omitempty"`
	Generation   int64     `json:"n,omitempty"`
	Scope        []string  `json:"scope,omitempty"`
	AddressIDs   []string  `json:"a,omitempty"`
	Fingerprint  string    `json:"jkt,omitempty"`
	IssuedAt     int64     `json:"iat"` // microseconds, so that a revocation can tell tokens of one second apart
	ExpiresAt    int64     `json:"exp"`
}

// skew is how far the clocks of two nodes may be apart.
const skew = time.Minute

// newSealers gives each kind its own keys. Who reads the header sees only
// whether it is a refresh token.
func newSealers(ring *keys.Ring, host string) map[TokenKind]*keys.Sealer {
	sealers := make(map[TokenKind]*keys.Sealer)
	for _, kind := range []TokenKind{SAT, Guest, Invite, Service} {
		sealers[kind] = ring.Sealer("fabric "+string(kind), "SAT", host)
	}
	sealers[Refresh] = ring.Sealer("fabric "+string(Refresh), "Refresh", host)
	return sealers
}

// Seal gives the token as clients carry it. An empty ID, Issuer or IssuedAt is
// filled in.
func (f *Fabric) Seal(t Token) (string, error) {
	sealer := f.sealers[t.Kind]
	if sealer == nil {
		return "", fmt.Errorf("sealing token: no kind %q", t.Kind)
	}
	if t.ID == "" {
		t.ID = newID()
	}
	if t.Issuer == "" {
		t.Issuer = f.c.Issuer
	}
	if t.IssuedAt.IsZero() {
		t.IssuedAt = f.now()
	}
	return sealer.Seal(claims{
		Kind: t.Kind, ID: t.ID, Issuer: t.Issuer, ProjectID: t.ProjectID, SubscriberID: t.SubscriberID,
		ClientID: t.ClientID, SessionID: t.SessionID, GrantID: t.GrantID, FamilyID: t.FamilyID, KeyID: t.KeyID, IssuerID: t.IssuerID, ParentID: t.ParentID,
		Generation: t.Generation, Scope: t.Scope, AddressIDs: t.AddressIDs, Fingerprint: t.Fingerprint,
		IssuedAt: t.IssuedAt.UnixMicro(), ExpiresAt: t.ExpiresAt.UnixMicro(),
	})
}

// Inspect gives what a sealed token of this ring says, expired and revoked ones
// included: to be shown, never to be trusted.
func (f *Fabric) Inspect(raw string, kinds ...TokenKind) (Token, bool) {
	for _, kind := range kinds {
		var c claims
		sealer := f.sealers[kind]
		if sealer == nil {
			continue
		}
		kid, ok := sealer.OpenBy(raw, &c)
		if !ok || c.Kind != kind {
			continue
		}
		return Token{
			Kind: c.Kind, ID: c.ID, Issuer: c.Issuer, ProjectID: c.ProjectID, SubscriberID: c.SubscriberID,
			ClientID: c.ClientID, SessionID: c.SessionID, GrantID: c.GrantID, FamilyID: c.FamilyID, KeyID: c.KeyID, IssuerID: c.IssuerID, ParentID: c.ParentID,
			Generation: c.Generation, Scope: c.Scope, AddressIDs: c.AddressIDs, Fingerprint: c.Fingerprint,
			IssuedAt: time.UnixMicro(c.IssuedAt).UTC(), ExpiresAt: time.UnixMicro(c.ExpiresAt).UTC(),
			sealedBy: kid,
		}, true
	}
	return Token{}, false
}

// Open gives what a sealed token of one of the kinds says, if it is good: made
// by this issuer, not expired, not revoked, its login not ended. Anything else
// is problem.Unauthenticated, without a reason.
func (f *Fabric) Open(ctx context.Context, raw string, kinds ...TokenKind) (Token, error) {
	t, ok := f.Inspect(raw, kinds...)
	if !ok || f.expired(t) {
		return Token{}, problem.NoCredentials()
	}
	return t, f.Check(ctx, t)
}

func (f *Fabric) expired(t Token) bool {
	now := f.now()
	return t.Issuer != f.c.Issuer || !now.Before(t.ExpiresAt) || t.IssuedAt.After(now.Add(skew))
}

// Check reports whether anything that a token depends on was revoked or ended
// since it was issued. It looks at no other member, so that it serves tokens
// which were not sealed here too.
func (f *Fabric) Check(ctx context.Context, t Token) error {
	if err := f.Revoked(t); err != nil || t.SessionID == "" {
		return err
	}
	return f.c.Live(ctx, t.SessionID)
}

// Heard changes whenever this node hears of a revocation or of the end of a key:
// who holds many tokens for long, such as open sockets, then asks [Fabric.Revoked]
// again.
func (f *Fabric) Heard() int64 { return f.c.Revocations.Heard() + f.c.Ring.Heard() }

// Revoked is the part of [Fabric.Check] that asks nobody. Since the end of a login
// is a revocation too, it is enough for a token which was checked before.
func (f *Fabric) Revoked(t Token) error {
	if t.sealedBy != "" && !f.c.Ring.Trusts(t.sealedBy) {
		return problem.NoCredentials()
	}
	return f.c.Revocations.Check(t.IssuedAt,
		revocation.Subject{Kind: revocation.Token, ID: t.ID},
		revocation.Subject{Kind: revocation.Family, ID: t.FamilyID},
		revocation.Subject{Kind: revocation.Grant, ID: t.GrantID},
		revocation.Subject{Kind: revocation.Session, ID: t.SessionID},
		revocation.Subject{Kind: revocation.Subscriber, ID: t.SubscriberID},
		revocation.Subject{Kind: revocation.Client, ID: t.ClientID},
		revocation.Subject{Kind: revocation.Client, ID: t.IssuerID},
		revocation.Subject{Kind: revocation.Family, ID: t.ParentID},
		revocation.Subject{Kind: revocation.Key, ID: t.KeyID},
		revocation.Subject{Kind: revocation.Project, ID: t.ProjectID},
	)
}

// reaches reports whether the token may see an address of its project: a SAT
// sees them all.
func (t Token) reaches(addressID string) bool {
	return t.Kind == SAT || slices.Contains(t.AddressIDs, addressID)
}

// Revoke ends a token at once: a refresh token with all that came from it, any
// other alone.
func (f *Fabric) Revoke(ctx context.Context, t Token) error {
	kind, id := revocation.Token, t.ID
	if t.Kind == Refresh {
		kind, id = revocation.Family, t.FamilyID
	}
	return f.c.Revocations.Revoke(ctx, gone(kind, id, f.now()))
}
