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

// Rights are what one who keeps API keys over an API has itself, and so the most
// that it may give to a key: its scopes, and its end. Else a key that may only keep
// keys could make itself one for everything, and one that expires never would. A
// nil *Rights is the operator, who has everything.
type Rights struct {
	Scopes  []Scope
	Expires time.Time // zero for never
}

// Rights returns what who opens the key by a secret has to give. The secret before has
// an end of its own, beyond which it would live on in what it makes.
func (k APIKey) Rights(secret string) *Rights {
	r := &Rights{k.Scopes, k.Expires}
	if hashKey(secret) == k.OldHash && isLater(r.Expires, k.OldUntil) {
		r.Expires = k.OldUntil
	}
	return r
}

// Rights returns what the token of a service has to give. Its own end is no bound:
// its client gets another token.
func (t Token) Rights() *Rights {
	r := &Rights{}
	for _, name := range t.Scope {
		if s, ok := ParseScope(name); ok {
			r.Scopes = append(r.Scopes, s)
		}
	}
	return r
}

// end returns the latest end that may be given.
func (r *Rights) end() time.Time {
	if r == nil {
		return time.Time{}
	}
	return r.Expires
}

// Cover reports whether the rights have scopes, for good: what expires itself gives
// nothing that would not.
func (r *Rights) Cover(scopes []Scope) bool { return r.permit(scopes, time.Time{}) == nil }

// Has reports whether the rights have a scope, whenever they end.
func (r *Rights) Has(s Scope) bool { return r == nil || slices.Contains(r.Scopes, s) }

// permit reports what of scopes and of an end goes beyond the rights.
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
			"scopes", "scopes must be among those of the key that asks, which lacks %s", strings.Join(beyond, ", ")))
	}
	if !r.Expires.IsZero() && (expires.IsZero() || expires.After(r.Expires)) {
		errs = append(errs, problem.BadParam(
			"expires_at", "expires_at must be at most %s, when the key that asks expires",
			r.Expires.Format(time.RFC3339)))
	}
	return errors.Join(errs...)
}

// changed is the news that what nodes remember of a key is old. It counts a little
// longer, for nodes whose clocks are ahead; until then they ask for the row.
func changed(id string, at time.Time) revocation.Revocation {
	return revocation.Revocation{Kind: revocation.KeyChange, ID: id, Until: at.Add(skew),
		Expires: at.Add(2 * (skew + rememberFor))}
}

// Update changes the name, scopes and end of a key. What it gets anew must be
// within the rights of who asks. Every node knows within a second.
func (ks *APIKeys) Update(ctx context.Context, projectID, id string, in APIKeyInput, by *Rights) (APIKey, error) {
	k, err := ks.Find(ctx, projectID, id)
	if err != nil {
		return APIKey{}, err
	}
	now := ks.now()
	in.Scopes = distinct(in.Scopes)
	if err := errors.Join(ks.Check(in, false), by.permitChange(k, in)); err != nil {
		return APIKey{}, err
	}
	if k, err = ks.store.UpdateAPIKey(ctx, k.ProjectID, k.ID, in, changed(k.ID, now)); err != nil {
		return APIKey{}, err
	}
	return k, ks.c.Revocations.Sync(ctx)
}

// permitChange reports what a change adds to a key that goes beyond the rights.
func (r *Rights) permitChange(k APIKey, in APIKeyInput) error {
	added := slices.DeleteFunc(slices.Clone(in.Scopes), func(s Scope) bool { return slices.Contains(k.Scopes, s) })
	expires := r.end()
	if in.Expires != nil && isLater(*in.Expires, k.Expires) {
		expires = *in.Expires
	}
	return r.permit(added, expires)
}

// isLater reports whether an end is after another one; zero is never.
func isLater(a, b time.Time) bool {
	return !b.IsZero() && (a.IsZero() || a.After(b))
}

// The overlap of two secrets, where none is said, and the longest.
const (
	UsualOverlap = 24 * time.Hour
	MaxOverlap   = 30 * 24 * time.Hour
)

// Rotate returns a key a new secret, which is good at once, as the one before is
// until the overlap ends; one from before that ends now. Of many who rotate a key
// together one succeeds. Who asks is given the secret, and so must have all that the
// key has. Tokens made with the key live on.
func (ks *APIKeys) Rotate(ctx context.Context, projectID, id string, overlap time.Duration, by *Rights) (APIKey, string, error) {
	k, err := ks.Find(ctx, projectID, id)
	if err != nil {
		return APIKey{}, "", err
	}
	if by.permit(k.Scopes, k.Expires) != nil {
		return APIKey{}, "", problem.New(problem.Forbidden, "forbidden", "the key has more than the one that asks")
	}
	if overlap < 0 || overlap > MaxOverlap {
		return APIKey{}, "", problem.BadParam(
			"overlap", "overlap must be from 0 to %d seconds", int(MaxOverlap.Seconds()))
	}
	now, old := ks.now(), k.Hash
	k.OldHash, k.OldUntil, k.OldUsed, k.Rotated = old, now.Add(overlap), k.LastUsed, now
	if overlap == 0 {
		k.OldHash, k.OldUntil, k.OldUsed = "", time.Time{}, time.Time{}
	}
	secret := k.renew()
	if err := ks.store.RotateAPIKey(ctx, k, old, changed(k.ID, now)); err != nil {
		return APIKey{}, "", fmt.Errorf("rotating API key: %w", err)
	}
	return k, secret, ks.c.Revocations.Sync(ctx)
}
