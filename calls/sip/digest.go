package sip

import (
	"context"
	"crypto/md5" // for phones without SHA-256 (RFC 8760)
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"hash"
	"net/netip"
	"slices"
	"strings"
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

// The errors that authenticate returns for requests that it does not accept.
var (
	errChallenge = errors.New("the request needs credentials")
	errStale     = errors.New("the request needs credentials with a different nonce")
	errSilence   = errors.New("the request gets no answer")
)

// damagedFor is how long the server remembers that it has logged an error about a password. Each request
// with the password extends this time.
const damagedFor = time.Hour

// authenticate returns the account whose password the credentials prove. For an unknown username,
// it takes as long as for a wrong password, and returns the same error.
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
	isDamaged := errors.Is(err, fabric.ErrDamaged)
	if err != nil && !isDamaged && !errors.Is(err, problem.Malformed) { // malformed text matches no username
		return fabric.SIPAccount{}, err
	}
	if isDamaged {
		if isLogged := s.damages.add(err.Error(), now, damagedFor); !isLogged {
			s.log.Error("opening the password of a phone", "error", err)
		}
		// The phone may have the right password, so do not count it as wrong. But count it if accounts of
		// other projects have the same username, because their passwords must not be guessed.
		if len(accounts) == 0 {
			return fabric.SIPAccount{}, err
		}
	}
	// The account without an ID is never returned. It costs the time of a check.
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
// the whole network. If they cannot be counted, it blocks the whole network. It returns the error for
// authenticate to return.
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
		err := s.c.Limits.Take(ctx, l.name, l.who)
		if err == nil {
			continue
		}
		wait := blockFor(err)
		s.blocked.add(l.key, now, wait)
		if errors.Is(err, problem.RateLimited) {
			s.log.Warn("too many wrong SIP credentials", "network", network, "for", wait)
			return errSilence
		}
		s.blocked.add(blockKey{network: key.network}, now, wait) // the next guess may use another username
		s.log.Error("counting wrong SIP credentials", "network", network, "error", err)
		return errSilence
	}
	return errChallenge
}

// blockFor returns how long to block a sender of wrong credentials after the limiter has returned
// err. Wrong credentials that could not be counted also block their sender for a moment, because
// nothing else would limit the guesses.
func blockFor(err error) time.Duration {
	if p := problem.First(err); p != nil {
		return max(p.RetryAfter, time.Second)
	}
	return time.Second
}
