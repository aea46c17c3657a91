package recordings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Find returns one of the owner's recordings. If the recording is unknown, deleted, or belongs to
// another owner, Find always returns the same problem.NotFound.
func (r *Recordings) Find(ctx context.Context, o Owner, sid string) (Recording, error) {
	if !isUUID(sid) || !isUUID(o.ProjectID) {
		return Recording{}, problem.NoSuch("recording")
	}
	return r.c.Store.FindRecording(ctx, o, sid)
}

// isUUID reports whether id is a UUID in canonical form. No row has any other id.
func isUUID(id string) bool {
	u, err := uuid.Parse(id)
	return err == nil && u.String() == id
}

// List returns a page of recordings, newest first. If the filter has CallBegins, List sorts them by
// call id instead.
func (r *Recordings) List(ctx context.Context, f Filter, q page.Query) (page.Page[Recording], error) {
	return r.c.Store.ListRecordings(ctx, f, q)
}

// minBeginning is the minimum length of a prefix in a search for Sids. A shorter prefix would match
// too many recordings.
const minBeginning = 6

// FindBeginning returns at most fifty recordings of a project whose Sids begin with sid. If sid has
// fewer than six characters, it returns none.
func (r *Recordings) FindBeginning(ctx context.Context, projectID, sid string) ([]Recording, error) {
	if len(sid) < minBeginning {
		return nil, nil
	}
	return r.c.Store.FindRecordingsBeginning(ctx, projectID, strings.ToLower(sid))
}

// unfinished is the Retry-After for a recording that is still waiting for its media.
const unfinished = 5 * time.Second

// withMedia returns one of the owner's recordings. The result may be up to 300 ms old. If the
// recording has no media, withMedia returns problem.NotFound.
func (r *Recordings) withMedia(ctx context.Context, o Owner, sid string) (Recording, error) {
	rec, err := r.recent.Load(o.ProjectID+"\n"+o.SubscriberID+"\n"+sid, func() (Recording, error) {
		return r.Find(ctx, o, sid)
	})
	if err != nil {
		return Recording{}, err
	}
	if !rec.Waits.IsZero() {
		return Recording{}, &problem.Error{
			Kind:       problem.NotFound,
			Code:       "not_found",
			Message:    "the recording is not complete yet",
			RetryAfter: unfinished,
		}
	}
	if rec.Bytes == 0 {
		return Recording{}, problem.New(problem.NotFound, "not_found", "the recording has no media: none was uploaded")
	}
	return rec, nil
}

// unlessGone returns err, unless err reports missing media and the recording has been deleted since
// its row was read. It then returns problem.NotFound.
func (r *Recordings) unlessGone(ctx context.Context, o Owner, sid string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := r.Find(ctx, o, sid); gone != nil {
			return gone
		}
	}
	return err
}

// Open returns one of the owner's recordings and its original bytes. The row of the recording may
// be up to 300 ms old. If the recording has no media, Open returns problem.NotFound.
func (r *Recordings) Open(ctx context.Context, o Owner, sid string) (Recording, io.ReadSeekCloser, error) {
	rec, err := r.withMedia(ctx, o, sid)
	if err != nil {
		return Recording{}, nil, err
	}

	media, err := r.c.Media.Open(rec.MediaKey)
	if err != nil {
		return Recording{}, nil, r.unlessGone(ctx, o, sid, fmt.Errorf("opening media of %s: %w", rec.ID, err))
	}

	if err := checkSize(media, rec.Bytes); err != nil {
		return Recording{}, nil, errors.Join(fmt.Errorf("opening media of %s: %w", rec.ID, err), media.Close())
	}
	return rec, media, nil
}

// checkSize returns an error unless media has this many bytes. It leaves media at its start.
func checkSize(media io.Seeker, want int64) error {
	size, err := media.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size != want {
		return fmt.Errorf("it has %d bytes instead of %d", size, want)
	}
	_, err = media.Seek(0, io.SeekStart)
	return err
}

// Delete removes the media of a project's recording. Its row remains as a stub for [StubLife]. If
// the recording is on hold, Delete returns problem.Conflict. If the recording is in progress, its
// recorder stops.
func (r *Recordings) Delete(ctx context.Context, projectID, sid string) error {
	rec, err := r.Find(ctx, Owner{ProjectID: projectID}, sid)
	if err != nil {
		return err
	}
	if err := r.delete(ctx, projectID, sid); err != nil {
		return err
	}
	if rec.Waits.IsZero() {
		return nil
	}
	rec.Status = Stopped
	if err := r.follow(context.WithoutCancel(ctx), rec); err != nil { // not fatal: the recorder stops with the call
		r.c.Log.ErrorContext(ctx, "stopping the recorder of a deleted recording", "id", rec.ID, "error", err)
	}
	return nil
}

// delete is like Delete, but does not stop a recorder.
func (r *Recordings) delete(ctx context.Context, projectID, sid string) error {
	defer r.recent.Clear()
	key, err := r.c.Store.DeleteRecording(ctx, projectID, sid, Removal{At: r.c.Now()})
	if err != nil {
		return err
	}
	return r.removeMedia(ctx, key)
}

// A Removal describes when and why a recording is deleted, and under which condition.
type Removal struct {
	At        time.Time
	Why       string    // such as "retention"; "" if the deletion was requested
	Unchanged time.Time // do not delete a recording that changed after this time; zero means no condition
}

// removeMedia removes the media with this key, unless another recording has the same key. It
// continues if ctx is canceled, because the recording has already been deleted.
func (r *Recordings) removeMedia(ctx context.Context, key string) error {
	ctx = context.WithoutCancel(ctx)
	// After the last recording with this key was deleted, no upload can begin to share the media.
	used, err := r.c.Store.MediaInUse(ctx, key, key)
	if err != nil || len(used) > 0 {
		return err
	}
	if err := r.c.Media.Remove(key, partNames...); err != nil {
		return fmt.Errorf("removing media of %s: %w", key, err)
	}
	return nil
}

// Forget removes the media with these keys. Call it after rows of recordings were deleted by
// something other than Delete.
func (r *Recordings) Forget(ctx context.Context, keys ...string) error {
	defer r.recent.Clear()
	var errs []error
	for _, key := range keys {
		errs = append(errs, r.removeMedia(ctx, key))
	}
	return errors.Join(errs...)
}

// Sweep removes the remains of interrupted uploads and deleted recordings, and stubs that are older
// than [StubLife]. It marks recordings as absent if their media did not arrive in time. It expires
// and deletes old deliveries to callbacks, and makes recordings from older versions searchable.
// Once an hour, it deletes recordings whose retention has expired. Call it at start and every
// minute.
func (r *Recordings) Sweep(ctx context.Context) error {
	return errors.Join(
		r.c.Store.GiveUpRecordings(ctx, r.c.Now(), r.c.Wait),
		r.Retention().applyInTurn(ctx),
		r.c.Store.SweepRecordings(ctx, r.c.Now().Add(-StubLife)),
		r.sweepCallbacks(ctx),
		r.c.Store.IndexRecordings(ctx),
		r.c.Media.Sweep(ctx, r.c.Store.MediaInUse),
	)
}
