package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/cryptosigner"
)

// A signer is a signing key that has been decrypted.
type signer struct {
	kid    string
	alg    jose.SignatureAlgorithm
	public crypto.PublicKey
	key    jose.OpaqueSigner
	unique jose.OpaqueSigner // signs messages that are signed only once; see [Ring.SignUnique]
	heads  sync.Map          // the encoded headers of tokens, by typ
}

func newSigner(rec Record, key crypto.Signer) *signer {
	s := &signer{
		kid:    rec.Kid,
		alg:    jose.SignatureAlgorithm(rec.Use),
		public: key.Public(),
		key:    cryptosigner.Opaque(salted{key}),
	}
	s.unique = s.key
	if ours, ok := key.(*ecdsa.PrivateKey); ok {
		s.unique = cryptosigner.Opaque(deterministic{ours})
	}
	return s
}

// deterministic is a signer that derives the nonce of a signature only from the key and the message
// (RFC 6979), as RFC 8725, section 3.2 recommends. This takes a quarter less time than adding
// randomness. Randomness would only protect against a faulty machine that signs the same message
// twice.
type deterministic struct{ *ecdsa.PrivateKey }

func (d deterministic) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return d.PrivateKey.Sign(nil, digest, opts)
}

// salted is a signer whose PS256 signatures have a salt that is as long as the hash (RFC 7518,
// section 3.5). go-jose requests the longest salt that fits, which verifiers refuse.
type salted struct{ crypto.Signer }

func (s salted) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if pss, ok := opts.(*rsa.PSSOptions); ok {
		opts = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: pss.Hash}
	}
	return s.Signer.Sign(random, digest, opts)
}

// head returns the encoded header of tokens with the given typ (RFC 7515, section 4.1).
func (s *signer) head(typ string) (string, error) {
	if head, ok := s.heads.Load(typ); ok {
		return head.(string), nil
	}
	raw, err := json.Marshal(header{Alg: string(s.alg), Kid: s.kid, Typ: typ})
	if err != nil {
		return "", fmt.Errorf("encoding header: %w", err)
	}
	head := base64.RawURLEncoding.EncodeToString(raw)
	s.heads.Store(typ, head)
	return head, nil
}

// sign returns a compact JWS (RFC 7515, section 7.1). The parameter by is the signer to use: s.key
// or s.unique.
func (s *signer) sign(by jose.OpaqueSigner, typ string, payload []byte) (string, error) {
	head, err := s.head(typ)
	if err != nil {
		return "", err
	}
	token := base64.RawURLEncoding.AppendEncode(append([]byte(head), '.'), payload)
	signature, err := by.SignPayload(token, s.alg)
	if err != nil {
		return "", fmt.Errorf("signing: %w", err)
	}
	return string(base64.RawURLEncoding.AppendEncode(append(token, '.'), signature)), nil
}

// Sign returns claims as a compact JWS, signed with the current key for alg. typ is the typ in the
// header, such as "at+jwt" (RFC 9068, section 2.1).
func (r *Ring) Sign(alg Use, typ string, claims any) (string, error) {
	return r.sign(alg, typ, claims, func(s *signer) jose.OpaqueSigner { return s.key })
}

// SignUnique is like Sign, for claims that are different in every token, because they contain a
// random value such as a jti. SignUnique is faster if alg is ES256.
func (r *Ring) SignUnique(alg Use, typ string, claims any) (string, error) {
	return r.sign(alg, typ, claims, func(s *signer) jose.OpaqueSigner { return s.unique })
}

func (r *Ring) sign(alg Use, typ string, claims any, by func(*signer) jose.OpaqueSigner) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("encoding claims: %w", err)
	}
	now := r.latest.Load()
	s := now.signers[now.makers[alg].Kid]
	if s == nil {
		return "", fmt.Errorf("signing: no key for %s", alg)
	}
	return s.sign(by(s), typ, payload)
}

// A verified holds the content of a JWS whose signature was verified.
type verified struct {
	typ     string
	payload []byte
}

// VerifyJWS verifies a compact JWS that this ring signed, with the given typ in its header. It
// returns the payload, which the caller must not change. ok is false for any other token, including
// malformed ones. Valid tokens are remembered until the ring changes, since verifying a signature
// takes most of the time of a request.
func (r *Ring) VerifyJWS(token, typ string) (payload []byte, ok bool) {
	if len(token) > maxToken {
		return nil, false
	}
	if known, ok := r.latest.Load().verified.find(token); ok {
		v := known.v.(verified)
		return v.payload, v.typ == typ
	}

	jws, err := jose.ParseSignedCompact(token, signatures)
	if err != nil || len(jws.Signatures) != 1 {
		return nil, false
	}

	header := jws.Signatures[0].Protected
	now, s := r.signer(header.KeyID)
	if s == nil || header.Algorithm != string(s.alg) || header.ExtraHeaders[jose.HeaderType] != typ {
		return nil, false
	}

	if payload, err = jws.Verify(s.public); err != nil {
		return nil, false
	}
	now.verified.keep(token, tokenContent{s.kid, verified{typ, payload}})
	return payload, true
}

// ReadLost returns the payload of a compact JWS, with the given typ in its header, whose key is not in the
// ring. The key may have been revoked or deleted. Anyone can make such a token, so the payload is not
// evidence of anything.
func (r *Ring) ReadLost(token, typ string) (payload []byte, ok bool) {
	if len(token) > maxToken {
		return nil, false
	}
	jws, err := jose.ParseSignedCompact(token, signatures)
	if err != nil || len(jws.Signatures) != 1 {
		return nil, false
	}
	header := jws.Signatures[0].Protected
	if header.KeyID == "" || header.ExtraHeaders[jose.HeaderType] != typ {
		return nil, false
	}
	if _, s := r.signer(header.KeyID); s != nil {
		return nil, false
	}
	return jws.UnsafePayloadWithoutVerification(), true
}

// signer returns the signing key with the given kid, and the snapshot that contains it. The key is nil
// if there is none.
func (r *Ring) signer(kid string) (*snapshot, *signer) {
	now := r.latest.Load()
	if s := now.signers[kid]; s != nil {
		return now, s
	}
	r.lookAgain()
	now = r.latest.Load()
	return now, now.signers[kid]
}
