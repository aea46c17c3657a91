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

// A Sealer seals and opens tokens of one type. They are JWEs with alg dir and enc
// A256GCM (RFC 7516; RFC 7518, sections 4.5 and 5.3), under keys that no other type
// uses.
type Sealer struct {
	ring    *Ring
	purpose string
	typ, ch string

	kept atomic.Pointer[ends]
}

// ends holds what a Sealer derives from one snapshot of the ring. It is dropped with the
// snapshot, and so are the keys derived from a revoked one.
type ends struct {
	from   *snapshot
	byKid  sync.Map // *end by kid
	byHead sync.Map // *end by the encoded header of a valid token
	opened opened
}

// An end seals and opens under one ring key.
type end struct {
	kid  string
	head string      // the encoded header of its tokens
	aead cipher.AEAD // generates nonces itself
}

// Sizes of the parts of the aead's output (RFC 7518, section 5.3).
const (
	nonceSize = 12
	tagSize   = 16
)

// Sealer returns the sealer for a type of token. Its keys are derived for the purpose.
// The header carries typ and ch, where clients can read them.
func (r *Ring) Sealer(purpose, typ, ch string) *Sealer {
	return &Sealer{ring: r, purpose: purpose, typ: typ, ch: ch}
}

// Seal returns a token that holds claims, as MarshalBinary encodes them or else as JSON.
func (s *Sealer) Seal(claims any) (string, error) {
	marshal := func() ([]byte, error) { return json.Marshal(claims) }
	if own, ok := claims.(encoding.BinaryMarshaler); ok {
		marshal = own.MarshalBinary
	}
	payload, err := marshal()
	if err != nil {
		return "", fmt.Errorf("encoding claims: %w", err)
	}

	now := s.ends()
	e, err := s.end(now, now.from.makers[Seal].Kid)
	if err != nil {
		return "", err
	}
	return e.seal(payload), nil
}

// seal writes a compact JWE (RFC 7516, section 7.1). With alg dir, its second part,
// the encrypted key, is empty.
func (e *end) seal(payload []byte) string {
	sealed := e.aead.Seal(nil, nil, payload, []byte(e.head))
	tag := len(sealed) - tagSize
	token := make([]byte, 0, len(e.head)+5+base64.RawURLEncoding.EncodedLen(len(sealed)+2))

	token = append(append(token, e.head...), "."...)
	for _, part := range [][]byte{sealed[:nonceSize], sealed[nonceSize:tag], sealed[tag:]} {
		token = base64.RawURLEncoding.AppendEncode(append(token, '.'), part)
	}
	return string(token)
}

// open decrypts the parts that follow the header, and authenticates the header with them.
func (e *end) open(head string, parts []string) (payload []byte, ok bool) {
	sealed := make([]byte, 0, len(parts[0])+len(parts[1])+len(parts[2]))
	var err error
	for i, size := range []int{nonceSize, -1, tagSize} {
		before := len(sealed)
		sealed, err = base64.RawURLEncoding.Strict().AppendDecode(sealed, []byte(parts[i]))
		if err != nil || size >= 0 && len(sealed)-before != size {
			return nil, false
		}
	}
	payload, err = e.aead.Open(nil, nil, sealed, []byte(head))
	return payload, err == nil
}

// Open decodes the claims of a token of this type into claims. ok is false for any
// other token: one of another type or ring, changed or malformed. Open does not check
// whether the token has expired or was revoked.
func (s *Sealer) Open(token string, claims any) (ok bool) {
	_, ok = s.OpenBy(token, claims)
	return ok
}

// OpenBy is Open, and also returns the kid of the key that sealed the token. Callers
// that rely on the token for a long time must check [Ring.Trusts] for that kid again.
func (s *Sealer) OpenBy(token string, claims any) (kid string, ok bool) {
	_, e, payload := s.payload(token)
	if e == nil {
		return "", false
	}
	if own, ok := claims.(encoding.BinaryUnmarshaler); ok {
		return e.kid, own.UnmarshalBinary(payload) == nil
	}
	return e.kid, json.Unmarshal(payload, claims) == nil
}

// payload opens a token and returns what was derived from the ring as it was then. e is
// nil if the token is not valid.
func (s *Sealer) payload(token string) (now *ends, e *end, payload []byte) {
	head, rest, found := strings.Cut(token, "..")
	if !found || len(token) > maxToken || strings.Count(rest, ".") != 2 {
		return nil, nil, nil
	}

	now, e = s.opener(head)
	if e == nil {
		return nil, nil, nil
	}

	payload, ok := e.open(head, strings.Split(rest, "."))
	if !ok {
		return nil, nil, nil
	}

	if _, known := now.byHead.Load(head); !known {
		now.byHead.Store(head, e) // few headers are valid: one for each ring key and ch
	}
	return now, e, payload
}

// ends returns what is derived from the current snapshot of the ring.
func (s *Sealer) ends() *ends {
	from := s.ring.latest.Load()
	if kept := s.kept.Load(); kept != nil && kept.from == from {
		return kept
	}
	e := &ends{from: from}
	s.kept.Store(e)
	return e
}

// opener returns the end that opens tokens with this header, or nil if there is none.
func (s *Sealer) opener(head string) (*ends, *end) {
	now := s.ends()
	if e, ok := now.byHead.Load(head); ok {
		return now, e.(*end)
	}

	kid, ok := s.kid(head)
	if !ok {
		return now, nil
	}

	if now.from.roots[kid] == nil {
		s.ring.lookAgain()
		now = s.ends()
	}
	e, _ := s.end(now, kid) // nil if there is no such key
	return now, e
}

// A header is a token's header (RFC 7516, section 4.1; RFC 7515, section 4.1), with the
// additional member ch.
type header struct {
	Alg string `json:"alg"`
	Enc string `json:"enc,omitempty"`
	Kid string `json:"kid"`
	Typ string `json:"typ"`
	Ch  string `json:"ch,omitempty"`
}

// kid returns the kid of a header. Only members that this package writes are allowed: no
// zip, crit or jwk.
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

// end returns the end for a ring key. It is derived once for each snapshot of the ring.
func (s *Sealer) end(now *ends, kid string) (*end, error) {
	if e, ok := now.byKid.Load(kid); ok {
		return e.(*end), nil
	}

	root := now.from.roots[kid]
	if root == nil {
		return nil, fmt.Errorf("encrypting token: unknown key %s", kid)
	}

	key, err := hkdf.Key(sha256.New, root, nil, "selvage token "+s.purpose, 32)
	if err != nil {
		return nil, fmt.Errorf("deriving key: %w", err)
	}

	block, err := aes.NewCipher(key)
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
	e := &end{kid, base64.RawURLEncoding.EncodeToString(head), aead}
	now.byKid.Store(kid, e)
	return e, nil
}
