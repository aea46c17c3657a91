package page

import (
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzToken shows that every accepted page token contains a short id without special characters,
// and that the token made from this id contains the same id.
func FuzzToken(f *testing.F) {
	for _, token := range []string{
		"",
		"PA",
		"PA0199a000-0000-7000-8000-000000000000",
		"PA0199A000-0000-7000-8000-000000000000",
		"PA{199a000-0000-7000-8000-00000000000}",
		"PAurn:uuid:0199a000-0000-7000-8000-0000",
		"PA' OR 1=1--",
		"PA:my-app",
		"PA:' OR 1=1--",
		"PA" + strings.Repeat("0", 1<<16),
	} {
		f.Add(token)
	}

	f.Fuzz(func(t *testing.T, token string) {
		fuzzcost.Parser.Check(t, len(token), func() {
			id, ok := ParseToken(token)
			if !ok {
				return
			}
			if strings.ContainsAny(id, " '\"%/\\\x00") {
				t.Errorf("%q has the id %q, want one without special characters", token, id)
			}
			if len(id) > 64 {
				t.Errorf("%q has the id %q with %d bytes, want at most 64", token, id, len(id))
			}
			if again, ok := ParseToken(Token(id)); !ok || again != id {
				t.Errorf("the token made from %q has the id %q, %t, want the same", id, again, ok)
			}
		})
	})
}
