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
	"github.com/selvage/selvage/internal/revocation"
)

// EmbedKeys manages the keys that pages embed to get guest tokens.
type EmbedKeys struct {
	*core
	store     EmbedKeyStore
	addresses *Addresses
}

// An EmbedKeyStore keeps embed keys; see [Stores].
type EmbedKeyStore interface {
	// CreateEmbedKey returns problem.NotFound if the address is unknown.
	CreateEmbedKey(ctx context.Context, k EmbedKey) error
	FindEmbedKeyByHash(ctx context.Context, hash string) (EmbedKey, error)
	ListEmbedKeys(ctx context.Context, projectID string, q page.Query) (page.Page[EmbedKey], error)
	// RevokeEmbedKey revokes a key. A key that is already revoked is left unchanged.
	RevokeEmbedKey(ctx context.Context, projectID string, r revocation.Revocation, at time.Time) error
}

// An EmbedKey stands in a page that anybody may read. It gives guest tokens to
// one address, and nothing else.
type EmbedKey struct {
	ID        string
	ProjectID string
	AddressID string
	Name      string
	Prefix    string // its first characters, to be told apart by
	Hash      string // SHA-256
	Created   time.Time
	Revoked   time.Time // zero while it is good
}

// embedPrefix begins every embed key: clients know them by it.
const embedPrefix = "c2c_"

// embedLifetime is that of the tokens which embed keys give.
const embedLifetime = time.Hour

// Create makes a key of an address and gives it, this once.
func (es *EmbedKeys) Create(ctx context.Context, projectID, addressID, name string) (k EmbedKey, secret string, err error) {
	addressID, ok := canonical(addressID)
	if !ok {
		return EmbedKey{}, "", badAddress()
	}
	if err := checkText("name", name); err != nil {
		return EmbedKey{}, "", err
	}
	if _, err := es.addresses.store.FindAddress(ctx, projectID, addressID); errors.Is(err, problem.NotFound) {
		return EmbedKey{}, "", badAddress()
	} else if err != nil {
		return EmbedKey{}, "", fmt.Errorf("finding address: %w", err)
	}
	var random [24]byte
	rand.Read(random[:])
	secret = embedPrefix + hex.EncodeToString(random[:])
	k = EmbedKey{
		ID: newID(), ProjectID: projectID, AddressID: addressID, Name: name, Prefix: secret[:12],
		Hash: hashKey(secret), Created: es.now(),
	}
	if err := es.store.CreateEmbedKey(ctx, k); err != nil {
		return EmbedKey{}, "", fmt.Errorf("creating embed key: %w", err)
	}
	return k, secret, nil
}

// List returns a page of a project's embed keys, revoked ones included.
func (es *EmbedKeys) List(ctx context.Context, projectID string, q page.Query) (page.Page[EmbedKey], error) {
	return es.store.ListEmbedKeys(ctx, projectID, q)
}

// Find returns the key of a secret, revoked or not; problem.Forbidden if
// there is none.
func (es *EmbedKeys) Find(ctx context.Context, secret string) (EmbedKey, error) {
	refused := problem.New(problem.Forbidden, "forbidden", "the embed key is unknown or was revoked")
	if !strings.HasPrefix(secret, embedPrefix) || len(secret) > 255 {
		return EmbedKey{}, refused
	}
	k, err := es.caches.embeds.Load(hashKey(secret), func() (EmbedKey, error) {
		return es.store.FindEmbedKeyByHash(ctx, hashKey(secret))
	})
	if errors.Is(err, problem.NotFound) {
		return EmbedKey{}, refused
	}
	if err != nil {
		return EmbedKey{}, fmt.Errorf("finding embed key: %w", err)
	}
	return k, nil
}

// Revoke ends a key and the tokens that it gave.
func (es *EmbedKeys) Revoke(ctx context.Context, k EmbedKey) error {
	now := es.now()
	defer es.caches.embeds.Clear()
	if err := es.store.RevokeEmbedKey(ctx, k.ProjectID, gone(revocation.Key, k.ID, now), now); err != nil {
		return err
	}
	return es.c.Revocations.Sync(ctx)
}

// IssueEmbed returns a guest token to the address of an embed key.
func (ts *Tokens) IssueEmbed(ctx context.Context, secret string) (string, error) {
	if strings.TrimSpace(secret) == "" {
		return "", problem.Missing("token")
	}
	began := ts.now()
	k, err := ts.embedKeys.Find(ctx, secret)
	if err != nil {
		return "", err
	}
	n, err := ts.addresses.recentCount(ctx, k.ProjectID, []string{k.AddressID})
	if err != nil {
		return "", err
	}
	t := Issuer{ProjectID: k.ProjectID, KeyID: k.ID}.token(Guest)
	t.FamilyID, t.AddressIDs, t.IssuedAt, t.ExpiresAt = newID(), []string{k.AddressID}, began, began.Add(embedLifetime)
	t.Embedded = true
	if n == 0 || !k.Revoked.IsZero() || ts.Check(ctx, t) != nil {
		return "", problem.New(problem.Forbidden, "forbidden", "the embed key is unknown or was revoked")
	}
	if err := ts.embedKeys.count(ctx, "embed-token", k.ID, ts.c.EmbedLimits.Tokens); err != nil {
		return "", err
	}
	return ts.Seal(t)
}
