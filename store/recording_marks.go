package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/recordings"
)

// MarkRecording changes the marks of a recording in a project. It calls change with the marks, and calls
// it again if the transaction is repeated.
func (s *Recordings) MarkRecording(
	ctx context.Context, projectID, sid string, change func(*recordings.Marks) error, at time.Time,
) (recordings.Recording, error) {
	e := audit.Of("recording.updated", projectID, "recording", "").With("sid", fabric.HideSid(sid))
	return resultOf(ctx, s.change, e, func(t tx) (r recordings.Recording, err error) {
		if err = t.recordings().lockRecording(ctx, projectID, sid); err != nil {
			return r, err
		}

		r, err = recordingTable.find(ctx, t, `project_id = $1 AND sid = $2 AND deleted = 0`, projectID, sid)
		if err != nil {
			return r, err
		}
		old := r.Marks
		if err = change(&r.Marks); err != nil {
			return r, err
		}
		if r.Hold == old.Hold && slices.Equal(r.Tags, old.Tags) {
			t.event.Drop()
			return r, nil
		}

		t.event.Target.ID = r.ID
		t.event.Add("hold", r.Hold, "tags", strings.Join(r.Tags, " "))
		if r.Hold == "" {
			t.event.Add("released", old.Hold)
		}
		if at.After(r.Updated) {
			r.Updated = at
		} else {
			r.Updated = r.Updated.Add(time.Microsecond) // must differ from the time of the last change
		}
		return r, t.recordings().writeMarks(ctx, r)
	})
}

// lockRecording locks the project, so that it cannot be deleted while one of its recordings is put on
// hold. It also locks the recording, so that its tags and its hold do not change.
func (t recordingTx) lockRecording(ctx context.Context, projectID, sid string) error {
	res, err := t.Exec(ctx, `UPDATE projects SET id = id WHERE id = $1`, projectID)
	if err = requireRow(res, err, "recording"); err != nil {
		return err
	}
	res, err = t.Exec(ctx, `UPDATE recordings SET hold = hold
		WHERE project_id = $1 AND sid = $2 AND deleted = 0`, projectID, sid)
	return requireRow(res, err, "recording")
}

// writeMarks writes the hold and the tags of a recording.
func (t recordingTx) writeMarks(ctx context.Context, r recordings.Recording) error {
	err := t.Later(ctx, `UPDATE recordings SET hold = $2, tags = $3, updated = $4 WHERE id = $1`,
		r.ID, r.Hold, strings.Join(r.Tags, " "), micros(r.Updated))
	if err != nil {
		return fmt.Errorf("marking recording: %w", err)
	}
	if err = t.Later(ctx, `DELETE FROM recording_tags WHERE recording_id = $1`, r.ID); err != nil {
		return fmt.Errorf("removing tags: %w", err)
	}
	return t.addTags(ctx, r)
}

// addTags writes the index rows that find a recording by its tags.
func (t recordingTx) addTags(ctx context.Context, r recordings.Recording) error {
	for _, tag := range r.Tags {
		err := t.Later(ctx, `INSERT INTO recording_tags (project, tag, recording_id) VALUES ($1, $2, $3)`,
			r.ProjectID, tag, r.ID)
		if err != nil {
			return fmt.Errorf("adding tag: %w", err)
		}
	}
	return nil
}

// lockUnheld locks a project, so that no recording in it can be put on hold until the transaction ends. It
// returns an error if a recording is already on hold.
func (t recordingTx) lockUnheld(ctx context.Context, projectID string) error {
	res, err := t.Exec(ctx, `UPDATE projects SET id = id WHERE id = $1`, projectID)
	if err = requireRow(res, err, "project"); err != nil {
		return err
	}

	var n int64
	err = t.Row(ctx, `SELECT COUNT(*) FROM recordings WHERE project_id = $1 AND hold <> '' AND deleted = 0`,
		projectID).Scan(&n)
	if err != nil {
		return fmt.Errorf("finding recordings on hold: %w", err)
	}
	if n > 0 {
		return recordings.ErrHeldIn(n)
	}
	return nil
}
