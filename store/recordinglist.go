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
func (s *Recordings) ListRecordings(ctx context.Context, f recordings.Filter, q page.Query) (page.Page[recordings.Recording], error) {
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

// callOf returns the call of a recording with which a page begins; "" where there is none.
func (s *Recordings) callOf(ctx context.Context, projectID, id string) (call string, err error) {
	err = s.read().Row(ctx, `SELECT COALESCE(call_sid, '') FROM recordings WHERE project_id = $1 AND id = $2`,
		projectID, id).Scan(&call)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("finding call: %w", err)
	}
	return call, nil
}

// startAtCall returns the key of the first row of a page of a list by calls.
func (s span) startAtCall(call, id string) []any {
	if call == "" || s.startAt(call) == nil {
		return nil
	}
	return []any{call, id}
}

// FindRecordingsBeginning returns live recordings of a project whose Sids begin so, fifty at
// most. Sids are random: a beginning of some letters has few.
func (s *Recordings) FindRecordingsBeginning(ctx context.Context, projectID, sid string) ([]recordings.Recording, error) {
	return gather(ctx, s.read(), "finding recordings", scanRecording,
		`SELECT `+recordingColumns+` FROM recordings WHERE sid >= $1 AND sid < $2 AND project_id = $3 AND deleted = 0 ORDER BY sid LIMIT 50`, sid, sid+last, projectID)
}

// last is behind whatever else a text goes on with.
const last = "\U0010FFFF"

// recordingListing is the listing of what a filter matches. What is tied to a
// subscriber is found in the order of its ties, so that a page costs the same
// however many there are; SQLite takes the tables of a CROSS JOIN as they stand.
func recordingListing(f recordings.Filter, from string) listing[recordings.Recording] {
	l := listing[recordings.Recording]{
		thing: "recordings", columns: recordingColumns, from: "recordings", key: []string{"id"},
		within: created(f), start: created(f).startAt(from), desc: true,
		scan: scanRecording, id: func(r recordings.Recording) string { return r.ID },
	}
	indexed := f
	if f.Flag != 0 && (f.CallBegins != "" || f.Direction != "" && f.Party == "") {
		l.checks, indexed.Flag = append(l.checks, check{`(flags & $%d) <> 0`, []any{int64(f.Flag)}}), 0
	}
	if f.Direction != "" && f.CallBegins != "" {
		l.checks, indexed.Direction = append(l.checks, check{`direction = $%d`, []any{f.Direction}}), ""
	}
	l.where = matching(indexed)
	switch {
	case f.CallBegins != "": // the order of the index, so that a page costs the same however short the beginning is
		if l.within.low != "" {
			l.checks = append(l.checks, check{`id >= $%d`, []any{l.within.low}})
		}
		if l.within.high != "" {
			l.checks = append(l.checks, check{`id < $%d`, []any{l.within.high}})
		}
		if f.Party != "" {
			l.checks = append(l.checks, ofParty(f.Party))
		}
		l.key, l.within, l.start = []string{"call_sid", "id"}, span{low: f.CallBegins, high: f.CallBegins + last}, nil
	case f.Party != "":
		l.ways = l.where.parties(f.Party)
	}
	switch {
	case f.SubscriberID == "":
	case f.CallBegins != "":
		l.checks = append(l.checks, check{isTied, []any{f.SubscriberID}})
	case f.Party != "" || f.CallSid != "" || f.ConferenceSid != "": // of which there are few
		l.where.and(isTied, f.SubscriberID)
	default:
		l.from, l.key = "recording_subscribers CROSS JOIN recordings", []string{"recording_id"}
		l.where.and(`subscriber_id = $%d`, f.SubscriberID)
		l.where.always(`id = recording_id`)
	}
	return l
}

// isTied is tied of few recordings, each of which is looked up.
const isTied = `EXISTS (SELECT 1 FROM recording_subscribers WHERE subscriber_id = $%d AND recording_id = id)`

// parties returns the ways to the recordings of whoever called or was called: none is on two.
func (w *where) parties(party string) (ways []string) {
	var names []string
	for _, name := range recordings.Spellings(party) {
		w.args = append(w.args, name)
		names = append(names, fmt.Sprintf("$%d", len(w.args)))
	}
	for _, name := range names {
		ways = append(ways, `from_address = `+name+` AND from_address <> ''`, // as the index has it
			`to_address = `+name+` AND to_address <> '' AND from_address NOT IN (`+strings.Join(names, ", ")+`)`)
	}
	return ways
}

// ofParty is the recordings of whoever called or was called, among others.
func ofParty(party string) (c check) {
	var in []string
	for i, name := range recordings.Spellings(party) {
		c.args = append(c.args, name)
		in = append(in, fmt.Sprintf("$%%[%d]d", i+1))
	}
	names := strings.Join(in, ", ")
	c.condition = `(from_address IN (` + names + `) OR to_address IN (` + names + `))`
	return c
}

// created returns the span of the ids that a filter allows.
func created(f recordings.Filter) (s span) {
	if !f.CreatedFrom.IsZero() {
		s.low = recordings.FirstID(f.CreatedFrom)
	}
	if !f.CreatedBefore.IsZero() {
		s.high = recordings.FirstID(f.CreatedBefore)
	}
	return s
}

// matching is the conditions of a filter, but for the subscriber and the time.
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
		w.always(fmt.Sprintf(`(flags & %d) <> 0`, f.Flag)) // as an index has it
	}
	if !f.IncludeDeleted {
		w.always(`deleted = 0`)
	}
	return w
}
