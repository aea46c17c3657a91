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

	kept atomic.Pointer[ends]
}

// ends holds the keys that a Sealer derives from a snapshot of the ring. It is dropped together
// with the snapshot, so that no key derived from a revoked key remains.
type ends struct {
	from   *snapshot
	byKid  sync.Map // kid to *end
	byHead sync.Map // encoded header of a valid token to *end
	opened tokenCache
}

// An end seals and opens tokens with one ring key.
type end struct {
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

	now := s.ends()
	e, err := s.end(now, now.from.makers[Seal].Kid)
	if err != nil {
		return "", err
	}
	return e.seal(payload), nil
}

// seal returns a token in compact form (RFC 7516, section 7.1). With the alg dir, the second part
// of a JWE, the encrypted key, is empty.
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

// open decrypts parts, the parts of a token that follow its header. It also authenticates the
// header.
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
	_, e, payload := s.payload(token)
	if e == nil {
		return "", false
	}
	if own, ok := claims.(encoding.BinaryUnmarshaler); ok {
		return e.kid, own.UnmarshalBinary(payload) == nil
	}
	return e.kid, json.Unmarshal(payload, claims) == nil
}

// payload opens a token. It also returns the end e that opened the token, and the ends to which e
// belongs. e is nil if the token is not valid.
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
		now.byHead.Store(head, e) // there are few valid headers: one for each ring key and ch
	}
	return now, e, payload
}

// ends returns the keys derived from the current snapshot of the ring.
func (s *Sealer) ends() *ends {
	from := s.ring.latest.Load()
	if kept := s.kept.Load(); kept != nil && kept.from == from {
		return kept
	}
	e := &ends{from: from}
	s.kept.Store(e)
	return e
}

// opener returns the end that opens tokens with the given encoded header, or nil if there is none.
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
	e, _ := s.end(now, kid) // nil if the key is unknown
	return now, e
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

// end returns the end for the ring key with the given kid. The end is derived once for each
// snapshot of the ring.
func (s *Sealer) end(now *ends, kid string) (*end, error) {
	if e, ok := now.byKid.Load(kid); ok {
		return e.(*end), nil
	}

	root := now.from.roots[kid]
	if root == nil {
		return nil, fmt.Errorf("unknown ring key %s", kid)
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
	e := &end{kid: kid, head: base64.RawURLEncoding.EncodeToString(head), aead: aead}
	now.byKid.Store(kid, e)
	return e, nil
}
