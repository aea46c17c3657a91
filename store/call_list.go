package store

import (
	"context"
	"fmt"
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
	conditions := callConditions(f)
	if f.SubscriberID == "" {
		l.checks = conditions
		return l
	}
	for _, c := range conditions { // checked row by row, since each subscriber has few calls
		l.where.check(c)
	}
	l.ways = l.where.callers(f.SubscriberID)
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

// callers returns two conditions, for the calls that a subscriber made and for the calls that it
// received. No call matches both.
func (w *where) callers(subscriberID string) []string {
	w.args = append(w.args, subscriberID)
	arg := fmt.Sprintf("$%d", len(w.args))
	return []string{
		`from_subscriber = ` + arg + ` AND from_subscriber <> ''`, // must contain the condition of the index
		`to_subscriber = ` + arg + ` AND to_subscriber <> '' AND from_subscriber <> ` + arg,
	}
}

// callConditions returns the conditions of a filter for which there is no index.
func callConditions(f calls.Filter) (all []check) {
	add := func(condition string, args ...any) { all = append(all, check{condition, args}) }
	switch f.State {
	case "":
	case calls.Completed:
		add(`ended <> $%d`, int64(0))
	default:
		add(`state = $%d`, string(f.State))
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
		all = append(all, unansweredFor(f.Result))
	}
	return all
}

// unansweredFor returns the condition for unanswered calls with the given result.
func unansweredFor(r calls.Result) (c check) {
	causes, others := r.Causes()
	marks := make([]string, len(causes))
	for i, cause := range causes {
		marks[i] = fmt.Sprintf("$%%[%d]d", i+1)
		c.args = append(c.args, cause)
	}
	in := ` IN (`
	if others {
		in = ` NOT IN (`
	}
	c.condition = `ended <> 0 AND answered = 0 AND cause` + in + strings.Join(marks, ", ") + `)`
	return c
}
