package password

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/ccojocar/zxcvbn-go/adjacency"
	"github.com/ccojocar/zxcvbn-go/entropy"
	"github.com/ccojocar/zxcvbn-go/match"
	zxcvbnmath "github.com/ccojocar/zxcvbn-go/utils/math"
)

// recognize returns the parts of a password that attackers try first. It works like zxcvbn, with
// the library's lists and formulas, but without the library's matchers. They read their lists at startup,
// which takes a tenth of a second, and their work is not limited: for example, a password that consists of
// look-alike signs would keep them busy for minutes.
//
// known lists words that an attacker may know about the user. steps is the amount of work done in the
// dictionaries. All other work is linear in the length of the password.
func recognize(password string, known []string) (found []match.Match, steps int) {
	personal := newDictionary(map[string][]string{"user_inputs": known})
	for _, d := range []dictionary{personal, common()} {
		words, n := d.find(password)
		found = append(found, words...)
		steps += n
	}

	for _, b := range boards() {
		found = append(found, b.walks(password)...)
	}

	found = slices.Concat(found, repeats(password), sequences(password), dates(password))
	slices.SortFunc(found, func(a, b match.Match) int {
		return cmp.Or(a.I-b.I, a.J-b.J, cmp.Compare(a.Entropy, b.Entropy),
			strings.Compare(a.DictionaryName, b.DictionaryName))
	})
	return found, steps
}

// A board is a keyboard, with the numbers that determine the entropy of a walk on it.
type board struct {
	adjacency.Graph
	keys   float64 // number of keys
	degree float64 // average number of neighbors of a key
}

// boards returns the keyboards. It prepares them only once, unlike the library's own formula, which would
// parse them again for each walk.
var boards = sync.OnceValue(func() (all []board) {
	// As in the library, the numbers of one keyboard also serve for a similar one.
	for _, b := range []struct{ name, similar string }{
		{name: "qwerty", similar: "qwerty"},
		{name: "dvorak", similar: "qwerty"},
		{name: "keypad", similar: "keypad"},
		{name: "macKeypad", similar: "keypad"},
	} {
		stats := adjacency.GraphMap[b.similar]
		all = append(all, board{
			Graph:  adjacency.GraphMap[b.name],
			keys:   float64(len(stats.Graph)),
			degree: stats.CalculateAvgDegree(),
		})
	}
	return all
})

// entropy returns the entropy of a walk in bits. It counts the possible walks of at most this
// length and number of turns, and the ways to hold shift for some of the keys.
func (b board) entropy(length, turns, shifted int) float64 {
	walks := 0.0
	for keys := 2; keys <= length+1; keys++ {
		for straights := 1; straights <= min(turns, keys-1)+1; straights++ {
			ways := zxcvbnmath.NChoseK(float64(keys-1), float64(straights-1))
			walks += ways * b.keys * math.Pow(b.degree, float64(straights))
		}
	}
	if shifted == 0 {
		return math.Log2(walks)
	}

	shifts := 0.0
	for keys := range min(shifted, length-shifted) + 1 {
		shifts += zxcvbnmath.NChoseK(float64(length), float64(keys))
	}
	return math.Log2(walks) + math.Log2(shifts)
}

// minRun is the minimum length of a walk, a repetition or a sequence.
const minRun = 3

// walks finds sequences of minRun or more adjacent keys.
func (b board) walks(password string) (found []match.Match) {
	start := 0
	for start < len(password)-1 {
		length, turns, shifted := b.walk(password[start:])
		if length >= minRun {
			end := start + length
			found = append(found, match.Match{
				Pattern:        "spatial",
				DictionaryName: b.Name,
				I:              start,
				J:              end - 1,
				Token:          password[start:end],
				Entropy:        b.entropy(length, turns, shifted),
			})
		}
		start += length
	}
	return found
}

// walk returns the length of the sequence of adjacent keys at the beginning of text, which must not
// be empty. It counts the changes of direction, including the first direction, and the keys after
// the first that require shift.
func (b board) walk(text string) (length, turns, shifted int) {
	previous := -1
	for i := 1; i < len(text); i++ {
		direction, upper := directionTo(b.Graph.Graph[text[i-1:i]], text[i:i+1])
		if direction < 0 {
			return i, turns, shifted
		}
		if upper {
			shifted++
		}
		if direction != previous {
			turns++
			previous = direction
		}
	}
	return len(text), turns, shifted
}

// directionTo returns the direction from one key of a keyboard to another. around lists the neighbors of
// the first key, and key is the second key. If key is not a neighbor, direction is -1. upper reports
// whether key requires shift.
func directionTo(around []string, key string) (direction int, upper bool) {
	for i, both := range around {
		if at := strings.Index(both, key); at >= 0 {
			return i, at == 1
		}
	}
	return -1, false
}

// repeats finds characters that appear at least minRun times in a row, ignoring case.
func repeats(password string) (found []match.Match) {
	runes := []rune(password)
	start := 0
	for start < len(runes) {
		end := start + 1
		for end < len(runes) && strings.EqualFold(string(runes[end]), string(runes[end-1])) {
			end++
		}

		if end-start >= minRun {
			first := len(string(runes[:start])) // match.Match counts bytes
			token := string(runes[start:end])
			m := match.Match{
				Pattern:        "repeat",
				DictionaryName: string(runes[end-1]),
				I:              first,
				J:              first + len(token) - 1,
				Token:          token,
			}
			m.Entropy = entropy.RepeatEntropy(m)
			found = append(found, m)
		}
		start = end
	}
	return found
}

// alphabets lists the signs whose sequences are easy to guess.
var alphabets = []string{"abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"}

// sequences finds minRun or more consecutive letters or digits, in ascending or descending order.
func sequences(password string) (found []match.Match) {
	start := 0
	for start < len(password) {
		signs, step := alphabetOf(password[start:])
		end := start + 1
		for step != 0 && end < len(password) && stride(signs, password[end-1:]) == step {
			end++
		}

		if end-start >= minRun {
			m := match.Match{
				Pattern:        "sequence",
				DictionaryName: signs[:1],
				I:              start,
				J:              end - 1,
				Token:          password[start:end],
			}
			m.Entropy = entropy.SequenceEntropy(m, len(signs), step == 1)
			found = append(found, m)
		}
		start = end
	}
	return found
}

// alphabetOf returns the alphabet in which the first two characters of text are consecutive. step
// is 1 if they ascend, -1 if they descend, and 0 if there is no such alphabet.
func alphabetOf(text string) (signs string, step int) {
	for _, signs := range alphabets {
		step := stride(signs, text)
		if step == 1 || step == -1 {
			return signs, step
		}
	}
	return "", 0
}

// stride returns the distance between the first two characters of text in an alphabet. It returns 0 if one
// of these characters is not in the alphabet.
func stride(signs, text string) int {
	if len(text) < 2 {
		return 0
	}

	first := strings.IndexByte(signs, text[0])
	second := strings.IndexByte(signs, text[1])
	if first < 0 || second < 0 {
		return 0
	}
	return second - first
}
