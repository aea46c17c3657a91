package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
)

// Recordings holds the metadata of call recordings.
type Recordings struct{ *core }

var _ recordings.Store = (*Store)(nil)

const recordingColumns = `id, media_key, sid, project_id, call_sid, conference_sid, from_address, to_address, direction, source, track, start_time,
	status, error_code, codec, sample_rate, channels, bits, frames, bytes, sha256, repairs, price, levels,
	waits, trim, pause_behavior, callback_url, callback_events, callback_method, created, updated, deleted`

// recordingValues returns what goes into the columns.
func recordingValues(r recordings.Recording) []any {
	return []any{
		r.ID, mediaKey(r), r.Sid, r.ProjectID, null(r.CallSid), null(r.ConferenceSid), r.From, r.To,
		r.Direction, r.Source, r.Track, micros(r.StartTime),
		r.Status, r.ErrorCode, r.Codec, r.SampleRate, r.Channels, r.Bits, r.Frames, r.Bytes, r.SHA256,
		strings.Join(r.Repairs, "\n"), r.Price,
		levelsOf(r), micros(r.Waits), r.Trim, r.PauseBehavior, r.Callback.URL,
		strings.Join(r.Callback.Events, " "), r.Callback.Method,
		micros(r.Created), micros(r.Updated), micros(r.Deleted),
	}
}

// mediaKey is NULL where the id names the media.
func mediaKey(r recordings.Recording) sql.NullString {
	return sql.NullString{String: r.MediaKey, Valid: r.MediaKey != "" && r.MediaKey != r.ID}
}

// levelsOf returns what was measured as text, "" where nothing was.
func levelsOf(r recordings.Recording) string {
	if r.Levels == nil {
		return ""
	}
	return r.Levels.Text()
}

func flagsOf(r recordings.Recording) int64 {
	if r.Levels == nil {
		return 0
	}
	return int64(r.Levels.Flags)
}

func scanRecording(row scanner) (r recordings.Recording, err error) {
	var media, call, conference sql.NullString
	var repairs, events, sound string
	var start, waits, created, updated, deleted int64
	err = row.Scan(&r.ID, &media, &r.Sid, &r.ProjectID, &call, &conference, &r.From, &r.To, &r.Direction,
		&r.Source, &r.Track, &start,
		&r.Status, &r.ErrorCode, &r.Codec, &r.SampleRate, &r.Channels, &r.Bits, &r.Frames, &r.Bytes,
		&r.SHA256, &repairs, &r.Price, &sound,
		&waits, &r.Trim, &r.PauseBehavior, &r.Callback.URL, &events, &r.Callback.Method, &created, &updated, &deleted)
	if errors.Is(err, sql.ErrNoRows) {
		return r, problem.NoSuch("recording")
	}
	if err != nil {
		return r, fmt.Errorf("reading recording: %w", err)
	}
	r.MediaKey, r.CallSid, r.ConferenceSid = r.ID, call.String, conference.String
	if media.Valid {
		r.MediaKey = media.String
	}
	if repairs != "" {
		r.Repairs = strings.Split(repairs, "\n")
	}
	if sound != "" {
		found, err := levels.ParseText(sound)
		if err != nil {
			return r, err
		}
		r.Levels = &found
	}
	r.Callback.Events = strings.Fields(events)
	r.StartTime, r.Waits, r.Created, r.Updated, r.Deleted = moment(start), moment(waits), moment(created), moment(updated), moment(deleted)
	return r, nil
}

// AddRecording inserts a recording, unless a live one of its project has the same
// identity, which is given then, or waits for it, which is completed then.
func (s *Recordings) AddRecording(ctx context.Context, r recordings.Recording, a recordings.Arrival) (kept recordings.Recording, added bool, err error) {
	// The other one may be deleted between the insert and the look at it, and of two
	// alike that wait each may be completed with the same. Whenever it fails, somebody
	// else has got on: so many times in a row it does not.
	for range 50 {
		kept, added, err = s.addRecording(ctx, r, a)
		if !errors.Is(err, errGone) {
			return kept, added, err
		}
	}
	return kept, false, err
}

// errGone is met where a recording was deleted that had just been in the way, or
// was made that had not.
var errGone = problem.New(problem.Conflict, "conflict", "the recording is being changed by others")

func (s *Recordings) addRecording(ctx context.Context, r recordings.Recording, a recordings.Arrival) (kept recordings.Recording, added bool, err error) {
	err = s.change(ctx, audit.Of("recording.stored", r.ProjectID, "recording", r.ID).With(
		"call", r.CallSid, "conference", r.ConferenceSid, "source", string(r.Source), "status",
		string(r.Status)), func(t tx) error {
		if kept, added, err = t.settleRecording(ctx, r, a); err != nil || !added {
			t.event.Drop()
			return err
		}
		t.event.Target.ID = kept.ID
		t.event.Add("sid", begin(kept.Sid))
		for _, id := range a.SubscriberIDs {
			if err := t.Later(ctx, `INSERT INTO recording_subscribers (subscriber_id, recording_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, id, kept.ID); err != nil {
				return fmt.Errorf("tying recording: %w", err)
			}
		}
		return nil
	})
	return kept, added, err
}

// settleRecording completes the recording that waits, else inserts one, else
// gives the one that has the identity.
func (t tx) settleRecording(ctx context.Context, r recordings.Recording, a recordings.Arrival) (kept recordings.Recording, added bool, err error) {
	kept, err = t.completeRecording(ctx, r, a)
	if !errors.Is(err, problem.NotFound) {
		return kept, err == nil, err
	}
	missing := errGone
	if a.Sid != "" {
		missing = errNotWaiting
	} else if added, err = t.insertRecording(ctx, r, a.Identity); added || err != nil {
		return r, added, err
	}
	kept, err = scanRecording(t.Row(ctx, `SELECT `+recordingColumns+` FROM recordings
		WHERE project_id = $1 AND identity = $2 AND deleted = 0`, r.ProjectID, a.Identity))
	if errors.Is(err, problem.NotFound) {
		err = missing
	}
	return kept, false, err
}

func (t tx) insertRecording(ctx context.Context, r recordings.Recording, identity string) (added bool, err error) {
	values := append(recordingValues(r), flagsOf(r), null(identity))
	res, err := t.Exec(ctx, `INSERT INTO recordings (`+recordingColumns+`, flags, identity) VALUES (`+
		params(0, len(values))+`)
		ON CONFLICT (project_id, identity) WHERE deleted = 0 DO NOTHING`, values...)
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

// tied is the condition that a recording is tied to a subscriber.
const tied = `id IN (SELECT recording_id FROM recording_subscribers WHERE subscriber_id = $%d)`

// FindRecording finds a live recording of an owner.
func (s *Recordings) FindRecording(ctx context.Context, o recordings.Owner, sid string) (recordings.Recording, error) {
	w := where{}
	w.and(`sid = $%d`, sid)
	w.and(`project_id = $%d`, o.ProjectID)
	if o.SubscriberID != "" {
		w.and(tied, o.SubscriberID)
	}
	return scanRecording(s.read().Row(ctx,
		`SELECT `+recordingColumns+` FROM recordings WHERE deleted = 0 AND `+w.String(), w.args...))
}

// DeleteRecording turns a live recording of a project into a stub, and gives the
// key of its media.
func (s *Recordings) DeleteRecording(ctx context.Context, projectID, sid string, at time.Time) (key string, err error) {
	err = s.once(ctx, audit.Of("recording.deleted", projectID, "recording", "").With("sid", begin(sid)),
		func(t tx) error {
			err := t.Row(ctx, `UPDATE recordings SET deleted = $3, updated = $3, waits = 0 WHERE project_id = $1 AND sid = $2 AND deleted = 0
			RETURNING COALESCE(media_key, id), id`,
				projectID, sid, micros(at)).Scan(&key, &t.event.Target.ID)
			if errors.Is(err, sql.ErrNoRows) {
				return problem.NoSuch("recording")
			}
			if err != nil {
				return fmt.Errorf("deleting recording: %w", err)
			}
			return nil
		})
	return key, err
}

// SweepRecordings deletes the stubs of recordings deleted before a time.
func (s *Recordings) SweepRecordings(ctx context.Context, before time.Time) error {
	return s.once(ctx, audit.None("stubs of what was deleted"), func(t tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM recordings WHERE deleted <> 0 AND deleted < $1`, micros(before)); err != nil {
			return fmt.Errorf("sweeping recordings: %w", err)
		}
		return nil
	})
}

// MediaInUse returns the keys of the media of live recordings from first to last.
func (s *Recordings) MediaInUse(ctx context.Context, first, last string) ([]string, error) {
	return gather(ctx, s.read(), "listing media in use", func(row scanner) (key string, err error) {
		return key, row.Scan(&key)
	},
		`SELECT id FROM recordings WHERE id >= $1 AND id <= $2 AND media_key IS NULL AND deleted = 0
		UNION ALL SELECT media_key FROM recordings WHERE media_key >= $1 AND media_key <= $2 AND deleted = 0`, first, last)
}

// RecordRate returns a project's price of a recorded minute.
func (s *Recordings) RecordRate(ctx context.Context, projectID string) (rate int64, err error) {
	err = s.read().Row(ctx, `SELECT record_rate FROM projects WHERE id = $1`, projectID).Scan(&rate)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, problem.NoSuch("project")
	}
	if err != nil {
		return 0, fmt.Errorf("reading record rate: %w", err)
	}
	return rate, nil
}

// MediaAuth tells who may fetch the media of a project.
func (s *Recordings) MediaAuth(ctx context.Context, projectID string) (auth recordings.MediaAuth, err error) {
	err = s.read().Row(ctx, `SELECT media_auth FROM projects WHERE id = $1`, projectID).Scan(&auth)
	return auth, found(err, "project")
}

// HasSubscriber tells whether a subscriber is one of the project.
func (s *Recordings) HasSubscriber(ctx context.Context, projectID, subscriberID string) (has bool, err error) {
	var n int
	err = s.read().Row(ctx, `SELECT count(*) FROM subscribers WHERE project_id = $1 AND id = $2`, projectID,
		subscriberID).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("counting subscribers: %w", err)
	}
	return n > 0, nil
}

// SubscriberOf returns the subscriber of a project whose address is "/context/name",
// with or without the query that clients put behind it, or "".
func (s *Recordings) SubscriberOf(ctx context.Context, projectID, address string) (subscriberID string, err error) {
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
