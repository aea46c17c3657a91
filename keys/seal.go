package keys

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/go-jose/go-jose/v4"
)

// maxToken bounds the tokens that are looked at.
const maxToken = 16 << 10

// A Sealer seals and opens the tokens of one type: JWEs with alg dir and enc
// A256GCM (RFC 7516; RFC 7518, sections 4.5 and 5.3) under a key which no other
// type has.
type Sealer struct {
	ring    *Ring
	purpose string
	typ, ch string

	ends  sync.Map // kid to *end
	heads sync.Map // header of a good token, as it is written, to its *end
}

// An end is what a Sealer keeps for one ring key.
type end struct {
	key       []byte
	encrypter jose.Encrypter
}

// Sealer gives the sealer of a type of token. The purpose separates its keys;
// typ and ch go into the header, where clients read them.
func (r *Ring) Sealer(purpose, typ, ch string) *Sealer {
	return &Sealer{ring: r, purpose: purpose, typ: typ, ch: ch}
}

// Seal gives the token of claims.
func (s *Sealer) Seal(claims any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("writing claims: %w", err)
	}
	s.ring.mu.RLock()
	kid := s.ring.current[Seal]
	s.ring.mu.RUnlock()
	e, err := s.end(kid)
	if err != nil {
		return "", err
	}
	jwe, err := e.encrypter.Encrypt(payload)
	if err != nil {
		return "", fmt.Errorf("sealing: %w", err)
	}
	return jwe.CompactSerialize()
}

// Open reads the claims of a token of this type into claims. ok is false for
// any other token: another type, another ring, changed, malformed. Whether the
// token has expired or was revoked is the caller's business.
func (s *Sealer) Open(token string, claims any) (ok bool) {
	head, rest, found := strings.Cut(token, "..")
	if !found || len(token) > maxToken || strings.Count(rest, ".") != 2 {
		return false
	}
	e, ok := s.known(head)
	if !ok {
		return false
	}
	jwe, err := jose.ParseEncryptedCompact(token, []jose.KeyAlgorithm{jose.DIRECT}, []jose.ContentEncryption{jose.A256GCM})
	if err != nil {
		return false
	}
	payload, err := jwe.Decrypt(e.key)
	if err != nil {
		return false
	}
	s.heads.Store(head, e) // there are few good ones: one for each ring key and ch
	return json.Unmarshal(payload, claims) == nil
}

// known gives what opens the tokens with a header.
func (s *Sealer) known(head string) (*end, bool) {
	if e, ok := s.heads.Load(head); ok {
		return e.(*end), true
	}
	kid, ok := s.kid(head)
	if !ok {
		return nil, false
	}
	e, err := s.end(kid)
	return e, err == nil
}

// kid reads the header. Only members that we write may be in it: no zip, no
// crit, no jwk ever reaches the library.
func (s *Sealer) kid(head string) (string, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(head)
	if err != nil {
		return "", false
	}
	var h struct {
		Alg string `json:"alg"`
		Enc string `json:"enc"`
		Kid string `json:"kid"`
		Typ string `json:"typ"`
		Ch  string `json:"ch"`
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if dec.Decode(&h) != nil || h.Alg != "dir" || h.Enc != "A256GCM" || h.Typ != s.typ {
		return "", false
	}
	return h.Kid, true
}

func (s *Sealer) end(kid string) (*end, error) {
	if e, ok := s.ends.Load(kid); ok {
		return e.(*end), nil
	}
	s.ring.mu.RLock()
	root := s.ring.roots[kid]
	s.ring.mu.RUnlock()
	if root == nil {
		return nil, fmt.Errorf("sealing: no key %s", kid)
	}
	key, err := hkdf.Key(sha256.New, root, nil, "selvage token "+s.purpose, 32)
	if err != nil {
		return nil, fmt.Errorf("deriving key: %w", err)
	}
	opts := (&jose.EncrypterOptions{}).WithType(jose.ContentType(s.typ))
	if s.ch != "" {
		opts = opts.WithHeader("ch", s.ch)
	}
	encrypter, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.DIRECT, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, opts)
	if err != nil {
		return nil, fmt.Errorf("preparing sealer: %w", err)
	}
	e := &end{key, encrypter}
	s.ends.Store(kid, e)
	return e, nil
}
