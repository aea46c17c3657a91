package password

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/ccojocar/zxcvbn-go/adjacency"
	"github.com/ccojocar/zxcvbn-go/data"
	"github.com/ccojocar/zxcvbn-go/entropy"
	"github.com/ccojocar/zxcvbn-go/match"
)

// A dictionary has words by how soon they are tried: the first is 1.
type dictionary struct {
	name  string
	ranks map[string]int
}

func rank(name string, words []string) dictionary {
	d := dictionary{name, make(map[string]int, len(words))}
	for i, word := range words {
		d.ranks[strings.ToLower(word)] = i + 1
	}
	return d
}

// common are the dictionaries that every guesser has, from a library. That one cannot be
// read is a fault of the build, which the first test of a password finds.
var common = sync.OnceValue(func() (all []dictionary) {
	for name, file := range map[string]string{
		"MaleNames": "MaleNames", "FemaleNames": "FemaleNames", "Surname": "Surnames", "English": "English",
		"Passwords": "Passwords",
	} {
		var words struct{ List []string }
		text, err := data.Asset("data/" + file + ".json")
		if err == nil {
			err = json.Unmarshal(text, &words)
		}
		if err != nil {
			panic(fmt.Sprintf("reading dictionary %s: %v", file, err))
		}
		all = append(all, rank(name, words.List))
	}
	return all
})

// find finds all words of the dictionary in a text.
func (d dictionary) find(text string) (found []match.Match) {
	runes, lower := []rune(text), []rune(strings.ToLower(text))
	for i := range lower {
		for j := i + 1; j <= len(lower); j++ {
			if n, ok := d.ranks[string(lower[i:j])]; ok {
				m := match.Match{Pattern: "dictionary", DictionaryName: d.name, I: i, J: j - 1,
					Token: string(runes[i:j])}
				m.Entropy = entropy.DictionaryEntropy(m, float64(n))
				found = append(found, m)
			}
		}
	}
	return found
}

// unleet returns the words that a password may stand for whose letters were replaced by
// signs which look like them: each sign is one letter everywhere, and of the signs for
// one letter only one is used.
func unleet(password string) (words []string) {
	letters := make(map[string][]string) // by the sign
	var signs []string
	for letter, looks := range adjacency.GraphMap["l33t"].Graph {
		for _, sign := range looks {
			if !strings.Contains(password, sign) {
				continue
			}
			if letters[sign] == nil {
				signs = append(signs, sign)
			}
			letters[sign] = append(letters[sign], letter)
		}
	}
	seen := map[string]bool{password: true}
	var choose func(rest []string, word string, chosen map[string]bool)
	choose = func(rest []string, word string, chosen map[string]bool) {
		if len(rest) == 0 {
			if !seen[word] {
				words = append(words, word)
			}
			seen[word] = true
			return
		}
		choose(rest[1:], word, chosen) // the sign is what it is
		for _, letter := range letters[rest[0]] {
			if !chosen[letter] {
				chosen[letter] = true
				choose(rest[1:], strings.ReplaceAll(word, rest[0], letter), chosen)
				delete(chosen, letter)
			}
		}
	}
	choose(signs, password, make(map[string]bool))
	return words
}
