package password

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ccojocar/zxcvbn-go/match"
	"github.com/ccojocar/zxcvbn-go/scoring"
	"golang.org/x/text/unicode/norm"

	"github.com/selvage/selvage/internal/problem"
)

// A Policy decides which passwords users may choose. The zero value accepts every password that
// [Check] accepts.
type Policy struct {
	MinLength int           // minimum length in characters after NFC, if greater than the fixed minimum
	MinScore  int           // the minimum score from zxcvbn, 0 to 4; a score of 2 withstands 10^8 guesses
	Breached  *BreachedList // passwords that breaches of other sites revealed; nil means none
	Hasher    *Hasher       // rates passwords in a queue; nil means that they are rated immediately
}

// Weak checks a password that Check accepts. It returns a problem that names param if the password is too
// short for the policy, is known from a breach, or is too easy to guess. known lists words that an
// attacker may know about the user, such as the email address, names and the project. Weak uses no
// external service.
func (p Policy) Weak(ctx context.Context, param, password string, known ...string) error {
	password = norm.NFC.String(password)
	if n := utf8.RuneCountInString(password); n < p.MinLength {
		return problem.BadParam(param, "%s is too short (minimum is %d characters)", param, p.MinLength)
	}

	breached, err := p.Breached.Has(password)
	if err != nil {
		return fmt.Errorf("searching breached passwords: %w", err)
	}

	if breached {
		return weak(param, "it appeared in a data breach; choose one that you use nowhere else")
	}

	if p.MinScore <= 0 {
		return nil
	}

	rated, err := p.Hasher.rate(ctx, password, known)
	if err != nil {
		return fmt.Errorf("rating password: %w", err)
	}
	if rated.Score < p.MinScore {
		return weak(param, rated.Advice)
	}
	return nil
}

func weak(param, why string) error {
	return &problem.Error{
		Kind:    problem.Invalid,
		Code:    "weak_password",
		Param:   param,
		Message: param + " is too easy to guess: " + why,
	}
}

// Only the beginning of a password is rated, because the time to rate it grows at least with the square of
// its length. If the beginning of a password is strong, the whole password is strong.
const (
	maxRated    = 32  // bytes of the password
	maxKnown    = 64  // number of known words
	minKnownLen = 3   // bytes of each known word
	maxKnownLen = 100 // bytes of each known word
)

// A Rating describes how hard a password is to guess.
type Rating struct {
	Score  int    // the score from zxcvbn, 0 to 4
	Advice string // why the score is not higher
	steps  int
}

// rate rates the first maxRated bytes of a password.
func rate(password string, known []string) Rating {
	guess, steps := estimate(password, known)
	return Rating{Score: guess.Score, Advice: advice(guess), steps: steps}
}

// estimate returns the cheapest way to guess the beginning of a password, and the number of steps
// of the search.
func estimate(password string, known []string) (scoring.MinEntropyMatch, int) {
	password = strings.ToValidUTF8(password[:min(len(password), maxRated)], "")
	found, steps := recognize(password, splitWords(known))
	return scoring.MinimumEntropyMatchSequence(password, found), steps
}

// splitWords splits each text in known into words, and returns the words and the texts in lower case. It
// omits those that are shorter than minKnownLen or longer than maxKnownLen, and returns at most maxKnown.
func splitWords(known []string) (all []string) {
	for _, text := range known {
		text = strings.ToLower(strings.ToValidUTF8(text[:min(len(text), maxKnown*maxKnownLen)], ""))
		parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("@.-_ +/", r) })
		for _, word := range append(parts, text) {
			fits := len(word) >= minKnownLen && len(word) <= maxKnownLen
			if len(all) < maxKnown && fits && !slices.Contains(all, word) {
				all = append(all, word)
			}
		}
	}
	return all
}

// advice explains why a password is easy to guess, by its longest recognized part.
func advice(guess scoring.MinEntropyMatch) string {
	var longest match.Match
	for _, m := range guess.MatchSequence {
		if m.Pattern != "bruteforce" && len(m.Token) > len(longest.Token) {
			longest = m
		}
	}
	const more = "; three or four unrelated words are better"

	switch longest.Pattern {
	case "dictionary":
		return cmp.Or(dictionaries[longest.DictionaryName], "it is a common word or name with small changes") + more
	case "spatial":
		return "it is a row of neighboring keys" + more
	case "repeat":
		return "it repeats itself" + more
	case "sequence":
		return "it follows a sequence such as abcd or 1234" + more
	case "date":
		return "it contains a date" + more
	}
	return "it is short" + more
}

var dictionaries = map[string]string{
	"user_inputs": "it contains your email address, your name or the project's name",
	"Passwords":   "it is similar to a very common password",
}
