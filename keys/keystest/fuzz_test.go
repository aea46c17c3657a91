package keystest

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/keys"
)

// encoded returns text in base64url, as in the parts of a compact token.
func encoded(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// tokenSeeds are malformed tokens that were expensive for other parsers. They have a very large
// number of dots, a compressed payload, a password-based key with many iterations, or deeply nested
// or repeated members.
var tokenSeeds = []string{
	"", ".", "..", "....", strings.Repeat(".", 1<<16), "a" + strings.Repeat(".a", 1<<14), strings.Repeat("A", 1<<16),
	encoded(`{"alg":"dir","enc":"A256GCM","kid":"x","typ":"SAT","zip":"DEF"}`) + "..AAAA.AAAA.AAAA",
	encoded(`{"alg":"PBES2-HS256+A128KW","enc":"A256GCM","p2c":2000000000,"p2s":"AA"}`) + ".AA.AA.AA.AA",
	encoded(`{"alg":"none"}`) + "." + encoded(`{"sub":"ada"}`) + ".",
	encoded(`{"alg":"ES256","crit":["b64"],"b64":false}`) + "..AAAA",
	encoded(`{"alg":"RS256","jwk":{"kty":"RSA","n":"`+strings.Repeat("A", 8000)+`","e":"AQAB"}}`) + ".AA.AA",
	encoded(`{"x":`+strings.Repeat("[", 10_000)) + ".AA.AA",
	encoded(`{`+strings.Repeat(`"a":1,`, 1500)+`"a":1}`) + "..AA.AA.AA",
	`{"payload":"AA","signatures":[` + strings.Repeat(`{},`, 5000) + `{}]}`,
}

// FuzzJWE shows that a sealer opens only tokens that it sealed.
func FuzzJWE(f *testing.F) {
	sealer := openRing(f, openStore(f)).Sealer("fuzz", "SAT", "puc")
	own, err := sealer.Seal(map[string]string{"sub": "ada"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own)
	for _, token := range tokenSeeds {
		f.Add(token)
	}

	f.Fuzz(func(t *testing.T, token string) {
		fuzzcost.Parser.Check(t, len(token), func() {
			var claims map[string]string
			if sealer.Open(token, &claims) && claims["sub"] != "ada" {
				t.Errorf("%q is opened as %v, want only the claims that were sealed", token, claims)
			}
		})
	})
}

// FuzzJWT shows that a ring accepts only tokens that it signed.
func FuzzJWT(f *testing.F) {
	ring := openRing(f, openStore(f))
	const payload = `{"sub":"ada"}`
	for _, alg := range keys.Algorithms() {
		own, err := ring.Sign(alg, "JWT", map[string]string{"sub": "ada"})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(own)
	}
	for _, token := range tokenSeeds {
		f.Add(token)
	}

	// A header may be an object with very many members, and verifying a signature takes 1 ms.
	bound := fuzzcost.Bound{
		CPU:        3 * fuzzcost.Parser.CPU,
		CPUPerByte: fuzzcost.Parser.CPUPerByte,
		Heap:       128 << 10,
		PerByte:    256,
	}
	f.Fuzz(func(t *testing.T, token string) {
		bound.Check(t, len(token), func() {
			if got, ok := ring.VerifyJWS(token, "JWT"); ok && string(got) != payload {
				t.Errorf("%q is verified, and holds %s, want only the payload that was signed", token, got)
			}
		})
	})
}
