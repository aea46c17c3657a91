package fabrictest

import (
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/fuzzcost"
)

func TestNormalizeEmail(t *testing.T) {
	tests := []struct{ email, want string }{
		{" Ada@Example.COM ", "ada@example.com"},
		{"e\u0301@example.com", "\u00e9@example.com"},
		{"E\u0301@example.com", "\u00e9@example.com"},
		{"", ""},
	}
	for _, tt := range tests {
		if got := fabric.NormalizeEmail(tt.email); got != tt.want {
			t.Errorf("NormalizeEmail(%q) = %q, want %q", tt.email, got, tt.want)
		}
	}
}

func FuzzNormalizeEmail(f *testing.F) {
	seeds := []string{
		"Ada@Example.com",
		"İ@x",
		"ΑΣ@x",
		"\xff",
		"e\u0301",
		strings.Repeat("a\u0301", 1<<12),
		"a" + strings.Repeat("\u0301\u0316", 1<<12),
		strings.Repeat("\ufdfa", 1<<12) + "@" + strings.Repeat(".", 1<<12),
		"a@" + strings.Repeat("xn--a.", 1<<10),
		"a@" + strings.Repeat("\u00fc.", 1<<12),
	}
	for _, seed := range seeds {
		f.Add(seed)
	}

	bound := fuzzcost.Bound{CPU: 2 * time.Millisecond, Heap: 256 << 10} // for input of any length
	f.Fuzz(func(t *testing.T, email string) {
		bound.Check(t, len(email), func() {
			once := fabric.NormalizeEmail(email)
			if twice := fabric.NormalizeEmail(once); twice != once {
				t.Errorf("NormalizeEmail(%q) = %q, and of that %q, want the same", email, once, twice)
			}
		})
	})
}
