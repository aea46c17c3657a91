package fabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Rights are the scopes and the expiry of a caller's credentials. The credentials that the caller
// creates or changes cannot get more than these: otherwise, a key with only Management could create
// a key with all scopes, and an expiring key could create a key that never expires. A nil *Rights
// means an operator. Operators have all rights.
type Rights struct {
	Scopes  []Scope
	Expires time.Time // zero means never

	// These fields identify the credentials that the rights were read from. A change that passes
	// rights on checks in its transaction that the credentials are still valid; see [Rights.HeldBy]
	// and [Rights.EndedBy].
	KeyID      string // the API key, or "" for a service token
	secretHash string
	Since      int64 // the last revocation that was known when the service token was checked
	token      Token
}

// Rights returns the rights of a caller that presents this secret of the key. If it is the previous
// secret of the key, the rights end when the previous secret expires. A key that is created with
// these rights thus cannot outlive that secret.
func (k APIKey) Rights(secret string) *Rights {
	r := &Rights{Scopes: k.Scopes, Expires: k.Expires, KeyID: k.ID, secretHash: hashKey(secret)}
	if r.secretHash == k.OldHash && isLater(r.Expires, k.OldUntil) {
		r.Expires = k.OldUntil
	}
	return r
}

// HeldBy reports whether k, the current row of the API key, still has these rights.
func (r *Rights) HeldBy(k APIKey, now time.Time) bool {
	if !k.opens(r.secretHash, now) {
		return false
	}
	left := &Rights{Scopes: k.Scopes, Expires: k.Expires}
	if r.secretHash == k.OldHash && isLater(left.Expires, k.OldUntil) {
		left.Expires = k.OldUntil
	}
	return left.permit(r.Scopes, r.Expires) == nil
}

// EndedBy reports whether a revocation ends the service token that the rights were read from.
func (r *Rights) EndedBy(rev revocation.Revocation) bool {
	return !r.token.root().After(rev.Until) &&
		slices.Contains(r.token.subjects(), revocation.Subject{Kind: rev.Kind, ID: rev.ID})
}

// Rights returns the rights of a service token. since is the last revocation that was known when
// the token was checked. The rights do not expire with the token, since its client can get another
// token.
func (t Token) Rights(since int64) *Rights {
	r := &Rights{token: t, Since: since}
	for _, name := range t.Scope {
		if s, ok := ParseScope(name); ok {
			r.Scopes = append(r.Scopes, s)
		}
	}
	return r
}

// end returns the latest expiry that a caller may set. The zero time means never.
func (r *Rights) end() time.Time {
	if r == nil {
		return time.Time{}
	}
	return r.Expires
}

// Cover reports whether the rights never expire and include all of the given scopes.
func (r *Rights) Cover(scopes []Scope) bool { return r.permit(scopes, time.Time{}) == nil }

// Has reports whether the rights include a scope, regardless of their expiry.
func (r *Rights) Has(s Scope) bool { return r == nil || slices.Contains(r.Scopes, s) }

// permit returns an error if the scopes or the expiry exceed the rights.
func (r *Rights) permit(scopes []Scope, expires time.Time) error {
	if r == nil {
		return nil
	}

	var errs []error
	var beyond []string
	for _, s := range scopes {
		if !slices.Contains(r.Scopes, s) {
			beyond = append(beyond, string(s))
		}
	}

	if beyond != nil {
		errs = append(errs, problem.BadParam(
			"scopes", "scopes must only contain scopes of the calling key, which lacks %s", strings.Join(beyond, ", ")))
	}
	if !r.Expires.IsZero() && (expires.IsZero() || expires.After(r.Expires)) {
		errs = append(errs, problem.BadParam(
			"expires_at", "expires_at must be at most %s, when the calling key expires",
			r.Expires.Format(time.RFC3339)))
	}

	return errors.Join(errs...)
}

// changed returns the revocation that makes nodes read a key's row again. It applies for a while
// after the time at, because nodes' clocks may be ahead. During this time, nodes do not cache the
// key.
func changed(id string, at time.Time) revocation.Revocation {
	return revocation.Revocation{
		Kind:    revocation.KeyChange,
		ID:      id,
		Until:   at.Add(skew),
		Expires: at.Add(2 * (skew + rememberFor)),
	}
}

// Update changes the name, scopes and expiry of a key. Added scopes and a later expiry must be
// within the rights in by. Every node applies the change within a second.
func (ks *APIKeys) Update(
	ctx context.Context, projectID, id string, in APIKeyInput, by *Rights,
) (APIKey, error) {
	k, err := ks.Find(ctx, projectID, id)
	if err != nil {
		return APIKey{}, err
	}
	now := ks.now()
	in.Scopes = distinct(in.Scopes)
	if err := errors.Join(ks.Check(in, false), by.permitChange(k, in)); err != nil {
		return APIKey{}, err
	}
	if k, err = ks.store.UpdateAPIKey(ctx, k.ProjectID, k.ID, in, by, changed(k.ID, now)); err != nil {
		return APIKey{}, err
	}
	return k, ks.c.Revocations.Sync(ctx)
}

// permitChange returns an error if a change adds rights to a key that exceed r. Scopes that the
// change adds last as long as the key.
func (r *Rights) permitChange(k APIKey, in APIKeyInput) error {
	hadScope := func(s Scope) bool { return slices.Contains(k.Scopes, s) }
	added := slices.DeleteFunc(slices.Clone(in.Scopes), hadScope)
	lasts := k.Expires // after the change
	if in.Expires != nil {
		lasts = *in.Expires
	}
	expires := r.end()
	if len(added) > 0 || isLater(lasts, k.Expires) {
		expires = lasts
	}
	return r.permit(added, expires)
}

// isLater reports whether the expiry a is after b. The zero time means never.
func isLater(a, b time.Time) bool {
	return !b.IsZero() && (a.IsZero() || a.After(b))
}

// UsualOverlap and MaxOverlap are the default and the maximum overlap of two secrets.
const (
	UsualOverlap = 24 * time.Hour
	MaxOverlap   = 30 * 24 * time.Hour
)

// Rotate is like RotateSeen, for the current secret of a key.
func (ks *APIKeys) Rotate(
	ctx context.Context, projectID, id string, overlap time.Duration, by *Rights,
) (APIKey, string, error) {
	k, err := ks.Find(ctx, projectID, id)
	if err != nil {
		return APIKey{}, "", err
	}
	return ks.RotateSeen(ctx, k, overlap, by)
}

// RotateSeen replaces the secret of a key that the caller has read, and returns the new secret,
// which is valid immediately. If the secret was replaced in the meantime, it returns
// problem.Conflict. The previous secret stays valid until the overlap ends. An even older secret
// becomes invalid. Only one of several concurrent rotations of a key succeeds. Because the caller
// gets the secret, the rights in by must include all rights of the key. Tokens issued with the key
// stay valid.
func (ks *APIKeys) RotateSeen(
	ctx context.Context, k APIKey, overlap time.Duration, by *Rights,
) (APIKey, string, error) {
	if by.permit(k.Scopes, k.Expires) != nil {
		return APIKey{}, "", problem.New(problem.Forbidden, "forbidden",
			"the key has more permissions than the calling key")
	}
	if overlap < 0 || overlap > MaxOverlap {
		return APIKey{}, "", problem.BadParam(
			"overlap", "overlap must be from 0 to %d seconds", int(MaxOverlap.Seconds()))
	}

	now, replaced := ks.now(), k.Hash
	k.Rotated = now
	k.OldHash = ""
	k.OldUntil = time.Time{}
	k.OldUsed = time.Time{}
	if overlap > 0 {
		k.OldHash = replaced
		k.OldUntil = now.Add(overlap)
		k.OldUsed = k.LastUsed
	}

	secret := k.renew()
	if err := ks.store.RotateAPIKey(ctx, k, replaced, by, changed(k.ID, now)); err != nil {
		return APIKey{}, "", fmt.Errorf("rotating API key: %w", err)
	}
	return k, secret, ks.c.Revocations.Sync(ctx)
}

// EndOldSecret makes the previous secret of a key that the caller has read invalid. The current
// secret and tokens issued with the key stay valid. If the key no longer has this previous secret,
// EndOldSecret returns problem.Conflict.
func (ks *APIKeys) EndOldSecret(ctx context.Context, k APIKey) (APIKey, error) {
	now := ks.now()
	ended, err := ks.store.EndOldAPIKeySecret(ctx, k, now, changed(k.ID, now))
	if err != nil {
		return APIKey{}, err
	}
	return ended, ks.c.Revocations.Sync(ctx)
}

// A Scope permits the holder of a key or token to use a part of the API.
type Scope string

// The scopes, shared by API keys and OAuth.
const (
	Voice      Scope = "Voice"
	Messaging  Scope = "Messaging"
	Fax        Scope = "Fax"
	Video      Scope = "Video"
	Management Scope = "Management"
	Numbers    Scope = "Numbers"
	Chat       Scope = "Chat"
	Storage    Scope = "Storage"
	Tasking    Scope = "Tasking"
	Datasphere Scope = "Datasphere"
	Pubsub     Scope = "Pubsub"
)

// scopes maps every accepted spelling of a scope, in lower case, to the scope.
var scopes = map[string]Scope{
	"voice":      Voice,
	"calling":    Voice,
	"messaging":  Messaging,
	"fax":        Fax,
	"video":      Video,
	"management": Management,
	"numbers":    Numbers,
	"chat":       Chat,
	"storage":    Storage,
	"tasking":    Tasking,
	"datasphere": Datasphere,
	"pubsub":     Pubsub,
}

// ParseScope parses the name of a scope, ignoring case. "calling" is another name of Voice.
func ParseScope(name string) (Scope, bool) {
	s, ok := scopes[strings.ToLower(name)]
	return s, ok
}

// Identifier returns the scope's name in the vendor's API for keys. This is "calling" for Voice,
// and otherwise the scope's name in lower case.
func (s Scope) Identifier() string {
	if s == Voice {
		return "calling"
	}
	return strings.ToLower(string(s))
}

// distinct returns the scopes without duplicates.
func distinct(given []Scope) []Scope {
	var once []Scope
	for _, s := range given {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}

// Has reports whether the token carries one of the scopes.
func (t Token) Has(wanted ...Scope) bool {
	return slices.ContainsFunc(t.Scope, func(name string) bool {
		s, ok := ParseScope(name)
		return ok && slices.Contains(wanted, s)
	})
}

// Has reports whether the key carries one of the scopes.
func (k APIKey) Has(wanted ...Scope) bool {
	return slices.ContainsFunc(k.Scopes, func(s Scope) bool { return slices.Contains(wanted, s) })
}

// Scopes returns all scopes in the order in which they are printed.
func Scopes() []Scope {
	return []Scope{Voice, Messaging, Fax, Video, Management, Numbers, Chat, Storage, Tasking, Datasphere, Pubsub}
}
