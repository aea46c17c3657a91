package password

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/ccojocar/zxcvbn-go/adjacency"
	"github.com/ccojocar/zxcvbn-go/data"
	"github.com/ccojocar/zxcvbn-go/entropy"
	"github.com/ccojocar/zxcvbn-go/match"
)

// A dictionary holds lowercase words in byte order. The words are in one string, because 90,000
// strings would need three times as much memory.
type dictionary struct {
	text    string
	lists   []string // the names of the lists
	entries []entry
}

// An entry is a word, the list that contains it, and its rank in the list, counted from 1.
type entry struct {
	start uint32 // where the word begins in the text
	size  uint16
	list  uint16
	rank  uint32
}

// word returns the word of an entry.
func (d dictionary) word(e entry) string { return d.text[e.start:][:e.size] }

// newDictionary returns a dictionary of the words in lists. Each list begins with the words that
// attackers try first. A word in several lists keeps its best rank. newDictionary omits words of 64
// KiB or more.
func newDictionary(lists map[string][]string) (d dictionary) {
	var text strings.Builder
	d.lists = slices.Sorted(maps.Keys(lists))
	for list, name := range d.lists {
		for i, word := range lists[name] {
			word = strings.ToLower(word)
			if len(word) > math.MaxUint16 {
				continue
			}
			d.entries = append(d.entries, entry{start: uint32(text.Len()), size: uint16(len(word)),
				list: uint16(list), rank: uint32(i + 1)})
			text.WriteString(word)
		}
	}

	d.text = strings.Clone(text.String()) // without the builder's spare capacity
	slices.SortFunc(d.entries, func(a, b entry) int {
		return cmp.Or(strings.Compare(d.word(a), d.word(b)), cmp.Compare(a.rank, b.rank), cmp.Compare(a.list, b.list))
	})
	d.entries = slices.CompactFunc(d.entries, func(a, b entry) bool { return d.word(a) == d.word(b) })
	d.entries = slices.Clone(d.entries)
	return d
}

// common returns a dictionary of the words that every attacker tries, from the library's lists. The
// lists are read when the first password is rated, so that they do not delay the start of the
// server. If a list cannot be read, the build is broken. In this case common panics, and every test
// that rates a password fails.
var common = sync.OnceValue(func() dictionary {
	lists := make(map[string][]string)
	for list, file := range map[string]string{
		"MaleNames": "MaleNames", "FemaleNames": "FemaleNames", "Surname": "Surnames",
		"English": "English", "Passwords": "Passwords",
	} {
		text, err := data.Asset("data/" + file + ".json")
		if err != nil {
			panic(fmt.Sprintf("reading dictionary %s: %v", file, err))
		}
		words, err := parseWords(string(text))
		if err != nil {
			panic(fmt.Sprintf("reading dictionary %s: %v", file, err))
		}
		lists[list] = words
	}
	return newDictionary(lists)
})

// parseWords returns the words in the only array of a JSON document. They must be strings without
// escapes. Package json takes several times as long to read them.
func parseWords(text string) (words []string, err error) {
	_, text, begins := strings.Cut(text, "[")
	if !begins || strings.Contains(text, `\`) {
		return nil, errors.New("it has no array of strings without escapes")
	}
	words = make([]string, 0, strings.Count(text, `"`)/2)
	for {
		_, after, another := strings.Cut(text, `"`)
		if !another {
			return words, nil
		}
		word, rest, ends := strings.Cut(after, `"`)
		if !ends {
			return nil, errors.New("its last string does not end")
		}
		words, text = append(words, word), rest
	}
}

// lookalikes maps a sign to the letters that it may stand for. For example, @ may stand for a.
var lookalikes = sync.OnceValue(func() map[byte][]byte {
	letters := make(map[byte][]byte)
	for letter, signs := range adjacency.GraphMap["l33t"].Graph {
		for _, sign := range signs {
			letters[sign[0]] = append(letters[sign[0]], letter[0])
		}
	}
	return letters
})

// maxSteps limits the work of one search. A password of 32 bytes takes a few hundred steps. The
// most expensive known password takes a tenth of the limit.
const maxSteps = 20_000

// A search finds the words of a dictionary in a text, even if signs replace letters. Each sign at
// least doubles the number of possible readings of the text, because it stands for itself or for a
// letter. So the search does not list all readings, but follows only those that begin a word in the
// dictionary.
type search struct {
	dictionary
	password string // the text in lower case
	start    int    // where the current word begins
	steps    int
	best     map[[2]int]entry // the entry with the best rank for each part of the text, by its start and end
}

// find returns the dictionary's words that password contains, and the number of steps of the
// search. It stops after maxSteps.
func (d dictionary) find(password string) (found []match.Match, steps int) {
	s := search{dictionary: d, password: lower(password), best: make(map[[2]int]entry)}
	for s.start = range s.password {
		s.follow(0, len(d.entries), 0)
	}
	for part, e := range s.best {
		start, end := part[0], part[1]
		m := match.Match{
			Pattern:        "dictionary",
			DictionaryName: d.lists[e.list],
			I:              start,
			J:              end - 1,
			Token:          password[start:end],
		}
		m.Entropy = entropy.DictionaryEntropy(m, float64(e.rank))
		found = append(found, m)
	}
	return found, s.steps
}

// follow continues the search with entries[low:high], whose words have their first depth bytes in
// common.
func (s *search) follow(low, high, depth int) {
	s.steps++
	if s.steps > maxSteps || low == high {
		return
	}
	end := s.start + depth
	if e := s.entries[low]; int(e.size) == depth && depth > 0 {
		part := [2]int{s.start, end}
		if best, ok := s.best[part]; !ok || e.rank < best.rank {
			s.best[part] = e
		}
	}
	if end == len(s.password) {
		return
	}

	next := s.password[end]
	s.try(low, high, depth, next)
	for _, letter := range lookalikes()[next] {
		s.try(low, high, depth, letter)
	}
}

// try continues with the words of entries[low:high] whose byte at the index depth equals next.
func (s *search) try(low, high, depth int, next byte) {
	entries := s.entries[low:high]
	from := sort.Search(len(entries), func(i int) bool {
		word := s.word(entries[i])
		return len(word) > depth && word[depth] >= next
	})
	to := from + sort.Search(len(entries)-from, func(i int) bool { return s.word(entries[from+i])[depth] > next })
	if from < to {
		s.follow(low+from, low+to, depth+1)
	}
}

// lower returns text in lower case. It keeps characters whose lower case has a different length in
// bytes, so that offsets stay the same.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if l := unicode.ToLower(r); utf8.RuneLen(l) == utf8.RuneLen(r) {
			return l
		}
		return r
	}, text)
}
