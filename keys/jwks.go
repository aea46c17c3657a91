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
	MaxAge time.Duration // how long the JWKS may be cached
}

// JWKS returns the public keys that verifiers may need: those of the next, the current and the
// recently retired signing keys. Keys are deleted when they have been retired for [Kept].
func (r *Ring) JWKS() Document { return r.latest.Load().jwks }

// freshness is the longest time for which a JWKS may be cached. A longer time would save requests;
// with a shorter time, verifiers would learn sooner that a key was revoked.
const freshness = 5 * time.Minute

// cacheable returns how long a JWKS may be cached. A verifier may fetch the JWKS from a node that
// has not read a new key yet. The cached copy must then expire before the key is used to sign. The
// clock of the node that first signs with the key may be ahead by up to half of publish.
func cacheable(publish time.Duration) time.Duration {
	const late = 2 * pollEvery // after this time, every node has read a new key
	return min(max(0, publish/2-late), freshness).Truncate(time.Second)
}

func (s *snapshot) document(publish time.Duration) (Document, error) {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, rec := range s.records {
		if key := s.signers[rec.Kid]; key != nil {
			set.Keys = append(set.Keys, jose.JSONWebKey{
				Key:       key.public,
				KeyID:     key.kid,
				Algorithm: string(key.alg),
				Use:       "sig",
			})
		}
	}

	body, err := json.Marshal(set)
	if err != nil {
		return Document{}, fmt.Errorf("encoding JWKS: %w", err)
	}

	sum := sha256.Sum256(body)
	return Document{
		Body:   body,
		ETag:   `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
		MaxAge: cacheable(publish),
	}, nil
}
