package keys

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// maxToken is the length in bytes of the longest token that is parsed.
const maxToken = 16 << 10

// A Sealer seals and opens tokens of one type. The tokens are JWEs with the alg dir and the enc
// A256GCM (RFC 7516; RFC 7518, sections 4.5 and 5.3). No other type of token uses the same keys.
type Sealer struct {
	ring    *Ring
	purpose string
	typ, ch string

	derived atomic.Pointer[tokenKeys]
}

// tokenKeys holds the keys that a Sealer derives from a snapshot of the ring. It is dropped together
// with the snapshot, so that no key derived from a revoked key remains.
type tokenKeys struct {
	snapshot *snapshot
	byKid    sync.Map // kid to *tokenKey
	byHead   sync.Map // encoded header of a valid token to *tokenKey
	opened   tokenCache
}

// A tokenKey seals and opens tokens with a key derived from one ring key.
type tokenKey struct {
	kid  string
	head string      // the encoded header of the tokens that it seals
	aead cipher.AEAD // generates the nonces
}

// Sizes of parts of a sealed token (RFC 7518, section 5.3).
const (
	nonceSize = 12
	tagSize   = 16
)

// Sealer returns the sealer for one type of token. Its keys are derived for the purpose. Clients
// can read typ and ch in the header of tokens.
func (r *Ring) Sealer(purpose, typ, ch string) *Sealer {
	return &Sealer{ring: r, purpose: purpose, typ: typ, ch: ch}
}

// Seal returns a token that contains claims, encoded by their MarshalBinary method if they have
// one, and as JSON otherwise.
func (s *Sealer) Seal(claims any) (string, error) {
	marshal := func() ([]byte, error) { return json.Marshal(claims) }
	if own, ok := claims.(encoding.BinaryMarshaler); ok {
		marshal = own.MarshalBinary
	}
	payload, err := marshal()
	if err != nil {
		return "", fmt.Errorf("encoding claims: %w", err)
	}

	current := s.keys()
	key, err := s.derive(current, current.snapshot.makers[Seal].Kid)
	if err != nil {
		return "", err
	}
	return key.seal(payload), nil
}

// seal returns a token in compact form (RFC 7516, section 7.1). With the alg dir, the second part
// of a JWE, the encrypted key, is empty.
func (k *tokenKey) seal(payload []byte) string {
	sealed := k.aead.Seal(nil, nil, payload, []byte(k.head))
	tag := len(sealed) - tagSize
	token := make([]byte, 0, len(k.head)+5+base64.RawURLEncoding.EncodedLen(len(sealed)+2))

	token = append(append(token, k.head...), "."...)
	for _, part := range [][]byte{sealed[:nonceSize], sealed[nonceSize:tag], sealed[tag:]} {
		token = base64.RawURLEncoding.AppendEncode(append(token, '.'), part)
	}
	return string(token)
}

// open decrypts the parts of a token that follow its header. It also authenticates the header.
func (k *tokenKey) open(head string, parts []string) (payload []byte, ok bool) {
	sealed := make([]byte, 0, len(parts[0])+len(parts[1])+len(parts[2]))
	var err error
	for i, size := range []int{nonceSize, -1, tagSize} {
		before := len(sealed)
		sealed, err = base64.RawURLEncoding.Strict().AppendDecode(sealed, []byte(parts[i]))
		if err != nil || size >= 0 && len(sealed)-before != size {
			return nil, false
		}
	}
	payload, err = k.aead.Open(nil, nil, sealed, []byte(head))
	return payload, err == nil
}

// Open decodes the claims of a token of this type. ok is false for any other token, such as a token
// of a different type or from another ring, or a token that was changed. Open does not check
// whether the token has expired or was revoked.
func (s *Sealer) Open(token string, claims any) (ok bool) {
	_, ok = s.OpenBy(token, claims)
	return ok
}

// OpenBy is like Open, and also returns the kid of the key that sealed the token. Callers that rely
// on the token for a long time must check [Ring.Trusts] for this kid again.
func (s *Sealer) OpenBy(token string, claims any) (kid string, ok bool) {
	_, key, payload := s.payload(token)
	if key == nil {
		return "", false
	}
	if own, ok := claims.(encoding.BinaryUnmarshaler); ok {
		return key.kid, own.UnmarshalBinary(payload) == nil
	}
	return key.kid, json.Unmarshal(payload, claims) == nil
}

// payload opens a token. It also returns the key that opened the token, and the tokenKeys that
// contain this key. The key is nil if the token is not valid.
func (s *Sealer) payload(token string) (current *tokenKeys, key *tokenKey, payload []byte) {
	head, rest, found := strings.Cut(token, "..")
	if !found || len(token) > maxToken || strings.Count(rest, ".") != 2 {
		return nil, nil, nil
	}

	current, key = s.find(head)
	if key == nil {
		return nil, nil, nil
	}
	payload, ok := key.open(head, strings.Split(rest, "."))
	if !ok {
		return nil, nil, nil
	}

	if _, known := current.byHead.Load(head); !known {
		current.byHead.Store(head, key) // there are few valid headers: one for each ring key and ch
	}
	return current, key, payload
}

// keys returns the keys derived from the current snapshot of the ring.
func (s *Sealer) keys() *tokenKeys {
	latest := s.ring.latest.Load()
	if derived := s.derived.Load(); derived != nil && derived.snapshot == latest {
		return derived
	}
	derived := &tokenKeys{snapshot: latest}
	s.derived.Store(derived)
	return derived
}

// find returns the key that opens tokens with the given encoded header, or nil if there is none.
func (s *Sealer) find(head string) (*tokenKeys, *tokenKey) {
	current := s.keys()
	if key, ok := current.byHead.Load(head); ok {
		return current, key.(*tokenKey)
	}
	kid, ok := s.kid(head)
	if !ok {
		return current, nil
	}

	if current.snapshot.roots[kid] == nil {
		s.ring.lookAgain()
		current = s.keys()
	}
	key, err := s.derive(current, kid)
	if err != nil {
		return current, nil // the ring key is unknown
	}
	return current, key
}

// A header is the header of a token (RFC 7516, section 4.1; RFC 7515, section 4.1), with the
// additional member ch.
type header struct {
	Alg string `json:"alg"`
	Enc string `json:"enc,omitempty"`
	Kid string `json:"kid"`
	Typ string `json:"typ"`
	Ch  string `json:"ch,omitempty"`
}

// kid returns the kid in a header. It rejects headers with members that this package does not
// write, such as zip, crit or jwk.
func (s *Sealer) kid(head string) (string, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(head)
	if err != nil {
		return "", false
	}

	var h header
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if dec.Decode(&h) != nil || h.Alg != "dir" || h.Enc != "A256GCM" || h.Typ != s.typ {
		return "", false
	}
	return h.Kid, true
}

// derive returns the key derived from the ring key with the given kid. It is derived once for each
// snapshot of the ring.
func (s *Sealer) derive(current *tokenKeys, kid string) (*tokenKey, error) {
	if key, ok := current.byKid.Load(kid); ok {
		return key.(*tokenKey), nil
	}

	root := current.snapshot.roots[kid]
	if root == nil {
		return nil, fmt.Errorf("unknown ring key %s", kid)
	}
	secret, err := hkdf.Key(sha256.New, root, nil, "selvage token "+s.purpose, 32)
	if err != nil {
		return nil, fmt.Errorf("deriving key: %w", err)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, fmt.Errorf("preparing cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("preparing cipher: %w", err)
	}

	head, err := json.Marshal(header{Alg: "dir", Enc: "A256GCM", Kid: kid, Typ: s.typ, Ch: s.ch})
	if err != nil {
		return nil, fmt.Errorf("encoding header: %w", err)
	}
	key := &tokenKey{kid: kid, head: base64.RawURLEncoding.EncodeToString(head), aead: aead}
	current.byKid.Store(kid, key)
	return key, nil
}
