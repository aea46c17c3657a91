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

// Find returns a recording of the owner. One that is unknown, deleted or another's
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

// List returns a page of recordings, newest first; those of calls that begin so come by the
// ids of the calls.
func (r *Recordings) List(ctx context.Context, f Filter, q page.Query) (page.Page[Recording], error) {
	return r.store.ListRecordings(ctx, f, q)
}

// minBeginning is how much of a Sid is asked for: with less there are many.
const minBeginning = 6

// FindBeginning returns the recordings of a project whose Sids begin so, fifty at most; none
// of a beginning of fewer than six letters.
func (r *Recordings) FindBeginning(ctx context.Context, projectID, sid string) ([]Recording, error) {
	if len(sid) < minBeginning {
		return nil, nil
	}
	return r.store.FindRecordingsBeginning(ctx, projectID, strings.ToLower(sid))
}

// unfinished is how long a client is told to wait for a recording that waits for
// its media itself.
const unfinished = 5 * time.Second

// withMedia returns a recording of the owner, as it was within the last 300 ms. One
// without bytes is a problem.NotFound.
func (r *Recordings) withMedia(ctx context.Context, o Owner, sid string) (Recording, error) {
	rec, err := r.lately.Load(o.ProjectID+"\n"+o.SubscriberID+"\n"+sid, func() (Recording, error) {
		return r.Find(ctx, o, sid)
	})
	switch {
	case err != nil:
		return Recording{}, err
	case !rec.Waits.IsZero():
		return Recording{}, &problem.Error{Kind: problem.NotFound, Code: "not_found",
			Message: "the recording is not complete yet", RetryAfter: unfinished}
	case rec.Bytes == 0:
		return Recording{}, problem.New(problem.NotFound, "not_found", "the recording has no media: none ever came")
	}
	return rec, nil
}

// unlessGone returns why there are no bytes: the recording was deleted since its row
// was read, else err.
func (r *Recordings) unlessGone(ctx context.Context, o Owner, sid string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := r.Find(ctx, o, sid); gone != nil {
			return gone
		}
	}
	return err
}

// Open returns a recording of the owner, as it was within the last 300 ms, and its
// bytes as they came. One without bytes is a problem.NotFound.
func (r *Recordings) Open(ctx context.Context, o Owner, sid string) (Recording, io.ReadSeekCloser, error) {
	rec, err := r.withMedia(ctx, o, sid)
	if err != nil {
		return Recording{}, nil, err
	}
	media, err := r.media.Open(rec.MediaKey)
	if err != nil {
		return Recording{}, nil, r.unlessGone(ctx, o, sid, fmt.Errorf("opening media of %s: %w", rec.ID, err))
	}
	return rec, media, nil
}

// Delete removes the bytes of a project's recording and leaves a stub of its row
// for [StubLife].
func (r *Recordings) Delete(ctx context.Context, projectID, sid string) error {
	if !isUUID(sid) {
		return problem.NoSuch("recording")
	}
	defer r.lately.Clear()
	key, err := r.store.DeleteRecording(ctx, projectID, sid, r.now())
	if err != nil {
		return err
	}
	if err := r.media.Remove(key, partNames...); err != nil {
		return fmt.Errorf("removing media of %s: %w", key, err)
	}
	return nil
}

// Forget removes the bytes of recordings whose rows were deleted otherwise, by the keys of
// their media.
func (r *Recordings) Forget(keys ...string) error {
	defer r.lately.Clear()
	var errs []error
	for _, key := range keys {
		if err := r.media.Remove(key, partNames...); err != nil {
			errs = append(errs, fmt.Errorf("removing media of %s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// Sweep removes what is left of killed uploads and of deleted recordings, and
// the stubs whose time is over, and gives up waiting for media that never came.
// Run it at start and every minute.
func (r *Recordings) Sweep(ctx context.Context) error {
	return errors.Join(
		r.store.GiveUpRecordings(ctx, r.now()),
		r.store.SweepRecordings(ctx, r.now().Add(-StubLife)),
		r.media.Sweep(ctx, r.store.MediaInUse),
	)
}
