package fabric

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/selvage/selvage/internal/problem"
)

// escape matches a percent escape such as %2e.
var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// checkName returns an error if the name of a resource or subscriber could be mistaken for a path or
// for another name; see [checkShown].
func checkName(param, name string) error {
	if err := checkShown(param, name); err != nil {
		return err
	}

	segments := strings.FieldsFunc(name, isSlash)
	for i, s := range segments {
		segments[i] = strings.Trim(s, " ")
	}

	if strings.IndexFunc(name, isSlash) == 0 || slices.Contains(segments, ".") || slices.Contains(segments, "..") {
		return problem.BadParam(param, "%s must not be a path", param)
	}
	if escape.MatchString(name) {
		return problem.BadParam(param, "%s must not contain percent escapes such as %s", param,
			escape.FindString(name))
	}

	return nil
}

// joinName adds an error to err if name is invalid, unless err already contains an error on param.
func joinName(err error, param, name string) error {
	if slices.ContainsFunc(problem.All(err), func(p *problem.Error) bool { return p.Param == param }) {
		return err
	}
	return errors.Join(err, checkName(param, name))
}

// isSlash reports whether r is a slash or looks like one, such as a fullwidth, fraction or division
// slash.
func isSlash(r rune) bool { return strings.ContainsRune(`/\／＼⁄∕⧵⧸`, r) }

// checkShown returns an error for text that could be mistaken for other text. The text must not
// have invisible characters, or characters that change the direction of text. It must not have more
// marks on a letter than a script needs, or words that mix scripts.
//
// The last rule is the level "highly restrictive" of UTS 39, section 5.2, applied to each word. All
// letters of a word have the same script, or belong to scripts that are written together.
//
// Text of more than utf8.UTFMax*maxText bytes is rejected without a look at its characters.
func checkShown(param, text string) error {
	if len(text) > utf8.UTFMax*maxText {
		return tooLong(param)
	}
	text = norm.NFC.String(text)
	if !isShown([]rune(text)) {
		return problem.BadParam(param,
			"%s must not contain invisible characters or characters that change the text direction", param)
	}

	for _, word := range strings.FieldsFunc(text,
		func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.Nd) }) {
		if !isPlain(word) {
			return problem.BadParam(param, "%s must not mix letters of different scripts in one word: %s",
				param, strings.ToValidUTF8(word, ""))
		}
	}
	return nil
}

// maxMarks is the maximum number of marks on one letter (UTS 39, section 5.4).
const maxMarks = 4

// hidden contains the invisible characters, and the characters that no font has.
var hidden = []*unicode.RangeTable{
	unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp,
	unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point,
}

// isShown reports whether every character of text is visible, or modifies the previous character as
// the script or an emoji requires.
func isShown(text []rune) bool {
	marks := 0
	for i, r := range text {
		marks++
		if !unicode.Is(unicode.Mn, r) {
			marks = 0
		}
		if marks > maxMarks || r == brailleBlank || unicode.In(r, hidden...) && !joins(text, i) {
			return false
		}
	}
	return true
}

const (
	zwnj, zwj           = 0x200c, 0x200d   // zero-width non-joiner and joiner
	asText, asEmoji     = 0xfe0e, 0xfe0f   // variation selectors for display as text or emoji
	brailleBlank        = 0x2800           // a symbol that looks blank
	firstSkin, lastSkin = 0x1f3fb, 0x1f3ff // skin tones of emoji
	virama              = 9                // combining class of signs that suppress a vowel
)

// joins reports whether the hidden character at i is in a valid place. A joiner must be inside an
// emoji, or in a place that RFC 5892, appendices A.1 and A.2, allows. A variation selector must
// follow an emoji.
func joins(text []rune, i int) bool {
	if i == 0 {
		return false
	}

	before, after := text[i-1], rune(0)
	if i+1 < len(text) {
		after = text[i+1]
	}

	switch text[i] {
	case asText, asEmoji:
		return isEmoji(before) || strings.ContainsRune("0123456789#*", before)
	case zwj, zwnj:
		if norm.NFC.PropertiesString(string(before)).CCC() == virama {
			return true
		}
		if text[i] == zwnj {
			return unicode.Is(unicode.Arabic, before) && unicode.Is(unicode.Arabic, after)
		}
		return (isEmoji(before) || before == asEmoji) && isEmoji(after)
	}

	return false
}

func isEmoji(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sm) || firstSkin <= r && r <= lastSkin
}

// nameDigest returns a digest of a name after NFKC and case folding and without hidden characters.
// Names that a reader cannot tell apart have the same digest. The digest of "" is "".
func nameDigest(name string) string {
	folded := norm.NFKC.String(cases.Fold().String(norm.NFKC.String(name)))
	folded = strings.Map(func(r rune) rune {
		if unicode.In(r, hidden...) {
			return -1
		}
		return r
	}, folded)
	folded = strings.Join(strings.Fields(folded), " ")
	if folded == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(folded))
	return hex.EncodeToString(sum[:])
}

// together contains the sets of scripts that may be mixed in a word, also with Latin.
var together = [][]string{{"Han", "Hiragana", "Katakana"}, {"Han", "Bopomofo"}, {"Han", "Hangul"}}

// isPlain reports whether a word has one script, or scripts that are written together.
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

// scriptOf returns the name and the characters of a letter's script. It returns "" and nil if this version
// of Unicode does not know the letter.
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
