package store

import (
	"context"
	"slices"
	"strings"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/page"
)

// ListCalls returns a page of a project's calls, newest first.
func (s *Calls) ListCalls(
	ctx context.Context, projectID string, f calls.Filter, q page.Query,
) (page.Page[calls.Record], error) {
	l := callListing(projectID, f, q.From)
	return l.page(ctx, s.read(), q)
}

// maxCallsChecked is maxChecked for calls, whose rows are wide.
const maxCallsChecked = 3000

// callListing returns the listing of the calls that match a filter.
func callListing(projectID string, f calls.Filter, from string) listing[calls.Record] {
	l := callTable.listing(from)
	l.desc, l.within = true, callsWithin(f)
	l.start = l.within.startAt(from)
	l.where.and(`project_id = $%d`, projectID)
	if f.Running || f.State != "" && f.State != calls.Completed {
		l.where.always(`ended = 0`) // must equal the condition of the index
	}

	if f.RoomSession != "" {
		l.where.and(`room_session = $%d AND room_session <> ''`, f.RoomSession) // repeats the condition of the index
	}
	if len(f.Subscribers) > 0 {
		l.ways, l.indexed = l.where.parties(party{
			from:   "from_subscriber",
			to:     "to_subscriber",
			values: f.Subscribers,
		})
	}
	l.checks, l.checked = callConditions(f), maxCallsChecked
	return l
}

// callsWithin returns the range of keys that a filter allows.
func callsWithin(f calls.Filter) (s span) {
	if !f.CreatedFrom.IsZero() {
		s.low = calls.FirstKey(f.CreatedFrom)
	}
	if !f.CreatedBefore.IsZero() {
		s.high = calls.FirstKey(f.CreatedBefore)
	}
	return s
}

// callConditions returns the conditions of a filter for which there is no index.
func callConditions(f calls.Filter) (checks []check) {
	add := func(condition string, args ...any) { checks = append(checks, check{condition, args}) }
	switch f.State {
	case "":
	case calls.Completed:
		add(`ended <> $%d`, int64(0))
	default:
		add(`state = $%d`, string(f.State))
	}

	if f.Party != "" {
		checks = append(checks, hasPartyWith(f.Party)...)
	}
	if f.Guest != "" {
		add(`guest = $%d`, f.Guest)
	}
	if f.From != "" {
		add(`from_address = $%d`, f.From)
	}
	if f.To != "" {
		add(`to_address = $%d`, f.To)
	}
	if !f.EndedFrom.IsZero() {
		add(`ended >= $%d`, micros(f.EndedFrom))
	}
	if !f.EndedBefore.IsZero() {
		add(`ended < $%d AND ended <> 0`, micros(f.EndedBefore))
	}

	switch f.Result {
	case "":
	case calls.Connected:
		add(`ended <> $%d AND answered <> 0`, int64(0))
	default:
		checks = append(checks, unansweredFor(f.Result))
	}
	return checks
}

// minDialed is the minimum number of digits that must follow the leading zeros of a text. A text
// with fewer such digits is searched only with its zeros.
const minDialed = 7

// hasPartyWith returns the checks for calls in which each word of a text occurs in the name or the
// address of a party. If the text is a telephone number, or a part of one, only its digits are
// compared.
func hasPartyWith(text string) []check {
	const parties = `from_name || ' ' || from_address || ' ' || to_name || ' ' || to_address`
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" +-.()", r) {
			return -1
		}
		return r
	}, text)
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return containing(parties, text)
	}

	// Numbers are stored with their country code, without the zeros that are dialed before it.
	dialed := strings.TrimLeft(digits, "0")
	if len(dialed) < minDialed {
		dialed = digits
	}
	return []check{{
		`(` + parties + ` LIKE $%d OR ` + parties + ` LIKE $%d)`,
		[]any{contains(digits), contains(dialed)},
	}}
}

// unansweredFor returns the condition for unanswered calls with the given result.
func unansweredFor(r calls.Result) (c check) {
	causes, others := r.Causes()
	for _, cause := range causes {
		c.args = append(c.args, cause)
	}
	in := ` IN (`
	if others {
		in = ` NOT IN (`
	}
	marks := slices.Repeat([]string{`$%d`}, len(causes))
	c.condition = `ended <> 0 AND answered = 0 AND cause` + in + strings.Join(marks, ", ") + `)`
	return c
}
