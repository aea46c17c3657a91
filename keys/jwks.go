package keys

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A Document is a JWKS (RFC 7517, section 5) as bytes ready to serve.
type Document struct {
	Body   []byte
	ETag   string
	MaxAge time.Duration // how long it may be cached
}

// JWKS returns the public keys of all signing keys that verifiers may meet: those
// that will sign, that do, and that did within [Kept].
func (r *Ring) JWKS() Document { return r.latest.Load().jwks }

// freshness is how long a JWKS may be cached at most: nobody asks more often than
// he must, and who does not ask learns that late of a key which was revoked.
const freshness = 5 * time.Minute

// cacheable returns how long a JWKS may be cached. Who takes it from a node that has
// not yet heard of a new key must ask again before that key signs, and the node
// where it begins to sign may have a clock half of publish ahead.
func cacheable(publish time.Duration) time.Duration {
	const late = 2 * pollEvery // a node has heard by then
	return min(max(0, publish/2-late), freshness).Truncate(time.Second)
}

func (s *snapshot) document(publish time.Duration) (Document, error) {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, rec := range s.records {
		if key := s.signers[rec.Kid]; key != nil {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.public, KeyID: key.kid,
				Algorithm: string(key.alg), Use: "sig"})
		}
	}
	body, err := json.Marshal(set)
	if err != nil {
		return Document{}, fmt.Errorf("writing JWKS: %w", err)
	}
	sum := sha256.Sum256(body)
	return Document{Body: body, ETag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
		MaxAge: cacheable(publish)}, nil
}
