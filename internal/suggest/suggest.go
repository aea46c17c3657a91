// Package suggest finds the known name that the author of an unknown name probably meant.
package suggest

import (
	"fmt"
	"strings"
)

// Meant returns `; did you mean "x"?` with the known name that is closest to name, or "" if none is
// close.
func Meant(name string, names []string) string {
	// Ignore leading hyphens. All flags have them, so they do not show how close two names are.
	bare := func(s string) string { return strings.ToLower(strings.TrimLeft(s, "-")) }
	best, least := "", 1+len(bare(name))/3
	for _, n := range names {
		if d := distance(bare(name), bare(n)); d <= least {
			best, least = n, d-1
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// MeantOr returns the suggestion from Meant, followed by the text anyway. Without a suggestion, it
// returns only this text.
func MeantOr(name string, names []string, anyway string) string {
	if near := Meant(name, names); near != "" {
		return near + " " + strings.ToUpper(anyway[:1]) + anyway[1:]
	}
	return "; " + anyway
}

// distance returns the smallest number of steps that turn a into b. A step inserts, deletes or
// replaces a letter, or swaps two neighboring letters.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}

	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
