package fabric

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/session"
)

// EmbedKeys manages the keys that web pages embed to get guest tokens.
type EmbedKeys struct {
	*core
	store     EmbedKeyStore
	addresses *Addresses
}

// An EmbedKeyStore keeps embed keys; see [Stores].
type EmbedKeyStore interface {
	// CreateEmbedKey returns problem.NotFound if the key's address is unknown.
	CreateEmbedKey(ctx context.Context, k EmbedKey) error
	FindEmbedKeyByHash(ctx context.Context, hash string) (EmbedKey, error)
	ListEmbedKeys(ctx context.Context, projectID string, q page.Query) (page.Page[EmbedKey], error)
	// RevokeEmbedKey revokes a key. A key that is already revoked is left unchanged.
	RevokeEmbedKey(ctx context.Context, projectID string, r revocation.Revocation, at time.Time) error
}

// An EmbedKey is embedded in a page that anyone may read. It permits only guest tokens for one
// address.
type EmbedKey struct {
	ID        string
	ProjectID string
	AddressID string
	Name      string
	Prefix    string // the secret's first characters, by which people recognize it
	Hash      string // SHA-256 of the secret
	Created   time.Time
	Revoked   time.Time // zero while the key is valid
}

// embedPrefix begins every embed key; clients recognize embed keys by it.
const embedPrefix = "c2c_"

// embedLifetime is the lifetime of tokens issued for embed keys.
const embedLifetime = time.Hour

// Create creates an embed key for an address and returns its secret, which cannot be read again.
func (es *EmbedKeys) Create(
	ctx context.Context, projectID, addressID, name string,
) (k EmbedKey, secret string, err error) {
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
		ID:        newID(),
		ProjectID: projectID,
		AddressID: addressID,
		Name:      name,
		Prefix:    secret[:12],
		Hash:      hashKey(secret),
		Created:   es.now(),
	}
	if err := es.store.CreateEmbedKey(ctx, k); err != nil {
		return EmbedKey{}, "", fmt.Errorf("creating embed key: %w", err)
	}
	return k, secret, nil
}

// List returns a page of a project's embed keys, including revoked keys.
func (es *EmbedKeys) List(ctx context.Context, projectID string, q page.Query) (page.Page[EmbedKey], error) {
	return es.store.ListEmbedKeys(ctx, projectID, q)
}

// Find returns the key with this secret, even if it is revoked. If the secret is unknown, Find
// returns problem.Forbidden.
func (es *EmbedKeys) Find(ctx context.Context, secret string) (EmbedKey, error) {
	refused := problem.New(problem.Forbidden, "forbidden", "the embed key is unknown or revoked")
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

// Revoke revokes a key and the tokens issued for it.
func (es *EmbedKeys) Revoke(ctx context.Context, k EmbedKey) error {
	now := es.now()
	defer es.caches.embeds.Clear()
	end := permanentRevocation(revocation.Key, k.ID, now)
	if err := es.store.RevokeEmbedKey(ctx, k.ProjectID, end, now); err != nil {
		return err
	}
	return es.c.Revocations.Sync(ctx)
}

// EmbedLimits limits the use of an embed key, since anyone can read the key in a page. Uses are
// counted across all nodes. 0 means no limit.
type EmbedLimits struct {
	Tokens  int // guest tokens per key per minute
	Sockets int // sockets opened with these tokens, per key per minute
}

// embedWindow is the length of the interval in which uses are counted.
const embedWindow = time.Minute

// AdmitSocket counts a socket that is opened with a token. If the token was issued for an embed key,
// and too many sockets were opened with tokens of this key in the interval, AdmitSocket returns
// problem.RateLimited.
func (es *EmbedKeys) AdmitSocket(ctx context.Context, t Token) error {
	if !t.Embedded {
		return nil
	}
	return es.count(ctx, "embed-socket", t.KeyID, es.c.EmbedLimits.Sockets)
}

// count counts one use of a key. It returns an error if the use exceeds the limit. If the session
// store cannot count, the use is allowed, so that a failing store does not stop the service.
func (es *EmbedKeys) count(ctx context.Context, kind, keyID string, limit int) error {
	if limit <= 0 || es.c.Sessions == nil {
		return nil
	}
	now := es.now()
	window := now.Truncate(embedWindow)
	key := session.Key{Kind: kind, ID: keyID + ":" + strconv.FormatInt(window.Unix(), 10)}
	if n, err := es.c.Sessions.Incr(ctx, key, 2*embedWindow); err != nil || n <= int64(limit) {
		return nil
	}

	return &problem.Error{
		Kind:       problem.RateLimited,
		Code:       "rate_limit_exceeded",
		Message:    "the embed key is used too often",
		RetryAfter: window.Add(embedWindow).Sub(now),
	}
}
