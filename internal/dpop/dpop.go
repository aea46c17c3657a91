// Package dpop verifies proofs of possession (RFC 9449). A proof is a JWT that a client sends with
// a request. It shows that the client holds the key to which its tokens are bound.
// [Verifier.Confirm] also checks the certificates to which tokens are bound (RFC 8705).
//
// A proof can be used once, on any node. Its jti is stored until the proof expires.
// [Verifier.Verify] stores the jti in the session store, or in a file if this is the only node.
// Callers of [Verifier.Check] store it elsewhere, together with the change that the request makes.
// If a proof contains one of the server's nonces, the nonce must be recent. The jti of a proof is
// stored only after all other checks.
package dpop

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/spent"
)

// Limits on proofs and nonces.
const (
	maxProof = 4 << 10          // maximum length of a proof, in bytes
	maxID    = 256              // maximum length of its jti, in bytes
	maxAge   = time.Minute      // maximum age of a proof, counted from its iat
	maxAhead = 10 * time.Second // how far the iat of a proof may be in the future
	skew     = time.Minute      // how far the clocks of two nodes may be apart
	nonceFor = 5 * time.Minute  // how long a nonce is current, and how long it is then accepted as the previous one
)

// algorithms lists the accepted signature algorithms of proofs for HTTP requests (FAPI 2.0 Security
// Profile, section 5.4).
var algorithms = []jose.SignatureAlgorithm{jose.ES256, jose.PS256, jose.EdDSA}

// rpcAlgorithms lists the accepted signature algorithms of proofs for the relay. It includes RS256,
// because browser SDKs sign with it.
var rpcAlgorithms = append(slices.Clone(algorithms), jose.RS256)

// Algorithms returns the names of the accepted signature algorithms, for the server's metadata.
func Algorithms() (names []string) {
	for _, alg := range algorithms {
		names = append(names, string(alg))
	}
	return names
}

// Config holds the dependencies and settings of a Verifier.
type Config struct {
	Sessions session.Store                          // remembers used proofs
	Key      func(purpose string) [sha256.Size]byte // derives the key that signs nonces; the same on all nodes
	Origins  []string                               // origins of the server, such as https://id.example:8443
	Now      func() time.Time                       // nil means time.Now

	// Used remembers used proofs instead of Sessions. It is nil unless this is the only node.
	Used *spent.Log
}

// A Verifier verifies proofs. Its methods may be called concurrently.
type Verifier struct {
	c       Config
	origins []string // normalized
	headers headers
	offered atomic.Pointer[offer] // the newest nonce; nil before the first
}

// New returns a Verifier.
func New(c Config) *Verifier {
	if c.Now == nil {
		c.Now = time.Now
	}
	v := &Verifier{c: c}
	for _, origin := range c.Origins {
		if u, err := url.Parse(origin); err == nil {
			v.origins = append(v.origins, originOf(u))
		}
	}
	return v
}

// A Use describes the request for which a proof must have been made.
type Use struct {
	Method string // the method of the HTTP request
	Path   string
	RPC    string // the method of a relay request; "" for HTTP requests
	Token  string // the access token that the request contains, or ""
}

// claims holds the claims of a proof (RFC 9449, section 4.2), including those that only proofs for
// the relay have.
type claims struct {
	ID       string           `json:"jti"`
	Method   string           `json:"htm"`
	URL      string           `json:"htu"`
	IssuedAt *jwt.NumericDate `json:"iat"`
	Token    string           `json:"ath"`
	Nonce    *string          `json:"nonce"`
	RPC      string           `json:"rpc"`
	Request  string           `json:"mth"`
}

// invalid returns the error for a bad proof (RFC 9449, section 5).
func invalid(format string, args ...any) error {
	return problem.New(problem.Invalid, "invalid_dpop_proof", "the DPoP proof: "+format, args...)
}

var errInvalid = invalid("its signature or its claims are invalid")

// errNonce asks the client for a proof with the nonce in the response (RFC 9449, section 8).
var errNonce = problem.New(problem.Invalid, "use_dpop_nonce", "the nonce in the DPoP proof is not recent")

// A Proof is a valid proof, which may have been used before.
type Proof struct {
	Thumbprint string    // thumbprint (RFC 7638) of the key that signed it
	ID         string    // digest of the jti and the key
	Made       time.Time // when the client made it
	Expires    time.Time // when no node accepts the proof anymore
}

// kept is how long a node remembers that a proof was used.
const kept = maxAge + maxAhead + skew

// ErrUsed is the error for a proof that was used before.
var ErrUsed = invalid("it was used before; each proof needs a unique jti")

// Verify checks the proof for a request, and stores that the proof has been used. proofs must
// contain exactly one proof. Verify returns the thumbprint (RFC 7638) of the key that signed it.
// The error for an invalid proof is problem.Invalid with a code from RFC 9449.
func (v *Verifier) Verify(ctx context.Context, proofs []string, u Use) (thumbprint string, err error) {
	p, err := v.Check(proofs, u)
	if err != nil {
		return "", err
	}
	if err := v.recordUse(ctx, p); err != nil {
		return "", err
	}
	return p.Thumbprint, nil
}

// recordUse stores that a proof has been used. If it has been used before, the error is ErrUsed.
func (v *Verifier) recordUse(ctx context.Context, p Proof) error {
	var err error
	if v.c.Used != nil {
		err = v.c.Used.Add(spent.Use{ID: p.ID, Made: p.Made, Expires: p.Expires})
	} else {
		err = v.c.Sessions.Add(ctx, session.Key{Kind: "dpop", ID: p.ID}, []byte("1"), kept)
	}

	if errors.As(err, new(spent.Repeated)) || errors.Is(err, problem.Conflict) {
		return ErrUsed
	}
	if err != nil {
		return fmt.Errorf("remembering DPoP proof: %w", err)
	}
	return nil
}

// Check is like Verify, but does not store that the proof was used. The caller must store the ID of
// the proof until its Expires, and refuse the request with ErrUsed if the ID is already stored. All
// proofs for one URL must be stored in the same place.
func (v *Verifier) Check(proofs []string, u Use) (Proof, error) {
	if len(proofs) != 1 || len(proofs[0]) > maxProof {
		return Proof{}, invalid("there must be exactly one, of at most %d bytes", maxProof)
	}
	thumbprint, c, err := v.open(proofs[0], u.RPC != "")
	if err != nil {
		return Proof{}, err
	}
	if err := v.checkClaims(c, u); err != nil {
		return Proof{}, err
	}
	return Proof{
		Thumbprint: thumbprint,
		ID:         session.Digest(thumbprint + " " + c.ID),
		Made:       c.IssuedAt.Time(),
		Expires:    v.c.Now().Add(kept),
	}, nil
}

// open verifies the signature of a proof with the key in the proof's header. It returns the
// thumbprint of the key, and the claims.
func (v *Verifier) open(proof string, rpc bool) (thumbprint string, c claims, err error) {
	accepted := algorithms
	if rpc {
		accepted = rpcAlgorithms
	}
	encoded, _, _ := strings.Cut(proof, ".")
	if h, ok := v.headers.find(encoded); ok && slices.Contains(accepted, h.alg) {
		c, err := h.open(proof)
		if err != nil {
			return "", claims{}, err
		}
		return h.thumbprint, c, nil
	}

	h, c, err := parse(proof, accepted)
	if err != nil {
		return "", claims{}, err
	}
	v.headers.keep(encoded, h)
	return h.thumbprint, c, nil
}

// checkClaims checks the claims of a proof (RFC 9449, section 4.3).
func (v *Verifier) checkClaims(c claims, u Use) error {
	if c.ID == "" || len(c.ID) > maxID {
		return invalid("its jti must have 1 to %d bytes", maxID)
	}
	if c.IssuedAt == nil {
		return invalid("its iat is missing")
	}
	now, issued := v.c.Now(), c.IssuedAt.Time()
	if issued.After(now.Add(maxAhead)) || issued.Before(now.Add(-maxAge)) {
		return invalid("its iat is not between %s ago and %s ahead", maxAge, maxAhead)
	}
	if c.Nonce != nil && !v.isRecent(*c.Nonce) {
		return errNonce
	}

	if u.RPC != "" {
		if c.RPC != "request" || c.Request != u.RPC {
			return invalid("its rpc and mth must be request and %s", u.RPC)
		}
		return nil
	}
	if c.Method != u.Method {
		return invalid("its htm is not the method of the request")
	}
	if !v.isOurs(c.URL, u.Path) {
		return invalid("its htu is not the URL of the request")
	}
	if u.Token != "" && !sameText(c.Token, Hash(u.Token)) {
		return invalid("its ath is not the hash of the access token")
	}
	return nil
}

// Hash returns the base64url of the SHA-256 of a token.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func sameText(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

// isOurs reports whether address, without its query and fragment, is the URL of path on this
// server. The Host header is not used, because an attacker who replays a proof could choose it.
func (v *Verifier) isOurs(address, path string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	return u.User == nil && slices.Contains(v.origins, originOf(u)) && u.Path == path
}

// originOf returns the origin of a URL in normal form (RFC 3986, sections 6.2.2 and 6.2.3).
func originOf(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return scheme + "://" + host
}

// Proofs returns the proofs of a request.
func Proofs(r *http.Request) []string { return r.Header["Dpop"] }
