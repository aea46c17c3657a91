package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/uuid7"
	"github.com/selvage/selvage/recordings"
)

// ListRecordings returns a page of recordings, newest first.
func (s *Recordings) ListRecordings(
	ctx context.Context, f recordings.Filter, q page.Query,
) (page.Page[recordings.Recording], error) {
	who, err := s.partyOf(ctx, f)
	if err != nil {
		return page.Page[recordings.Recording]{}, err
	}
	words, err := s.wordsFor(ctx, f)
	if err != nil {
		return page.Page[recordings.Recording]{}, err
	}

	l := recordingListing(f, q.From, who, words)
	if f.CallBegins != "" && q.From != "" {
		call, err := s.callOf(ctx, f.ProjectID, q.From)
		if err != nil {
			return page.Page[recordings.Recording]{}, err
		}
		l.start = l.within.startAtCall(call, q.From)
	}
	return l.page(ctx, s.read(), q)
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

// startAtCall returns the key of a page's first row in a listing that is sorted by call.
func (s span) startAtCall(call, id string) []any {
	if call == "" || s.startAt(call) == nil {
		return nil
	}
	return []any{call, id}
}

// recordingListing returns the listing of the recordings that match a filter. It reads an index in
// order, so that the cost of a page does not depend on the number of recordings. Fields of the
// filter that are not in the index become checks. who and words are the results of partyOf and
// wordsFor.
func recordingListing(
	f recordings.Filter, from string, who party, words wordSearch,
) listing[recordings.Recording] {
	f.Party = cmp.Or(f.PartyBegins, f.Party)
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
		l = byCall(l, f, who)
	case f.Party != "":
		l.ways, l.indexed = l.where.parties(who)
	}
	return words.byWords(ofSubscriber(l, f, words.drives(f)), f)
}

// byCall changes the listing to list recordings by call, in the order of the index, so that a page
// costs the same even if the prefix of the call is short.
func byCall(
	l listing[recordings.Recording], f recordings.Filter, who party,
) listing[recordings.Recording] {
	if l.within.low != "" {
		l.checks = append(l.checks, check{`id >= $%d`, []any{l.within.low}})
	}
	if l.within.high != "" {
		l.checks = append(l.checks, check{`id < $%d`, []any{l.within.high}})
	}
	if f.Party != "" {
		l.checks = append(l.checks, hasParty(who))
	}
	l.key, l.start = []string{"call_sid", "id"}, nil
	l.within = span{low: f.CallBegins, high: f.CallBegins + last}
	return l
}

// hasTag is the condition for recordings of a project that have a tag.
const hasTag = `EXISTS (SELECT 1 FROM recording_tags WHERE project = $%d AND tag = $%d AND recording_id = id)`

// marked restricts a listing to recordings with the filter's tag, if there is a tag, and to recordings
// on hold, if the filter requires that. If the filter has no other indexed condition, the listing
// is read in the order of the tags. byWords means that the listing finds few recordings, by their
// words.
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

// tiedTo is like isTied, but for listings that find few recordings. It looks up the ties of each
// recording.
const tiedTo = `EXISTS (SELECT 1 FROM recording_subscribers WHERE subscriber_id = $%d AND recording_id = id)`

// ofSubscriber restricts a listing to recordings that are tied to the filter's subscriber, if it
// has one. By default, the listing reads the recordings in the order of the ties: SQLite keeps the
// order of the tables in a CROSS JOIN. byWords means that the listing finds few recordings, by their
// words.
func ofSubscriber(
	l listing[recordings.Recording], f recordings.Filter, byWords bool,
) listing[recordings.Recording] {
	switch {
	case f.SubscriberID == "":
	case f.CallBegins != "":
		l.checks = append(l.checks, check{tiedTo, []any{f.SubscriberID}})
	case few(f) || byWords: // the listing finds few recordings
		l.where.and(tiedTo, f.SubscriberID)
	default:
		l.from, l.key = "recording_subscribers CROSS JOIN recordings", []string{"recording_id"}
		l.where.and(`subscriber_id = $%d`, f.SubscriberID)
		l.where.always(`id = recording_id`)
	}
	return l
}

// ofDuration restricts a listing to recordings with the filter's durations, in whole milliseconds.
// If the listing finds recordings by a party, it reads all of the party's recordings, because they
// are few. Otherwise it checks recordings page by page.
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

// matching returns the conditions for the project, call, conference, direction and flag of a filter.
// They exclude deleted recordings, unless the filter includes them.
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
