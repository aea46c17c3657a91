package password

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ccojocar/zxcvbn-go/data"
)

// TestListed shows that listed reads the same words from the library's lists as package json, and
// refuses what it cannot read.
func TestListed(t *testing.T) {
	for _, file := range []string{"MaleNames", "FemaleNames", "Surnames", "English", "Passwords"} {
		text, err := data.Asset("data/" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var want struct{ List []string }
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		got, err := parseWords(string(text))
		if err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		if !slices.Equal(got, want.List) {
			t.Errorf("%s has %d words, want the %d words that package json reads", file, len(got), len(want.List))
		}
	}

	for _, text := range []string{`{}`, `["a\"b"]`, `["a","b]`} {
		if got, err := parseWords(text); err == nil {
			t.Errorf("parseWords(%s) = %q, want an error", text, got)
		}
	}
}
