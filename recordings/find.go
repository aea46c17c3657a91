package recordings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Find gives a recording of the owner. One that is unknown, deleted or another's
// is a problem.NotFound, always the same.
func (r *Recordings) Find(ctx context.Context, o Owner, sid string) (Recording, error) {
	if !isUUID(sid) || !isUUID(o.ProjectID) {
		return Recording{}, problem.NoSuch("recording")
	}
	return r.store.FindRecording(ctx, o, sid)
}

// isUUID tells whether an id is written as ids are, so that nothing else reaches
// a store.
func isUUID(id string) bool {
	u, err := uuid.Parse(id)
	return err == nil && u.String() == id
}

// List gives a page of recordings, newest first.
func (r *Recordings) List(ctx context.Context, f Filter, q page.Query) (page.Page[Recording], error) {
	return r.store.ListRecordings(ctx, f, q)
}

// Open gives a project's recording, as it was within the last 300 ms, and its
// bytes as they came.
func (r *Recordings) Open(ctx context.Context, projectID, sid string) (Recording, io.ReadSeekCloser, error) {
	rec, err := r.lately.Load(projectID+sid, func() (Recording, error) { return r.Find(ctx, Owner{ProjectID: projectID}, sid) })
	if err != nil {
		return Recording{}, nil, err
	}
	media, err := r.media.Open(rec.ID)
	if errors.Is(err, fs.ErrNotExist) {
		// Deleted since the row was read, unless the row is still there.
		if _, gone := r.Find(ctx, Owner{ProjectID: projectID}, sid); gone != nil {
			return Recording{}, nil, gone
		}
	}
	if err != nil {
		return Recording{}, nil, fmt.Errorf("opening media of %s: %w", rec.ID, err)
	}
	return rec, media, nil
}

// Delete removes the bytes of a project's recording and leaves a stub of its row
// for [StubLife].
func (r *Recordings) Delete(ctx context.Context, projectID, sid string) error {
	if !isUUID(sid) {
		return problem.NoSuch("recording")
	}
	defer r.lately.Drop(projectID + sid)
	id, err := r.store.DeleteRecording(ctx, projectID, sid, r.now())
	if err != nil {
		return err
	}
	if err := r.media.Remove(id); err != nil {
		return fmt.Errorf("removing media of %s: %w", id, err)
	}
	return nil
}

// Sweep removes what is left of killed uploads and of deleted recordings, and
// the stubs whose time is over. Run it at start and every minute.
func (r *Recordings) Sweep(ctx context.Context) error {
	return errors.Join(
		r.store.SweepRecordings(ctx, r.now().Add(-StubLife)),
		r.media.Sweep(ctx, r.store.MediaInUse),
	)
}
