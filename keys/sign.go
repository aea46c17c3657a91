package keys

import (
	"crypto"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/cryptosigner"
)

// A signer is an opened signing key.
type signer struct {
	kid    string
	alg    jose.SignatureAlgorithm
	public crypto.PublicKey
	key    jose.OpaqueSigner
	heads  sync.Map // typ to the header of its tokens, as it is written
}

func newSigner(rec Record, key crypto.Signer) *signer {
	return &signer{kid: rec.Kid, alg: jose.SignatureAlgorithm(rec.Use), public: key.Public(), key: cryptosigner.Opaque(salted{key})}
}

// salted makes signatures of PS256 with a salt as long as the hash (RFC 7518,
// section 3.5). The library asks for the longest that fits, which verifiers refuse.
type salted struct{ crypto.Signer }

func (s salted) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if pss, ok := opts.(*rsa.PSSOptions); ok {
		opts = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: pss.Hash}
	}
	return s.Signer.Sign(random, digest, opts)
}

// head gives the header of the tokens of a typ (RFC 7515, section 4.1).
func (s *signer) head(typ string) (string, error) {
	if head, ok := s.heads.Load(typ); ok {
		return head.(string), nil
	}
	raw, err := json.Marshal(header{Alg: string(s.alg), Kid: s.kid, Typ: typ})
	if err != nil {
		return "", fmt.Errorf("writing header: %w", err)
	}
	head := base64.RawURLEncoding.EncodeToString(raw)
	s.heads.Store(typ, head)
	return head, nil
}

// sign writes a compact JWS (RFC 7515, section 7.1).
func (s *signer) sign(typ string, payload []byte) (string, error) {
	head, err := s.head(typ)
	if err != nil {
		return "", err
	}
	token := base64.RawURLEncoding.AppendEncode(append([]byte(head), '.'), payload)
	signature, err := s.key.SignPayload(token, s.alg)
	if err != nil {
		return "", fmt.Errorf("signing: %w", err)
	}
	return string(base64.RawURLEncoding.AppendEncode(append(token, '.'), signature)), nil
}

// Sign gives the compact JWS of claims under the current key of an algorithm,
// with a header typ such as "at+jwt" (RFC 9068, section 2.1).
func (r *Ring) Sign(alg Use, typ string, claims any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("writing claims: %w", err)
	}
	now := r.latest.Load()
	s := now.signers[now.makers[alg].Kid]
	if s == nil {
		return "", fmt.Errorf("signing: no key for %s", alg)
	}
	return s.sign(typ, payload)
}

// VerifyJWS checks a compact JWS of this ring with the given header typ and gives
// its payload. ok is false for any other token, however malformed.
func (r *Ring) VerifyJWS(token, typ string) (payload []byte, ok bool) {
	if len(token) > maxToken {
		return nil, false
	}
	jws, err := jose.ParseSignedCompact(token, signatures)
	if err != nil || len(jws.Signatures) != 1 {
		return nil, false
	}
	header := jws.Signatures[0].Protected
	s := r.signer(header.KeyID)
	if s == nil || header.Algorithm != string(s.alg) || header.ExtraHeaders[jose.HeaderType] != typ {
		return nil, false
	}
	payload, err = jws.Verify(s.public)
	return payload, err == nil
}

// signer gives the signing key of a kid, nil if there is none.
func (r *Ring) signer(kid string) *signer {
	if s := r.latest.Load().signers[kid]; s != nil {
		return s
	}
	r.lookAgain()
	return r.latest.Load().signers[kid]
}
