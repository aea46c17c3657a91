package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/uuid7"
	"github.com/selvage/selvage/recordings"
)

// ListRecordings returns a page of recordings, newest first.
func (s *Recordings) ListRecordings(
	ctx context.Context, f recordings.Filter, q page.Query,
) (page.Page[recordings.Recording], error) {
	tails, err := s.tailsOf(ctx, f)
	if err != nil {
		return page.Page[recordings.Recording]{}, err
	}

	words, err := s.wordsFor(ctx, f)
	if err != nil {
		return page.Page[recordings.Recording]{}, err
	}

	l := recordingListing(f, q.From, tails, words)
	if f.CallBegins != "" && q.From != "" {
		call, err := s.callOf(ctx, f.ProjectID, q.From)
		if err != nil {
			return page.Page[recordings.Recording]{}, err
		}
		l.start = l.within.startAtCall(call, q.From)
	}
	return l.page(ctx, s.read(), q)
}

// maxNumbers is the maximum number of phone numbers with the same last digits that one search
// combines.
const maxNumbers = 30

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
		some, err := gather(ctx, s.read(), "finding numbers", scanID, numbersEnding(column),
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
		found = append(found, tail) // without tails, the party is an address
	}
	return append(found, recordings.NationalTails(tail)...), nil
}

// numbersEnding returns a query for the tails in a column that begin with a given tail. It reads
// one index entry per tail, no matter how many recordings have that tail.
func numbersEnding(column string) string {
	return strings.ReplaceAll(`WITH RECURSIVE t (tail) AS (
			SELECT (SELECT MIN({tail}) FROM recordings
				WHERE project_id = $1 AND {tail} >= $2 AND {tail} < $3 AND {tail} <> '')
		UNION ALL SELECT (SELECT MIN({tail}) FROM recordings
				WHERE project_id = $1 AND {tail} > t.tail AND {tail} < $3 AND {tail} <> '')
			FROM t WHERE t.tail IS NOT NULL)
		SELECT tail FROM t WHERE tail IS NOT NULL LIMIT $4`, "{tail}", column)
}

// callOf returns the call of the first recording on a page, or "".
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
// filter that are not in the index become checks. tails and words are the results of tailsOf and
// wordsFor.
func recordingListing(
	f recordings.Filter, from string, tails []string, words wordSearch,
) listing[recordings.Recording] {
	l := recordingTable.listing(from)
	l.within, l.desc = createdRange(f), true
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
	l = ofDuration(l, f)
	l = marked(l, f, words.drives(f))

	switch {
	case f.CallBegins != "":
		l = byCall(l, f, tails)
	case f.Party != "":
		l.ways = l.where.parties(f.Party, tails)
	}
	return words.byWords(ofSubscriber(l, f, words.drives(f)), f)
}

// byCall changes the listing to list recordings by call, in the order of the index, so that a page
// costs the same even if the prefix of the call is short.
func byCall(
	l listing[recordings.Recording], f recordings.Filter, tails []string,
) listing[recordings.Recording] {
	if l.within.low != "" {
		l.checks = append(l.checks, check{`id >= $%d`, []any{l.within.low}})
	}
	if l.within.high != "" {
		l.checks = append(l.checks, check{`id < $%d`, []any{l.within.high}})
	}
	if f.Party != "" {
		l.checks = append(l.checks, hasParty(f.Party, tails))
	}
	l.key, l.start = []string{"call_sid", "id"}, nil
	l.within = span{low: f.CallBegins, high: f.CallBegins + last}
	return l
}

// hasTag is the condition for recordings of a project that have a tag.
const hasTag = `EXISTS (SELECT 1 FROM recording_tags WHERE project = $%d AND tag = $%d AND recording_id = id)`

// marked restricts a listing to recordings with the filter's tag, and to recordings on hold. If the
// filter has no other indexed condition, the listing is read in the order of the tags. byWords
// means that the listing finds few recordings, by their words.
func marked(
	l listing[recordings.Recording], f recordings.Filter, byWords bool,
) listing[recordings.Recording] {
	few := few(f) || byWords
	plain := f.SubscriberID == "" && f.CallBegins == "" && !few
	switch {
	case f.Tag == "":
	case plain && f.Flag == 0 && f.Direction == "" && !f.Held:
		l.from, l.key = "recording_tags CROSS JOIN recordings", []string{"recording_id"}
		l.where.and(`project = $%d`, f.ProjectID)
		l.where.and(`tag = $%d`, f.Tag)
		l.where.always(`id = recording_id`)
	case few && f.CallBegins == "":
		l.where.check(check{hasTag, []any{f.ProjectID, f.Tag}})
	default:
		l.checks = append(l.checks, check{hasTag, []any{f.ProjectID, f.Tag}})
	}

	switch {
	case !f.Held:
	case plain && f.Flag == 0 && f.Direction == "":
		l.where.always(`hold <> ''`) // must equal the condition of the index
	case byWords:
		l.where.always(`hold <> ''`)
	default:
		l.checks = append(l.checks, check{`hold <> ''`, nil})
	}
	return l
}

// tiedTo is like isTied, for listings of few recordings. It looks up the ties of each recording.
const tiedTo = `EXISTS (SELECT 1 FROM recording_subscribers WHERE subscriber_id = $%d AND recording_id = id)`

// ofSubscriber restricts a listing to recordings that are tied to the filter's subscriber, if it
// has one. By default it reads the recordings in the order of the ties, because SQLite keeps the
// order of the tables in a CROSS JOIN. byWords means that the listing finds few recordings, by
// their words.
func ofSubscriber(
	l listing[recordings.Recording], f recordings.Filter, byWords bool,
) listing[recordings.Recording] {
	switch {
	case f.SubscriberID == "":
	case f.CallBegins != "":
		l.checks = append(l.checks, check{tiedTo, []any{f.SubscriberID}})
	case few(f) || byWords: // there are few of these
		l.where.and(tiedTo, f.SubscriberID)
	default:
		l.from, l.key = "recording_subscribers CROSS JOIN recordings", []string{"recording_id"}
		l.where.and(`subscriber_id = $%d`, f.SubscriberID)
		l.where.always(`id = recording_id`)
	}
	return l
}

// partyIn returns the columns that contain a party, and the values to compare them with: tails of
// a number, or an address.
func partyIn(party string, tails []string) (from, to string, values []string) {
	if len(tails) > 0 {
		return "from_tail", "to_tail", tails
	}
	return "from_address", "to_address", []string{party}
}

// parties returns alternative conditions for the recordings of calls from or to a party. No
// recording meets two of them.
func (w *where) parties(party string, tails []string) (ways []string) {
	from, to, values := partyIn(party, tails)
	var names []string
	for _, value := range values {
		w.args = append(w.args, value)
		names = append(names, fmt.Sprintf("$%d", len(w.args)))
	}
	for _, name := range names {
		ways = append(ways, from+` = `+name+` AND `+from+` <> ''`, // must contain the condition of the index
			to+` = `+name+` AND `+to+` <> '' AND `+from+` NOT IN (`+strings.Join(names, ", ")+`)`)
	}
	return ways
}

// hasParty returns the check for recordings of calls from or to a party.
func hasParty(party string, tails []string) (c check) {
	from, to, values := partyIn(party, tails)
	var in []string
	for i, value := range values {
		c.args = append(c.args, value)
		in = append(in, fmt.Sprintf("$%%[%d]d", i+1))
	}
	names := strings.Join(in, ", ")
	c.condition = `(` + from + ` IN (` + names + `) OR ` + to + ` IN (` + names + `))`
	return c
}

// ofDuration restricts a listing to recordings with the filter's durations, in whole milliseconds.
// If the filter has a party, it reads all of the party's recordings, because they are few.
// Otherwise it checks recordings page by page.
func ofDuration(l listing[recordings.Recording], f recordings.Filter) listing[recordings.Recording] {
	add := func(condition string, d time.Duration) {
		if f.Party != "" && f.CallBegins == "" {
			l.where.and(condition, d.Milliseconds())
			return
		}
		l.checks = append(l.checks, check{condition, []any{d.Milliseconds()}})
	}
	if f.DurationFrom > 0 {
		add(`frames * 1000 >= $%d * sample_rate`, f.DurationFrom)
	}
	if f.DurationBefore > 0 {
		add(`frames * 1000 < $%d * sample_rate`, f.DurationBefore)
	}
	return l
}

// createdRange returns the range of ids that a filter allows.
func createdRange(f recordings.Filter) (s span) {
	if !f.CreatedFrom.IsZero() {
		s.low = uuid7.First(f.CreatedFrom)
	}
	if !f.CreatedBefore.IsZero() {
		s.high = uuid7.First(f.CreatedBefore)
	}
	return s
}

// matching returns the conditions of a filter, except for its subscriber and times.
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
		w.always(fmt.Sprintf(`(flags & %d) <> 0`, f.Flag)) // must equal the condition of the index
	}
	if !f.IncludeDeleted {
		w.always(`deleted = 0`)
	}
	return w
}
