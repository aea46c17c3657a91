package recordings

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// These constants limit the words by which recordings are found. Longer words are cut, and
// additional words are omitted.
const (
	maxWordBytes = 40
	maxWords     = 32
)

// Words splits text into the words that a search compares: letters and digits in lowercase.
func Words(text string) (words []string) {
	for _, word := range split(text) {
		words = append(words, lowerWord(word))
	}
	return words
}

// split splits text at all characters except letters, digits and accents.
func split(text string) []string {
	return strings.FieldsFunc(norm.NFKC.String(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}

// lowerWord returns a word in lowercase, cut to maxWordBytes.
func lowerWord(word string) string {
	return cut(strings.ToLower(word), maxWordBytes)
}

// cut returns the longest beginning of text that has at most n bytes and only whole characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Words returns the words by which a recording is found. They come from its file name, its
// conference, and its parties, except for numbers, which are found by their digits. A capital
// letter after a lowercase letter begins another word, so that "review" also finds "MonthlyReview".
func (m Metadata) Words() (words []string) {
	texts := []string{m.Name, m.ConferenceSid}
	for _, party := range []string{m.From, m.To} {
		if Digits(party) == "" {
			texts = append(texts, party)
		}
	}

	for _, text := range texts {
		for _, word := range split(text) {
			for _, part := range withInner(word) {
				lower := lowerWord(part)
				if len(words) < maxWords && !slices.Contains(words, lower) {
					words = append(words, lower)
				}
			}
		}
	}
	return words
}

// withInner returns a word, followed by each ending of it that begins with a capital letter after a
// lowercase letter.
func withInner(word string) []string {
	words := []string{word}
	afterLower := false
	for i, r := range word {
		if afterLower && unicode.IsUpper(r) {
			words = append(words, word[i:])
		}
		afterLower = unicode.IsLower(r)
	}
	return words
}

// fileName returns the last element of the path of a file, without characters that cannot be
// stored. It knows the separators of all operating systems.
func fileName(path string) string {
	path = path[strings.LastIndexAny(path, `/\`)+1:]
	path = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(path, ""))
	return cut(path, maxText)
}
