package fabric

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// IngestKeys manages the keys that let switches store recordings.
type IngestKeys struct {
	*core
	store IngestKeyStore
}

// An IngestKeyStore keeps ingest keys; see [Stores].
type IngestKeyStore interface {
	// CreateIngestKey returns problem.NotFound if the project is unknown, and
	// problem.Unauthenticated if the caller no longer has the rights in by.
	CreateIngestKey(ctx context.Context, k IngestKey, by *Rights) error
	FindIngestKey(ctx context.Context, projectID, id string) (IngestKey, error)
	FindIngestKeyByHash(ctx context.Context, hash string) (IngestKey, error)
	// ListIngestKeys lists the keys that contain each word of text in their name, prefix or id.
	ListIngestKeys(ctx context.Context, projectID, text string, q page.Query) (page.Page[IngestKey], error)
	// RevokeIngestKey revokes a key. A key that is already revoked is left unchanged.
	RevokeIngestKey(ctx context.Context, projectID, id string, at time.Time) error
	// TouchIngestKey records that a key was used.
	TouchIngestKey(ctx context.Context, id string, at time.Time) error
}

// An IngestKey is part of the URL to which a switch sends recordings. It can only store recordings
// in its project.
type IngestKey struct {
	ID        string
	ProjectID string
	Name      string
	Prefix    string // the secret's first characters, by which people recognize the key
	Hash      string // SHA-256 of the secret
	Created   time.Time
	Expires   time.Time // zero means never
	Revoked   time.Time // zero unless the key has been revoked
	LastUsed  time.Time // the last use, to the hour; zero if never used
}

// ingestPrefix begins every ingest key.
const ingestPrefix = "ik_"

// Create creates an ingest key for a project and returns its secret, which cannot be read again.
// The key expires no later than the rights in by, which must include Voice. If by is nil, an
// operator creates the key.
func (ks *IngestKeys) Create(
	ctx context.Context, projectID, name string, by *Rights,
) (k IngestKey, secret string, err error) {
	projectID, ok := canonical(projectID)
	if !ok {
		return IngestKey{}, "", problem.NoSuch("project")
	}
	if err := errors.Join(checkText("name", name), by.permit([]Scope{Voice}, by.end())); err != nil {
		return IngestKey{}, "", err
	}

	var random [24]byte
	rand.Read(random[:])
	secret = ingestPrefix + hex.EncodeToString(random[:])
	k = IngestKey{
		ID:        newID(),
		ProjectID: projectID,
		Name:      name,
		Prefix:    secret[:10],
		Hash:      hashKey(secret),
		Created:   ks.now(),
		Expires:   by.end(),
	}
	if err := ks.store.CreateIngestKey(ctx, k, by); err != nil {
		return IngestKey{}, "", fmt.Errorf("creating ingest key: %w", err)
	}
	return k, secret, nil
}

// Find returns an ingest key of a project, even if the key is revoked.
func (ks *IngestKeys) Find(ctx context.Context, projectID, id string) (IngestKey, error) {
	id, ok := canonical(id)
	if !ok {
		return IngestKey{}, problem.NoSuch("ingest key")
	}
	return ks.store.FindIngestKey(ctx, projectID, id)
}

// List returns a page of a project's ingest keys, including revoked keys.
func (ks *IngestKeys) List(ctx context.Context, projectID string, q page.Query) (page.Page[IngestKey], error) {
	return ks.store.ListIngestKeys(ctx, projectID, "", q)
}

// Search returns a page of a project's keys that contain each word of text in their
// name, prefix or id.
func (ks *IngestKeys) Search(ctx context.Context, projectID, text string, q page.Query) (page.Page[IngestKey], error) {
	return ks.store.ListIngestKeys(ctx, projectID, text, q)
}

// Authenticate returns the key with this secret. If the key is unknown, revoked or expired, it
// returns problem.NotFound.
func (ks *IngestKeys) Authenticate(ctx context.Context, secret string) (IngestKey, error) {
	refused := problem.New(problem.NotFound, "not_found", "the ingest key is unknown, revoked or expired")
	if !strings.HasPrefix(secret, ingestPrefix) || len(secret) > 255 {
		return IngestKey{}, refused
	}
	k, err := ks.store.FindIngestKeyByHash(ctx, hashKey(secret))
	if errors.Is(err, problem.NotFound) {
		return IngestKey{}, refused
	}
	if err != nil {
		return IngestKey{}, fmt.Errorf("finding ingest key: %w", err)
	}

	now := ks.now()
	if !k.Revoked.IsZero() || !k.Expires.IsZero() && !now.Before(k.Expires) {
		return IngestKey{}, refused
	}
	if hour := now.Truncate(touchEvery); hour.After(k.LastUsed) {
		if err := ks.store.TouchIngestKey(ctx, k.ID, hour); err != nil {
			return IngestKey{}, fmt.Errorf("recording the use of an ingest key: %w", err)
		}
	}
	return k, nil
}

// Revoke revokes an ingest key of a project. Uploads in progress are refused when they finish.
func (ks *IngestKeys) Revoke(ctx context.Context, projectID, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("ingest key")
	}
	return ks.store.RevokeIngestKey(ctx, projectID, id, ks.now())
}
