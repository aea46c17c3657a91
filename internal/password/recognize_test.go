package password

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	zxcvbn "github.com/ccojocar/zxcvbn-go"
)

// TestAsZxcvbn compares estimates with those of the library's matchers. The passwords are random
// combinations of words, changed words, walks, sequences and noise. Cases in which the library is
// wrong are omitted: dates, and repetitions of multi-byte characters.
func TestAsZxcvbn(t *testing.T) {
	said := []string{"ada.lovelace@example.com", "Ada Lovelace"}
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{
		"password", "P4$$w0rd", "letmein", "Lovelace", "ada", "monkey", "qwerty", "asdfGHJ", "zaq1", "aaa",
		"AaAa", "abcdef", "fed", "XYZ", "987", "12",
		"smith", "jennifer", "7|1", "@dm!n", "caf\u00e9", "#k", " ", "-", "fathom", "lantern", "0",
		"tr0ub4dor", "correct", "horse", "MNBVC", "7410",
	}

	for range 200 {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteString(parts[r.IntN(len(parts))])
		}

		password := strings.ToValidUTF8(b.String()[:min(b.Len(), maxRated)], "")
		if dated(password) {
			continue
		}

		got, _ := estimate(password, said)
		want := zxcvbn.PasswordStrength(password, splitWords(said))
		if got.Score != want.Score || math.Abs(got.Entropy-want.Entropy) > 0.001 {
			t.Errorf("estimate(%q) = %d, %.3f bits, want %d, %.3f like zxcvbn", password, got.Score,
				got.Entropy, want.Score, want.Entropy)
		}
	}
}

// dated reports whether a password may contain a date.
func dated(password string) bool {
	digits := 0
	for _, c := range password {
		if unicode.IsDigit(c) {
			digits++
		}
	}
	return digits > 3
}

func TestDates(t *testing.T) {
	tests := []struct{ password, token string }{
		{"x12.10.1815y", "12.10.18"},
		{"10.12.1985", "10.12.1985"},
		{"2026-11-22", "2026-11-22"},
		{"ab19851210", "19851210"},
		{"12101985", "12101985"},
		{"851210", "851210"},
		{"99/99/1999", ""},
		{"00.00.2000", ""},
		{"fathom", ""},
	}

	for _, tt := range tests {
		var tokens []string
		for _, m := range dates(tt.password) {
			if m.Token != tt.password[m.I:m.J+1] {
				t.Errorf("dates(%q): %q is not at %d to %d", tt.password, m.Token, m.I, m.J)
			}
			tokens = append(tokens, m.Token)
		}
		if got := fmt.Sprint(tokens); (tt.token == "") != (tokens == nil) || !strings.Contains(got, tt.token) {
			t.Errorf("dates(%q) = %s, want %q", tt.password, got, tt.token)
		}
	}

	err := Policy{MinScore: 2}.Weak(t.Context(), "password", "10.12.1985")
	if err == nil || !strings.Contains(err.Error(), "contains a date") {
		t.Errorf("Weak of a date = %v", err)
	}
}
