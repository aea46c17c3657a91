package recordings

import (
	"context"
	"errors"

	"github.com/selvage/selvage/internal/problem"
)

// Calls gives access to the calls and conferences that this deployment carries, on any of its
// nodes. Implementations are safe for concurrent use.
type Calls interface {
	// FindCall describes a running call of a project. If no such call exists, it returns
	// problem.NotFound. If the description has a Track, only this track can be recorded. If its
	// Channels is 1, the call can only be recorded in one channel.
	FindCall(ctx context.Context, projectID, callSid string) (Description, error)
	// FindConference is like FindCall, for a conference.
	FindConference(ctx context.Context, projectID, conferenceSid string) (Description, error)
	// Record starts, pauses, resumes or stops recording a call or conference, so that the recorder
	// matches rec.Status. If the call has ended or is not carried here, Record returns
	// problem.NotFound.
	Record(ctx context.Context, rec Recording) error
}

// noCalls implements Calls for a deployment that carries no calls.
type noCalls struct{}

func (noCalls) FindCall(context.Context, string, string) (Description, error) {
	return Description{}, problem.NoSuch("call")
}

func (noCalls) FindConference(context.Context, string, string) (Description, error) {
	return Description{}, problem.NoSuch("conference")
}

func (noCalls) Record(context.Context, Recording) error { return problem.NoSuch("call") }

// findCall describes the call or conference whose id is in of. carried reports whether this
// deployment carries it. If the call or conference is neither carried here nor announced, findCall
// returns the error of notInCall.
func (r *Recordings) findCall(
	ctx context.Context, projectID string, of Metadata,
) (d Description, carried bool, err error) {
	if of.ConferenceSid != "" {
		d, err = r.c.Calls.FindConference(ctx, projectID, of.ConferenceSid)
	} else {
		d, err = r.c.Calls.FindCall(ctx, projectID, of.CallSid)
	}
	carried = err == nil
	if err != nil && !errors.Is(err, problem.NotFound) {
		return Description{}, false, err
	}

	d.CallSid = of.CallSid
	d.ConferenceSid = of.ConferenceSid
	d.Source = ""
	if carried {
		return d, true, nil
	}
	known, err := r.c.Store.AwaitsMedia(ctx, projectID, d.Metadata)
	if err != nil {
		return Description{}, false, err
	}
	if !known {
		return Description{}, false, notInCall()
	}
	return d, false, nil
}

// follow makes the recorder of a call match the status of a recording. If this deployment does not
// carry the call, follow does nothing: the call is recorded by another system, such as an operator's
// switch, which follows the status by itself.
func (r *Recordings) follow(ctx context.Context, rec Recording) error {
	if err := r.c.Calls.Record(ctx, rec); !errors.Is(err, problem.NotFound) {
		return err
	}
	return nil
}

// mustFollow is like follow, for a newly added recording of a call carried here. If recording
// cannot begin, for example because the call has ended, mustFollow deletes the recording.
func (r *Recordings) mustFollow(ctx context.Context, rec Recording) error {
	err := r.c.Calls.Record(ctx, rec)
	if err == nil {
		return nil
	}
	if errors.Is(err, problem.NotFound) {
		err = notInCall()
	}
	return errors.Join(err, r.delete(context.WithoutCancel(ctx), rec.ProjectID, rec.Sid))
}
