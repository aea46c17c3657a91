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
	for _, tt := range []struct{ name, value, data, why string }{
		{"PBKDF2", sha512, `\"hashIterations\":2100,\"algorithm\":\"pbkdf2-sha512\"`, ""},
		{"argon2id", argon2, `\"hashIterations\":5,\"algorithm\":\"argon2\",\"additionalParameters\":{` + id + `}`, ""},
		{"bcrypt", bcrypt, `\"hashIterations\":5,\"algorithm\":\"bcrypt\"`, ""},
		{"argon2i", argon2, `\"hashIterations\":5,\"algorithm\":\"argon2\"`, `the algorithm "argon2" is unknown`},
		{"unknown", argon2, `\"hashIterations\":5,\"algorithm\":\"md5\"`, `the algorithm "md5" is unknown`},
		{"expensive", sha512, `\"hashIterations\":9000000,\"algorithm\":\"pbkdf2-sha512\"`, "too expensive"},
		{"empty", "", `\"hashIterations\":2100,\"algorithm\":\"pbkdf2-sha512\"`, "its salt or key is invalid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := transfer.Keycloak(strings.NewReader(fmt.Sprintf(`{"realm":"acme","users":[{"username":"ada",
				"email":"ada@example.com","credentials":[{"type":"password","credentialData":"{%s}",
				"secretData":"{\"value\":\"%s\",\"salt\":\"c2l4dGVlbiBieXRlIHNhbA==\"}"}]}]}`, tt.data, tt.value)))
			if err != nil || len(f.Subscribers) != 1 {
				t.Fatalf("Keycloak = %v, %v, want one subscriber", f, err)
			}

			hash := f.Subscribers[0].PasswordHash
			if tt.why != "" {
				if hash != "" || len(f.Unmapped) != 1 || !strings.Contains(f.Unmapped[0].Why, tt.why) {
					t.Errorf("hash = %q, unmapped = %v, want a reason with %q", hash, f.Unmapped, tt.why)
				}
				return
			}
			if ok, err := password.New(1).Verify(t.Context(), hash, "fathom-lantern"); !ok || err != nil {
				t.Errorf("Verify(%q) = %v, %v, want true", hash, ok, err)
			}
		})
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

// TestUnmapped shows that every member of a user that selvage cannot store is reported, unless it
// is empty.
func TestUnmapped(t *testing.T) {
	f, err := transfer.Keycloak(strings.NewReader(`{"realm":"acme","groups":[{},{}],"users":[
		{"username":"ada@example.com","groups":["/staff"],"requiredActions":[],
		 "federatedIdentities":[{"identityProvider":"google"}],"somethingNew":{"a":1},"emailVerified":"yes"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range f.Unmapped {
		got = append(got, fmt.Sprint(m.What, " ", m.Count))
	}
	want := "realm.groups 2, users.emailVerified 1, users.federatedIdentities 1, users.groups 1, users.somethingNew 1"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("unmapped are %s, want %s", text, want)
	}
}
