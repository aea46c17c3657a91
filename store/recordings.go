package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
)

// Recordings holds the metadata of call recordings.
type Recordings struct{ *core }

var _ recordings.Store = (*Store)(nil)

// A recordingTx writes recordings, and the messages about them, within a change.
type recordingTx struct{ tx }

func (t tx) recordings() recordingTx { return recordingTx{t} }

var recordingTable = table[recordings.Recording]{
	name:  "recordings",
	thing: "recording",
	columns: `id, media_key, sid, project_id, call_sid, conference_sid, from_address, to_address,
	direction, source, track, start_time, status, error_code, codec, sample_rate, channels, bits, frames, bytes,
	sha256, repairs, price, levels, waits, trim, pause_behavior, callback_url, callback_events, callback_method,
	from_tail, to_tail, name, hold, tags, created, updated, deleted`,
	fields: func(r *recordings.Recording) []any {
		return []any{&r.ID, mediaKey{r}, &r.Sid, &r.ProjectID, nullableOf(&r.CallSid), nullableOf(&r.ConferenceSid),
			&r.From, &r.To, &r.Direction, &r.Source, &r.Track, &r.StartTime, &r.Status, &r.ErrorCode, &r.Codec,
			&r.SampleRate, &r.Channels, &r.Bits, &r.Frames, &r.Bytes, &r.SHA256, (*lines)(&r.Repairs), &r.Price,
			measured{r}, &r.Waits, &r.Trim, &r.PauseBehavior, &r.Callback.URL, &r.Callback.Events, &r.Callback.Method,
			partyTail{&r.From}, partyTail{&r.To}, &r.Name, &r.Hold, &r.Tags, &r.Created, &r.Updated, &r.Deleted}
	},
}

// partyTail is the column with the reversed number of a party, which is used to find the recording.
// It is only written, never read.
type partyTail struct{ party *string }

func (partyTail) Scan(any) error { return nil }

func (t partyTail) value() (any, error) { return recordings.Tail(*t.party), nil }

// mediaKey is the column with the key of the media. It is NULL if the key is the recording's id. It
// must be scanned after the id.
type mediaKey struct{ r *recordings.Recording }

func (m mediaKey) Scan(src any) error {
	m.r.MediaKey = m.r.ID
	if src == nil {
		return nil
	}
	return nullableOf(&m.r.MediaKey).Scan(src)
}

func (m mediaKey) value() (any, error) {
	key := m.r.MediaKey
	return sql.NullString{String: key, Valid: key != "" && key != m.r.ID}, nil
}

// lines is a slice of strings that is stored as one text, separated by newlines. An empty slice is read
// as nil.
type lines []string

func (l *lines) Scan(src any) error {
	text, err := textOf(src)
	if err != nil {
		return err
	}
	*l = nil
	if text != "" {
		*l = strings.Split(text, "\n")
	}
	return nil
}

func (l *lines) value() (any, error) { return strings.Join(*l, "\n"), nil }

// measured is the column with the levels of a recording. It is "" if they were not measured.
type measured struct{ r *recordings.Recording }

func (m measured) Scan(src any) error {
	text, err := textOf(src)
	if err != nil {
		return err
	}
	if text == "" {
		return nil
	}
	found, err := levels.ParseText(text)
	if err != nil {
		return err
	}
	m.r.Levels = &found
	return nil
}

func (m measured) value() (any, error) { return levelsOf(*m.r), nil }

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

// isTied is the condition that a recording is tied to the given subscriber.
const isTied = `id IN (SELECT recording_id FROM recording_subscribers WHERE subscriber_id = $%d)`

// FindRecording finds one of an owner's recordings, unless it is deleted.
func (s *Recordings) FindRecording(
	ctx context.Context, o recordings.Owner, sid string,
) (recordings.Recording, error) {
	w := where{}
	w.and(`sid = $%d`, sid)
	w.and(`project_id = $%d`, o.ProjectID)
	if o.SubscriberID != "" {
		w.and(isTied, o.SubscriberID)
	}
	return recordingTable.find(ctx, s.read(), `deleted = 0 AND `+w.String(), w.args...)
}

// FindRecordingsBeginning returns at most fifty recordings in a project whose Sids have the given
// prefix. It omits deleted recordings. Sids are random, so few of them share a prefix of several
// characters.
func (s *Recordings) FindRecordingsBeginning(
	ctx context.Context, projectID, sid string,
) ([]recordings.Recording, error) {
	return recordingTable.gather(ctx, s.read(), `WHERE sid >= $1 AND sid < $2 AND project_id = $3 AND deleted = 0
		ORDER BY sid LIMIT 50`, sid, sid+last, projectID)
}

// last sorts after any text that may follow a prefix.
const last = "\U0010FFFF"

// DeleteRecording reduces a recording in a project to a stub, and returns the key of its media. It does
// not delete a recording that is on hold or, if how.Unchanged is set, has changed since that time.
func (s *Recordings) DeleteRecording(
	ctx context.Context, projectID, sid string, how recordings.Removal,
) (key string, err error) {
	e := audit.Of("recording.deleted", projectID, "recording", "").With("sid", fabric.HideSid(sid), "why", how.Why)
	err = s.change(ctx, e, func(t tx) error {
		err := t.Row(ctx, `UPDATE recordings SET deleted = $3, updated = $3, waits = 0
				WHERE project_id = $1 AND sid = $2 AND deleted = 0 AND hold = '' AND CAST($4 AS BIGINT) IN (0, updated)
				RETURNING COALESCE(media_key, id), id`,
			projectID, sid, micros(how.At), micros(how.Unchanged)).Scan(&key, &t.event.Target.ID)
		if errors.Is(err, sql.ErrNoRows) {
			return t.recordings().whyNotDeleted(ctx, projectID, sid)
		}
		return checkRow(err, "recording")
	})
	return key, err
}

// whyNotDeleted returns the error for a recording that is on hold, has changed, or does not exist.
func (t recordingTx) whyNotDeleted(ctx context.Context, projectID, sid string) error {
	r, err := recordingTable.find(ctx, t.tx, `project_id = $1 AND sid = $2 AND deleted = 0`, projectID, sid)
	if err != nil {
		return err
	}
	if r.Hold == "" {
		return changedMeanwhile("recording")
	}
	return recordings.ErrHeld(r.Hold)
}

// MediaInUse returns the media keys from first to last of recordings that are not deleted.
func (s *Recordings) MediaInUse(ctx context.Context, first, last string) ([]string, error) {
	return gather(ctx, s.read(), "listing media in use", scanID, `SELECT id FROM recordings
			WHERE id >= $1 AND id <= $2 AND media_key IS NULL AND deleted = 0
		UNION ALL SELECT media_key FROM recordings WHERE media_key >= $1 AND media_key <= $2 AND deleted = 0`,
		first, last)
}

// FindTwin returns the oldest recording of the same project with the same file as r, or the zero
// value if there is none.
func (s *Recordings) FindTwin(ctx context.Context, r recordings.Recording) (twin recordings.Twin, err error) {
	err = s.read().Row(ctx, `SELECT id, COALESCE(media_key, id) FROM recordings
		WHERE project_id = $1 AND sha256 = $2 AND bytes = $3 AND codec = $4 AND sample_rate = $5 AND channels = $6
			AND levels = $7 AND deleted = 0 ORDER BY id LIMIT 1`,
		r.ProjectID, r.SHA256, r.Bytes, r.Codec, r.SampleRate, r.Channels, levelsOf(r)).Scan(&twin.ID, &twin.MediaKey)
	if errors.Is(err, sql.ErrNoRows) {
		return recordings.Twin{}, nil
	}
	if err != nil {
		return recordings.Twin{}, fmt.Errorf("finding a recording with the same file: %w", err)
	}
	return twin, nil
}

// lockTwin reports whether a recording still has its media. If so, it prevents the deletion of the
// media until the change is committed.
func (t recordingTx) lockTwin(ctx context.Context, twin recordings.Twin) (bool, error) {
	if twin == (recordings.Twin{}) {
		return false, nil
	}
	res, err := t.Exec(ctx, `UPDATE recordings SET waits = waits
		WHERE id = $1 AND COALESCE(media_key, id) = $2 AND deleted = 0`, twin.ID, twin.MediaKey)
	n, err := countChanged(res, err, "recording")
	return n == 1, err
}

// Terms returns a project's terms for uploads.
func (s *Recordings) Terms(ctx context.Context, projectID string) (terms recordings.Terms, err error) {
	err = s.read().Row(ctx, `SELECT record_rate, recording_quota, upload_rate FROM projects WHERE id = $1`,
		projectID).Scan(&terms.RecordRate, &terms.Quota, &terms.UploadRate)
	return terms, checkRow(err, "project")
}

// sumStored adds up the stored bytes of a project. It reads only an index, except for recordings
// that share their media.
const sumStored = `SELECT CAST(COALESCE(SUM(` + liveSQL + `), 0) AS BIGINT)
	FROM recordings WHERE project_id = $1 AND deleted = 0`

// StoredBytes returns the bytes that the recordings of a project use. Shared bytes count once.
func (s *Recordings) StoredBytes(ctx context.Context, projectID string) (bytes int64, err error) {
	err = s.read().Row(ctx, sumStored, projectID).Scan(&bytes)
	if err != nil {
		return 0, fmt.Errorf("adding up stored bytes: %w", err)
	}
	return bytes, nil
}

// MediaAuth returns a project's policy for fetching media.
func (s *Recordings) MediaAuth(ctx context.Context, projectID string) (auth recordings.MediaAuth, err error) {
	err = s.read().Row(ctx, `SELECT media_auth FROM projects WHERE id = $1`, projectID).Scan(&auth)
	return auth, checkRow(err, "project")
}

// HasSubscriber reports whether a subscriber belongs to a project.
func (s *Recordings) HasSubscriber(ctx context.Context, projectID, subscriberID string) (has bool, err error) {
	var n int
	err = s.read().Row(ctx, `SELECT count(*) FROM subscribers WHERE project_id = $1 AND id = $2`,
		projectID, subscriberID).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("counting subscribers: %w", err)
	}
	return n > 0, nil
}

// SubscriberOf returns the id of the subscriber in a project with the address "/context/name", or "".
// It ignores a query, which clients may append to the address.
func (s *Recordings) SubscriberOf(ctx context.Context, projectID, address string) (subscriberID string, err error) {
	address, _, _ = strings.Cut(address, "?")
	parts := strings.Split(address, "/")
	if len(parts) != 3 || parts[0] != "" {
		return "", nil
	}

	err = s.read().Row(ctx, `SELECT resource_id FROM addresses
			WHERE project_id = $1 AND context = $2 AND name = $3 AND type = 'subscriber'`,
		projectID, parts[1], parts[2]).Scan(&subscriberID)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("finding address: %w", err)
	}
	return subscriberID, nil
}
