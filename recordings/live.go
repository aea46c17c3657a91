package recordings

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// Live holds the fields of a recording whose call is still in progress.
type Live struct {
	Waits         time.Time // deadline for its media; zero if it is not waiting
	Trim          string    // a member of Trims
	PauseBehavior string    // of the last pause, a member of PauseBehaviors; "" if there was none
	Callback      Callback
}

// The values allowed for a live recording, the default first.
var (
	Trims          = []string{"do-not-trim", "trim-silence"}
	PauseBehaviors = []string{"silence", "skip"}
)

// The codes of the errors of live recordings.
const (
	CodeBadTrim   = "13699"
	CodeNotInCall = "21220"
)

// Announce creates a recording that has begun; an upload brings its media later. If the same
// track of the same call is already being recorded, Announce returns that recording, with
// added false.
func (r *Recordings) Announce(
	ctx context.Context, projectID string, d Description,
) (kept Recording, added bool, err error) {
	if err := r.Check(d); err != nil {
		return Recording{}, false, err
	}
	if d.CallSid == "" && d.ConferenceSid == "" {
		return Recording{}, false, problem.Missing("CallSid")
	}

	subscribers, err := r.subscribers(ctx, projectID, d)
	if err != nil {
		return Recording{}, false, err
	}

	rec, err := r.begin(projectID)
	if err != nil {
		return Recording{}, false, err
	}
	rec.Metadata, rec.Channels = d.Metadata.withDefaults(), max(1, d.Channels)
	rec.Callback = d.Callback.withDefaults()
	return r.addLive(ctx, rec, subscribers)
}

func (r *Recordings) addLive(
	ctx context.Context, rec Recording, subscribers []string,
) (kept Recording, added bool, err error) {
	rec.Status, rec.Waits = InProgress, rec.Created.Add(r.wait)
	if rec.StartTime.IsZero() {
		rec.StartTime = rec.Created.Truncate(time.Second)
	}
	return r.store.AddRecording(ctx, rec, Arrival{Identity: liveIdentity(rec.Metadata), SubscriberIDs: subscribers})
}

// liveIdentity returns the identity of a running recording: each track of a call has at most
// one at a time.
func liveIdentity(m Metadata) string {
	if m.ConferenceSid != "" {
		return "live:conference:" + m.Track + ":" + m.ConferenceSid
	}
	return "live:call:" + m.Track + ":" + m.CallSid
}

// A Start holds the parameters for recording a call. "" means the default.
type Start struct {
	Channels string // mono or dual
	Track    string // a member of Tracks
	Trim     string // a member of Trims
	Callback Callback
}

func (r *Recordings) checkStart(s Start) error {
	errs := []error{
		checkMember("RecordingChannels", s.Channels, []string{"mono", "dual"}),
		checkMember("RecordingTrack", s.Track, Tracks),
		withCode(CodeBadTrim, checkMember("Trim", s.Trim, Trims)),
		r.checkCallback(s.Callback),
	}
	return errors.Join(errs...)
}

// withCode sets the code of a problem to the one that clients know. Other errors are returned
// unchanged.
func withCode(code string, err error) error {
	p := problem.First(err)
	if p == nil {
		return err
	}
	p.Code = code
	return p
}

// notInCall returns the error for a call or conference that is not in progress.
func notInCall() error {
	return problem.New(problem.Invalid, CodeNotInCall,
		"the call is not known to be in progress; announce a recording of it first")
}

// Start begins to record a call that this deployment carries, or of which an announced recording
// waits for its media. If that track is already being recorded, Start applies its parameters
// to that recording and returns it.
func (r *Recordings) Start(ctx context.Context, projectID, callSid string, s Start) (Recording, error) {
	if err := r.checkStart(s); err != nil {
		return Recording{}, err
	}
	call, carried, err := r.findCall(ctx, projectID, callSid, s.Track)
	if err != nil {
		return Recording{}, err
	}
	if carried && s.Channels == "" {
		s.Channels = "dual" // both sides are recorded anyway, and requests can mix them into one channel
	}
	subscribers, err := r.subscribers(ctx, projectID, call)
	if err != nil {
		return Recording{}, err
	}

	rec, err := r.begin(projectID)
	if err != nil {
		return Recording{}, err
	}
	rec.Metadata = call.Metadata.withDefaults()
	s.apply(&rec)

	kept, added, err := r.addLive(ctx, rec, subscribers)
	switch {
	case err != nil:
		return Recording{}, err
	case added && carried:
		return kept, r.mustFollow(ctx, kept)
	case added:
		return kept, nil
	}

	kept, err = r.change(ctx, kept, func(rec *Recording) error {
		if rec.Waits.IsZero() || rec.Status == Stopped { // it ended in the meantime
			return notInCall()
		}
		rec.Status = InProgress
		s.apply(rec)
		return nil
	})
	if err != nil {
		return Recording{}, err
	}
	return kept, r.follow(ctx, kept)
}

func (s Start) apply(rec *Recording) {
	rec.Channels = 1
	if s.Channels == "dual" {
		rec.Channels = 2
	}
	if s.Trim != "" {
		rec.Trim = s.Trim
	}
	rec.Callback = s.Callback.withDefaults()
}

// Move changes the status of a recording that waits for its media: it pauses, resumes or
// stops. A stopped recording cannot resume.
func (r *Recordings) Move(ctx context.Context, rec Recording, to Status, pauseBehavior string) (Recording, error) {
	moves := []Status{Paused, InProgress, Stopped}
	var errs []error
	if !slices.Contains(moves, to) {
		errs = append(errs, problem.BadParam("Status", "Status must be one of paused, in-progress, stopped"))
	}
	errs = append(errs, checkMember("PauseBehavior", pauseBehavior, PauseBehaviors))
	if err := errors.Join(errs...); err != nil {
		return Recording{}, err
	}

	rec, err := r.change(ctx, rec, func(rec *Recording) error {
		if rec.Waits.IsZero() || rec.Status == Stopped && to != Stopped {
			return problem.New(problem.Invalid, CodeNotInCall,
				"the recording is %s and can no longer be %s", rec.Status, to)
		}
		if rec.Status = to; to == Paused {
			rec.PauseBehavior = pauseBehavior
			if pauseBehavior == "" {
				rec.PauseBehavior = PauseBehaviors[0]
			}
		}
		return nil
	})
	if err != nil {
		return Recording{}, err
	}
	return rec, r.follow(ctx, rec)
}

// change applies a change to a waiting recording. If a concurrent change was faster, it
// applies the change again to the new state. Each retry means that another caller succeeded,
// so every caller eventually does.
func (r *Recordings) change(ctx context.Context, rec Recording, change func(*Recording) error) (Recording, error) {
	for {
		old := rec.Updated
		if err := change(&rec); err != nil {
			return Recording{}, err
		}
		if rec.Updated = r.now().Truncate(time.Microsecond); !rec.Updated.After(old) {
			rec.Updated = old.Add(time.Microsecond) // each change needs a distinct time
		}

		rec.Waits = rec.Updated.Add(r.wait)
		identity := liveIdentity(rec.Metadata)
		if rec.Status == Stopped {
			identity = ""
		}

		err := r.store.UpdateRecording(ctx, rec, identity, old)
		if !errors.Is(err, problem.Conflict) {
			return rec, err
		}
		if rec, err = r.store.FindRecording(ctx, Owner{ProjectID: rec.ProjectID}, rec.Sid); err != nil {
			return Recording{}, err
		}
	}
}
