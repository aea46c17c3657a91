package fabric

import (
	"sync"
	"time"

	"github.com/selvage/selvage/internal/revocation"
)

// How long and how many API keys are remembered.
const (
	rememberFor = time.Minute
	rememberMax = 4096
)

// A keyCache remembers good API keys by the hash of a secret, so that a busy
// backend costs no query. Revocations, and news of other changes, reach it as they
// reach tokens.
type keyCache struct {
	mu     sync.RWMutex
	byHash map[string]rememberedKey
}

type rememberedKey struct {
	key  APIKey
	read time.Time // before it was read
}

func (c *keyCache) put(hash string, k APIKey, read time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHash == nil || len(c.byHash) >= rememberMax {
		c.byHash = make(map[string]rememberedKey)
	}
	c.byHash[hash] = rememberedKey{k, read}
}

func (c *keyCache) get(hash string, now time.Time) (rememberedKey, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	r, ok := c.byHash[hash]
	age := now.Sub(r.read)
	return r, ok && age >= 0 && age < rememberFor
}

// remembered returns a key that was good lately, unless it was changed since.
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
