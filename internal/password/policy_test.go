package password

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
	"github.com/selvage/selvage/internal/problem"
)

func TestWeak(t *testing.T) {
	p := Policy{MinLength: 10, MinScore: 2}
	known := []string{"ada.lovelace@example.com", "Ada Lovelace", "Analytical Engines"}

	for _, password := range []string{
		"fathom-lantern",
		"correct horse battery staple",
		"Xk7#pQ92mz",
		strings.Repeat("caf\u00e9 lantern ", 5),
	} {
		if err := p.Weak(t.Context(), "password", password, known...); err != nil {
			t.Errorf("Weak(%q) = %v, want nil", password, err)
		}
	}

	for _, tt := range []struct{ password, want string }{
		{"Xk7#pQ92m", "too short (minimum is 10 characters)"},
		{"password12", "very common password"},
		{"P4ssw0rd!!", "very common password"},
		{"lovelace-ada", "your email address, your name or the project's"},
		{"analytical1", "your email address, your name or the project's"},
		{"zzzzzzzzzzzzzz", "repeats itself"},
		{"abcdefghijkl", "sequence"},
		{strings.Repeat("a", 60) + "Xk7#pQ92mz", "repeats itself"},
	} {
		err := p.Weak(t.Context(), "password", tt.password, known...)
		wantInvalid(t, fmt.Sprintf("Weak(%q)", tt.password), err, tt.want)
	}

	if err := (Policy{}).Weak(t.Context(), "password", "password"); err != nil {
		t.Errorf("Weak of the zero Policy = %v, want nil", err)
	}
}

// wantInvalid checks that err is a problem of the kind Invalid whose text contains want.
func wantInvalid(t *testing.T, operation string, err error, want string) {
	t.Helper()
	if !errors.Is(err, problem.Invalid) {
		t.Errorf("%s = %v, want problem.Invalid", operation, err)
		return
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%s = %v, want an error that contains %q", operation, err, want)
	}
}

// hostile lists passwords that are expensive to rate. Some consist of signs that may stand for the
// letters of many words. Others have overlapping patterns.
var hostile = []string{
	"4@8({[<369&#!1/|0$5+7%24@8({[<36", // took minutes when the search listed every reading
	strings.Repeat("a4@8{(<", 11),
	strings.Repeat("1", 72),
	strings.Repeat("1|7", 24),
	strings.Repeat("7|1$", 18),
	strings.Repeat("1!|75", 14),
	strings.Repeat("pA5$", 18),
	strings.Repeat("12.10.1985 ", 7),
	strings.Repeat("1.", 36),
	strings.Repeat("qweDSAzxc", 8),
	strings.Repeat("qw!aQ", 14),
	strings.Repeat("\u0301", 72),
	strings.Repeat("\U0001f600", 72),
	strings.Repeat("\u0130", 72),
	"\x00\x00\x00\x00\x00\x00\x00\x00",
	"\xff\xfe\xff\xfe\xff\xfe\xff\xfe",
}

// TestWeakBounded shows that only the beginning of an expensive password is rated, and that this
// takes a limited number of steps.
func TestWeakBounded(t *testing.T) {
	for _, password := range hostile {
		guess, steps := estimate(password, []string{password, strings.Repeat("abc ", 5000)})
		if len(guess.Password) > maxRated {
			t.Errorf("%d bytes of %.20q are rated, want at most %d", len(guess.Password), password, maxRated)
		}
		if steps > maxSteps/2 {
			t.Errorf("rating %.20q takes %d steps, want at most %d", password, steps, maxSteps/2)
		}
	}
}

// TestSearchBounded shows that a search ends after maxSteps, even if every part of the text is a word.
func TestSearchBounded(t *testing.T) {
	text := strings.Repeat("1", 300)
	var words []string
	for n := range text {
		words = append(words, text[:n+1])
	}
	// After maxSteps, each remaining position takes only one more step.
	if _, steps := newDictionary(map[string][]string{"words": words}).find(text); steps > maxSteps+len(text) {
		t.Errorf("the search takes %d steps, want at most %d", steps, maxSteps+len(text))
	}
}

// TestWeakQueued shows that rating a password waits in the same queue as hashing, and that a
// canceled request stops waiting.
func TestWeakQueued(t *testing.T) {
	h := New(1)
	h.sem <- struct{}{} // a task that never ends
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := Policy{MinScore: 2, Hasher: h}
	if err := p.Weak(ctx, "password", "fathom-lantern"); !errors.Is(err, context.Canceled) {
		t.Errorf("Weak with a canceled context = %v, want context.Canceled", err)
	}
}

// TestWeakApart shows that the separate process rates passwords, too.
func TestWeakApart(t *testing.T) {
	p := Policy{MinScore: 2, Hasher: newSeparateHasher(t, os.Args[0]).Hasher}
	if err := p.Weak(t.Context(), "password", "fathom-lantern"); err != nil {
		t.Errorf("Weak of a strong password = %v, want nil", err)
	}
	err := p.Weak(t.Context(), "password", "lovelace-ada", "ada.lovelace@example.com")
	wantInvalid(t, "Weak of a password from the email address", err, "your email address, your name")
}

// TestWeakReplaced shows that words are found even if several of their letters are replaced by
// similar signs.
func TestWeakReplaced(t *testing.T) {
	for _, password := range []string{"p@s5w0rd", "P4$sw0rD", "caf\u00e9p4ssw0rd", "l0v31ace-4da"} {
		err := Policy{MinScore: 2}.Weak(t.Context(), "password", password, "Ada Lovelace")
		if !errors.Is(err, problem.Invalid) {
			t.Errorf("Weak(%q) = %v, want problem.Invalid", password, err)
		}
	}
}

// FuzzWeak shows that rating any password takes at most 20 ms.
func FuzzWeak(f *testing.F) {
	for _, password := range hostile {
		f.Add(password, "ada.lovelace@example.com")
	}
	f.Fuzz(func(t *testing.T, password, known string) {
		fuzzcost.Bound{CPU: 20 * time.Millisecond, Heap: 4 << 20}.Check(t, len(password), func() {
			guess, steps := estimate(password, []string{known})
			if n := len(guess.Password); n > maxRated {
				t.Errorf("%d bytes of %q are rated, want at most %d", n, password, maxRated)
			}
			if steps >= maxSteps {
				t.Errorf("rating %q takes %d steps, want fewer than %d", password, steps, maxSteps)
			}
			if guess.Score < 0 || guess.Score > 4 {
				t.Errorf("the score of %q is %d, want 0 to 4", password, guess.Score)
			}
		})
	})
}

// breachedFile writes a file of hashes in the published format, and returns its name.
func breachedFile(t *testing.T, lineEnd string, passwords ...string) string {
	t.Helper()
	var lines []string
	for i, p := range passwords {
		lines = append(lines, fmt.Sprintf("%X:%d", sha1.Sum([]byte(p)), i*i*i))
	}
	slices.Sort(lines)
	name := filepath.Join(t.TempDir(), "pwned.txt")
	text := strings.Join(lines, lineEnd) + lineEnd
	if err := os.WriteFile(name, []byte(strings.TrimSuffix(text, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestBreached(t *testing.T) {
	for _, lineEnd := range []string{"\n", "\r\n"} {
		for _, n := range []int{1, 2, 3, 1000} {
			t.Run(fmt.Sprintf("%d lines that end with %q", n, lineEnd), func(t *testing.T) {
				testBreached(t, lineEnd, n)
			})
		}
	}
}

// testBreached shows that exactly n passwords are found in a file with their hashes.
func testBreached(t *testing.T, lineEnd string, n int) {
	var passwords []string
	for i := range n {
		passwords = append(passwords, fmt.Sprint("breached-", i))
	}
	b, err := OpenBreached(breachedFile(t, lineEnd, passwords...))
	if err != nil {
		t.Fatal(err)
	}

	for i := range n + 200 {
		want := i < n
		if got, err := b.Has(fmt.Sprint("breached-", i)); err != nil || got != want {
			t.Errorf("Has(breached-%d) = %v, %v, want %v", i, got, err, want)
		}
	}

	p := Policy{Breached: b}
	wantInvalid(t, "Weak of a breached password", p.Weak(t.Context(), "password", "breached-0"), "breach")
	if err := p.Weak(t.Context(), "password", "fathom-lantern"); err != nil {
		t.Errorf("Weak of a different password = %v, want nil", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenBreachedRefuses(t *testing.T) {
	hash := func(first string) string { return first + strings.Repeat("0", 39) + ":1\n" }
	for name, text := range map[string]string{
		"empty":           "",
		"words":           "password\n123456\n",
		"no lines":        strings.Repeat("A", 1000),
		"unordered":       strings.Repeat(hash("B"), 9) + hash("A"),
		"NTLM":            strings.Repeat("0", 32) + ":1\n",
		"not hexadecimal": strings.Repeat("x", 40) + ":1\n",
	} {
		file := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenBreached(file); err == nil {
			t.Errorf("%s: OpenBreached = nil, want an error", name)
		}
	}

	if _, err := OpenBreached(filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("OpenBreached of a missing file = nil, want an error")
	}
}
