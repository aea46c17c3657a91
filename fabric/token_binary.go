package fabric

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"
)

// claims is a Token that is sealed in a binary form with fixed positions, so that sealed tokens are
// short and quick to read.
type claims struct{ Token }

// claimsVersion is the first byte of the binary form. Other versions are rejected. A new member
// requires a new version. The list Claims, which most tokens lack, comes last and is present only
// if a flag is set.
const claimsVersion = 1

// The flags in the binary form.
const (
	flagEmbedded = 1 << iota
	flagClaims
)

var errClaims = errors.New("reading claims: unknown format")

// texts returns pointers to the text members, in the order of the binary form.
func (c *claims) texts() [12]*string {
	return [...]*string{
		&c.ID, &c.Issuer, &c.ProjectID, &c.SubscriberID, &c.ClientID, &c.SessionID, &c.GrantID,
		&c.FamilyID, &c.KeyID, &c.IssuerID, &c.ParentID, &c.Binding,
	}
}

// MarshalBinary encodes the claims.
func (c *claims) MarshalBinary() ([]byte, error) {
	b := append(make([]byte, 0, 256), claimsVersion)
	b = appendText(b, string(c.Kind))
	for _, text := range c.texts() {
		b = appendText(b, *text)
	}

	for _, list := range [][]string{c.Scope, c.AddressIDs} {
		b = appendList(b, list)
	}

	// Microseconds let a revocation distinguish tokens issued within the same second.
	for _, n := range []int64{c.Generation, toMicros(c.IssuedAt), toMicros(c.RootedAt), toMicros(c.ExpiresAt)} {
		b = binary.AppendVarint(b, n)
	}

	var flags byte
	if c.Embedded {
		flags |= flagEmbedded
	}
	if len(c.Claims) == 0 {
		return append(b, flags), nil
	}

	return appendList(append(b, flags|flagClaims), c.Claims), nil
}

// UnmarshalBinary decodes the output of MarshalBinary.
func (c *claims) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] != claimsVersion {
		return errClaims
	}

	r := claimsReader{rest: b[1:]}
	c.Kind = TokenKind(r.text())
	for _, text := range c.texts() {
		*text = r.text()
	}

	c.Scope, c.AddressIDs = r.list(), r.list()
	c.Generation = r.number()
	c.IssuedAt, c.RootedAt, c.ExpiresAt = fromMicros(r.number()), fromMicros(r.number()), fromMicros(r.number())
	flags := r.size()
	c.Embedded = flags&flagEmbedded != 0
	if flags&flagClaims != 0 {
		c.Claims = r.list()
	}

	r.bad = r.bad || flags >= flagClaims<<1
	if r.bad || len(r.rest) > 0 {
		return errClaims
	}

	return nil
}

func toMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// appendList appends the length of a list and its texts.
func appendList(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, text := range list {
		b = appendText(b, text)
	}
	return b
}

// appendText appends a text. A UUID is encoded as the byte 1 and its sixteen bytes. "" is encoded
// as 0, and any other text as its length plus one and its bytes.
func appendText(b []byte, text string) []byte {
	if u, ok := plainUUID(text); ok {
		return append(append(b, 1), u[:]...)
	}
	if text == "" {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(text))+1), text...)
}

// plainUUID parses a UUID in lower case, the form that we write.
func plainUUID(text string) (u uuid.UUID, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return u, false
	}
	for i, at := range [len(u)]int{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34} {
		high, low := smallDigits[text[at]], smallDigits[text[at+1]]
		if max(high, low) == noDigit {
			return u, false
		}
		u[i] = high<<4 | low
	}
	return u, true
}

const noDigit = 0xff

// smallDigits maps hexadecimal digits in lower case to their values.
var smallDigits = func() (values [256]byte) {
	for c := range values {
		values[c] = noDigit
	}
	for value, c := range []byte("0123456789abcdef") {
		values[c] = byte(value)
	}
	return values
}()

// A claimsReader reads claims from front to back. It becomes bad if the claims are truncated.
type claimsReader struct {
	rest []byte
	bad  bool
}

func (r *claimsReader) take(n uint64) []byte {
	r.bad = r.bad || n > uint64(len(r.rest))
	if r.bad {
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *claimsReader) size() uint64 {
	n, used := binary.Uvarint(r.rest)
	r.bad = r.bad || used <= 0
	r.take(uint64(max(used, 0)))
	return n
}

func (r *claimsReader) number() int64 {
	n, used := binary.Varint(r.rest)
	r.bad = r.bad || used <= 0
	r.take(uint64(max(used, 0)))
	return n
}

func (r *claimsReader) text() string {
	switch n := r.size(); n {
	case 0:
		return ""
	case 1:
		u, err := uuid.FromBytes(r.take(16))
		r.bad = r.bad || err != nil
		return u.String()
	default:
		return string(r.take(n - 1))
	}
}

// list reads a list of texts. It returns nil if the list is empty. Each text takes at least one
// byte.
func (r *claimsReader) list() (all []string) {
	n := r.size()
	r.bad = r.bad || n > uint64(len(r.rest))
	if r.bad {
		return nil
	}
	for range n {
		all = append(all, r.text())
	}
	return all
}
