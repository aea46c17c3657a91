package conformance

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// skew is the clock difference that the suite allows.
const skew = 5 * time.Minute

// idToken verifies an ID token and returns its claims. It makes the checks that the suite makes for
// every ID token.
func (r request) idToken(raw string) map[string]any {
	r.m.Helper()
	claims := r.m.verify(raw, jose.RS256)
	r.m.check(claims["iss"] == r.m.op.metadata["issuer"], "iss = %v, want %v", claims["iss"],
		r.m.op.metadata["issuer"])
	r.m.check(claims["aud"] == r.client.ID, "aud = %v, want %s", claims["aud"], r.client.ID)

	sub, _ := claims["sub"].(string)
	if sub == "" || len(sub) > 255 {
		r.m.Fatalf("sub = %v is not a valid subject", claims["sub"])
	}

	iat, exp := r.m.moment(claims, "iat"), r.m.moment(claims, "exp")
	r.m.check(time.Since(iat).Abs() < skew, "iat = %v is not the current time", iat)
	r.m.check(exp.After(time.Now()) && time.Until(exp) < 50*365*24*time.Hour,
		"exp = %v is in the past, or too far away", exp)

	if claims["auth_time"] != nil {
		at := r.m.moment(claims, "auth_time")
		r.m.check(time.Until(at) < skew && time.Since(at) < 365*24*time.Hour,
			"auth_time = %v is in the future, or more than a year ago", at)
	}

	acr, isText := claims["acr"].(string)
	r.m.check(claims["acr"] == nil || isText && acr != "", "acr = %v is not text", claims["acr"])

	if r.Has("nonce") {
		r.m.check(claims["nonce"] == r.Get("nonce"), "nonce = %v, want %s", claims["nonce"], r.Get("nonce"))
	} else {
		r.m.check(claims["nonce"] == nil, "nonce = %v, although the request had none", claims["nonce"])
	}
	return claims
}

// verify checks that a token's header names a key and that its signature matches the published
// keys. It returns the claims.
func (m *module) verify(raw string, alg jose.SignatureAlgorithm) map[string]any {
	m.Helper()
	sig, err := jose.ParseSignedCompact(raw, []jose.SignatureAlgorithm{alg})
	if err != nil {
		m.Fatalf("parsing the token %s: %v, want a token signed with %s", raw, err, alg)
	}

	kid := sig.Signatures[0].Header.KeyID
	if kid == "" {
		m.Fatalf("the header of the token %s names no key", raw)
	}

	text, err := sig.Verify(m.op.keys)
	if err != nil {
		m.Fatalf("verifying the token %s: %v", raw, err)
	}
	var claims map[string]any
	if err := json.Unmarshal(text, &claims); err != nil {
		m.Fatalf("reading the claims %s: %v", text, err)
	}
	return claims
}

// moment returns the value of a claim that is a time.
func (m *module) moment(claims map[string]any, name string) time.Time {
	m.Helper()
	n, ok := claims[name].(float64)
	if !ok {
		m.Fatalf("%s = %v, want a number", name, claims[name])
	}
	return time.Unix(int64(n), 0)
}

// hashOf returns the at_hash or c_hash of a value for a token signed with RS256 (OpenID Connect
// Core, section 3.1.3.6).
func hashOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
