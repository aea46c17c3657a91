package recordings

import (
	"context"
	"errors"

	"github.com/selvage/selvage/internal/problem"
)

// Calls are the calls that this deployment itself carries, on any of its nodes. Implementations
// are safe for concurrent use.
type Calls interface {
	// FindCall describes a running call of a project, or returns a problem.NotFound.
	FindCall(ctx context.Context, projectID, callSid string) (Description, error)
	// Record makes the recorder of a call follow a recording of it: by the status of rec, it
	// begins, pauses, resumes or stops. For a call that is not carried here, or has ended, the
	// error is a problem.NotFound.
	Record(ctx context.Context, rec Recording) error
}

// noCalls are the calls of a deployment that carries none.
type noCalls struct{}

func (noCalls) FindCall(context.Context, string, string) (Description, error) {
	return Description{}, problem.NoSuch("call")
}

func (noCalls) Record(context.Context, Recording) error { return problem.NoSuch("call") }

// findCall describes a call that can be recorded, and reports whether it is carried here.
func (r *Recordings) findCall(
	ctx context.Context, projectID, callSid, track string,
) (d Description, carried bool, err error) {
	d, err = r.calls.FindCall(ctx, projectID, callSid)
	carried = err == nil
	if err != nil && !errors.Is(err, problem.NotFound) {
		return Description{}, false, err
	}

	d.CallSid, d.Track, d.Source = callSid, track, Sources[0]
	if carried {
		return d, true, nil
	}
	known, err := r.store.AwaitsMedia(ctx, projectID, d.Metadata)
	if err != nil {
		return Description{}, false, err
	}
	if !known {
		return Description{}, false, notInCall()
	}
	return d, false, nil
}

// follow makes the recorder of a call follow a recording. A recorder elsewhere, such as an
// operator's switch, follows by itself.
func (r *Recordings) follow(ctx context.Context, rec Recording) error {
	if err := r.calls.Record(ctx, rec); !errors.Is(err, problem.NotFound) {
		return err
	}
	return nil
}

// mustFollow is follow for a recording that was just added of a call that is carried here. If it
// cannot begin, for example because the call has ended in the meantime, it is deleted.
func (r *Recordings) mustFollow(ctx context.Context, rec Recording) error {
	err := r.calls.Record(ctx, rec)
	if err == nil {
		return nil
	}
	if errors.Is(err, problem.NotFound) {
		err = notInCall()
	}
	return errors.Join(err, r.Delete(context.WithoutCancel(ctx), rec.ProjectID, rec.Sid))
}
