package idp

import (
	"encoding/asn1"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// settingsBound limits the cost of checking settings. Most of the fixed time is for the keys of a
// client; see FuzzKeySet.
var settingsBound = fuzzcost.Bound{
	CPU:        100 * time.Millisecond,
	CPUPerByte: 10 * time.Microsecond,
	Heap:       8 << 20,
	PerByte:    2 << 10,
}

// FuzzMetadata shows that a client cannot register itself as first-party, whatever metadata it
// sends. It also cannot get scopes or grants that only an operator can give.
func FuzzMetadata(f *testing.F) {
	for _, text := range []string{
		`{"redirect_uris":["https://app.example/cb"],"client_name":"App","scope":"openid Voice","contacts":["a@b"]}`,
		`{"redirect_uris":["x:/"],"application_type":"native","token_endpoint_auth_method":"none"}`,
		`{"grant_types":["client_credentials","implicit"],"response_types":["code id_token token"]}`,
		`{"jwks":{"keys":[{}]},"token_endpoint_auth_method":"private_key_jwt","request_uris":["https://a/#b"]}`,
		`{"subject_type":"pairwise","sector_identifier_uri":"https://[::1]/","default_max_age":-1}`,
		`{"tls_client_auth_subject_dn":"CN=a","token_endpoint_auth_method":"tls_client_auth"}`,
		`{"redirect_uris":[` + strings.Repeat(`"https://a/",`, 5_000) + `"https://b/"]}`,
		`{"client_name":"` + strings.Repeat("é", 30_000) + `","initiate_login_uri":"https://a/%0d%0a"}`,
		`{"scope":"` + strings.Repeat("openid ", 10_000) + `"}`,
	} {
		f.Add([]byte(text))
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		var m ClientMetadata
		if len(text) > 128<<10 || json.Unmarshal(text, &m) != nil {
			return
		}

		settingsBound.Check(t, len(text), func() {
			c := Client{
				Profile:      Default,
				AccessToken:  JWTToken,
				PKCEOptional: true,
				RegisteredBy: RegisteredOpenly,
				Scopes:       slices.Clone(loginScopes),
			}
			if m.applyTo(&c) != nil || c.check() != nil {
				return
			}

			// Only an operator can give these settings.
			if c.FirstParty {
				t.Errorf("%s registers a first-party client", text)
			}
			if c.May(GrantClientCredentials) {
				t.Errorf("%s registers a client that may use client credentials", text)
			}
			if c.RequireACR != "" {
				t.Errorf("%s registers a client that requires the acr %s", text, c.RequireACR)
			}
			if len(c.Resources) > 0 {
				t.Errorf("%s registers a client with the resources %q", text, c.Resources)
			}
			for _, scope := range c.Scopes {
				if !strings.Contains(strings.Join(loginScopes, " "), scope) {
					t.Errorf("%s registers the scope %s, which only an operator can give", text, scope)
				}
			}
		})
	})
}

// FuzzDistinguishedName shows that no name in a client's settings and no subject of a certificate
// makes the parser panic. A name never matches a subject with a different number of parts.
func FuzzDistinguishedName(f *testing.F) {
	for _, text := range []string{
		`CN=app,O=Acme\, \"Inc\",C=DE`, `cn = \20J\C3\B6rg , l=b + ou=a`, "CN=#0403", "1.2.3=a", `CN=a\`, "CN=\x00",
		strings.Repeat("CN=a,", 400) + "CN=a", strings.Repeat("CN=a+", 400) + "CN=a", strings.Repeat(`\`, 2_000),
		"CN=" + strings.Repeat(`\20`, 700), strings.Repeat("1.", 1_000) + "1=a",
	} {
		f.Add(text, []byte("0\x0e1\x0c0\x0a\x06\x03U\x04\x03\x0c\x03app"))
	}

	bound := fuzzcost.Bound{
		CPU:        10 * time.Millisecond,
		CPUPerByte: 2 * time.Microsecond,
		Heap:       1 << 20,
		PerByte:    1 << 10,
	}
	f.Fuzz(func(t *testing.T, text string, subject []byte) {
		if len(text) > maxURI || len(subject) > maxURI {
			return
		}
		bound.Check(t, len(text)+len(subject), func() {
			name, err := parseDN(text)
			if err != nil || !matchesDN(name, subject) {
				return
			}
			var parts []asn1.RawValue
			if _, err := asn1.Unmarshal(subject, &parts); err != nil {
				t.Fatalf("%q matches the subject %x, which cannot be parsed: %v", text, subject, err)
			}
			if len(parts) != len(name) {
				t.Errorf("%q with %d parts matches the subject %x with %d parts", text, len(name), subject, len(parts))
			}
		})
	})
}

// FuzzIdentity shows that the email and the names in the claims of an upstream provider become
// short UTF-8 texts. The email counts as verified only if the provider says so.
func FuzzIdentity(f *testing.F) {
	for _, text := range []string{
		`{"email":"Ada@Example.com","email_verified":true,"given_name":"Ada","family_name":"Lovelace"}`,
		`{"email":["a@b"],"email_verified":"true"}`, `{"email_verified":1,"email":"a@b\u0000"}`,
		`{"given_name":"` + strings.Repeat("\u202e", 2_000) + `"}`, `{"email":"` + strings.Repeat("@", 30_000) + `"}`,
		`{"family_name":"\ud800","email":"\ufdfa@b"}`, `{"email":"` + strings.Repeat("a\u0301", 20_000) + `@b"}`,
	} {
		f.Add([]byte(text))
	}

	bound := fuzzcost.Bound{CPU: 2 * time.Millisecond, CPUPerByte: time.Microsecond, Heap: 256 << 10, PerByte: 64}
	f.Fuzz(func(t *testing.T, text []byte) {
		var claims map[string]any
		if json.Unmarshal(text, &claims) != nil {
			return
		}

		bound.Check(t, len(text), func() {
			id := Upstream{ID: "u", Issuer: "i"}.IdentityOf("1", claims)
			says := claims["email_verified"]
			if id.Verified && says != true && says != "true" {
				t.Errorf("%s has a verified email, although the provider does not say so", text)
			}
			for _, name := range []string{id.FirstName, id.LastName, id.Email} {
				if !utf8.ValidString(name) {
					t.Errorf("%s has the name or email %q, want UTF-8", text, name)
				}
				if len(name) > 4<<10 {
					t.Errorf("%s has a name or email of %d bytes, want at most %d", text, len(name), 4<<10)
				}
			}
		})
	})
}
