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

// An OldSecret is the secret of a client before its present one, while it may still be
// used. The zero value is none.
type OldSecret struct {
	Hash  string
	Until time.Time
	Used  time.Time // when it was used last, to the hour; zero if it was not since it is old
}

// OldAt returns the secret before if it is good at a moment, else none.
func (c Client) OldAt(now time.Time) OldSecret {
	if c.Old.Hash == "" || !now.Before(c.Old.Until) {
		return OldSecret{}
	}
	return c.Old
}

// HasSecret reports whether a secret is the client's at a moment, in constant time: its
// present one, or the one before until that ends.
func (c Client) HasSecret(secret string, now time.Time) bool {
	hash := hashSecret(secret)
	return sameHash(hash, c.SecretHash) || sameHash(hash, c.OldAt(now).Hash)
}

func sameHash(hash, kept string) bool {
	return kept != "" && subtle.ConstantTimeCompare([]byte(hash), []byte(kept)) == 1
}

// newSecret makes a secret of 256 bits, and what is kept of it.
func newSecret() (secret, hash string) {
	secret = randomToken()
	return secret, hashSecret(secret)
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// touchEvery is how exact the last use of an old secret is: it is written so often at most.
const touchEvery = time.Hour

// VerifySecret reports whether a client has proven itself by a secret, and notes that an
// old one is still used.
func (cs *Clients) VerifySecret(ctx context.Context, c Client, secret string) bool {
	now := cs.Now()
	if !c.HasSecret(secret, now) {
		return false
	}
	if hash := hashSecret(secret); hash == c.Old.Hash && now.Sub(c.Old.Used) >= touchEvery {
		// Beside the request: a disk that is full or busy must not hold everybody up.
		cs.uses.Do(hash, func() { _ = cs.store.TouchOldSecret(context.WithoutCancel(ctx), c.ID, hash, now) })
	}
	return true
}

// Settle waits until the uses of secrets are noted, or ctx ends.
func (cs *Clients) Settle(ctx context.Context) error { return cs.uses.Wait(ctx) }

// RotateSecret returns a client a new secret, which is good at once, as the one before is
// until the overlap ends; one from before that ends now. Of many who rotate together one
// succeeds. Who asks is given the secret and so must have all that the client may get for
// itself; nil is the operator, who has everything.
func (cs *Clients) RotateSecret(ctx context.Context, id string, overlap time.Duration, by *fabric.Rights) (c Client, secret string, err error) {
	if c, err = cs.store.FindClient(ctx, id); err != nil {
		return c, "", err
	}
	if !c.AuthMethod.bySecret() {
		return c, "", problem.New(problem.Invalid, "no_secret",
			"a client with the auth method %s has no secret", c.AuthMethod)
	}
	if !by.Cover(c.fabricScopes()) {
		return c, "", problem.New(problem.Forbidden, "forbidden", "the client has more than the key that asks")
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
	if err := cs.store.SetClientSecret(ctx, c, before); err != nil {
		return c, "", fmt.Errorf("rotating secret: %w", err)
	}
	return c, secret, nil
}

// fabricScopes are those that the client may ask for itself.
func (c Client) fabricScopes() (all []fabric.Scope) {
	for _, name := range c.Scopes {
		if s, ok := fabric.ParseScope(name); ok {
			all = append(all, s)
		}
	}
	return all
}

// EndOldSecret ends the secret before the present one now.
func (cs *Clients) EndOldSecret(ctx context.Context, id string) (Client, error) {
	defer cs.recent.Drop(id)
	if err := cs.store.EndOldSecret(ctx, id, cs.Now()); err != nil {
		return Client{}, err
	}
	return cs.store.FindClient(ctx, id)
}
