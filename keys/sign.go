package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/go-jose/go-jose/v4"
)

// generate makes the secret of a new key: PKCS #8 of a signing key, or 32
// random bytes.
func generate(use Use) (secret []byte, err error) {
	var key any
	switch use {
	case RS256:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		secret = make([]byte, 32)
		rand.Read(secret)
		return secret, nil
	}
	if err != nil {
		return nil, fmt.Errorf("making %s key: %w", use, err)
	}
	secret, err = x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("making %s key: %w", use, err)
	}
	return secret, nil
}

// A signer is a signing key with a jose.Signer for each header typ, made once.
type signer struct {
	kid   string
	alg   jose.SignatureAlgorithm
	key   crypto.Signer
	byTyp sync.Map // typ to jose.Signer
}

func newSigner(rec Record, pkcs8 []byte) (*signer, error) {
	key, err := x509.ParsePKCS8PrivateKey(pkcs8)
	if err != nil {
		return nil, fmt.Errorf("reading key %s: %w", rec.Kid, err)
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("reading key %s: a %T cannot sign", rec.Kid, key)
	}
	return &signer{kid: rec.Kid, alg: jose.SignatureAlgorithm(rec.Use), key: s}, nil
}

func (s *signer) forType(typ string) (jose.Signer, error) {
	if js, ok := s.byTyp.Load(typ); ok {
		return js.(jose.Signer), nil
	}
	js, err := jose.NewSigner(jose.SigningKey{Algorithm: s.alg, Key: jose.JSONWebKey{Key: s.key, KeyID: s.kid}},
		(&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	if err != nil {
		return nil, fmt.Errorf("preparing signer: %w", err)
	}
	s.byTyp.Store(typ, js)
	return js, nil
}

// Sign gives the compact JWS of claims under the current key of an algorithm,
// with a header typ such as "at+jwt" (RFC 9068, section 2.1).
func (r *Ring) Sign(alg Use, typ string, claims any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("writing claims: %w", err)
	}
	r.mu.RLock()
	s := r.signers[r.current[alg]]
	r.mu.RUnlock()
	if s == nil {
		return "", fmt.Errorf("signing: no key for %s", alg)
	}
	js, err := s.forType(typ)
	if err != nil {
		return "", err
	}
	jws, err := js.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("signing: %w", err)
	}
	return jws.CompactSerialize()
}

// VerifyJWS checks a compact JWS of this ring with the given header typ and gives
// its payload. ok is false for any other token, however malformed.
func (r *Ring) VerifyJWS(token, typ string) (payload []byte, ok bool) {
	if len(token) > maxToken {
		return nil, false
	}
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
	if err != nil || len(jws.Signatures) != 1 {
		return nil, false
	}
	header := jws.Signatures[0].Protected
	r.mu.RLock()
	s := r.signers[header.KeyID]
	r.mu.RUnlock()
	if s == nil || header.Algorithm != string(s.alg) || header.ExtraHeaders[jose.HeaderType] != typ {
		return nil, false
	}
	payload, err = jws.Verify(s.key.Public())
	return payload, err == nil
}

// A Document is a JWKS (RFC 7517, section 5) as bytes ready to serve.
type Document struct {
	Body []byte
	ETag string
}

// JWKS gives the public keys of all signing keys that verifiers may meet.
func (r *Ring) JWKS() Document {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.jwks
}

func document(records []Record, signers map[string]*signer) (Document, error) {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, rec := range records {
		if s := signers[rec.Kid]; s != nil {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: s.key.Public(), KeyID: s.kid, Algorithm: string(s.alg), Use: "sig"})
		}
	}
	body, err := json.Marshal(set)
	if err != nil {
		return Document{}, fmt.Errorf("writing JWKS: %w", err)
	}
	sum := sha256.Sum256(body)
	return Document{Body: body, ETag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}, nil
}
