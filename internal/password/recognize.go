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
// the library's lists and formulas, but without the library's matchers. The matchers read their
// lists at startup, which takes a tenth of a second. The work of these matchers is not limited. For
// example, a password that consists of look-alike signs would keep them busy for minutes.
//
// The parameter known lists words that an attacker may know about the user. The result steps is the
// work done in the dictionaries. All other work is linear in the length of the password.
func recognize(password string, known []string) (found []match.Match, steps int) {
	for _, d := range []dictionary{newDictionary(map[string][]string{"user_inputs": known}), common()} {
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

// boards returns the keyboards. It prepares them only once. The library's own formula would parse
// them again for each walk.
var boards = sync.OnceValue(func() (all []board) {
	for _, name := range []string{"qwerty", "dvorak", "keypad", "macKeypad"} {
		similar := "keypad"
		if name == "qwerty" || name == "dvorak" {
			similar = "qwerty" // as in the library
		}
		stats := adjacency.GraphMap[similar]
		all = append(all, board{
			Graph:  adjacency.GraphMap[name],
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
	for i := 2; i <= length+1; i++ {
		for j := 1; j <= min(turns, i-1)+1; j++ {
			walks += zxcvbnmath.NChoseK(float64(i-1), float64(j-1)) * b.keys * math.Pow(b.degree, float64(j))
		}
	}

	if shifted == 0 {
		return math.Log2(walks)
	}

	shifts := 0.0
	for i := 0; i <= min(shifted, length-shifted); i++ {
		shifts += zxcvbnmath.NChoseK(float64(length), float64(i))
	}
	return math.Log2(walks) + math.Log2(shifts)
}

// walks finds sequences of three or more adjacent keys.
func (b board) walks(password string) (found []match.Match) {
	for i := 0; i < len(password)-1; {
		j, last := i+1, -1
		turns, shifted := 0, 0
		for ; j < len(password); j++ {
			towards, upper := neighbour(b.Graph.Graph[password[j-1:j]], password[j:j+1])
			if towards < 0 {
				break
			}
			if upper {
				shifted++
			}
			if towards != last {
				turns, last = turns+1, towards
			}
		}

		if j-i > 2 {
			m := match.Match{Pattern: "spatial", DictionaryName: b.Name, I: i, J: j - 1, Token: password[i:j]}
			m.Entropy = b.entropy(len(m.Token), turns, shifted)
			found = append(found, m)
		}
		i = j
	}
	return found
}

// neighbour returns the direction from one key of a keyboard to another. The parameter around lists
// the neighbors of the first key, and key is the second key. If key is not a neighbor, direction is
// -1. upper reports whether key requires shift.
func neighbour(around []string, key string) (direction int, upper bool) {
	for i, both := range around {
		if at := strings.Index(both, key); at >= 0 {
			return i, at == 1
		}
	}
	return -1, false
}

// repeats finds characters that are repeated at least three times in a row, ignoring case.
func repeats(password string) (found []match.Match) {
	runes := []rune(password)
	for i := 0; i < len(runes); {
		j := i + 1
		for j < len(runes) && strings.EqualFold(string(runes[j]), string(runes[j-1])) {
			j++
		}

		if j-i > 2 {
			first := len(string(runes[:i]))
			m := match.Match{
				Pattern:        "repeat",
				DictionaryName: string(runes[j-1]),
				Token:          string(runes[i:j]),
				I:              first,
			}
			m.J = first + len(m.Token) - 1
			m.Entropy = entropy.RepeatEntropy(m)
			found = append(found, m)
		}
		i = j
	}
	return found
}

// sequences finds three or more consecutive letters or digits, in ascending or descending order.
func sequences(password string) (found []match.Match) {
	for i := 0; i < len(password); {
		j := i + 1
		for _, signs := range []string{"abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"} {
			step := stride(signs, password[i:])
			if step != 1 && step != -1 {
				continue
			}

			for j < len(password) && stride(signs, password[j-1:]) == step {
				j++
			}
			if j-i > 2 {
				m := match.Match{Pattern: "sequence", DictionaryName: signs[:1], I: i, J: j - 1, Token: password[i:j]}
				m.Entropy = entropy.SequenceEntropy(m, len(signs), step == 1)
				found = append(found, m)
			}
		}
		i = j
	}
	return found
}

// stride returns the distance between the first two characters of text in a sequence of signs. It
// returns 0 if the sequence lacks one of these characters.
func stride(signs, text string) int {
	if len(text) < 2 {
		return 0
	}

	a, b := strings.IndexByte(signs, text[0]), strings.IndexByte(signs, text[1])
	if a < 0 || b < 0 {
		return 0
	}
	return b - a
}
