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
	Revoked   time.Time // zero while it is good
	LastUsed  time.Time // to the hour; zero if it never was
}

// touchEvery is how exact LastUsed is: using a key writes at most so often.
const touchEvery = time.Hour

// CreateAPIKey makes a key of a project and gives its secret, this once.
func (f *Fabric) CreateAPIKey(ctx context.Context, projectID, name string, scopes []Scope) (k APIKey, secret string, err error) {
	projectID, ok := canonical(projectID)
	if !ok {
		return APIKey{}, "", problem.NoSuch("project")
	}
	errs := []error{checkText("name", name)}
	if len(scopes) == 0 {
		errs = append(errs, problem.Missing("scopes"))
	}
	if err := errors.Join(errs...); err != nil {
		return APIKey{}, "", err
	}
	var random [32]byte
	rand.Read(random[:])
	secret = "PT" + hex.EncodeToString(random[:])
	k = APIKey{
		ID: newID(), ProjectID: projectID, Name: name, Prefix: secret[:8], Hash: hashKey(secret),
		Scopes: scopes, Created: f.now(),
	}
	if err := f.c.Store.CreateAPIKey(ctx, k); err != nil {
		return APIKey{}, "", fmt.Errorf("creating API key: %w", err)
	}
	return k, secret, nil
}

func hashKey(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// ListAPIKeys gives a page of a project's keys, revoked ones included.
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

// Authenticate gives the key that a backend presents. Whatever is wrong, the
// answer is the same problem.Unauthenticated. What the key may be used for is
// for the caller to ask.
func (f *Fabric) Authenticate(ctx context.Context, projectID, apiKey string) (APIKey, error) {
	now := f.now()
	k, err := f.findKey(ctx, hashKey(apiKey), now)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return APIKey{}, fmt.Errorf("finding API key: %w", err)
	}
	same := subtle.ConstantTimeCompare([]byte(projectID), []byte(k.ProjectID)) == 1
	if err != nil || !same || !k.Revoked.IsZero() {
		return APIKey{}, problem.NoCredentials()
	}
	return k, nil
}

// findKey finds a key and notes that it was used.
func (f *Fabric) findKey(ctx context.Context, hash string, now time.Time) (APIKey, error) {
	if k, ok := f.remembered(hash, now); ok {
		return k, nil
	}
	k, err := f.c.Store.FindAPIKeyByHash(ctx, hash)
	if err != nil || !k.Revoked.IsZero() {
		return k, err
	}
	if now.Sub(k.LastUsed) >= touchEvery {
		k.LastUsed = now
		// Beside the request: a disk that is full or busy must not hold everybody up.
		go func() { _ = f.c.Store.TouchAPIKey(context.WithoutCancel(ctx), k.ID, now) }()
	}
	f.keys.put(k, now)
	return k, nil
}
