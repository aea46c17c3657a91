// Package suggest tells what was meant by a name that there is not.
package suggest

import (
	"fmt"
	"strings"
)

// Meant returns `; did you mean "x"?` for the name nearest to a mistyped one,
// or "" if none is near.
func Meant(name string, names []string) string {
	bare := func(s string) string {
		return strings.ToLower(strings.TrimLeft(s,
			"-"))
	} // what all flags begin with makes none the nearer
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

// MeantOr tells the name that was meant, if one is near, and then what to know
// anyway.
func MeantOr(name string, names []string, anyway string) string {
	if near := Meant(name, names); near != "" {
		return near + " " + strings.ToUpper(anyway[:1]) + anyway[1:]
	}
	return "; " + anyway
}

// distance counts the letters to insert, delete, replace or exchange with their
// neighbour to make b of a.
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
