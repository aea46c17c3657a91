package transfer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/transfer"
	"github.com/selvage/selvage/internal/fuzzcost"
)

// bound is the maximum cost of a file.
var bound = fuzzcost.Bound{
	CPU:        20 * time.Millisecond,
	CPUPerByte: 20 * time.Microsecond,
	Heap:       4 << 20,
	PerByte:    4 << 10,
}

// FuzzRead shows that Read yields either a record or an error for every line of an export.
func FuzzRead(f *testing.F) {
	const header = `{"kind":"selvage-export","version":1}` + "\n"
	for _, text := range []string{
		"",
		header,
		header + `{"kind":"end","records":0}`,
		header + `{"kind":"end","records":1}`,
		header + `{"kind":"subscriber","email":"ada@example.com"}` + "\n" + `{"kind":"end","records":1}`,
		header + `{"kind":"project","color":1}`,
		header + strings.Repeat("[", 10_000),
		`{"kind":"selvage-export","version":9}`,
	} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		bound.Check(t, len(text), func() {
			for line, err := range transfer.Read(strings.NewReader(text)) {
				if err == nil && line.Record == nil {
					t.Errorf("Read(%q) yields a line with neither a record nor an error", text)
				}
			}
		})
	})
}

// FuzzForeign shows that a file from a different system is either read or rejected.
func FuzzForeign(f *testing.F) {
	for _, text := range []string{
		"",
		"[]",
		"[null]",
		"{}",
		`{"realm":1,"users":[{}],"clients":[{}]}`,
		strings.Repeat("[", 10_000),
		`{"realm":"a","users":[null,{"id":1,"username":"ada","credentials":[{"type":"password","secretData":"{}"}]}]}`,
		`{"realm":"a","clients":[{"clientId":"a","attributes":null,"redirectUris":["*"]}]}`,
		`{"_id":{"$oid":"1"},"passwordHash":"$2b$"}`,
		`[{"client_id":"a","callbacks":[1]},{"user_id":null}]`,
		`{"users":[{"users":[{"email":"ada@example.com","custom_password_hash":{"algorithm":"pbkdf2"}}]}]}`,
	} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		bound.Check(t, len(text), func() {
			fromKeycloak, err := transfer.Keycloak(strings.NewReader(text))
			if hasResult, failed := fromKeycloak != nil, err != nil; hasResult == failed {
				t.Errorf("Keycloak(%q) = %v, %v, want either a result or an error", text, fromKeycloak, err)
			}
			fromAuth0, err := transfer.Auth0(strings.NewReader(text))
			if hasResult, failed := fromAuth0 != nil, err != nil; hasResult == failed {
				t.Errorf("Auth0(%q) = %v, %v, want either a result or an error", text, fromAuth0, err)
			}
		})
	})
}
