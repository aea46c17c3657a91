package idp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// An OldSecret is a client's previous secret, which remains valid for a while. If the client has no
// previous secret, it is the zero value.
type OldSecret struct {
	Hash  string
	Until time.Time
	Used  time.Time // last use after it was replaced, updated at most once an hour; zero if unused
}

// ValidOldSecret returns the previous secret if it is still valid at the given time, and the zero
// value otherwise.
func (c Client) ValidOldSecret(now time.Time) OldSecret {
	if c.Old.Hash == "" || !now.Before(c.Old.Until) {
		return OldSecret{}
	}
	return c.Old
}

// HasSecret reports in constant time whether secret is valid for the client at the given time. It
// accepts the current secret, and the previous one until it expires.
func (c Client) HasSecret(secret string, now time.Time) bool {
	return c.hasHash(hashSecret(secret), now)
}

func (c Client) hasHash(hash string, now time.Time) bool {
	return sameHash(hash, c.SecretHash) || sameHash(hash, c.ValidOldSecret(now).Hash)
}

// sameHash compares two hashes in constant time. An empty stored hash matches no hash.
func sameHash(hash, stored string) bool {
	return stored != "" && subtle.ConstantTimeCompare([]byte(hash), []byte(stored)) == 1
}

// newSecret returns a secret of 256 bits, and the hash to store.
func newSecret() (secret, hash string) {
	secret = randomToken()
	return secret, hashSecret(secret)
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// touchEvery is the minimum time between two updates of the last use of an old secret.
const touchEvery = time.Hour

// VerifySecret reports whether secret authenticates a client. It also records when an old secret is
// used.
func (cs *Clients) VerifySecret(ctx context.Context, c Client, secret string) bool {
	now, hash := cs.Now(), hashSecret(secret)
	if !c.hasHash(hash, now) {
		return false
	}
	if hash == c.Old.Hash && now.Sub(c.Old.Used) >= touchEvery {
		// Record the use in the background, so that a full or busy disk does not delay requests.
		// Errors are ignored, because a lost update only makes the displayed time too old.
		cs.uses.Do(hash, func() { _ = cs.store.TouchOldSecret(context.WithoutCancel(ctx), c.ID, hash, now) })
	}
	return true
}

// Settle waits until all pending uses of secrets are recorded, or until ctx is done. Call it before
// the store is closed.
func (cs *Clients) Settle(ctx context.Context) error { return cs.uses.Wait(ctx) }

// RotateSecret is like RotateSeen, but reads the client first.
func (cs *Clients) RotateSecret(ctx context.Context, id string, overlap time.Duration,
	by *fabric.Rights) (c Client, secret string, err error) {
	if c, err = cs.store.FindClient(ctx, id); err != nil {
		return c, "", err
	}
	return cs.RotateSeen(ctx, c, overlap, by)
}

// RotateSeen replaces the secret of a client that the caller has read. The new secret is valid
// immediately. The previous secret remains valid for the time overlap, and older secrets expire
// immediately. If the secret was replaced in the meantime, RotateSeen returns problem.Conflict.
//
// by holds the rights of the caller. They must include the client's own rights, because the caller
// sees the secret. by is nil if an operator calls, because operators may rotate any secret.
func (cs *Clients) RotateSeen(ctx context.Context, c Client, overlap time.Duration,
	by *fabric.Rights) (_ Client, secret string, err error) {
	if !c.AuthMethod.bySecret() {
		return c, "", problem.New(problem.Invalid, "no_secret",
			"a client with the auth method %s has no secret", c.AuthMethod)
	}

	if !by.Cover(c.fabricScopes()) {
		return c, "", problem.New(problem.Forbidden, "forbidden",
			"the client has more permissions than the calling key")
	}
	if overlap < 0 || overlap > fabric.MaxOverlap {
		return c, "", problem.BadParam("overlap", "overlap must be from 0 to %d seconds",
			int(fabric.MaxOverlap.Seconds()))
	}

	before, now := c.SecretHash, cs.Now()
	c.Old = OldSecret{Hash: before, Until: now.Add(overlap)}
	if overlap == 0 || before == "" {
		c.Old = OldSecret{}
	}
	secret, c.SecretHash = newSecret()
	c.SecretMade, c.Updated = now, now

	defer cs.recent.Drop(c.ID)
	if err := cs.store.SetClientSecret(ctx, c, before, by); err != nil {
		return c, "", fmt.Errorf("rotating secret: %w", err)
	}
	return c, secret, nil
}

// EndOldSecret makes a client's previous secret invalid. If the client has no valid previous
// secret, EndOldSecret returns problem.Conflict.
func (cs *Clients) EndOldSecret(ctx context.Context, id string) (Client, error) {
	c, err := cs.store.FindClient(ctx, id)
	if err != nil {
		return c, err
	}
	return cs.EndSeenSecret(ctx, c)
}

// EndSeenSecret is like EndOldSecret, for the previous secret of a client that the caller has read.
// If the client no longer has this previous secret, EndSeenSecret returns problem.Conflict.
func (cs *Clients) EndSeenSecret(ctx context.Context, c Client) (Client, error) {
	defer cs.recent.Drop(c.ID)
	if err := cs.store.EndOldSecret(ctx, c.ID, c.Old.Hash, cs.Now()); err != nil {
		return Client{}, err
	}
	return cs.store.FindClient(ctx, c.ID)
}

// fabricScopes returns the fabric scopes that the client may ask for.
func (c Client) fabricScopes() (all []fabric.Scope) {
	for _, name := range c.Scopes {
		if s, ok := fabric.ParseScope(name); ok {
			all = append(all, s)
		}
	}
	return all
}
