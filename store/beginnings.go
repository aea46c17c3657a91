package store

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/selvage/selvage/fabric"
)

// A called is one of what a subscriber is called, which an index has in its order.
type called struct {
	value     string   // in SQL, as the index has it
	order     []string // of the index; no two of a project have one e-mail
	given     string   // whose the index has; "" is everybody's
	of        func(fabric.Subscriber) string
	spellings func(text string) []string
}

// What indexes have, in SQL.
const (
	byFirst   = `LOWER(first_name || ' ' || last_name)`
	byLast    = `LOWER(last_name || ' ' || first_name)`
	byDisplay = `LOWER(display_name)`
	byWord    = `LOWER(SUBSTR(display_name, LENGTH(RTRIM(display_name, REPLACE(display_name, ' ', ''))) + 1))`
)

// callings are what subscribers are found by, in the order in which they are looked for.
var callings = []called{
	{"email", []string{"email"}, "", func(s fabric.Subscriber) string { return s.Email },
		func(text string) []string { return []string{fabric.NormalizeEmail(text)} }},
	{byFirst, []string{byFirst, "id"}, `first_name <> ''`, func(s fabric.Subscriber) string {
		return two(s.FirstName, s.LastName)
	}, spellings},
	{byLast, []string{byLast, "id"}, `last_name <> ''`, func(s fabric.Subscriber) string {
		return two(s.LastName, s.FirstName)
	}, spellings},
	{byDisplay, []string{byDisplay, "id"}, `display_name <> ''`, func(s fabric.Subscriber) string {
		return small(s.DisplayName)
	}, spellings},
	{byWord, []string{byWord, "id"}, `display_name <> REPLACE(display_name, ' ', '')`,
		func(s fabric.Subscriber) string { return lastWord(s.DisplayName) }, spellings},
	{"reference", []string{"reference"}, "", func(s fabric.Subscriber) string { return s.Reference },
		func(text string) []string {
			return distinct(text, strings.ToLower(text), strings.ToUpper(text))
		}},
}

// two returns a name that has another behind it, "" where it is none.
func two(name, behind string) string {
	if name == "" {
		return ""
	}
	return small(name + " " + behind)
}

// lastWord returns the last of several words, "" where there are none.
func lastWord(name string) string {
	before := strings.LastIndexByte(name, ' ')
	if before < 0 {
		return ""
	}
	return small(name[before+1:])
}

// small makes small letters of A to Z and of no others, as LOWER does in both databases.
func small(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}

// spellings returns what LOWER may have made of a text, however its letters are written: all
// small, each word with a capital, all large. Of A to Z alone it is one.
func spellings(text string) []string {
	before := ' '
	title := strings.Map(func(r rune) rune {
		if r = unicode.ToLower(r); before == ' ' {
			before = r
			return unicode.ToUpper(r)
		}
		before = r
		return r
	}, text)
	return distinct(small(text), strings.ToLower(text), small(title), small(strings.ToUpper(text)))
}

func distinct(all ...string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// A beginning is one way to subscribers: in the order of an index, those of whom something
// they are called begins with a text.
type beginning struct {
	called
	text  string
	words bool // each word of what is looked for is to be a beginning
}

func (b beginning) takes(s fabric.Subscriber) bool {
	value := b.of(s)
	return value != "" && strings.HasPrefix(value, b.text)
}

func beginnings(text string, words bool) (all []beginning) {
	for _, c := range callings {
		for _, spelling := range c.spellings(text) {
			all = append(all, beginning{c, spelling, words})
		}
	}
	return all
}

// sought is what somebody looks for: all of it is a beginning, or each of its words is one.
type sought struct {
	ways  []beginning
	words [][]beginning
}

// mostWords bounds the words that are looked for; more are one text.
const mostWords = 5

// seek tells how to find a text. One of several words is found by the longest, which is
// likely to be the rarest.
func seek(text string) (f sought) {
	f.ways = beginnings(text, false)
	words := strings.Fields(text)
	if len(words) < 2 || len(words) > mostWords {
		return f
	}
	longest := slices.MaxFunc(words, func(a, b string) int {
		return utf8.RuneCountInString(a) - utf8.RuneCountInString(b)
	})
	for _, word := range words {
		f.words = append(f.words, beginnings(word, false))
	}
	f.ways = append(f.ways, beginnings(longest, true)...)
	return f
}

// gives reports whether a way is the first one to a subscriber: none is found twice.
func (f sought) gives(way int, s fabric.Subscriber) bool {
	for i, b := range f.ways[:way+1] {
		if b.takes(s) && (!b.words || f.hasWords(s)) {
			return i == way
		}
	}
	return false
}

func (f sought) hasWords(s fabric.Subscriber) bool {
	for _, word := range f.words {
		if !slices.ContainsFunc(word, func(b beginning) bool { return b.takes(s) }) {
			return false
		}
	}
	return true
}
