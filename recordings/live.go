package recordings

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// Live is what belongs to a recording of a call that is not over.
type Live struct {
	Waits         time.Time // until when it waits for its media; zero if it does not
	Trim          string    // a member of Trims
	PauseBehavior string    // a member of PauseBehaviors, of the last pause; "" if there was none
	Callback      Callback
}

// A Callback is whom to tell how a recording gets on.
type Callback struct {
	URL    string   // "" tells nobody
	Events []string // members of CallbackEvents
	Method string   // a member of CallbackMethods
}

// The values that go with a live recording, the default first.
var (
	Trims           = []string{"do-not-trim", "trim-silence"}
	PauseBehaviors  = []string{"silence", "skip"}
	CallbackEvents  = []string{"completed", "in-progress", "absent"}
	CallbackMethods = []string{"POST", "GET"}
)

// The codes of what a live recording may be refused for.
const (
	CodeBadEvent  = "13621"
	CodeBadTrim   = "13699"
	CodeNotInCall = "21220"
)

// maxURL bounds the URL of a callback, in bytes.
const maxURL = 2048

// Announce notes a recording that has begun, and whose media an upload brings
// later. Another announcement of the same track of the same call gives the one
// that runs; then added is false.
func (r *Recordings) Announce(ctx context.Context, projectID string, d Description) (kept Recording, added bool, err error) {
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
	rec.Metadata, rec.Channels = d.Metadata.withDefaults(), 1
	return r.addLive(ctx, rec, subscribers)
}

func (r *Recordings) addLive(ctx context.Context, rec Recording, subscribers []string) (kept Recording, added bool, err error) {
	rec.Status, rec.Waits = InProgress, rec.Created.Add(r.wait)
	if rec.StartTime.IsZero() {
		rec.StartTime = rec.Created.Truncate(time.Second)
	}
	return r.store.AddRecording(ctx, rec, Arrival{Identity: liveIdentity(rec.Metadata), SubscriberIDs: subscribers})
}

// liveIdentity is that of a recording that runs: of a track of a call there is one
// at a time.
func liveIdentity(m Metadata) string {
	if m.ConferenceSid != "" {
		return "live:conference:" + m.Track + ":" + m.ConferenceSid
	}
	return "live:call:" + m.Track + ":" + m.CallSid
}

// A Start is what is said when the recording of a call is to begin. "" means the
// default.
type Start struct {
	Channels string // mono or dual
	Track    string // a member of Tracks
	Trim     string // a member of Trims
	Callback Callback
}

func (s *Start) check() error {
	errs := []error{
		checkMember("RecordingChannels", s.Channels, []string{"mono", "dual"}),
		checkMember("RecordingTrack", s.Track, Tracks),
		withCode(CodeBadTrim, checkMember("Trim", s.Trim, Trims)),
		s.Callback.check(),
	}
	return errors.Join(errs...)
}

// check finds what is wrong with a callback, and fills in its defaults.
func (c *Callback) check() error {
	errs := []error{checkMember("RecordingStatusCallbackMethod", c.Method, CallbackMethods)}
	for _, event := range c.Events {
		if !slices.Contains(CallbackEvents, event) {
			errs = append(errs, withCode(CodeBadEvent, problem.BadParam("RecordingStatusCallbackEvent",
				"RecordingStatusCallbackEvent must be of %s", strings.Join(CallbackEvents, ", "))))
			break
		}
	}
	slices.SortFunc(c.Events, func(a, b string) int {
		return slices.Index(CallbackEvents, a) - slices.Index(CallbackEvents, b)
	})
	c.Events = slices.Compact(c.Events)
	if c.URL != "" {
		errs = append(errs, checkText("RecordingStatusCallback", c.URL, maxURL))
		u, err := url.Parse(c.URL)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Opaque != "" {
			errs = append(errs, problem.BadParam(
				"RecordingStatusCallback", "RecordingStatusCallback must be an http or https URL"))
		}
		if c.Method == "" {
			c.Method = CallbackMethods[0]
		}
		if len(c.Events) == 0 {
			c.Events = CallbackEvents[:1]
		}
	}
	return errors.Join(errs...)
}

// withCode returns a problem the code that clients know it by.
func withCode(code string, err error) error {
	p := problem.First(err)
	if p == nil {
		return err
	}
	p.Code = code
	return p
}

// notInCall is the answer where there is no call or conference to record.
func notInCall() error {
	return problem.New(problem.Invalid, CodeNotInCall,
		"the call is not in progress, as far as is known here; a recording that was announced makes it known")
}

// Start begins to record a call that is known because a recording of it waits for
// its media. If the one that was announced runs, it is that one, with what Start
// says of it.
func (r *Recordings) Start(ctx context.Context, projectID, callSid string, s Start) (Recording, error) {
	if err := s.check(); err != nil {
		return Recording{}, err
	}
	call := Metadata{CallSid: callSid, Track: s.Track, Source: Sources[0]}
	known, err := r.store.AwaitsMedia(ctx, projectID, call)
	if err == nil && !known {
		err = notInCall()
	}
	if err != nil {
		return Recording{}, err
	}
	rec, err := r.begin(projectID)
	if err != nil {
		return Recording{}, err
	}
	rec.Metadata = call.withDefaults()
	s.apply(&rec)
	kept, added, err := r.addLive(ctx, rec, nil)
	if err != nil || added {
		return kept, err
	}
	return r.change(ctx, kept, func(rec *Recording) error {
		if rec.Waits.IsZero() || rec.Status == Stopped { // meanwhile
			return notInCall()
		}
		rec.Status = InProgress
		s.apply(rec)
		return nil
	})
}

func (s Start) apply(rec *Recording) {
	rec.Channels = 1
	if s.Channels == "dual" {
		rec.Channels = 2
	}
	if s.Trim != "" {
		rec.Trim = s.Trim
	}
	rec.Callback = s.Callback
}

// Move takes a recording that waits for its media to another status: it pauses,
// goes on or stops. What is stopped does not go on.
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
	return r.change(ctx, rec, func(rec *Recording) error {
		if rec.Waits.IsZero() || rec.Status == Stopped && to != Stopped {
			return problem.New(problem.Invalid, CodeNotInCall,
				"the recording is %s, and can not be %s any more", rec.Status, to)
		}
		if rec.Status = to; to == Paused {
			rec.PauseBehavior = pauseBehavior
			if pauseBehavior == "" {
				rec.PauseBehavior = PauseBehaviors[0]
			}
		}
		return nil
	})
}

// change changes a recording that waits, again from what it has become where
// another was faster. Each time it was one who got on, so that all get their turn.
func (r *Recordings) change(ctx context.Context, rec Recording, change func(*Recording) error) (Recording, error) {
	for {
		old := rec.Updated
		if err := change(&rec); err != nil {
			return Recording{}, err
		}
		if rec.Updated = r.now().Truncate(time.Microsecond); !rec.Updated.After(old) {
			rec.Updated = old.Add(time.Microsecond) // every change has a time of its own
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
