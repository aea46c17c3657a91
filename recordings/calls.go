package recordings

import (
	"context"
	"errors"

	"github.com/selvage/selvage/internal/problem"
)

// Calls gives access to the calls that this deployment carries, on any of its nodes.
// Implementations are safe for concurrent use.
type Calls interface {
	// FindCall describes a running call of a project. If there is no such call, it returns
	// problem.NotFound.
	FindCall(ctx context.Context, projectID, callSid string) (Description, error)
	// Record starts, pauses, resumes or stops recording a call, so that it matches rec.Status. If
	// the call has ended or is not carried here, Record returns problem.NotFound.
	Record(ctx context.Context, rec Recording) error
}

// noCalls implements Calls for a deployment that carries no calls.
type noCalls struct{}

func (noCalls) FindCall(context.Context, string, string) (Description, error) {
	return Description{}, problem.NoSuch("call")
}

func (noCalls) Record(context.Context, Recording) error { return problem.NoSuch("call") }

// findCall describes a call that can be recorded. carried reports whether this deployment carries
// it.
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

// follow makes the recorder of a call match the status of a recording. If this deployment does not
// carry the call, its recorder, such as an operator's switch, follows the status by itself.
func (r *Recordings) follow(ctx context.Context, rec Recording) error {
	if err := r.calls.Record(ctx, rec); !errors.Is(err, problem.NotFound) {
		return err
	}
	return nil
}

// mustFollow is like follow, for a recording that was just added of a call carried here. If
// recording cannot begin, for example because the call has ended, mustFollow deletes the recording.
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
