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
	Waits         time.Time // deadline for the media; zero if the recording is not waiting
	Trim          string    // a member of Trims
	PauseBehavior string    // a member of PauseBehaviors for the last pause; "" without a pause
	Callback      Callback
}

// These lists contain the values allowed for a recording in progress, the default first.
var (
	Trims          = []string{"do-not-trim", "trim-silence"}
	PauseBehaviors = []string{"silence", "skip"}
)

// Error codes for recordings in progress.
const (
	CodeBadTrim   = "13699"
	CodeNotInCall = "21220"
)

// Announce creates a recording that has begun and whose media will be uploaded later. If the same
// track of the same call is already being recorded, Announce returns the existing recording, with
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

	rec := r.begin(projectID)
	rec.Metadata = d.Metadata.withDefaults()
	rec.Channels = max(1, d.Channels)
	rec.Callback = d.Callback.withDefaults()
	return r.addLive(ctx, rec, subscribers)
}

// addLive adds a recording that is in progress and waits for its media.
func (r *Recordings) addLive(
	ctx context.Context, rec Recording, subscribers []string,
) (kept Recording, added bool, err error) {
	rec.Status = InProgress
	rec.Waits = rec.Created.Add(r.c.Wait)
	if rec.StartTime.IsZero() {
		rec.StartTime = rec.Created.Truncate(time.Second)
	}
	return r.c.Store.AddRecording(ctx, rec, Arrival{
		Identity:      liveIdentity(rec.Metadata),
		SubscriberIDs: subscribers,
	})
}

// liveIdentity returns the identity of a recording in progress. Each track of a call can have only
// one recording in progress at a time.
func liveIdentity(m Metadata) string {
	if m.ConferenceSid != "" {
		return "live:conference:" + m.Track + ":" + m.ConferenceSid
	}
	return "live:call:" + m.Track + ":" + m.CallSid
}

// A Start holds the parameters for recording a call. Empty fields mean the defaults.
type Start struct {
	Channels string // mono or dual
	Track    string // a member of Tracks
	Trim     string // a member of Trims
	Callback Callback
}

// checkStart returns an error that lists all faults of the parameters.
func (r *Recordings) checkStart(s Start) error {
	return errors.Join(
		checkMember("RecordingChannels", s.Channels, []string{"mono", "dual"}),
		checkMember("RecordingTrack", s.Track, Tracks),
		withCode(CodeBadTrim, checkMember("Trim", s.Trim, Trims)),
		r.checkCallback(s.Callback),
	)
}

// fit checks the parameters against what is known about a call that this deployment carries. It
// fills in missing fields of both.
func (s *Start) fit(call *Description) error {
	onlyTrack, isMono := call.Track, call.Channels == 1
	if onlyTrack != "" && s.Track != "" && s.Track != onlyTrack {
		return problem.BadParam("RecordingTrack", "RecordingTrack must be %s here", onlyTrack)
	}
	if isMono && s.Channels == "dual" {
		return problem.BadParam("RecordingChannels", "RecordingChannels must be mono here")
	}
	if !isMono && s.Channels == "" {
		s.Channels = "dual" // both sides are recorded, and can be mixed on request
	}
	if onlyTrack == "" {
		call.Track = s.Track
	}
	return nil
}

// withCode sets the code of a problem to the code that existing clients expect. It returns other
// errors unchanged.
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

// Start begins to record a call. Either this deployment must carry the call, or an announced
// recording of the call must be waiting for its media. If the same track is already being recorded,
// Start applies the parameters to the existing recording, resumes it if it is paused, and returns
// it.
func (r *Recordings) Start(ctx context.Context, projectID, callSid string, s Start) (Recording, error) {
	return r.start(ctx, projectID, Metadata{CallSid: callSid}, s)
}

// StartConference is like Start, for a conference.
func (r *Recordings) StartConference(ctx context.Context, projectID, sid string, s Start) (Recording, error) {
	return r.start(ctx, projectID, Metadata{ConferenceSid: sid}, s)
}

func (r *Recordings) start(ctx context.Context, projectID string, of Metadata, s Start) (Recording, error) {
	if err := r.checkStart(s); err != nil {
		return Recording{}, err
	}
	call, carried, err := r.findCall(ctx, projectID, of)
	if err != nil {
		return Recording{}, err
	}
	if carried {
		if err := s.fit(&call); err != nil {
			return Recording{}, err
		}
	} else {
		call.Track = s.Track
	}

	subscribers, err := r.subscribers(ctx, projectID, call)
	if err != nil {
		return Recording{}, err
	}

	rec := r.begin(projectID)
	rec.Metadata = call.Metadata.withDefaults()
	s.apply(&rec)

	kept, added, err := r.addLive(ctx, rec, subscribers)
	if err != nil {
		return Recording{}, err
	}
	if added && carried {
		return kept, r.mustFollow(ctx, kept)
	}
	if added {
		return kept, nil
	}

	kept, err = r.change(ctx, kept, func(rec *Recording) error {
		if rec.Waits.IsZero() || rec.Status == Stopped { // the recording ended in the meantime
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

// apply sets the parameters of a recording. Without a new callback, a recording keeps the callback
// that it has.
func (s Start) apply(rec *Recording) {
	rec.Channels = 1
	if s.Channels == "dual" {
		rec.Channels = 2
	}
	if s.Trim != "" {
		rec.Trim = s.Trim
	}
	if s.Callback.URL != "" {
		rec.Callback = s.Callback.withDefaults()
	}
}

// Move pauses, resumes or stops a recording that is waiting for its media. A stopped recording
// cannot be resumed.
func (r *Recordings) Move(ctx context.Context, rec Recording, to Status, pauseBehavior string) (Recording, error) {
	var badStatus error
	if !slices.Contains([]Status{Paused, InProgress, Stopped}, to) {
		badStatus = problem.BadParam("Status", "Status must be one of paused, in-progress, stopped")
	}
	badPause := checkMember("PauseBehavior", pauseBehavior, PauseBehaviors)
	if err := errors.Join(badStatus, badPause); err != nil {
		return Recording{}, err
	}

	rec, err := r.change(ctx, rec, func(rec *Recording) error {
		if rec.Waits.IsZero() || rec.Status == Stopped && to != Stopped {
			return problem.New(problem.Invalid, CodeNotInCall,
				"the recording is %s and can no longer be %s", rec.Status, to)
		}
		rec.Status = to
		if to == Paused {
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

// change applies a function to a waiting recording. If the recording was changed concurrently, the
// function is applied again, to the new state. A retry means that another caller has succeeded, so
// concurrent callers cannot block each other.
func (r *Recordings) change(ctx context.Context, rec Recording, change func(*Recording) error) (Recording, error) {
	for {
		old := rec.Updated
		if err := change(&rec); err != nil {
			return Recording{}, err
		}
		rec.Updated = r.c.Now().Truncate(time.Microsecond)
		if !rec.Updated.After(old) {
			rec.Updated = old.Add(time.Microsecond) // each change must have a different time
		}

		rec.Waits = rec.Updated.Add(r.c.Wait)
		identity := liveIdentity(rec.Metadata)
		if rec.Status == Stopped {
			identity = ""
		}

		err := r.c.Store.UpdateRecording(ctx, rec, identity, old)
		if err == nil {
			return rec, nil
		}
		if !errors.Is(err, problem.Conflict) {
			return Recording{}, err
		}
		rec, err = r.c.Store.FindRecording(ctx, Owner{ProjectID: rec.ProjectID}, rec.Sid)
		if err != nil {
			return Recording{}, err
		}
	}
}
