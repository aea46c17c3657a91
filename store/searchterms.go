package store

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/selvage/selvage/fabric"
)

// A searchKey is an indexed value of subscribers. A search finds subscribers by the beginning of this
// value.
type searchKey struct {
	expression string   // the SQL expression of the value, as in the index
	order      []string // the columns of the index; ids follow columns that are not unique in a project
	condition  string   // the condition of the index; "" means none

	// valueOf returns the same value as expression, or "" if the subscriber is not in the index.
	valueOf func(fabric.Subscriber) string
	// spellingsOf returns the values that expression may have for a text. The values differ in case.
	spellingsOf func(text string) []string
}

// The expressions of indexes. Queries must repeat them literally.
//
// SQL has no function that finds the last @ or space in a text. Therefore, REPLACE returns all other
// characters of the text, and RTRIM removes these characters from the end of the text. The result ends
// with the last @ or space, and SUBSTR returns the characters after it.
const (
	fullName      = `LOWER(first_name || ' ' || last_name)`
	lastNameFirst = `LOWER(last_name || ' ' || first_name)`
	displayName   = `LOWER(display_name)`
	hostOfEmail   = `SUBSTR(email, LENGTH(RTRIM(email, REPLACE(email, '@', ''))) + 1)`
	lastOfDisplay = `LOWER(SUBSTR(display_name, LENGTH(RTRIM(display_name, REPLACE(display_name, ' ', ''))) + 1))`
)

// searchKeys lists the keys in the order in which they are searched.
var searchKeys = []searchKey{
	{
		expression:  "email",
		order:       []string{"email"},
		valueOf:     func(s fabric.Subscriber) string { return s.Email },
		spellingsOf: spellingsOfEmail,
	},
	{
		expression:  fullName,
		order:       []string{fullName, "id"},
		condition:   `first_name <> ''`,
		valueOf:     func(s fabric.Subscriber) string { return twoNames(s.FirstName, s.LastName) },
		spellingsOf: spellingsOfName,
	},
	{
		expression:  lastNameFirst,
		order:       []string{lastNameFirst, "id"},
		condition:   `last_name <> ''`,
		valueOf:     func(s fabric.Subscriber) string { return twoNames(s.LastName, s.FirstName) },
		spellingsOf: spellingsOfName,
	},
	{
		expression:  displayName,
		order:       []string{displayName, "id"},
		condition:   `display_name <> ''`,
		valueOf:     func(s fabric.Subscriber) string { return lower(s.DisplayName) },
		spellingsOf: spellingsOfName,
	},
	{
		expression:  lastOfDisplay,
		order:       []string{lastOfDisplay, "id"},
		condition:   `display_name <> REPLACE(display_name, ' ', '')`,
		valueOf:     func(s fabric.Subscriber) string { return lastWord(s.DisplayName) },
		spellingsOf: spellingsOfName,
	},
	{
		expression: "reference",
		order:      []string{"reference"},
		valueOf:    func(s fabric.Subscriber) string { return s.Reference },
		spellingsOf: func(text string) []string {
			return distinct(text, strings.ToLower(text), strings.ToUpper(text))
		},
	},
	// The host is searched last, because all subscribers may have the same one.
	{
		expression:  hostOfEmail,
		order:       []string{hostOfEmail, "id"},
		condition:   `email <> ''`,
		valueOf:     func(s fabric.Subscriber) string { return mailHost(s.Email) },
		spellingsOf: spellingsOfEmail,
	},
}

// twoNames joins two names in lower case, or returns "" if the first is missing.
func twoNames(first, second string) string {
	if first == "" {
		return ""
	}
	return lower(first + " " + second)
}

// mailHost returns the part of an email address after the last @.
func mailHost(email string) string { return email[strings.LastIndexByte(email, '@')+1:] }

// lastWord returns the last of several words in lower case, or "" if there is only one.
func lastWord(name string) string {
	space := strings.LastIndexByte(name, ' ')
	if space < 0 {
		return ""
	}
	return lower(name[space+1:])
}

// spellingsOfEmail returns the only spelling of a part of an email address. It is normalized, as in
// the database.
func spellingsOfEmail(text string) []string { return []string{fabric.NormalizeEmail(text)} }

// maxSpellings is the maximum number of spellings that spellingsOfName returns.
const maxSpellings = 4

// spellingsOfName returns the values that LOWER may return for a name. LOWER changes only the
// letters A to Z. Other letters keep the case in which the name was written. The results assume that
// the name was written as in text, or in lower, title or upper case.
func spellingsOfName(text string) []string {
	return distinct(
		lower(text),
		strings.ToLower(text),
		lower(titleCase(text)),
		lower(strings.ToUpper(text)),
	)
}

// titleCase returns a text with each word in lower case, except for its first letter.
func titleCase(text string) string {
	previous := ' '
	return strings.Map(func(r rune) rune {
		beginsWord := previous == ' '
		previous = unicode.ToLower(r)
		if beginsWord {
			return unicode.ToUpper(previous)
		}
		return previous
	}, text)
}

// distinct returns the texts, sorted and without duplicates.
func distinct(texts ...string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// A searchTerm matches subscribers whose value of the key begins with a prefix.
type searchTerm struct {
	searchKey
	prefix string

	// needsWords means that a subscriber must also match each word of the search.
	needsWords bool
}

// matches reports whether the value of the key begins with the prefix. It ignores t.needsWords.
func (t searchTerm) matches(s fabric.Subscriber) bool {
	value := t.valueOf(s)
	return value != "" && strings.HasPrefix(value, t.prefix)
}

// termsOf returns a term for each key and each spelling of a text.
func termsOf(text string, needsWords bool) (terms []searchTerm) {
	for _, key := range searchKeys {
		for _, spelling := range key.spellingsOf(text) {
			terms = append(terms, searchTerm{
				searchKey:  key,
				prefix:     spelling,
				needsWords: needsWords,
			})
		}
	}
	return terms
}

// A search finds subscribers who match any of its terms.
type search struct {
	terms []searchTerm
	words [][]searchTerm // the terms of each word, if words are searched separately
}

// maxWords is the maximum number of words that are searched separately. A text with more words is
// searched only as a whole.
const maxWords = 5

// newSearch returns the search for a text as a whole, and by its words in any order. The search by
// words reads the subscribers that match the rarest word, and finds those that match all words.
func newSearch(text string) search {
	s := search{terms: termsOf(text, false)}
	words := strings.Fields(text)
	if len(words) < 2 || len(words) > maxWords {
		return s
	}

	for _, word := range words {
		s.words = append(s.words, termsOf(word, false))
	}
	rarest := slices.MaxFunc(words, func(a, b string) int { return rarity(a) - rarity(b) })
	s.terms = append(s.terms, termsOf(rarest, true)...)
	return s
}

// rarity returns a number that is larger for words that fewer subscribers are likely to match. Longer
// words are likely to be rarer. A word with a dot but no @ is probably the name of a host, which all
// subscribers may share.
func rarity(word string) int {
	if strings.Contains(word, ".") && !strings.Contains(word, "@") {
		return 0
	}
	return utf8.RuneCountInString(word)
}

// isFirst reports whether the term with the given index is the first one that finds a subscriber.
// Lists use it so that they contain no subscriber twice.
func (s search) isFirst(term int, sub fabric.Subscriber) bool {
	for i, t := range s.terms[:term+1] {
		if t.matches(sub) && (!t.needsWords || s.matchesWords(sub)) {
			return i == term
		}
	}
	return false
}

// matchesWords reports whether a subscriber matches each word of the text.
func (s search) matchesWords(sub fabric.Subscriber) bool {
	for _, terms := range s.words {
		matches := func(t searchTerm) bool { return t.matches(sub) }
		if !slices.ContainsFunc(terms, matches) {
			return false
		}
	}
	return true
}
