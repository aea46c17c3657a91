package sip

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A nonce is valid only if it comes from the address to which it was sent. Thus, a phone that uses
// a nonce proves that it receives messages at its address. Each use of a nonce needs a higher count
// than the previous use.
const (
	nonceFor   = 5 * time.Minute
	maxNonces  = 100_000 // used nonces that have not expired
	noncesEach = 200     // used nonces of one set of credentials
)

// nonces issues nonces and remembers the used nonces.
type nonces struct {
	secret []byte

	mu   sync.Mutex
	used map[[16]byte]nonceUse
	by   map[string]*nonceShare // shares by the id of the credentials
}

type nonceUse struct {
	count uint64
	until time.Time
}

// A nonceShare holds the nonces that one set of credentials has used. The field after is a time: a
// nonce that was issued by then and is not in nonces is invalid for these credentials.
type nonceShare struct {
	nonces [][16]byte // in the order of their first use
	after  time.Time
}

// issue returns a nonce for a phone at the given address. A nonce contains the time, random bits
// and a signature, so the server does not store it.
func (n *nonces) issue(to netip.Addr, now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(now.UnixNano()))
	_, _ = rand.Read(b[8:]) // never fails
	return base64.RawURLEncoding.EncodeToString(append(b[:], n.sign(b, to)...))
}

func (n *nonces) sign(b [16]byte, to netip.Addr) []byte {
	mac := hmac.New(sha256.New, n.secret)
	mac.Write(b[:])
	mac.Write(to.AsSlice())
	return mac.Sum(nil)[:16]
}

// open returns the signed part of a nonce that arrived from the given address. ok is false if the
// nonce was not issued for this address.
func (n *nonces) open(text string, from netip.Addr) (b [16]byte, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) != 32 {
		return b, false
	}
	copy(b[:], raw)
	return b, hmac.Equal(raw[16:], n.sign(b, from))
}

// issuedAt returns when a nonce was issued.
func issuedAt(b [16]byte) time.Time { return time.Unix(0, int64(binary.BigEndian.Uint64(b[:]))) }

// use counts a use of a nonce by a set of credentials. It returns false if the nonce has expired,
// if count is malformed or not higher than before, or if too many nonces are in use. If these
// credentials use too many nonces, the oldest of them becomes invalid.
func (n *nonces) use(credential string, b [16]byte, count string, now time.Time) bool {
	c, err := strconv.ParseUint(count, 16, 32)
	if err != nil {
		return false
	}
	issued := issuedAt(b)
	if now.Sub(issued) > nonceFor {
		return false
	}

	n.mu.Lock()
	defer n.mu.Unlock()
	if n.used == nil {
		n.used = make(map[[16]byte]nonceUse)
		n.by = make(map[string]*nonceShare)
	}
	share := n.by[credential]
	if share == nil {
		share = &nonceShare{}
	}
	earlier, known := n.used[b]
	if c <= earlier.count {
		return false
	}
	if !known && (len(n.used) >= maxNonces || !issued.After(share.after)) {
		return false
	}
	n.used[b] = nonceUse{count: c, until: issued.Add(nonceFor)}
	if !known {
		n.by[credential] = share
		share.nonces = append(share.nonces, b)
		n.evict(share)
	}
	return true
}

// evict invalidates the oldest nonce of a share that is too large. The caller holds mu.
func (n *nonces) evict(s *nonceShare) {
	if len(s.nonces) <= noncesEach {
		return
	}
	oldest := s.nonces[0]
	s.nonces = slices.Delete(s.nonces, 0, 1)
	delete(n.used, oldest)
	if at := issuedAt(oldest); at.After(s.after) {
		s.after = at
	}
}

// sweep deletes expired nonces.
func (n *nonces) sweep(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for b, u := range n.used {
		if now.After(u.until) {
			delete(n.used, b)
		}
	}
	for credential, s := range n.by {
		s.nonces = slices.DeleteFunc(s.nonces, func(b [16]byte) bool { return n.used[b] == nonceUse{} })
		if len(s.nonces) == 0 {
			delete(n.by, credential)
		}
	}
}
