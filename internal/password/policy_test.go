package password

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/problem"
)

func TestWeak(t *testing.T) {
	p := Policy{MinLength: 10, MinScore: 2}
	said := []string{"ada.lovelace@example.com", "Ada Lovelace", "Analytical Engines"}
	tests := []struct{ password, want string }{
		{"fathom-lantern", ""},
		{"correct horse battery staple", ""},
		{"Xk7#pQ92mz", ""},
		{strings.Repeat("caf\u00e9 lantern ", 5), ""},
		{"Xk7#pQ92m", "too short (minimum is 10 characters)"},
		{"password12", "most common passwords"},
		{"P4ssw0rd!!", "most common passwords"},
		{"lovelace-ada", "your e-mail, your name or the project's"},
		{"analytical1", "your e-mail, your name or the project's"},
		{"zzzzzzzzzzzzzz", "repeats itself"},
		{"abcdefghijkl", "sequence"},
		{strings.Repeat("a", 60) + "Xk7#pQ92mz", "repeats itself"},
	}
	for _, tt := range tests {
		err := p.Weak("password", tt.password, said...)
		if tt.want == "" && err != nil {
			t.Errorf("Weak(%q) = %v, want no error", tt.password, err)
		}
		if tt.want != "" && (!errors.Is(err, problem.Invalid) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("Weak(%q) = %v, want %s", tt.password, err, tt.want)
		}
	}
	if err := (Policy{}).Weak("password", "password"); err != nil {
		t.Errorf("a policy that asks for nothing = %v", err)
	}
}

// TestWeakBounded estimates what costs most: as much as is looked at, of letters that
// stand for others.
func TestWeakBounded(t *testing.T) {
	for _, hostile := range []string{strings.Repeat("a4@8{(<", 11), strings.Repeat("1", 72),
		strings.Repeat("\u0301", 72), strings.Repeat("pA5$", 18), "\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if got := len(estimate(hostile, []string{hostile, strings.Repeat("a ", 5000)}).Password); got > estimated {
			t.Errorf("%d bytes of %.20q are looked at, want %d at most", got, hostile, estimated)
		}
	}
}

// breachedFile writes hashes as they are given out.
func breachedFile(t *testing.T, end string, passwords ...string) string {
	t.Helper()
	var lines []string
	for i, p := range passwords {
		lines = append(lines, fmt.Sprintf("%X:%d", sha1.Sum([]byte(p)), i*i*i))
	}
	slices.Sort(lines)
	name := filepath.Join(t.TempDir(), "pwned.txt")
	text := strings.Join(lines, end) + end
	if err := os.WriteFile(name, []byte(strings.TrimSuffix(text, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestBreached(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		for _, n := range []int{1, 2, 3, 1000} {
			var all []string
			for i := range n {
				all = append(all, fmt.Sprint("breached-", i))
			}
			b, err := OpenBreached(breachedFile(t, end, all...))
			if err != nil {
				t.Fatalf("OpenBreached of %d = %v", n, err)
			}
			for i := range n + 200 {
				if got, err := b.Has(fmt.Sprint("breached-", i)); got != (i < n) || err != nil {
					t.Errorf("Has(breached-%d) of %d = %v, %v", i, n, got, err)
				}
			}
			p := Policy{Breached: b}
			if err := p.Weak("password", "breached-0"); !errors.Is(err, problem.Invalid) ||
				!strings.Contains(err.Error(), "breach") {
				t.Errorf("Weak of a breached password = %v", err)
			}
			if err := errors.Join(p.Weak("password", "fathom-lantern"), b.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestOpenBreachedRefuses(t *testing.T) {
	hash := func(first string) string { return first + strings.Repeat("0", 39) + ":1\n" }
	for name, text := range map[string]string{
		"empty": "", "words": "password\n123456\n", "no lines": strings.Repeat("A", 1000),
		"unordered": strings.Repeat(hash("B"), 9) + hash("A"),
		"NTLM":      strings.Repeat("0", 32) + ":1\n", "no hex": strings.Repeat("x", 40) + ":1\n",
	} {
		file := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenBreached(file); err == nil {
			t.Errorf("OpenBreached of a file that is %s = nil, want an error", name)
		}
	}
	if _, err := OpenBreached(filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("OpenBreached of no file = nil, want an error")
	}
}
