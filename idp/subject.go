package idp

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
)

// Subjects maps subscribers and logins to the names that clients use for them.
type Subjects struct{ *core }

// SubjectFor returns the sub that a client uses for a subscriber. This is the subscriber's id or, for
// pairwise subjects, a name that only the clients of a sector share (OpenID Connect Core, section 8.1).
// Every sub sent to a client comes from this method.
func (ss *Subjects) SubjectFor(c Client, subscriberID string) string {
	if c.SubjectType != Pairwise {
		return subscriberID
	}
	id, err := uuid.Parse(subscriberID)
	if err != nil {
		return "" // not the ID of a subscriber
	}
	ss.pairing("pairwise", c).Encrypt(id[:], id[:])
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// SubscriberOf returns the id of the subscriber whom a client knows by sub, or "".
func (ss *Subjects) SubscriberOf(c Client, sub string) string {
	if c.SubjectType != Pairwise {
		return sub
	}
	id, ok := pairwiseSubject(sub)
	if !ok {
		return ""
	}
	ss.pairing("pairwise", c).Decrypt(id[:], id[:])
	return id.String()
}

// SessionFor returns the sid that a client uses for a login. This is the login's id or, for pairwise
// subjects, a name that only the clients of a sector share. Otherwise, a common sid would reveal that two
// subjects are the same person. Every sid sent to a client comes from this method.
func (ss *Subjects) SessionFor(c Client, sid string) string {
	id, err := uuid.Parse(sid)
	if c.SubjectType != Pairwise || err != nil {
		return sid
	}
	ss.pairing("pairwise sid", c).Encrypt(id[:], id[:])
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// SessionOf returns the ID of the login that a client knows by sid. Tokens that were issued before
// pairwise sids existed contain the ID itself.
func (ss *Subjects) SessionOf(c Client, sid string) string {
	id, ok := pairwiseSubject(sid)
	if c.SubjectType != Pairwise || !ok {
		return sid
	}
	ss.pairing("pairwise sid", c).Decrypt(id[:], id[:])
	return id.String()
}

// pairwiseSubject parses a pairwise sub. ok is false for the id of a subscriber.
func pairwiseSubject(sub string) (id uuid.UUID, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sub)
	if err != nil || len(raw) != len(id) {
		return id, false
	}
	return uuid.UUID(raw), true
}

// pairing returns a cipher that maps IDs of this kind to pairwise IDs for the client's sector. An
// ID is one AES block. The result is as hard to guess as a hash. Different IDs have different
// results, and the server can reverse the mapping without a table.
func (ss *Subjects) pairing(kind string, c Client) cipher.Block {
	key := ss.Ring.DeriveFirst(kind + " " + c.sector())
	block, _ := aes.NewCipher(key[:]) // 32 bytes are always a valid key
	return block
}

// sector returns the host that clients with the same pairwise subjects share. It is the host of the
// sector document or, without a document, the only host of the redirect URIs.
func (c Client) sector() string {
	uri := c.SectorURI
	if uri == "" && len(c.RedirectURIs) > 0 {
		uri = c.RedirectURIs[0]
	}
	return hostOf(uri)
}

func hostOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

const sectorParam = "sector_identifier_uri"

// maxSector is the maximum size of a sector document in bytes.
const maxSector = 64 << 10

// checkSubjects applies the rules for pairwise subjects (OpenID Connect Core, section 8.1), except
// for the content of the sector document.
func (c *Client) checkSubjects(found *problems) {
	oneOf(found, "subject_type", c.SubjectType, "", Public, Pairwise)
	switch {
	case c.SubjectType != Pairwise && c.SectorURI != "":
		found.add(sectorParam, "only a client with the subject type pairwise has a sector")
	case c.SubjectType != Pairwise:
	case c.AccessToken != JWTToken:
		found.add("subject_type", "pairwise needs access tokens that are JWTs: "+
			"a fabric token reveals the subscriber's id")
	case len(c.RedirectURIs) == 0:
		found.add("subject_type", "pairwise needs redirect URIs, which tie the client to its sector")
	case c.SectorURI != "":
		checkFetched(found, sectorParam, c.SectorURI)
	case c.sector() == "" || slices.ContainsFunc(
		c.RedirectURIs, func(uri string) bool { return hostOf(uri) != c.sector() }):
		found.add("subject_type", "pairwise needs redirect URIs of one host, "+
			"or a sector_identifier_uri that lists them")
	}
}

// checkSector fetches the sector document, which must list the redirect URIs. By listing them, the
// host agrees that the client belongs to its sector (OpenID Connect Dynamic Client Registration,
// section 5).
func (cs *Clients) checkSector(ctx context.Context, c Client) error {
	raw, err := cs.Fetch(ctx, c.SectorURI, maxSector)
	if err != nil {
		return problem.BadParam(sectorParam, "reading the sector document: %v", err)
	}
	var listed []string
	if json.Unmarshal(raw, &listed) != nil {
		return problem.BadParam(sectorParam, "the sector document is not a JSON array of redirect URIs")
	}
	for _, uri := range c.RedirectURIs {
		if !slices.Contains(listed, uri) {
			return problem.BadParam(sectorParam, "the sector document does not list %q", uri)
		}
	}
	return nil
}
