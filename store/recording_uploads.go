package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// AddRecording stores the recording for an arrival. If the project already has a recording with the
// same identity that is not deleted, AddRecording returns it. If a recording is waiting for the
// arrival, AddRecording completes it. Otherwise it inserts r, or returns errNotWaiting if the
// arrival names the Sid of a recording.
func (s *Recordings) AddRecording(
	ctx context.Context, r recordings.Recording, a recordings.Arrival,
) (stored recordings.Recording, added bool, err error) {
	// A change fails if the recording that prevented its insert is deleted before it is read, or if
	// two waiting recordings are completed with the same identity. Each failure means that a
	// concurrent change succeeded. This does not happen fifty times in a row.
	for range 50 {
		stored, added, err = s.addRecording(ctx, r, a)
		if !errors.Is(err, errOvertaken) {
			return stored, added, err
		}
	}
	return stored, false, err
}

// errOvertaken is returned if a concurrent change deleted the recording, or stored another recording
// with the same identity.
var errOvertaken = problem.New(problem.Conflict, "conflict", "the recording is being changed by other requests")

// errNotWaiting is the error for an upload that names a recording that is not waiting for its
// media.
var errNotWaiting = problem.BadParam("RecordingSid", "no recording with this RecordingSid waits for its media")

// addRecording is like AddRecording, but returns errOvertaken if a concurrent change interferes.
func (s *Recordings) addRecording(
	ctx context.Context, r recordings.Recording, a recordings.Arrival,
) (stored recordings.Recording, added bool, err error) {
	action := "recording.stored"
	if !r.Waits.IsZero() {
		action = "recording.started"
	}

	err = s.change(ctx, audit.Of(action, r.ProjectID, "recording", r.ID), func(t tx) error {
		r := r // this function may run again
		shared, err := t.recordings().lockTwin(ctx, a.Twin)
		if err != nil {
			return err
		}
		if shared {
			r.MediaKey = a.Twin.MediaKey
		}

		stored, added, err = t.recordings().settleRecording(ctx, r, a)
		if err != nil {
			return err
		}
		if !added {
			t.event.Drop()
			return nil
		}

		if err := t.recordings().indexAdded(ctx, stored, r); err != nil {
			return err
		}

		t.event.Target.ID = stored.ID
		t.event.Add("call", stored.CallSid, "conference", stored.ConferenceSid, "status", string(stored.Status),
			"sid", fabric.HideSid(stored.Sid), "seconds", fmt.Sprint(stored.Seconds()))
		if stored.ID != r.ID && stored.Status == recordings.Completed {
			if err := t.recordings().queueRecorded(ctx, stored); err != nil {
				return err
			}
		}
		if err := t.recordings().queueCallback(ctx, stored, stored.Updated); err != nil {
			return err
		}

		for _, id := range a.SubscriberIDs {
			err := t.Later(ctx, `INSERT INTO recording_subscribers (subscriber_id, recording_id) VALUES ($1, $2)
				ON CONFLICT DO NOTHING`, id, stored.ID)
			if err != nil {
				return fmt.Errorf("tying recording: %w", err)
			}
		}
		return nil
	})
	return stored, added, err
}

// indexAdded writes the words of a recording that is new, or that an arrival has completed.
func (t recordingTx) indexAdded(ctx context.Context, stored, arrived recordings.Recording) error {
	if stored.ID != arrived.ID {
		return t.replaceWords(ctx, stored)
	}
	return t.addWords(ctx, stored.ProjectID, stored.ID, stored.Metadata.Words())
}

// settleRecording completes the recording that is waiting for the arrival. If none is waiting, it
// inserts r, unless the arrival names the Sid of a recording. If the project already has a
// recording with the identity of the arrival, settleRecording returns that recording. If the
// arrival names a Sid and there is neither, the error is errNotWaiting.
func (t recordingTx) settleRecording(
	ctx context.Context, r recordings.Recording, a recordings.Arrival,
) (stored recordings.Recording, added bool, err error) {
	stored, err = t.completeRecording(ctx, r, a)
	if err == nil {
		return stored, true, nil
	}
	if !errors.Is(err, problem.NotFound) {
		return stored, false, err
	}

	missing := errNotWaiting
	if a.Sid == "" {
		missing = errOvertaken
		added, err = t.insertRecording(ctx, r, a.Identity)
		if added || err != nil {
			return r, added, err
		}
	}
	stored, err = recordingTable.find(ctx, t.tx, `project_id = $1 AND identity = $2 AND deleted = 0`,
		r.ProjectID, a.Identity)
	return stored, false, conflictIfMissing(missing, err)
}

// insertRecording inserts r, unless the project already has a recording with this identity.
func (t recordingTx) insertRecording(
	ctx context.Context, r recordings.Recording, identity string,
) (added bool, err error) {
	_, values, err := recordingTable.insertion(&r)
	if err != nil {
		return false, err
	}
	values = append(values, flagsOf(r), null(identity), wordsOf(r.Metadata))
	res, err := t.Exec(ctx, `INSERT INTO recordings (`+recordingTable.columns+`, flags, identity, words)
		VALUES (`+params(0, len(values))+`) ON CONFLICT (project_id, identity) WHERE deleted = 0 DO NOTHING`, values...)
	if isForeignKey(err) {
		return false, problem.NoSuch("project")
	}
	n, err := countChanged(res, err, "recording")
	return n == 1, err
}

// completeRecording completes the recording that is waiting for an arrival, or returns
// problem.NotFound if there is none. Values from the sender replace known values. The row keeps
// its id, so the key of the media is stored in media_key.
func (t recordingTx) completeRecording(
	ctx context.Context, r recordings.Recording, a recordings.Arrival,
) (recordings.Recording, error) {
	g := a.Given
	if a.Sid == "" && g.CallSid == "" && g.ConferenceSid == "" {
		return recordings.Recording{}, problem.NoSuch("recording")
	}
	if err := t.lockWaiting(ctx, r.ProjectID, a); err != nil {
		return recordings.Recording{}, err
	}

	w := where{args: []any{
		r.MediaKey, null(a.Identity), r.Status, r.ErrorCode, r.Codec, r.SampleRate, r.Channels, r.Bits,
		r.Frames, r.Bytes, r.SHA256, strings.Join(r.Repairs, "\n"), r.Price, micros(r.Updated),
		g.From, g.To, g.Direction, g.Source, g.Track, micros(g.StartTime),
		r.ProjectID, levelsOf(r), flagsOf(r), r.Callback.URL, strings.Join(r.Callback.Events, " "), r.Callback.Method,
		recordings.Tail(g.From), recordings.Tail(g.To), g.Name,
	}}
	w.waitsFor(r.ProjectID, a)
	// If several recordings are waiting, complete one with the same track or, if there is none, one
	// with both tracks.
	completed, err := recordingTable.scan(t.Row(ctx, `UPDATE recordings SET
			media_key = $1, identity = $2, status = $3, error_code = $4, codec = $5, sample_rate = $6,
			channels = $7, bits = $8, frames = $9, bytes = $10, sha256 = $11, repairs = $12, price = $13,
			updated = $14, waits = 0, levels = $22, flags = $23,
			callback_url = COALESCE(NULLIF($24, ''), callback_url),
			callback_events = CASE WHEN $24 = '' THEN callback_events ELSE $25 END,
			callback_method = CASE WHEN $24 = '' THEN callback_method ELSE $26 END,
			from_address = COALESCE(NULLIF($15, ''), from_address), to_address = COALESCE(NULLIF($16, ''), to_address),
			from_tail = CASE WHEN $15 = '' THEN from_tail ELSE $27 END,
			to_tail = CASE WHEN $16 = '' THEN to_tail ELSE $28 END, name = COALESCE(NULLIF($29, ''), name),
			direction = COALESCE(NULLIF($17, ''), direction), source = COALESCE(NULLIF($18, ''), source),
			track = COALESCE(NULLIF($19, ''), track), start_time = COALESCE(NULLIF(CAST($20 AS BIGINT), 0), start_time)
		WHERE id = (SELECT id FROM recordings WHERE `+w.String()+`
				ORDER BY CASE WHEN track = $19 OR $19 = '' AND track = 'both' THEN 0
					WHEN track = 'both' THEN 1 ELSE 2 END, id LIMIT 1)
			AND NOT EXISTS (SELECT 1 FROM recordings WHERE project_id = $21 AND identity = $2 AND deleted = 0)
		RETURNING `+recordingTable.columns, w.args...))
	if isUnique(err) {
		return completed, errOvertaken
	}
	return completed, err
}

// lockWaiting locks the recordings that are waiting for an arrival, or returns problem.NotFound if
// there are none. A concurrent change with the media of another leg waits for the lock. It then
// sees which recordings are still waiting.
func (t recordingTx) lockWaiting(ctx context.Context, projectID string, a recordings.Arrival) error {
	var w where
	w.waitsFor(projectID, a)
	res, err := t.Exec(ctx, `UPDATE recordings SET waits = waits WHERE `+w.String(), w.args...)
	return requireRow(res, err, "recording")
}

// waitsFor adds the conditions for recordings that are waiting for an arrival. An arrival that is
// late and names a Sid also finds a recording that was marked as absent. Recordings of calls and
// rooms on this installation get their media from the installation's own recorder, which names the Sid.
// No other upload may complete them.
func (w *where) waitsFor(projectID string, a recordings.Arrival) {
	w.and(`project_id = $%d`, projectID)
	if a.Late && a.Sid != "" {
		w.and(`(waits <> 0 OR status = $%d AND bytes = 0)`, recordings.Absent)
	} else {
		w.always(`waits <> 0`)
	}

	w.always(`deleted = 0`)
	if a.Sid != "" {
		w.and(`sid = $%d`, a.Sid)
	} else {
		w.always(`NOT EXISTS (SELECT 1 FROM calls
			WHERE calls.project_id = recordings.project_id AND calls.call_id = recordings.call_sid)`)
		w.always(`NOT EXISTS (SELECT 1 FROM room_sessions
			WHERE room_sessions.project_id = recordings.project_id AND room_sessions.id = recordings.conference_sid)`)
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

// UpdateRecording writes the progress of a waiting recording, unless the recording has changed
// since the caller read it. old is the time of the last change that the caller has seen. If the
// recording is in progress and has a new callback, UpdateRecording queues the status for the
// callback.
func (s *Recordings) UpdateRecording(
	ctx context.Context, r recordings.Recording, identity string, old time.Time,
) error {
	e := audit.Of("recording.updated", r.ProjectID, "recording", r.ID).With("status", string(r.Status))
	return s.change(ctx, e, func(t tx) error {
		isNew, err := t.recordings().isNewCallback(ctx, r)
		if err != nil {
			return err
		}

		res, err := t.Exec(ctx, `UPDATE recordings SET identity = $1, status = $2, channels = $3, waits = $4, trim = $5,
				pause_behavior = $6, callback_url = $7, callback_events = $8, callback_method = $9, updated = $10
			WHERE id = $11 AND updated = $12 AND waits <> 0 AND deleted = 0`,
			null(identity), r.Status, r.Channels, micros(r.Waits), r.Trim, r.PauseBehavior, r.Callback.URL,
			strings.Join(r.Callback.Events, " "), r.Callback.Method, micros(r.Updated), r.ID, micros(old))
		if err := requireUnchanged(res, err, "recording"); err != nil {
			return err
		}
		if !isNew {
			return nil
		}
		return t.recordings().queueCallback(ctx, r, r.Updated)
	})
}

// isNewCallback reports whether a recording in progress has a callback that has not been notified
// of this status yet.
func (t recordingTx) isNewCallback(ctx context.Context, r recordings.Recording) (bool, error) {
	if r.Status != recordings.InProgress || !r.Callback.Wants(r.Status) {
		return false, nil
	}
	var callback recordings.Callback
	err := t.Row(ctx, `SELECT callback_url, callback_events FROM recordings WHERE id = $1`, r.ID).Scan(
		&callback.URL, scanTarget(&callback.Events))
	return callback.URL != r.Callback.URL || !callback.Wants(r.Status), checkRow(err, "recording")
}

// AwaitsMedia reports whether a recording of a call or a conference is waiting for its media.
func (s *Recordings) AwaitsMedia(ctx context.Context, projectID string, m recordings.Metadata) (bool, error) {
	column, sid := "call_sid", m.CallSid
	if m.ConferenceSid != "" {
		column, sid = "conference_sid", m.ConferenceSid
	}
	var one int
	err := s.read().Row(ctx, `SELECT 1 FROM recordings
		WHERE project_id = $1 AND `+column+` = $2 AND waits <> 0 AND deleted = 0 LIMIT 1`, projectID, sid).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finding recordings that wait: %w", err)
	}
	return true, nil
}

// longestRun limits how long a recording waits while its call seems to run. No recorder records a
// call for longer. If no server is left to end a call, its record never shows that the call ended.
const longestRun = 30 * 24 * time.Hour

// stillRuns is the condition that a call or room session of this installation is running, or that it
// ended so recently that its recorder may still deliver the media.
const stillRuns = `EXISTS (SELECT 1 FROM %[1]s WHERE %[1]s.project_id = recordings.project_id
	AND %[1]s.%[2]s = recordings.%[3]s
	AND (%[1]s.ended = 0 OR %[1]s.ended > $5))`

// GiveUpRecordings marks recordings as absent if their media should have arrived before the time
// until. It also queues the new status for the callbacks of these recordings. A recording of a call or
// room session on this installation waits for at least the duration wait after the end of the call or
// session. This extends its wait by at most longestRun.
func (s *Recordings) GiveUpRecordings(ctx context.Context, until time.Time, wait time.Duration) error {
	call := fmt.Sprintf(stillRuns, "calls", "call_id", "call_sid")
	session := fmt.Sprintf(stillRuns, "room_sessions", "id", "conference_sid")
	return s.change(ctx, audit.None("the end of a wait"), func(t tx) error {
		given, err := gather(ctx, t, "giving up recordings", recordingTable.scan, `UPDATE recordings
				SET status = $1, error_code = $2, identity = NULL, updated = waits, waits = 0
				WHERE waits <> 0 AND waits < $3 AND deleted = 0
					AND (waits < $4 OR NOT `+call+` AND NOT `+session+`)
				RETURNING `+recordingTable.columns,
			recordings.Absent, recordings.NoAudio, micros(until), micros(until.Add(-longestRun)),
			micros(until.Add(-wait)))
		if err != nil {
			return err
		}
		for _, r := range given {
			// If no server was running for days, the wait ended long ago. The delivery begins to
			// wait only now, so that it is not given up before its first attempt.
			if err := t.recordings().queueCallback(ctx, r, until); err != nil {
				return err
			}
		}
		return nil
	})
}
