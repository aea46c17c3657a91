package fabric

import (
	"slices"
	"unicode"
)

// together are the scripts that are written in one word, beside Latin.
var together = [][]string{{"Han", "Hiragana", "Katakana"}, {"Han", "Bopomofo"}, {"Han", "Hangul"}}

// isPlain reports whether a word is of one script.
func isPlain(word string) bool {
	var scripts []string
	var last *unicode.RangeTable
	for _, r := range word {
		if last != nil && unicode.Is(last, r) || unicode.In(r, unicode.Common, unicode.Inherited) {
			continue
		}
		var name string
		name, last = scriptOf(r)
		if last != nil && !slices.Contains(scripts, name) {
			scripts = append(scripts, name)
		}
	}
	if len(scripts) <= 1 {
		return true
	}
	for _, set := range together {
		if fits(scripts, set) {
			return true
		}
	}
	return false
}

func fits(scripts, set []string) bool {
	for _, s := range scripts {
		if s != "Latin" && !slices.Contains(set, s) {
			return false
		}
	}
	return true
}

// scriptOf returns the script of a letter; none for one that Unicode has not yet.
func scriptOf(r rune) (string, *unicode.RangeTable) {
	if unicode.Is(unicode.Latin, r) {
		return "Latin", unicode.Latin
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return name, table
		}
	}
	return "", nil
}
