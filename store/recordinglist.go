package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// ListRecordings returns a page of recordings, newest first.
func (s *Recordings) ListRecordings(
	ctx context.Context, f recordings.Filter, q page.Query,
) (page.Page[recordings.Recording], error) {
	l := recordingListing(f, q.From)
	if f.CallBegins != "" && q.From != "" {
		call, err := s.callOf(ctx, f.ProjectID, q.From)
		if err != nil {
			return page.Page[recordings.Recording]{}, err
		}
		l.start = l.within.startAtCall(call, q.From)
	}
	return l.page(ctx, s.read(), q)
}

// callOf returns the call of the recording with which a page begins, or "".
func (s *Recordings) callOf(ctx context.Context, projectID, id string) (call string, err error) {
	err = s.read().Row(ctx, `SELECT COALESCE(call_sid, '') FROM recordings WHERE project_id = $1 AND id = $2`,
		projectID, id).Scan(&call)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("finding call: %w", err)
	}
	return call, nil
}

// startAtCall returns the key of the first row of a page in a listing by call.
func (s span) startAtCall(call, id string) []any {
	if call == "" || s.startAt(call) == nil {
		return nil
	}
	return []any{call, id}
}

// recordingListing returns the listing of the recordings that match a filter. It reads an index in
// order, so that the cost of a page does not depend on the number of recordings. Fields of the
// filter that are not in the index become checks.
func recordingListing(f recordings.Filter, from string) listing[recordings.Recording] {
	l := recordingTable.listing(from)
	l.within, l.desc = created(f), true
	l.start = l.within.startAt(from)

	indexed := f
	if f.Flag != 0 && (f.CallBegins != "" || f.Direction != "" && f.Party == "") {
		l.checks = append(l.checks, check{`(flags & $%d) <> 0`, []any{int64(f.Flag)}})
		indexed.Flag = 0
	}
	if f.Direction != "" && f.CallBegins != "" {
		l.checks = append(l.checks, check{`direction = $%d`, []any{f.Direction}})
		indexed.Direction = ""
	}
	l.where = matching(indexed)

	switch {
	case f.CallBegins != "":
		l = byCall(l, f)
	case f.Party != "":
		l.ways = l.where.parties(f.Party)
	}
	return ofSubscriber(l, f)
}

// byCall changes the listing to list recordings by call, in the order of the index. So the cost of
// a page does not depend on how short the prefix of the call is.
func byCall(l listing[recordings.Recording], f recordings.Filter) listing[recordings.Recording] {
	if l.within.low != "" {
		l.checks = append(l.checks, check{`id >= $%d`, []any{l.within.low}})
	}
	if l.within.high != "" {
		l.checks = append(l.checks, check{`id < $%d`, []any{l.within.high}})
	}
	if f.Party != "" {
		l.checks = append(l.checks, hasParty(f.Party))
	}
	l.key, l.start = []string{"call_sid", "id"}, nil
	l.within = span{low: f.CallBegins, high: f.CallBegins + last}
	return l
}

// tiedTo is like isTied, for listings of few recordings. It looks up each recording.
const tiedTo = `EXISTS (SELECT 1 FROM recording_subscribers WHERE subscriber_id = $%d AND recording_id = id)`

// ofSubscriber restricts a listing to recordings that are tied to the filter's subscriber, if it
// has one. By default it reads them in the order of the ties, because SQLite keeps the order of the
// tables in a CROSS JOIN.
func ofSubscriber(l listing[recordings.Recording], f recordings.Filter) listing[recordings.Recording] {
	switch {
	case f.SubscriberID == "":
	case f.CallBegins != "":
		l.checks = append(l.checks, check{tiedTo, []any{f.SubscriberID}})
	case f.Party != "" || f.CallSid != "" || f.ConferenceSid != "": // there are few of these
		l.where.and(tiedTo, f.SubscriberID)
	default:
		l.from, l.key = "recording_subscribers CROSS JOIN recordings", []string{"recording_id"}
		l.where.and(`subscriber_id = $%d`, f.SubscriberID)
		l.where.always(`id = recording_id`)
	}
	return l
}

// parties returns the conditions for recordings of calls from or to a party. No recording matches
// two of them.
func (w *where) parties(party string) (ways []string) {
	var names []string
	for _, name := range recordings.Spellings(party) {
		w.args = append(w.args, name)
		names = append(names, fmt.Sprintf("$%d", len(w.args)))
	}
	for _, name := range names {
		ways = append(ways, `from_address = `+name+` AND from_address <> ''`, // as in the index
			`to_address = `+name+` AND to_address <> '' AND from_address NOT IN (`+strings.Join(names, ", ")+`)`)
	}
	return ways
}

// hasParty returns a check that a call is from or to a party.
func hasParty(party string) (c check) {
	var in []string
	for i, name := range recordings.Spellings(party) {
		c.args = append(c.args, name)
		in = append(in, fmt.Sprintf("$%%[%d]d", i+1))
	}
	names := strings.Join(in, ", ")
	c.condition = `(from_address IN (` + names + `) OR to_address IN (` + names + `))`
	return c
}

// created returns the range of ids that a filter allows.
func created(f recordings.Filter) (s span) {
	if !f.CreatedFrom.IsZero() {
		s.low = recordings.FirstID(f.CreatedFrom)
	}
	if !f.CreatedBefore.IsZero() {
		s.high = recordings.FirstID(f.CreatedBefore)
	}
	return s
}

// matching returns the conditions of a filter, except for those on its subscriber and times.
func matching(f recordings.Filter) where {
	var w where
	w.and(`project_id = $%d`, f.ProjectID)
	if f.CallSid != "" {
		w.and(`call_sid = $%d`, f.CallSid)
	}
	if f.ConferenceSid != "" {
		w.and(`conference_sid = $%d`, f.ConferenceSid)
	}
	if f.Direction != "" {
		w.and(`direction = $%d`, f.Direction)
	}
	if f.Flag != 0 {
		w.always(fmt.Sprintf(`(flags & %d) <> 0`, f.Flag)) // as in its index
	}
	if !f.IncludeDeleted {
		w.always(`deleted = 0`)
	}
	return w
}
