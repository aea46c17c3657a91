package factor

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzPasskey shows that the answers that pages post when passkeys are created and used can be parsed
// and checked at little cost. No answer may sign in an owner without passkeys. Answers contain CBOR,
// certificates and signatures, so a check may take a few milliseconds.
func FuzzPasskey(f *testing.F) {
	const origin = "https://id.example"
	factors, err := New(Config{AuthURL: origin})
	if err != nil {
		f.Fatal(err)
	}
	ada := user{owner: Owner{Kind: Subscriber, ID: "ada"}}

	options, err := json.Marshal(map[string]any{
		"challenge": "AAAAAAAAAAAAAAAAAAAAAA",
		"rpId":      "id.example",
		"rp":        map[string]string{"id": "id.example"},
		"user":      map[string]string{"id": "YWRh"},
	})
	if err != nil {
		f.Fatal(err)
	}
	device := factortest.Authenticator{Origin: origin}
	f.Add(device.Create(options))
	f.Add(device.Get(options))

	attested := func(cbor string) []byte {
		return []byte(`{"id":"AA","rawId":"AA","type":"public-key","response":{"clientDataJSON":"e30",` +
			`"attestationObject":"` + base64.RawURLEncoding.EncodeToString([]byte(cbor)) + `"}}`)
	}
	f.Add(attested("\xa3\x63fmt" + strings.Repeat("\x81", 8_000)))
	f.Add(attested("\xbb\x7f\xff\xff\xff\xff\xff\xff\xff" + strings.Repeat("\x00", 8_000)))
	f.Add(attested("\xa3\x63fmt\x66packed\x67attStmt\xa1\x63x5c\x99\x10\x00" + strings.Repeat("\x40", 4096)))
	f.Add([]byte(`{"response":` + strings.Repeat("[", 9_000)))

	session := webauthn.SessionData{
		Challenge:        "AAAAAAAAAAAAAAAAAAAAAA",
		UserID:           ada.WebAuthnID(),
		RelyingPartyID:   "id.example",
		UserVerification: protocol.VerificationRequired,
	}
	bound := fuzzcost.Bound{
		CPU:        10 * time.Millisecond,
		CPUPerByte: time.Microsecond,
		Heap:       1 << 20,
		PerByte:    128,
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if len(answer) > maxResponse {
			return // the server refuses such a long answer without parsing it
		}
		bound.Check(t, len(answer), func() {
			if made, err := protocol.ParseCredentialCreationResponseBytes(answer); err == nil {
				_, _ = factors.web.CreateCredential(ada, session, made)
			}
			if used, err := protocol.ParseCredentialRequestResponseBytes(answer); err == nil {
				if _, err := factors.validate(ada, session, used); err == nil {
					t.Errorf("%s was accepted from an owner without passkeys", answer)
				}
			}
		})
	})
}

// FuzzPasskeyName shows that PasskeyName returns short, valid names for any input.
func FuzzPasskeyName(f *testing.F) {
	for _, name := range []string{
		"",
		"phone",
		strings.Repeat("a", 1<<16),
		strings.Repeat("\xff", 1<<16),
		strings.Repeat("\u0301", 1<<15),
		strings.Repeat(" ", 1<<16),
	} {
		f.Add(name)
	}

	f.Fuzz(func(t *testing.T, name string) {
		fuzzcost.Parser.Check(t, len(name), func() {
			got := PasskeyName(name)
			if !utf8.ValidString(got) {
				t.Errorf("PasskeyName(%q) = %q, want valid UTF-8", name, got)
			}
			if n := utf8.RuneCountInString(got); n < 1 || n > 60 {
				t.Errorf("PasskeyName(%q) = %q has %d characters, want 1 to 60", name, got, n)
			}
		})
	})
}
