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
)

// completeRecording returns the recording that waits for an arrival what it waited
// for; problem.NotFound if none does. What the sender said goes before what was
// known, and a row without media keeps its id: the media is named by media_key.
func (t tx) completeRecording(ctx context.Context, r recordings.Recording, a recordings.Arrival) (recordings.Recording, error) {
	g := a.Given
	if a.Sid == "" && g.CallSid == "" && g.ConferenceSid == "" {
		return recordings.Recording{}, problem.NoSuch("recording")
	}
	if err := t.holdWaiting(ctx, r.ProjectID, a); err != nil {
		return recordings.Recording{}, err
	}
	w := where{args: []any{
		r.MediaKey, null(a.Identity), r.Status, r.ErrorCode, r.Codec, r.SampleRate, r.Channels, r.Bits,
		r.Frames, r.Bytes, r.SHA256,
		strings.Join(r.Repairs, "\n"), r.Price, micros(r.Updated), g.From, g.To, g.Direction, g.Source,
		g.Track, micros(g.StartTime),
		r.ProjectID, levelsOf(r), flagsOf(r),
	}}
	w.waitsFor(r.ProjectID, a)
	found, err := scanRecording(t.Row(ctx,
		`UPDATE recordings SET media_key = $1, identity = $2, status = $3, error_code = $4, codec = $5, sample_rate = $6,
			channels = $7, bits = $8, frames = $9, bytes = $10, sha256 = $11, repairs = $12, price = $13, updated = $14, waits = 0, levels = $22, flags = $23,
			from_address = COALESCE(NULLIF($15, ''), from_address), to_address = COALESCE(NULLIF($16, ''), to_address),
			direction = COALESCE(NULLIF($17, ''), direction), source = COALESCE(NULLIF($18, ''), source),
			track = COALESCE(NULLIF($19, ''), track), start_time = COALESCE(NULLIF(CAST($20 AS BIGINT), 0), start_time)
		WHERE id = (SELECT id FROM recordings WHERE `+w.String()+`
				ORDER BY CASE WHEN track = $19 OR $19 = '' AND track = 'both' THEN 0 WHEN track = 'both' THEN 1 ELSE 2 END, id LIMIT 1)
			AND NOT EXISTS (SELECT 1 FROM recordings WHERE project_id = $21 AND identity = $2 AND deleted = 0)
		RETURNING `+recordingColumns, w.args...))
	if isUnique(err) {
		return found, errGone
	}
	return found, err
}

// holdWaiting keeps what waits for an arrival as it is until the end of the
// transaction; problem.NotFound if nothing does. Who brings the media of another leg at
// the same time waits here for us, and then sees what still waits; or we for them.
func (t tx) holdWaiting(ctx context.Context, projectID string, a recordings.Arrival) error {
	var w where
	w.waitsFor(projectID, a)
	res, err := t.Exec(ctx, `UPDATE recordings SET waits = waits WHERE `+w.String(), w.args...)
	if err != nil {
		return fmt.Errorf("holding recordings that wait: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return problem.NoSuch("recording")
}

// waitsFor adds the conditions of what waits for an arrival.
func (w *where) waitsFor(projectID string, a recordings.Arrival) {
	w.and(`project_id = $%d`, projectID)
	w.always(`waits <> 0 AND deleted = 0`)
	if a.Sid != "" {
		w.and(`sid = $%d`, a.Sid)
	}
	if a.Given.CallSid != "" {
		w.and(`call_sid = $%d`, a.Given.CallSid)
	}
	if a.Given.ConferenceSid != "" {
		w.and(`conference_sid = $%d`, a.Given.ConferenceSid)
	}
	if a.Given.Track != "" {
		w.and(`track IN ($%d, 'both')`, a.Given.Track)
	}
}

// errNotWaiting is met where an upload names a recording that does not wait.
var errNotWaiting = problem.BadParam("RecordingSid", "no recording with this RecordingSid waits for its media")

// UpdateRecording writes how far a recording has come that waits, if it was last
// changed at the time old.
func (s *Recordings) UpdateRecording(ctx context.Context, r recordings.Recording, identity string, old time.Time) error {
	return s.once(ctx, audit.Of("recording.updated", r.ProjectID, "recording", r.ID).With(
		"status", string(r.Status)), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE recordings SET identity = $1, status = $2, channels = $3, waits = $4, trim = $5, pause_behavior = $6,
				callback_url = $7, callback_events = $8, callback_method = $9, updated = $10
			WHERE id = $11 AND updated = $12 AND waits <> 0 AND deleted = 0`,
			null(identity), r.Status, r.Channels, micros(r.Waits), r.Trim, r.PauseBehavior,
			r.Callback.URL, strings.Join(r.Callback.Events, " "), r.Callback.Method, micros(r.Updated), r.ID,
			micros(old))
		return unchanged(res, err, "recording")
	})
}

// AwaitsMedia tells whether a recording of a call or a conference waits.
func (s *Recordings) AwaitsMedia(ctx context.Context, projectID string, m recordings.Metadata) (bool, error) {
	query, sid := `SELECT 1 FROM recordings WHERE project_id = $1 AND call_sid = $2 AND waits <> 0 AND deleted = 0 LIMIT 1`, m.CallSid
	if m.ConferenceSid != "" {
		query, sid = `SELECT 1 FROM recordings WHERE project_id = $1 AND conference_sid = $2 AND waits <> 0 AND deleted = 0 LIMIT 1`, m.ConferenceSid
	}
	var one int
	err := s.read().Row(ctx, query, projectID, sid).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finding recordings that wait: %w", err)
	}
	return true, nil
}

// GiveUpRecordings makes absent what has waited until a time.
func (s *Recordings) GiveUpRecordings(ctx context.Context, until time.Time) error {
	return s.once(ctx, audit.None("what was waited for long enough"), func(t tx) error {
		_, err := t.Exec(ctx, `UPDATE recordings SET status = $1, error_code = $2, identity = NULL, updated = waits, waits = 0
			WHERE waits <> 0 AND waits < $3 AND deleted = 0`, recordings.Absent, recordings.NoAudio, micros(until))
		if err != nil {
			return fmt.Errorf("giving up recordings: %w", err)
		}
		return nil
	})
}
