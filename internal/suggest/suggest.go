// Package suggest finds the known name that the author of an unknown name probably meant.
package suggest

import (
	"fmt"
	"strings"
)

// Meant returns `; did you mean "x"?` with the known name that is closest to name, or "" if none is
// close.
func Meant(name string, names []string) string {
	// Ignore the leading hyphens, because all flags have them.
	bare := func(s string) string { return strings.ToLower(strings.TrimLeft(s, "-")) }
	closest, limit := "", 2+len(bare(name))/3
	for _, known := range names {
		if d := distance(bare(name), bare(known)); d < limit {
			closest, limit = known, d
		}
	}
	if closest == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", closest)
}

// MeantOr returns the suggestion from Meant, followed by advice. If Meant has no suggestion, MeantOr
// returns only the advice.
func MeantOr(name string, names []string, advice string) string {
	suggestion := Meant(name, names)
	if suggestion == "" {
		return "; " + advice
	}
	return suggestion + " " + strings.ToUpper(advice[:1]) + advice[1:]
}

// distance returns the smallest number of steps that turn a into b. A step inserts, deletes or
// replaces a letter, or swaps two neighboring letters.
func distance(a, b string) int {
	// row[j] is the distance from a[:i] to b[:j]. The other slices are the rows for i-1 and i-2.
	row := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	before := make([]int, len(b)+1)
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
		row, last, before = before, row, last
	}
	return last[len(b)]
}
