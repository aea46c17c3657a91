package database

import (
	"strconv"
	"strings"
)

// forDriver returns the text of a query as it is prepared for SQLite.
func forDriver(query string) string { return unnamed(plannedOnce(query)) }

// plannedOnce returns the query with a plus sign before each LIMIT that is a parameter. Without it,
// SQLite plans the query again each time it runs, because the plan could depend on the parameter's
// value.
func plannedOnce(query string) string { return strings.ReplaceAll(query, "LIMIT $", "LIMIT +$") }

// unnamed returns the query with question marks instead of parameters, if it uses $1, $2 and so on
// once each and in this order. The driver looks up the name of every parameter that has one.
func unnamed(query string) string {
	var b strings.Builder
	for n, rest := 1, query; ; n++ {
		before, after, found := strings.Cut(rest, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		rest, found = strings.CutPrefix(after, strconv.Itoa(n))
		if !found || rest != "" && '0' <= rest[0] && rest[0] <= '9' {
			return query
		}
		b.WriteByte('?')
	}
}
