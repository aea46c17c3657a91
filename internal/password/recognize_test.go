package password

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	zxcvbn "github.com/ccojocar/zxcvbn-go"
)

// TestEstimateMatchesZxcvbn shows that estimates equal those of the library's own matchers. The passwords
// are random combinations of words, changed words, walks, sequences and noise. Passwords for which the
// library is wrong are omitted: dates, and repetitions of multi-byte characters.
func TestEstimateMatchesZxcvbn(t *testing.T) {
	personal := []string{"ada.lovelace@example.com", "Ada Lovelace"}
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
		if hasFourDigits(password) { // they may form a date
			continue
		}

		got, _ := estimate(password, personal)
		want := zxcvbn.PasswordStrength(password, splitWords(personal))
		if got.Score != want.Score {
			t.Errorf("the score of %q is %d, want %d, as by zxcvbn", password, got.Score, want.Score)
		}
		if math.Abs(got.Entropy-want.Entropy) > 0.001 {
			t.Errorf("the entropy of %q is %.3f bits, want %.3f, as by zxcvbn",
				password, got.Entropy, want.Entropy)
		}
	}
}

func hasFourDigits(password string) bool {
	digits := 0
	for _, c := range password {
		if unicode.IsDigit(c) {
			digits++
		}
	}
	return digits > 3
}

// TestDates shows which parts of a password are found as dates. A part is found once for each way
// in which it can be read.
func TestDates(t *testing.T) {
	tests := []struct {
		password string
		want     []string
	}{
		{"10.12.1985", []string{"10.12.1985", "10.12.19"}},
		{"2026-11-22", []string{"26-11-22", "2026-11-22"}},
		{"ab19851210", []string{"19851210"}},
		{"12101985", []string{"12101985", "121019", "121019"}},
		{"851210", []string{"851210"}},
		// Years of four digits begin with 19 or 20, so 18 is read as a year of two digits.
		{"x12.10.1815y", []string{"12.10.18", "12.10.18"}},
		{"99/99/1999", nil}, // no month is 99
		{"00.00.2000", nil},
		{"fathom", nil},
	}

	for _, tt := range tests {
		var got []string
		for _, m := range dates(tt.password) {
			if m.Token != tt.password[m.I:m.J+1] {
				t.Errorf("dates(%q): %q is not at %d to %d", tt.password, m.Token, m.I, m.J)
			}
			got = append(got, m.Token)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("dates(%q) = %q, want %q", tt.password, got, tt.want)
		}
	}
}

// TestWeakDate shows that the error for a date as a password says that the password contains a date.
func TestWeakDate(t *testing.T) {
	err := Policy{MinScore: 2}.Weak(t.Context(), "password", "10.12.1985")
	if err == nil || !strings.Contains(err.Error(), "contains a date") {
		t.Errorf("Weak of a date = %v, want an error that contains \"contains a date\"", err)
	}
}
