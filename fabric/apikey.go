package fabric

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// An APIKey lets a backend act for its project: it is the password of HTTP
// Basic, whose name is the project's id.
type APIKey struct {
	ID        string
	ProjectID string
	Name      string
	Prefix    string // its first characters, to be told apart by
	Hash      string // SHA-256; the key itself is kept by nobody here
	Scopes    []Scope
	Created   time.Time
	Expires   time.Time // zero for never; the tokens made with it live as long as they would
	Revoked   time.Time // zero while it is good
	LastUsed  time.Time // to the hour; zero if it never was
	Rotated   time.Time // when it got its present secret; zero if that is its first

	OldHash  string    // of the secret before this one; "" where none is good
	OldUntil time.Time // until when that one is good
	OldUsed  time.Time // when that one was used last, to the hour
}

// opens reports whether the secret of a hash opens the key at a moment.
func (k APIKey) opens(hash string, now time.Time) bool {
	switch {
	case !k.Revoked.IsZero(), !k.Expires.IsZero() && !now.Before(k.Expires):
		return false
	case hash == k.Hash: // both are digests, and found by one
		return true
	}
	return hash == k.OldHash && now.Before(k.OldUntil)
}

// touchEvery is how exact LastUsed is: using a key writes at most so often.
const touchEvery = time.Hour

// An APIKeyInput is a key to create, or what of one to change; nil fields stay as
// they are.
type APIKeyInput struct {
	Name    *string
	Scopes  []Scope
	Expires *time.Time // zero for never
}

// CheckAPIKey reports everything that is wrong with the input of a change, or of a
// new key, which needs scopes.
func (f *Fabric) CheckAPIKey(in APIKeyInput, isNew bool) error {
	var errs []error
	now := f.now()
	if in.Name != nil {
		errs = append(errs, checkText("name", *in.Name))
	}
	if len(in.Scopes) == 0 && (isNew || in.Scopes != nil) {
		errs = append(errs, problem.Missing("scopes"))
	}
	if in.Expires != nil && !in.Expires.IsZero() && !in.Expires.After(now) {
		errs = append(errs, problem.BadParam("expires_at", "expires_at must be after %s", now.Format(time.RFC3339)))
	}
	return errors.Join(errs...)
}

// CreateAPIKey makes a key of a project and gives its secret, this once. No key
// gets more than who asks for it has; a nil by is the operator, who has everything.
func (f *Fabric) CreateAPIKey(ctx context.Context, projectID string, in APIKeyInput, by *Rights) (k APIKey, secret string, err error) {
	projectID, ok := canonical(projectID)
	if !ok {
		return APIKey{}, "", problem.NoSuch("project")
	}
	k = APIKey{ID: newID(), ProjectID: projectID, Created: f.now(), Scopes: distinct(in.Scopes), Expires: by.end()}
	if in.Name != nil {
		k.Name = *in.Name
	}
	if in.Expires != nil {
		k.Expires = in.Expires.UTC().Truncate(time.Microsecond)
	}
	if err := errors.Join(f.CheckAPIKey(in, true), by.permit(k.Scopes, k.Expires)); err != nil {
		return APIKey{}, "", err
	}
	secret = k.renew()
	if err := f.c.Store.CreateAPIKey(ctx, k); err != nil {
		return APIKey{}, "", fmt.Errorf("creating API key: %w", err)
	}
	return k, secret, nil
}

// renew returns the key a secret.
func (k *APIKey) renew() string {
	var random [32]byte
	rand.Read(random[:])
	secret := "PT" + hex.EncodeToString(random[:])
	k.Prefix, k.Hash = secret[:8], hashKey(secret)
	return secret
}

func hashKey(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// FindAPIKey returns a key of a project, whether or not it is good.
func (f *Fabric) FindAPIKey(ctx context.Context, projectID, id string) (APIKey, error) {
	id, ok := canonical(id)
	if !ok {
		return APIKey{}, problem.NoSuch("API key")
	}
	return f.c.Store.FindAPIKey(ctx, projectID, id)
}

// ListAPIKeys returns a page of a project's keys, revoked ones included.
func (f *Fabric) ListAPIKeys(ctx context.Context, projectID string, q page.Query) (page.Page[APIKey], error) {
	return f.c.Store.ListAPIKeys(ctx, projectID, q)
}

// RevokeAPIKey ends a key and all tokens that were made with it.
func (f *Fabric) RevokeAPIKey(ctx context.Context, projectID, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("API key")
	}
	now := f.now()
	if err := f.c.Store.RevokeAPIKey(ctx, projectID, gone(revocation.Key, id, now), now); err != nil {
		return err
	}
	return f.c.Revocations.Sync(ctx)
}

// FindLeakedKey returns the API key of a project that has a secret, or had it before it was
// rotated, good or not. It counts as no use of the key.
func (f *Fabric) FindLeakedKey(ctx context.Context, projectID, secret string) (APIKey, error) {
	k, err := f.c.Store.FindAPIKeyByHash(ctx, hashKey(secret))
	if err == nil && k.ProjectID != projectID {
		err = problem.NoSuch("API key")
	}
	if err != nil {
		return APIKey{}, err
	}
	return k, nil
}

// Authenticate returns the key that a backend presents. Whatever is wrong, the
// answer is the same problem.Unauthenticated. What the key may be used for is
// for the caller to ask.
func (f *Fabric) Authenticate(ctx context.Context, projectID, apiKey string) (APIKey, error) {
	now, hash := f.now(), hashKey(apiKey)
	k, err := f.findKey(ctx, hash, now)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return APIKey{}, fmt.Errorf("finding API key: %w", err)
	}
	same := subtle.ConstantTimeCompare([]byte(projectID), []byte(k.ProjectID)) == 1
	if err != nil || !same || !k.opens(hash, now) {
		return APIKey{}, problem.NoCredentials()
	}
	return k, nil
}

// findKey finds the key of a secret, and notes that a good one was used.
func (f *Fabric) findKey(ctx context.Context, hash string, now time.Time) (APIKey, error) {
	if k, ok := f.remembered(hash, now); ok {
		return k, nil
	}
	k, err := f.c.Store.FindAPIKeyByHash(ctx, hash)
	if err != nil || !k.opens(hash, now) {
		return k, err
	}
	if now.Sub(k.LastUsed) >= touchEvery || hash == k.OldHash && now.Sub(k.OldUsed) >= touchEvery {
		// Beside the request: a disk that is full or busy must not hold everybody up.
		id := k.ID
		f.uses.Do(hash, func() { _ = f.c.Store.TouchAPIKey(context.WithoutCancel(ctx), id, hash, now) })
		k.LastUsed = now
	}
	f.keys.put(hash, k, now)
	return k, nil
}

// Settle waits until the uses of API keys are noted, or ctx ends.
func (f *Fabric) Settle(ctx context.Context) error { return f.uses.Wait(ctx) }
