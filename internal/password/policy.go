package password

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ccojocar/zxcvbn-go/match"
	"github.com/ccojocar/zxcvbn-go/scoring"
	"golang.org/x/text/unicode/norm"

	"github.com/selvage/selvage/internal/problem"
)

// A Policy says which passwords people may choose. The zero value asks for nothing
// beside what [Check] does.
type Policy struct {
	MinLength int       // in characters after NFC, where that is more than the constant
	MinScore  int       // of zxcvbn, from 0 to 4: 2 is what 10^8 guesses do not find
	Breached  *Breached // those that were found in breaches of others; nil is none
}

// Weak reports why a password that Check lets through cannot be set, as a problem on
// param. said is what whoever guesses knows: the e-mail, names, the project. Nobody
// outside is asked.
func (p Policy) Weak(param, password string, said ...string) error {
	password = norm.NFC.String(password)
	if n := utf8.RuneCountInString(password); n < p.MinLength {
		return problem.BadParam(param, "%s is too short (minimum is %d characters)", param, p.MinLength)
	}
	if known, err := p.Breached.Has(password); err != nil {
		return fmt.Errorf("looking among breached passwords: %w", err)
	} else if known {
		return weak(param, "it was found in a breach of another site: choose one that is used nowhere else")
	}
	if p.MinScore <= 0 {
		return nil
	}
	if guess := estimate(password, said); guess.Score < p.MinScore {
		return weak(param, advice(guess))
	}
	return nil
}

func weak(param, why string) error {
	return &problem.Error{Kind: problem.Invalid, Code: "weak_password", Param: param,
		Message: param + " is too easily guessed: " + why}
}

// estimated bounds what is looked at: the work grows with the square of the length, and
// more. What is this long and strong is strong, whatever comes behind.
const estimated = 32

// estimate tells how hard the beginning of a password is to guess.
func estimate(password string, said []string) scoring.MinEntropyMatch {
	if len(password) > estimated {
		password = strings.ToValidUTF8(password[:estimated], "")
	}
	return scoring.MinimumEntropyMatchSequence(password, recognise(password, words(said)))
}

// words returns what was said and its parts, each of some length.
func words(said []string) (all []string) {
	for _, text := range said {
		parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("@.-_ +/", r) })
		for _, word := range append(parts, text) {
			if len(word) >= 3 && len(word) <= 100 {
				all = append(all, strings.ToLower(word))
			}
		}
	}
	return all
}

// advice says in words what makes a password easy to guess: what the longest part of it
// is that was recognised.
func advice(guess scoring.MinEntropyMatch) string {
	var longest match.Match
	for _, m := range guess.MatchSequence {
		if m.Pattern != "bruteforce" && len(m.Token) > len(longest.Token) {
			longest = m
		}
	}
	const more = "; three or four words that have nothing to do with each other are better"
	switch longest.Pattern {
	case "dictionary":
		return cmp.Or(dictionaries[longest.DictionaryName], "it is a common word or name, changed a little") + more
	case "spatial":
		return "its keys are side by side" + more
	case "repeat":
		return "it repeats itself" + more
	case "sequence":
		return "it follows a sequence such as abcd or 1234" + more
	case "date":
		return "it has a date in it" + more
	}
	return "it is short" + more
}

var dictionaries = map[string]string{
	"user_inputs": "it has your e-mail, your name or the project's in it",
	"Passwords":   "it is like one of the most common passwords",
}
