package password

import (
	"slices"
	"strings"

	"github.com/ccojocar/zxcvbn-go/adjacency"
	"github.com/ccojocar/zxcvbn-go/entropy"
	"github.com/ccojocar/zxcvbn-go/match"
)

// recognise finds what a guesser would try before all else in a password, in the way of
// zxcvbn, whose dictionaries and numbers these are. Its own matchers make every process
// that has them begin with a tenth of a second of reading dictionaries, most of which
// never see a password; these read them for the first one.
func recognise(password string, said []string) (found []match.Match) {
	found = rank("user_inputs", said).find(password)
	plain := []string{password}
	for _, text := range append(plain, unleet(password)...) {
		for _, d := range common() {
			found = append(found, d.find(text)...)
		}
	}
	for _, name := range []string{"qwerty", "dvorak", "keypad", "macKeypad"} {
		found = append(found, walks(password, adjacency.GraphMap[name])...)
	}
	found = slices.Concat(found, repeats(password), sequences(password), dates(password))
	slices.SortStableFunc(found, func(a, b match.Match) int {
		if a.I != b.I {
			return a.I - b.I
		}
		return a.J - b.J
	})
	return found
}

// walks finds keys that are side by side, three or more.
func walks(password string, keys adjacency.Graph) (found []match.Match) {
	for i := 0; i < len(password)-1; {
		j, last, turns, shifted := i+1, -1, 0, 0
		for ; j < len(password); j++ {
			towards, upper := neighbour(keys.Graph[password[j-1:j]], password[j:j+1])
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
			m := match.Match{Pattern: "spatial", DictionaryName: keys.Name, I: i, J: j - 1, Token: password[i:j]}
			m.Entropy = entropy.SpatialEntropy(m, turns, shifted)
			found = append(found, m)
		}
		i = j
	}
	return found
}

// neighbour tells in which direction of a key another is, -1 if in none, and whether
// shift is held for it.
func neighbour(around []string, key string) (direction int, upper bool) {
	for i, both := range around {
		if at := strings.Index(both, key); at >= 0 {
			return i, at == 1
		}
	}
	return -1, false
}

// repeats finds a character that comes three times or more, whatever its case.
func repeats(password string) (found []match.Match) {
	runes := []rune(password)
	for i := 0; i < len(runes); {
		j := i + 1
		for j < len(runes) && strings.EqualFold(string(runes[j]), string(runes[j-1])) {
			j++
		}
		if j-i > 2 {
			first := len(string(runes[:i]))
			m := match.Match{Pattern: "repeat", DictionaryName: string(runes[j-1]), Token: string(runes[i:j]),
				I: first}
			m.J = first + len(m.Token) - 1
			m.Entropy = entropy.RepeatEntropy(m)
			found = append(found, m)
		}
		i = j
	}
	return found
}

// sequences finds neighbours in the alphabet or among the digits, up or down, three or
// more.
func sequences(password string) (found []match.Match) {
	for i := 0; i < len(password); {
		j := i + 1
		for _, all := range []string{"abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"} {
			step := stride(all, password[i:])
			if step != 1 && step != -1 {
				continue
			}
			for j < len(password) && stride(all, password[j-1:]) == step {
				j++
			}
			if j-i > 2 {
				m := match.Match{Pattern: "sequence", DictionaryName: all[:1], I: i, J: j - 1, Token: password[i:j]}
				m.Entropy = entropy.SequenceEntropy(m, len(all), step == 1)
				found = append(found, m)
			}
		}
		i = j
	}
	return found
}

// stride tells how far the second character is behind the first among all, 0 if not both
// are there.
func stride(all, text string) int {
	if len(text) < 2 {
		return 0
	}
	a, b := strings.IndexByte(all, text[0]), strings.IndexByte(all, text[1])
	if a < 0 || b < 0 {
		return 0
	}
	return b - a
}
