package transfer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/transfer"
	"github.com/selvage/selvage/internal/password"
)

// TestKeycloakHashes reads a hash of the password "fathom-lantern" in each form that Keycloak exports.
func TestKeycloakHashes(t *testing.T) {
	const (
		sha512 = "LDf8yLocB/CvWSt9Bk1NkDFWhojNT1ekFEqL2gmL/Fx6Gpp3Fc5FcknUvmyCZD6hFas77JsMawG3si/Ul0MYXA=="
		argon2 = "+lvDaUsnZEAfeGoBeNUG10bDUS0EankRoUCGTsrXpj4="
		bcrypt = "$2a$05$ayUIY8/LCjpLKECqoki6pOpeM.NxluqiHPxJ039AoO8H7q3psk1/a"
		id     = `\"memory\":[\"7168\"],\"version\":[\"1.3\"],\"parallelism\":[\"1\"],\"type\":[\"id\"]`
	)
	tests := []struct {
		name   string
		value  string // the hash
		data   string // members that describe the hash
		reason string // why the hash is not imported, or ""
	}{
		{name: "PBKDF2", value: sha512, data: `\"hashIterations\":2100,\"algorithm\":\"pbkdf2-sha512\"`},
		{
			name:  "argon2id",
			value: argon2,
			data:  `\"hashIterations\":5,\"algorithm\":\"argon2\",\"additionalParameters\":{` + id + `}`,
		},
		{name: "bcrypt", value: bcrypt, data: `\"hashIterations\":5,\"algorithm\":\"bcrypt\"`},
		{
			name:   "argon2i",
			value:  argon2,
			data:   `\"hashIterations\":5,\"algorithm\":\"argon2\"`,
			reason: `the algorithm "argon2" is unknown`,
		},
		{
			name:   "unknown",
			value:  argon2,
			data:   `\"hashIterations\":5,\"algorithm\":\"md5\"`,
			reason: `the algorithm "md5" is unknown`,
		},
		{
			name:   "expensive",
			value:  sha512,
			data:   `\"hashIterations\":9000000,\"algorithm\":\"pbkdf2-sha512\"`,
			reason: "too expensive",
		},
		{
			name:   "empty",
			data:   `\"hashIterations\":2100,\"algorithm\":\"pbkdf2-sha512\"`,
			reason: "its salt or key is invalid",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			export := fmt.Sprintf(`{"realm":"acme","users":[{"username":"ada",
				"email":"ada@example.com","credentials":[{"type":"password","credentialData":"{%s}",
				"secretData":"{\"value\":\"%s\",\"salt\":\"c2l4dGVlbiBieXRlIHNhbA==\"}"}]}]}`, tt.data, tt.value)
			f, err := transfer.Keycloak(strings.NewReader(export))
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Subscribers) != 1 {
				t.Fatalf("the export has %d subscribers, want 1", len(f.Subscribers))
			}

			hash := f.Subscribers[0].PasswordHash
			if tt.reason == "" {
				wantPassword(t, hash, "fathom-lantern")
				return
			}
			if hash != "" {
				t.Errorf("hash = %q, want none", hash)
			}
			if len(f.Unmapped) != 1 || !strings.Contains(f.Unmapped[0].Why, tt.reason) {
				t.Errorf("unmapped = %v, want one member with the reason %q", f.Unmapped, tt.reason)
			}
		})
	}
}

// wantPassword checks that a hash is the hash of a password.
func wantPassword(t *testing.T, hash, plain string) {
	t.Helper()
	ok, err := password.New(1).Verify(t.Context(), hash, plain)
	if err != nil {
		t.Fatalf("verifying %q: %v", hash, err)
	}
	if !ok {
		t.Errorf("the hash %q does not match the password %q", hash, plain)
	}
}

// TestForeignFiles shows that files from other systems are rejected if they are damaged or of an
// unknown kind.
func TestForeignFiles(t *testing.T) {
	for _, text := range []string{`{"version":1}`, `[1]`, `[null]`, `{"realm":"acme"}`, `{"realm":`, `"acme"`} {
		if f, err := transfer.Keycloak(strings.NewReader(text)); err == nil {
			t.Errorf("Keycloak(%s) = %v, want an error", text, f)
		}
		if f, err := transfer.Auth0(strings.NewReader(text)); err == nil {
			t.Errorf("Auth0(%s) = %v, want an error", text, f)
		}
	}
}

// TestUnmapped shows that all members that selvage cannot store are reported, unless they are empty.
func TestUnmapped(t *testing.T) {
	const export = `{"realm":"acme","groups":[{},{}],"users":[
		{"username":"ada@example.com","groups":["/staff"],"requiredActions":[],
		 "federatedIdentities":[{"identityProvider":"google"}],"somethingNew":{"a":1},"emailVerified":"yes"}]}`
	f, err := transfer.Keycloak(strings.NewReader(export))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range f.Unmapped {
		got = append(got, fmt.Sprint(m.What, " ", m.Count))
	}
	want := "realm.groups 2, users.emailVerified 1, users.federatedIdentities 1, users.groups 1, users.somethingNew 1"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("the unmapped members are %s, want %s", text, want)
	}
}

// TestAuth0Hashes shows that a subscriber gets the email from the file with users and the hash from
// the file with hashes, whichever is read first.
func TestAuth0Hashes(t *testing.T) {
	const (
		users  = `{"user_id":"auth0|a1","email":"ada@example.com","given_name":"Ada"}`
		hashes = `{"_id":{"$oid":"a1"},"email":"old@example.com",
			"passwordHash":"$2a$05$ayUIY8/LCjpLKECqoki6pOpeM.NxluqiHPxJ039AoO8H7q3psk1/a"}`
	)
	for _, files := range [][2]string{{users, hashes}, {hashes, users}} {
		f, err := transfer.Auth0(strings.NewReader(files[0]), strings.NewReader(files[1]))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Subscribers) != 1 {
			t.Fatalf("the files have %d subscribers, want 1", len(f.Subscribers))
		}
		s := f.Subscribers[0]
		if got := s.FirstName + " <" + s.Email + ">"; got != "Ada <ada@example.com>" {
			t.Errorf("the subscriber is %s, want Ada <ada@example.com>", got)
		}
		wantPassword(t, s.PasswordHash, "fathom-lantern")
	}
}
