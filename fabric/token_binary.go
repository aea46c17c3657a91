package fabric

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/compact"
)

// claims encodes a Token as binary, with its members in a fixed order and without names, so that
// sealed tokens are short and quick to read.
type claims struct{ Token }

// claimsVersion is the first byte of the binary form. Other versions are rejected. A new member
// requires a new version. The member Claims, which most tokens lack, comes last and is present only
// if flagClaims is set.
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
	b = compact.AppendText(b, string(c.Kind))
	for _, text := range c.texts() {
		b = compact.AppendText(b, *text)
	}

	for _, list := range [][]string{c.Scope, c.AddressIDs} {
		b = compact.AppendList(b, list)
	}

	// Microseconds let a revocation distinguish tokens issued within the same second.
	b = binary.AppendVarint(b, c.Generation)
	for _, t := range []time.Time{c.IssuedAt, c.RootedAt, c.ExpiresAt} {
		b = compact.AppendTime(b, t)
	}

	var flags byte
	if c.Embedded {
		flags |= flagEmbedded
	}
	if len(c.Claims) == 0 {
		return append(b, flags), nil
	}

	return compact.AppendList(append(b, flags|flagClaims), c.Claims), nil
}

// UnmarshalBinary decodes the output of MarshalBinary.
func (c *claims) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] != claimsVersion {
		return errClaims
	}

	r := compact.NewReader(b[1:])
	c.Kind = TokenKind(r.Text())
	for _, text := range c.texts() {
		*text = r.Text()
	}

	c.Scope, c.AddressIDs = r.List(), r.List()
	c.Generation = r.Number()
	c.IssuedAt, c.RootedAt, c.ExpiresAt = r.Time(), r.Time(), r.Time()
	flags := r.Size()
	c.Embedded = flags&flagEmbedded != 0
	if flags&flagClaims != 0 {
		c.Claims = r.List()
	}

	if flags >= flagClaims<<1 || !r.Done() {
		return errClaims
	}
	return nil
}
