package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

var _ recordings.Store = (*Store)(nil)

const recordingColumns = `id, sid, project_id, call_sid, conference_sid, from_address, to_address, direction, source, track, start_time,
	status, error_code, codec, sample_rate, channels, bits, frames, bytes, sha256, repairs, price, created, updated, deleted`

// AddRecording inserts a recording, unless a live one of its project has the same
// identity: then that one is given.
func (s *Store) AddRecording(ctx context.Context, r recordings.Recording, identity string, subscriberIDs []string) (kept recordings.Recording, added bool, err error) {
	// The other one may be deleted between the insert and the look at it.
	for range 3 {
		kept, added, err = s.addRecording(ctx, r, identity, subscriberIDs)
		if !errors.Is(err, errGone) {
			return kept, added, err
		}
	}
	return kept, false, err
}

// errGone is met where a recording was deleted that had just been in the way.
var errGone = problem.New(problem.Conflict, "conflict", "the recording is being deleted")

func (s *Store) addRecording(ctx context.Context, r recordings.Recording, identity string, subscriberIDs []string) (kept recordings.Recording, added bool, err error) {
	err = s.change(ctx, func(t tx) error {
		if added, err = t.insertRecording(ctx, r, identity); err != nil {
			return err
		}
		if !added {
			kept, err = scanRecording(t.Row(ctx, `SELECT `+recordingColumns+` FROM recordings
				WHERE project_id = $1 AND identity = $2 AND deleted = 0`, r.ProjectID, identity))
			if errors.Is(err, problem.NotFound) {
				return errGone
			}
			return err
		}
		kept = r
		for _, id := range subscriberIDs {
			if err := t.Later(ctx, `INSERT INTO recording_subscribers (subscriber_id, recording_id) VALUES ($1, $2)`, id, r.ID); err != nil {
				return fmt.Errorf("tying recording: %w", err)
			}
		}
		return nil
	})
	return kept, added, err
}

func (t tx) insertRecording(ctx context.Context, r recordings.Recording, identity string) (added bool, err error) {
	res, err := t.Exec(ctx, `INSERT INTO recordings (identity, `+recordingColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)
		ON CONFLICT (project_id, identity) WHERE deleted = 0 DO NOTHING`,
		null(identity), r.ID, r.Sid, r.ProjectID, null(r.CallSid), null(r.ConferenceSid), r.From, r.To, r.Direction, r.Source, r.Track, micros(r.StartTime),
		r.Status, r.ErrorCode, r.Codec, r.SampleRate, r.Channels, r.Bits, r.Frames, r.Bytes, r.SHA256, strings.Join(r.Repairs, "\n"), r.Price,
		micros(r.Created), micros(r.Updated), micros(r.Deleted))
	if isForeignKey(err) {
		return false, problem.NoSuch("project")
	}
	if err != nil {
		return false, fmt.Errorf("inserting recording: %w", err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// null keeps the empty string out of unique and partial indexes.
func null(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

func scanRecording(row scanner) (r recordings.Recording, err error) {
	var call, conference sql.NullString
	var repairs string
	var start, created, updated, deleted int64
	err = row.Scan(&r.ID, &r.Sid, &r.ProjectID, &call, &conference, &r.From, &r.To, &r.Direction, &r.Source, &r.Track, &start,
		&r.Status, &r.ErrorCode, &r.Codec, &r.SampleRate, &r.Channels, &r.Bits, &r.Frames, &r.Bytes, &r.SHA256, &repairs, &r.Price,
		&created, &updated, &deleted)
	if errors.Is(err, sql.ErrNoRows) {
		return r, problem.NoSuch("recording")
	}
	if err != nil {
		return r, fmt.Errorf("reading recording: %w", err)
	}
	r.CallSid, r.ConferenceSid = call.String, conference.String
	if repairs != "" {
		r.Repairs = strings.Split(repairs, "\n")
	}
	r.StartTime, r.Created, r.Updated, r.Deleted = moment(start), moment(created), moment(updated), moment(deleted)
	return r, nil
}

// tied is the condition that a recording is tied to a subscriber.
const tied = `id IN (SELECT recording_id FROM recording_subscribers WHERE subscriber_id = $%d)`

// FindRecording finds a live recording of an owner.
func (s *Store) FindRecording(ctx context.Context, o recordings.Owner, sid string) (recordings.Recording, error) {
	w := where{}
	w.and(`sid = $%d`, sid)
	w.and(`project_id = $%d`, o.ProjectID)
	if o.SubscriberID != "" {
		w.and(tied, o.SubscriberID)
	}
	return scanRecording(s.read().Row(ctx, `SELECT `+recordingColumns+` FROM recordings WHERE deleted = 0 AND `+w.String(), w.args...))
}

// ListRecordings gives a page of recordings, newest first.
func (s *Store) ListRecordings(ctx context.Context, f recordings.Filter, q page.Query) (page.Page[recordings.Recording], error) {
	l := listing[recordings.Recording]{
		thing: "recordings", columns: recordingColumns, from: "recordings", where: matching(f), key: []string{"id"}, start: startAt(q.From), desc: true,
		scan: scanRecording, id: func(r recordings.Recording) string { return r.ID },
	}
	return l.page(ctx, s.read(), q)
}

// matching is the conditions of a filter.
func matching(f recordings.Filter) where {
	var w where
	w.and(`project_id = $%d`, f.ProjectID)
	if f.SubscriberID != "" {
		w.and(tied, f.SubscriberID)
	}
	if f.CallSid != "" {
		w.and(`call_sid = $%d`, f.CallSid)
	}
	if f.ConferenceSid != "" {
		w.and(`conference_sid = $%d`, f.ConferenceSid)
	}
	if !f.CreatedFrom.IsZero() {
		w.and(`id >= $%d`, recordings.FirstID(f.CreatedFrom))
	}
	if !f.CreatedBefore.IsZero() {
		w.and(`id < $%d`, recordings.FirstID(f.CreatedBefore))
	}
	if !f.IncludeDeleted {
		w.and(`deleted = $%d`, 0)
	}
	return w
}

// DeleteRecording turns a live recording of a project into a stub.
func (s *Store) DeleteRecording(ctx context.Context, projectID, sid string, at time.Time) (id string, err error) {
	err = s.once(ctx, func(t tx) error {
		err := t.Row(ctx, `UPDATE recordings SET deleted = $3, updated = $3 WHERE project_id = $1 AND sid = $2 AND deleted = 0 RETURNING id`,
			projectID, sid, micros(at)).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return problem.NoSuch("recording")
		}
		if err != nil {
			return fmt.Errorf("deleting recording: %w", err)
		}
		return nil
	})
	return id, err
}

// SweepRecordings deletes the stubs of recordings deleted before a time.
func (s *Store) SweepRecordings(ctx context.Context, before time.Time) error {
	return s.once(ctx, func(t tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM recordings WHERE deleted <> 0 AND deleted < $1`, micros(before)); err != nil {
			return fmt.Errorf("sweeping recordings: %w", err)
		}
		return nil
	})
}

// MediaInUse gives the ids of live recordings from first to last.
func (s *Store) MediaInUse(ctx context.Context, first, last string) ([]string, error) {
	return gather(ctx, s.read(), "listing media in use", func(row scanner) (id string, err error) { return id, row.Scan(&id) },
		`SELECT id FROM recordings WHERE id >= $1 AND id <= $2 AND deleted = 0`, first, last)
}

// RecordRate gives a project's price of a recorded minute.
func (s *Store) RecordRate(ctx context.Context, projectID string) (rate int64, err error) {
	err = s.read().Row(ctx, `SELECT record_rate FROM projects WHERE id = $1`, projectID).Scan(&rate)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, problem.NoSuch("project")
	}
	if err != nil {
		return 0, fmt.Errorf("reading record rate: %w", err)
	}
	return rate, nil
}

// HasSubscriber tells whether a subscriber is one of the project.
func (s *Store) HasSubscriber(ctx context.Context, projectID, subscriberID string) (has bool, err error) {
	var n int
	err = s.read().Row(ctx, `SELECT count(*) FROM subscribers WHERE project_id = $1 AND id = $2`, projectID, subscriberID).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("counting subscribers: %w", err)
	}
	return n > 0, nil
}

// SubscriberOf gives the subscriber of a project whose address is "/context/name",
// with or without the query that clients put behind it, or "".
func (s *Store) SubscriberOf(ctx context.Context, projectID, address string) (subscriberID string, err error) {
	address, _, _ = strings.Cut(address, "?")
	parts := strings.Split(address, "/")
	if len(parts) != 3 || parts[0] != "" {
		return "", nil
	}
	err = s.read().Row(ctx, `SELECT resource_id FROM addresses WHERE project_id = $1 AND context = $2 AND name = $3 AND type = 'subscriber'`,
		projectID, parts[1], parts[2]).Scan(&subscriberID)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("finding address: %w", err)
	}
	return subscriberID, nil
}
