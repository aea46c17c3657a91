package store

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/selvage/selvage/fabric"
)

// A searchKey is an indexed text of a subscriber. Subscribers are found by the beginning of this
// text.
type searchKey struct {
	value     string   // the SQL expression of the index
	order     []string // the columns of the index; ids follow columns that are not unique in a project
	condition string   // the condition of the index; "" means none
	of        func(fabric.Subscriber) string
	spellings func(text string) []string // the values that the expression may have for a text
}

// The expressions of the indexes.
const (
	byFirst   = `LOWER(first_name || ' ' || last_name)`
	byLast    = `LOWER(last_name || ' ' || first_name)`
	byDisplay = `LOWER(display_name)`
	byHost    = `SUBSTR(email, LENGTH(RTRIM(email, REPLACE(email, '@', ''))) + 1)`
	byWord    = `LOWER(SUBSTR(display_name, LENGTH(RTRIM(display_name, REPLACE(display_name, ' ', ''))) + 1))`
)

// searchKeys lists the keys in the order in which they are searched.
var searchKeys = []searchKey{
	{
		value:     "email",
		order:     []string{"email"},
		of:        func(s fabric.Subscriber) string { return s.Email },
		spellings: normalized,
	},
	{
		value:     byFirst,
		order:     []string{byFirst, "id"},
		condition: `first_name <> ''`,
		of:        func(s fabric.Subscriber) string { return twoNames(s.FirstName, s.LastName) },
		spellings: spellings,
	},
	{
		value:     byLast,
		order:     []string{byLast, "id"},
		condition: `last_name <> ''`,
		of:        func(s fabric.Subscriber) string { return twoNames(s.LastName, s.FirstName) },
		spellings: spellings,
	},
	{
		value:     byDisplay,
		order:     []string{byDisplay, "id"},
		condition: `display_name <> ''`,
		of:        func(s fabric.Subscriber) string { return lower(s.DisplayName) },
		spellings: spellings,
	},
	{
		value:     byWord,
		order:     []string{byWord, "id"},
		condition: `display_name <> REPLACE(display_name, ' ', '')`,
		of:        func(s fabric.Subscriber) string { return lastWord(s.DisplayName) },
		spellings: spellings,
	},
	{
		value: "reference",
		order: []string{"reference"},
		of:    func(s fabric.Subscriber) string { return s.Reference },
		spellings: func(text string) []string {
			return distinct(text, strings.ToLower(text), strings.ToUpper(text))
		},
	},
	// The host is searched last, because all subscribers may have the same one.
	{
		value:     byHost,
		order:     []string{byHost, "id"},
		condition: `email <> ''`,
		of:        func(s fabric.Subscriber) string { return mailHost(s.Email) },
		spellings: normalized,
	},
}

// normalized returns a part of an email address as it is stored.
func normalized(text string) []string { return []string{fabric.NormalizeEmail(text)} }

// twoNames joins two names, or returns "" if the first is missing.
func twoNames(name, after string) string {
	if name == "" {
		return ""
	}
	return lower(name + " " + after)
}

// mailHost returns the part of an email address after the last @.
func mailHost(email string) string { return email[strings.LastIndexByte(email, '@')+1:] }

// lastWord returns the last of several words, or "" if there is only one.
func lastWord(name string) string {
	before := strings.LastIndexByte(name, ' ')
	if before < 0 {
		return ""
	}
	return lower(name[before+1:])
}

// spellings returns the values that LOWER may return for the text in lower, title or upper case.
// They differ only in letters other than A to Z.
func spellings(text string) []string {
	before := ' '
	title := strings.Map(func(r rune) rune {
		r = unicode.ToLower(r)
		if before == ' ' {
			before = r
			return unicode.ToUpper(r)
		}
		before = r
		return r
	}, text)
	return distinct(lower(text), strings.ToLower(text), lower(title), lower(strings.ToUpper(text)))
}

// distinct returns the texts without duplicates.
func distinct(texts ...string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// A searchTerm matches subscribers whose key begins with one spelling of a text.
type searchTerm struct {
	searchKey
	text  string
	words bool // the subscriber must also match each word of the search
}

// matches reports whether the term finds a subscriber.
func (b searchTerm) matches(s fabric.Subscriber) bool {
	value := b.of(s)
	return value != "" && strings.HasPrefix(value, b.text)
}

// termsOf returns a term for each key and each spelling of a text.
func termsOf(text string, words bool) (terms []searchTerm) {
	for _, key := range searchKeys {
		for _, spelling := range key.spellings(text) {
			terms = append(terms, searchTerm{searchKey: key, text: spelling, words: words})
		}
	}
	return terms
}

// A search finds subscribers who match any of its terms.
type search struct {
	terms []searchTerm
	words [][]searchTerm // terms for each word of the text
}

// maxWords is the maximum number of words that are searched separately. A text with more words is
// searched only as a whole.
const maxWords = 5

// newSearch returns the search for a text as a whole, and by its words in any order. If there are
// several words, the candidates are the subscribers that match the longest word, which is likely to
// be the rarest. A word with a dot but no @ is probably the name of a host, which all subscribers
// may share.
func newSearch(text string) (f search) {
	f.terms = termsOf(text, false)
	words := strings.Fields(text)
	if len(words) < 2 || len(words) > maxWords {
		return f
	}
	longest := slices.MaxFunc(words, func(a, b string) int { return rarity(a) - rarity(b) })
	for _, word := range words {
		f.words = append(f.words, termsOf(word, false))
	}
	f.terms = append(f.terms, termsOf(longest, true)...)
	return f
}

// rarity returns a number that is larger for words that fewer subscribers are likely to match.
func rarity(word string) int {
	if strings.Contains(word, ".") && !strings.Contains(word, "@") {
		return 0
	}
	return utf8.RuneCountInString(word)
}

// isFirst reports whether the term with the given number is the first one that finds s. Lists use
// it so that they contain no subscriber twice.
func (f search) isFirst(term int, s fabric.Subscriber) bool {
	for i, b := range f.terms[:term+1] {
		if b.matches(s) && (!b.words || f.matchesWords(s)) {
			return i == term
		}
	}
	return false
}

// matchesWords reports whether a subscriber matches each word of the text.
func (f search) matchesWords(s fabric.Subscriber) bool {
	for _, word := range f.words {
		if !slices.ContainsFunc(word, func(b searchTerm) bool { return b.matches(s) }) {
			return false
		}
	}
	return true
}
