package keys

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A Document is a JWKS (RFC 7517, section 5) in its encoded form.
type Document struct {
	Body   []byte
	ETag   string
	MaxAge time.Duration // how long it may be cached
}

// JWKS returns the public keys of all signing keys that verifiers may meet: those
// that will sign, those that sign now, and those that signed within [Kept].
func (r *Ring) JWKS() Document { return r.latest.Load().jwks }

// freshness is the longest time a JWKS may be cached. A longer time would save requests;
// a shorter one tells verifiers of a revoked key sooner.
const freshness = 5 * time.Minute

// cacheable returns how long a JWKS may be cached. A verifier that fetches it from a
// node that has not seen a new key yet must fetch it again before that key signs. The
// node where the key begins to sign may have a clock that is half of publish ahead.
func cacheable(publish time.Duration) time.Duration {
	const late = 2 * pollEvery // by then, every node has seen a new key
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
		return Document{}, fmt.Errorf("encoding JWKS: %w", err)
	}
	sum := sha256.Sum256(body)
	return Document{Body: body, ETag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
		MaxAge: cacheable(publish)}, nil
}
