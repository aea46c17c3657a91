package fabric

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/background"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// APIKeys manages the API keys of projects and authenticates backends with them.
type APIKeys struct {
	*core
	store APIKeyStore
	keys  keyCache
	uses  background.Queue // uses of keys that have not been written yet
}

// An APIKeyStore stores API keys; see [Stores].
//
// The parameter by holds the rights of the caller. Methods with this parameter check in their
// transaction that the caller still has these rights. Otherwise, they return
// problem.Unauthenticated.
type APIKeyStore interface {
	// CreateAPIKey returns problem.NotFound if the project is unknown.
	CreateAPIKey(ctx context.Context, k APIKey, by *Rights) error
	FindAPIKey(ctx context.Context, projectID, id string) (APIKey, error)
	// FindAPIKeyByHash finds the key whose current or previous secret has this hash.
	FindAPIKeyByHash(ctx context.Context, hash string) (APIKey, error)
	ListAPIKeys(ctx context.Context, projectID string, f APIKeyFilter, q page.Query) (page.Page[APIKey], error)
	// ExpiringAPIKeys returns the keys that are not revoked and expire between the two times, soonest
	// first. It returns at most the given number.
	ExpiringAPIKeys(ctx context.Context, projectID string, after, before time.Time, most int) ([]APIKey, error)
	// RevokeAPIKey revokes a key. A key that is already revoked is left unchanged.
	RevokeAPIKey(ctx context.Context, projectID string, r revocation.Revocation, at time.Time) error
	// UpdateAPIKey writes the fields that are not nil and returns the new row. It returns
	// problem.Conflict if the key is revoked.
	UpdateAPIKey(ctx context.Context, projectID, id string, c APIKeyInput, by *Rights,
		r revocation.Revocation) (APIKey, error)
	// RotateAPIKey writes the new secrets of a key if the stored hash still equals old. It returns
	// problem.Conflict if the hash has changed or the key is revoked.
	RotateAPIKey(ctx context.Context, k APIKey, old string, by *Rights, r revocation.Revocation) error
	// EndOldAPIKeySecret deletes the previous secret of a key. It returns problem.Conflict if this
	// secret is not the one in k, or is no longer valid at the time now.
	EndOldAPIKeySecret(ctx context.Context, k APIKey, now time.Time,
		r revocation.Revocation) (APIKey, error)
	// TouchAPIKey records a use of the key, made with the secret that has this hash.
	TouchAPIKey(ctx context.Context, id, hash string, at time.Time) error
}

// An APIKey lets a backend act for its project. It is the password of HTTP Basic
// authentication; the user name is the project's id.
type APIKey struct {
	ID        string
	ProjectID string
	Name      string
	Prefix    string // the secret's first characters, by which people recognize it
	Hash      string // SHA-256 of the secret, which is not stored
	Scopes    []Scope
	Created   time.Time
	Expires   time.Time // zero means never; tokens issued with the key may outlive it
	Revoked   time.Time // zero while the key is valid
	LastUsed  time.Time // the last use, to the hour; zero if never used
	Rotated   time.Time // when the key got its current secret; zero if never rotated

	OldHash  string    // the previous secret's hash; "" if there is none, or it was ended
	OldUntil time.Time // when the previous secret expires
	OldUsed  time.Time // when the previous secret was last used, to the hour
}

// opens reports whether the secret with this hash is valid for the key at the time now.
func (k APIKey) opens(hash string, now time.Time) bool {
	switch {
	case !k.Revoked.IsZero(), !k.Expires.IsZero() && !now.Before(k.Expires):
		return false
	case hash == k.Hash: // no constant-time comparison: both are digests, and the key was found by one of them
		return true
	}
	return hash == k.OldHash && now.Before(k.OldUntil)
}

// HasSecret reports whether secret is the current secret of the key.
func (k APIKey) HasSecret(secret string) bool { return hashKey(secret) == k.Hash }

// touchEvery is the precision of LastUsed. Uses of a key are written to its row at most this often.
const touchEvery = time.Hour

// An APIKeyInput holds the fields of a key to create or update; nil fields are left
// unchanged.
type APIKeyInput struct {
	Name    *string
	Scopes  []Scope
	Expires *time.Time // zero means never
}

// Check returns everything that is wrong with the input of an update or, if isNew, of a
// new key, which needs scopes.
func (ks *APIKeys) Check(in APIKeyInput, isNew bool) error {
	var errs []error
	now := ks.now()
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

// Create creates a key for a project and returns its secret, which cannot be read again. The key's
// rights cannot exceed the rights in by. by is nil if an operator creates the key. The key may then
// have any rights.
func (ks *APIKeys) Create(
	ctx context.Context, projectID string, in APIKeyInput, by *Rights,
) (k APIKey, secret string, err error) {
	projectID, ok := canonical(projectID)
	if !ok {
		return APIKey{}, "", problem.NoSuch("project")
	}

	k = APIKey{ID: newID(), ProjectID: projectID, Created: ks.now(), Scopes: distinct(in.Scopes), Expires: by.end()}
	if in.Name != nil {
		k.Name = *in.Name
	}
	if in.Expires != nil {
		k.Expires = in.Expires.UTC().Truncate(time.Microsecond)
	}

	if err := errors.Join(ks.Check(in, true), by.permit(k.Scopes, k.Expires)); err != nil {
		return APIKey{}, "", err
	}
	secret = k.renew()
	if err := ks.store.CreateAPIKey(ctx, k, by); err != nil {
		return APIKey{}, "", fmt.Errorf("creating API key: %w", err)
	}
	return k, secret, nil
}

// renew replaces the secret of the key and returns the new one.
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

// Find returns a key of a project, even if it is expired or revoked.
func (ks *APIKeys) Find(ctx context.Context, projectID, id string) (APIKey, error) {
	id, ok := canonical(id)
	if !ok {
		return APIKey{}, problem.NoSuch("API key")
	}
	return ks.store.FindAPIKey(ctx, projectID, id)
}

// List returns a page of a project's keys, including revoked keys.
func (ks *APIKeys) List(ctx context.Context, projectID string, q page.Query) (page.Page[APIKey], error) {
	return ks.Search(ctx, projectID, APIKeyFilter{}, q)
}

// Revoke revokes a key and all tokens issued with it.
func (ks *APIKeys) Revoke(ctx context.Context, projectID, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("API key")
	}
	now := ks.now()
	if err := ks.store.RevokeAPIKey(ctx, projectID, permanentRevocation(revocation.Key, id, now), now); err != nil {
		return err
	}
	return ks.c.Revocations.Sync(ctx)
}

// FindLeaked returns the project's API key with this current or previous secret, even if the key is
// expired or revoked. The search does not count as a use of the key.
func (ks *APIKeys) FindLeaked(ctx context.Context, projectID, secret string) (APIKey, error) {
	k, err := ks.store.FindAPIKeyByHash(ctx, hashKey(secret))
	if err != nil {
		return APIKey{}, err
	}
	if k.ProjectID != projectID {
		return APIKey{}, problem.NoSuch("API key")
	}
	return k, nil
}

// Authenticate returns the project's key with this secret. If there is no such key, or the secret is
// not valid, the error is problem.Unauthenticated. The caller checks the key's scopes.
func (ks *APIKeys) Authenticate(ctx context.Context, projectID, apiKey string) (APIKey, error) {
	now, hash := ks.now(), hashKey(apiKey)
	k, err := ks.findKey(ctx, hash, now)
	if errors.Is(err, problem.NotFound) {
		return APIKey{}, problem.NoCredentials().Because("the API key is unknown")
	}
	if err != nil {
		return APIKey{}, fmt.Errorf("finding API key: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(projectID), []byte(k.ProjectID)) != 1 {
		return APIKey{}, problem.NoCredentials().Because("the API key belongs to another project")
	}
	if !k.opens(hash, now) {
		return APIKey{}, problem.NoCredentials().Because("the API key was revoked, rotated or has expired")
	}
	return k, nil
}

// findKey finds the key with this secret hash. If the secret is valid, findKey records the use, but
// not more often than touchEvery.
func (ks *APIKeys) findKey(ctx context.Context, hash string, now time.Time) (APIKey, error) {
	if k, ok := ks.remembered(hash, now); ok {
		return k, nil
	}

	k, err := ks.store.FindAPIKeyByHash(ctx, hash)
	if err != nil {
		return APIKey{}, err
	}
	if !k.opens(hash, now) {
		return k, nil
	}
	if now.Sub(k.LastUsed) >= touchEvery || hash == k.OldHash && now.Sub(k.OldUsed) >= touchEvery {
		// This runs in the background, because a full or busy disk must not delay requests.
		id := k.ID
		ks.uses.Do(hash, func() { _ = ks.store.TouchAPIKey(context.WithoutCancel(ctx), id, hash, now) })
		k.LastUsed = now
	}

	ks.keys.put(hash, k, now)
	return k, nil
}

// Settle waits until the uses of API keys are recorded or ctx is done.
func (ks *APIKeys) Settle(ctx context.Context) error { return ks.uses.Wait(ctx) }

// keySecret matches the secrets of API keys.
var keySecret = regexp.MustCompile(`^PT[0-9a-f]{64}$`)

// CheckSecret returns an error if the secret does not have the form of an API key. A secret from
// another system must have the same form as ours.
func CheckSecret(param, secret string) error {
	if !keySecret.MatchString(secret) {
		return problem.BadParam(param, "%s must be PT and 64 lower-case hexadecimal digits", param)
	}
	return nil
}

// Adopt creates a key whose secret was generated by another system. If a key already has that
// secret, Adopt does nothing.
func (ks *APIKeys) Adopt(ctx context.Context, projectID string, in APIKeyInput, secret string) error {
	if err := errors.Join(CheckSecret("secret", secret), ks.Check(in, true)); err != nil {
		return err
	}
	if _, err := ks.store.FindAPIKeyByHash(ctx, hashKey(secret)); !errors.Is(err, problem.NotFound) {
		return err
	}

	k := APIKey{
		ID:        newID(),
		ProjectID: projectID,
		Created:   ks.now(),
		Scopes:    distinct(in.Scopes),
		Prefix:    secret[:8],
		Hash:      hashKey(secret),
	}
	if in.Name != nil {
		k.Name = *in.Name
	}
	if err := ks.store.CreateAPIKey(ctx, k, nil); err != nil {
		return fmt.Errorf("creating API key: %w", err)
	}
	return nil
}

// rememberFor is how long API keys are cached. rememberMax is the maximum number of cached keys.
const (
	rememberFor = time.Minute
	rememberMax = 4096
)

// A keyCache holds valid API keys by the hash of their secret, so that requests from a busy backend
// need no query. Revocations and other changes invalidate its entries in the same way as they
// invalidate cached tokens.
type keyCache struct {
	mu     sync.RWMutex
	byHash map[string]rememberedKey
}

type rememberedKey struct {
	key  APIKey
	read time.Time // when the read began
}

// put caches a key.
func (c *keyCache) put(hash string, k APIKey, read time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHash == nil || len(c.byHash) >= rememberMax {
		c.byHash = make(map[string]rememberedKey)
	}
	c.byHash[hash] = rememberedKey{k, read}
}

// get returns a key that was read recently.
func (c *keyCache) get(hash string, now time.Time) (rememberedKey, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	r, ok := c.byHash[hash]
	if !ok {
		return rememberedKey{}, false
	}
	age := now.Sub(r.read)
	return r, age >= 0 && age < rememberFor
}

// remembered returns a key that was valid recently, unless the key has changed in the meantime.
func (ks *APIKeys) remembered(hash string, now time.Time) (APIKey, bool) {
	r, ok := ks.keys.get(hash, now)
	if !ok {
		return APIKey{}, false
	}
	err := ks.c.Revocations.Check(r.read,
		revocation.Subject{Kind: revocation.Key, ID: r.key.ID},
		revocation.Subject{Kind: revocation.KeyChange, ID: r.key.ID},
		revocation.Subject{Kind: revocation.Project, ID: r.key.ProjectID})
	return r.key, err == nil
}
