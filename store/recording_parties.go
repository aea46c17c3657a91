package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// maxNumbers is the maximum number of phone numbers with the same first or last digits that one
// search combines.
const maxNumbers = 30

// A party holds values for two columns. A row matches if either column has one of the values.
type party struct {
	from, to string // names of the columns
	values   []string
}

// partyOf returns the party that a filter asks for.
func (s *Recordings) partyOf(ctx context.Context, f recordings.Filter) (party, error) {
	if f.PartyBegins != "" {
		addresses, err := s.addressesBeginning(ctx, f.ProjectID, f.PartyBegins)
		if err != nil {
			return party{}, err
		}
		return party{
			from:   plain("from_address"),
			to:     plain("to_address"),
			values: addresses,
		}, nil
	}
	tails, err := s.tailsOf(ctx, f)
	if err != nil {
		return party{}, err
	}
	if len(tails) > 0 {
		return party{from: "from_tail", to: "to_tail", values: tails}, nil
	}
	return party{from: "from_address", to: "to_address", values: []string{f.Party}}, nil
}

// separators are the characters that people write between the digits of a number, and the zero that
// is omitted after a country code.
var separators = []string{"(0)", " ", "-", ".", "(", ")"}

// plain returns the SQL expression for the address in a column without its separators. There are
// indexes on these expressions.
func plain(column string) string {
	for _, s := range separators {
		column = "REPLACE(" + column + ", '" + s + "', '')"
	}
	return column
}

// addressesBeginning returns the addresses in the project's recordings that begin with a text. The
// addresses and the text are compared without separators. A number is also found if it is stored without
// its plus, or with 00 instead of it.
func (s *Recordings) addressesBeginning(ctx context.Context, projectID, text string) ([]string, error) {
	bare := text
	for _, s := range separators {
		bare = strings.ReplaceAll(bare, s, "")
	}
	if bare == "" {
		return []string{text}, nil // a party without values would match everything
	}

	begins := []string{bare}
	if digits := recordings.Digits(bare); digits != "" {
		begins = append(begins, "+"+digits, digits, "00"+digits)
		slices.Sort(begins)
		begins = slices.Compact(begins)
	}

	var found []string
	for _, begin := range begins {
		for _, column := range []string{plain("from_address"), plain("to_address")} {
			some, err := gather(ctx, s.read(), "finding addresses", scanID, valuesBeginning(column),
				projectID, begin, begin+last, maxNumbers+1)
			if err != nil {
				return nil, err
			}
			found = append(found, some...)
		}
	}

	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) > maxNumbers {
		return nil, problem.BadParam("Party",
			"more than %d addresses begin with this text: enter more of it", maxNumbers)
	}
	if !slices.Contains(found, bare) {
		found = append(found, bare) // a party without values would match everything
	}
	return found, nil
}

// tailsOf returns the tails of the project's numbers that match the party of a filter: numbers that
// end with the party's digits, and numbers that equal the party without its country code. It
// returns nil if the party is not a number.
func (s *Recordings) tailsOf(ctx context.Context, f recordings.Filter) ([]string, error) {
	tail := recordings.Tail(f.Party)
	if tail == "" {
		return nil, nil
	}
	var found []string
	for _, column := range []string{"from_tail", "to_tail"} {
		some, err := gather(ctx, s.read(), "finding numbers", scanID, valuesBeginning(column),
			f.ProjectID, tail, tail+last, maxNumbers+1)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}

	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) > maxNumbers {
		return nil, problem.BadParam("Party",
			"more than %d numbers end in these digits: enter more of them", maxNumbers)
	}
	if !slices.Contains(found, tail) {
		found = append(found, tail) // without a tail, partyOf would treat the number as an address
	}
	return append(found, recordings.NationalTails(tail)...), nil
}

// valuesBeginning returns a query for the values in a column that begin with a given text. It reads
// one index entry per value, no matter how many recordings have that value.
func valuesBeginning(column string) string {
	return strings.ReplaceAll(`WITH RECURSIVE t (value) AS (
			SELECT (SELECT MIN({column}) FROM recordings
				WHERE project_id = $1 AND {column} >= $2 AND {column} < $3 AND {column} <> '')
		UNION ALL SELECT (SELECT MIN({column}) FROM recordings
				WHERE project_id = $1 AND {column} > t.value AND {column} < $3 AND {column} <> '')
			FROM t WHERE t.value IS NOT NULL)
		SELECT value FROM t WHERE value IS NOT NULL LIMIT $4`, "{column}", column)
}

// parties returns alternative conditions that together match the rows of calls from or to a party.
// indexed contains, for each condition, the part that an index can evaluate. A row satisfies at most
// one of the conditions.
func (w *where) parties(who party) (conditions, indexed []string) {
	var names []string
	for _, value := range who.values {
		w.args = append(w.args, value)
		names = append(names, fmt.Sprintf("$%d", len(w.args)))
	}
	from, to := who.from, who.to
	for _, name := range names {
		// isFrom and isTo must contain the conditions of the indexes.
		isFrom := from + ` = ` + name + ` AND ` + from + ` <> ''`
		isTo := to + ` = ` + name + ` AND ` + to + ` <> ''`
		onlyTo := isTo + ` AND ` + from + ` NOT IN (` + strings.Join(names, ", ") + `)`
		conditions = append(conditions, isFrom, onlyTo)
		indexed = append(indexed, isFrom, isTo)
	}
	return conditions, indexed
}

// hasParty returns the check for recordings of calls from or to a party.
func hasParty(who party) (c check) {
	var in []string
	for i, value := range who.values {
		c.args = append(c.args, value)
		in = append(in, fmt.Sprintf("$%%[%d]d", i+1))
	}
	names := strings.Join(in, ", ")
	c.condition = `(` + who.from + ` IN (` + names + `) OR ` + who.to + ` IN (` + names + `))`
	return c
}
