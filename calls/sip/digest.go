package sip

import (
	"context"
	"crypto/hmac"
	"crypto/md5" // for phones without SHA-256 (RFC 8760)
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
)

// realm is the realm in challenges. It is the same on all hosts, so that phones may use any name or
// address of the server.
const realm = "selvage"

// algorithms contains the hash functions of digest authentication by name (RFC 8760, section 2.4).
var algorithms = map[string]func() hash.Hash{"SHA-256": sha256.New, "MD5": md5.New}

// digest returns the hash of texts joined by colons, in hexadecimal.
func digest(sum func() hash.Hash, texts ...string) string {
	h := sum()
	h.Write([]byte(strings.Join(texts, ":")))
	return hex.EncodeToString(h.Sum(nil))
}

// credentials holds the fields of an Authorization header, which answers a challenge (RFC 7616,
// section 3.4).
type credentials struct {
	username, realm, nonce, uri, response, algorithm, qop, nc, cnonce, opaque string
}

// maxField is the maximum length of a field in bytes.
const maxField = 512

// parseCredentials parses an Authorization header. ok is false if it is malformed.
func parseCredentials(header string) (c credentials, ok bool) {
	c, ok = parseDigest(header)
	return c, ok && c.username != "" && c.nonce != "" && c.response != ""
}

// parseDigest parses a header for Digest authentication. ok is false if the header is malformed.
func parseDigest(header string) (c credentials, ok bool) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
	if !strings.EqualFold(scheme, "Digest") {
		return c, false
	}
	fields := map[string]*string{
		"username":  &c.username,
		"realm":     &c.realm,
		"nonce":     &c.nonce,
		"uri":       &c.uri,
		"response":  &c.response,
		"algorithm": &c.algorithm,
		"qop":       &c.qop,
		"nc":        &c.nc,
		"cnonce":    &c.cnonce,
		"opaque":    &c.opaque,
	}

	for rest = strings.TrimSpace(rest); rest != ""; {
		name, after, found := strings.Cut(rest, "=")
		value, next, valid := parseField(strings.TrimSpace(after))
		if !found || !valid || len(value) > maxField {
			return c, false
		}
		if f := fields[strings.ToLower(strings.TrimSpace(name))]; f != nil {
			*f = value
		}
		rest = next
	}
	c.algorithm = strings.ToUpper(c.algorithm)
	if c.algorithm == "" {
		c.algorithm = "MD5" // RFC 7616, section 3.4
	}
	return c, true
}

// parseField parses a token or a quoted string, and skips the comma after it. rest is the remaining
// text.
func parseField(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		value, rest, _ = strings.Cut(text, ",")
		return strings.TrimSpace(value), strings.TrimSpace(rest), true
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case c == '"':
			rest = strings.TrimSpace(text[i+1:])
			after, comma := strings.CutPrefix(rest, ",")
			return b.String(), strings.TrimSpace(after), comma || rest == ""
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// proves reports whether the response was computed from password, for a request with this method.
func (c credentials) proves(password, method string) bool {
	sum := algorithms[c.algorithm]
	if sum == nil {
		return false
	}
	want := digest(sum, digest(sum, c.username, realm, password), c.nonce, c.nc, c.cnonce, c.qop,
		digest(sum, method, c.uri))
	return subtle.ConstantTimeCompare([]byte(want), []byte(strings.ToLower(c.response))) == 1
}

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
	issued := issuedAt(b)
	c, err := strconv.ParseUint(count, 16, 32)
	if err != nil || now.Sub(issued) > nonceFor {
		return false
	}

	n.mu.Lock()
	defer n.mu.Unlock()
	if n.used == nil {
		n.used, n.by = make(map[[16]byte]nonceUse), make(map[string]*nonceShare)
	}
	share := n.by[credential]
	if share == nil {
		share = &nonceShare{}
	}
	u, known := n.used[b]
	if c <= u.count || !known && (len(n.used) >= maxNonces || !issued.After(share.after)) {
		return false
	}
	n.used[b] = nonceUse{c, issued.Add(nonceFor)}
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

// A blockKey identifies senders whose credentials are not checked. These senders use a certain
// username in a network. If username is "", they are all unregistered senders in the network.
type blockKey struct {
	network  netip.Prefix
	username string
}

// maxBlocks is the maximum number of blocks that a server keeps.
const maxBlocks = 50_000

// blocks holds the senders that failed to authenticate too many times, and when each block ends.
type blocks struct {
	mu    sync.Mutex
	until map[blockKey]time.Time
}

func (b *blocks) has(k blockKey, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	until, ok := b.until[k]
	return ok && now.Before(until)
}

func (b *blocks) add(k blockKey, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until == nil {
		b.until = make(map[blockKey]time.Time)
	}
	if len(b.until) < maxBlocks {
		b.until[k] = until
	}
}

func (b *blocks) sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, until := range b.until {
		if now.After(until) {
			delete(b.until, k)
		}
	}
}

// The errors that authenticate returns for requests that it does not accept.
var (
	errChallenge = errors.New("the request needs credentials")
	errStale     = errors.New("the request needs credentials with a different nonce")
	errSilence   = errors.New("the request gets no answer")
)

// authenticate returns the account whose password the credentials prove. For an unknown username,
// it takes as long as for a wrong password, and has the same result.
func (s *Server) authenticate(ctx context.Context, method string, c credentials, from netip.Addr) (
	fabric.SIPAccount, error,
) {
	now, key := time.Now(), blockKey{networkOf(from), c.username}
	if s.blocked.has(key, now) {
		s.counters.blocked.Add(1)
		return fabric.SIPAccount{}, errSilence
	}
	nonce, ok := s.nonces.open(c.nonce, from)
	if !ok || c.realm != realm || c.qop != "auth" || !slices.Contains(s.c.Digests, c.algorithm) {
		return fabric.SIPAccount{}, errChallenge
	}

	accounts, err := s.c.Fabric.SIP.FindAccounts(ctx, c.username)
	if err != nil && !errors.Is(err, problem.Malformed) { // malformed text matches no username
		return fabric.SIPAccount{}, err
	}
	for _, a := range append(accounts, fabric.SIPAccount{Password: c.nonce}) {
		if !c.proves(a.Password, method) || a.ID == "" {
			continue
		}
		if !s.accounts.allow(a.ID, now) {
			s.counters.limited.Add(1)
			return fabric.SIPAccount{}, errSilence // the nonce stays unused, so a repeat works
		}
		if !s.nonces.use(a.ID, nonce, c.nc, now) {
			return fabric.SIPAccount{}, errStale
		}
		return a, nil
	}
	s.counters.denied.Add(1)
	return fabric.SIPAccount{}, s.deny(ctx, key, now)
}

// deny counts wrong credentials. After too many of them, it blocks the username on this network, or
// the whole network. It returns the error for authenticate to return.
func (s *Server) deny(ctx context.Context, key blockKey, now time.Time) error {
	network := key.network.String()
	for _, l := range []struct {
		name limit.Name
		who  string
		key  blockKey
	}{
		{limit.SIPPerUser, network + " " + key.username, key},
		{limit.SIPPerNetwork, network, blockKey{network: key.network}},
	} {
		var full *problem.Error
		if err := s.c.Limits.Take(ctx, l.name, l.who); errors.As(err, &full) {
			s.blocked.add(l.key, now.Add(max(full.RetryAfter, time.Second)))
			s.log.Warn("too many wrong SIP credentials", "network", network, "for", full.RetryAfter)
			return errSilence
		}
	}
	return errChallenge
}
