package recordings

import (
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings/levels"
	"github.com/selvage/selvage/recordings/wav"
)

// A Recording is one recorded call or conference, with facts about its audio.
type Recording struct {
	ID        string // IDs are in the order of creation; never shown to clients
	MediaKey  string // key of the media; differs from ID if the media came later or is shared
	Sid       string // 122 random bits
	ProjectID string
	Metadata
	Status    Status
	ErrorCode string // why some or all audio is missing; "" if no audio is missing

	Codec      string // ffmpeg's name, such as pcm_s16le
	SampleRate int
	Channels   int
	Bits       int      // bits per stored sample; 0 if this varies
	Frames     int64    // samples per channel
	Bytes      int64    // size of the file
	SHA256     string   // digest of the file, in hex
	Repairs    []string // faults found in the header, one sentence each
	Price      int64    // in millionths of a dollar, fixed at ingest

	Levels *levels.Facts // nil if the audio was not measured

	Live
	Marks

	Created time.Time
	Updated time.Time
	Deleted time.Time // zero unless deleted
}

// A Status is the state of a recording.
type Status string

// The statuses. In the first three, the recording is waiting for its media.
const (
	InProgress Status = "in-progress"
	Paused     Status = "paused"
	Stopped    Status = "stopped"
	Completed  Status = "completed"
	Absent     Status = "absent" // the recording has no audio, or only silence
)

// NoAudio is the ErrorCode of a recording without audible audio. Its upload contained only a header
// or silence, or its media never arrived.
const NoAudio = "16102"

// Incomplete is the ErrorCode of a completed recording that lacks a part of the call. The recorder
// was interrupted, or its disk was full or slow.
const Incomplete = "16103"

// Metadata describes a recorded call. At most one of CallSid and ConferenceSid is set.
type Metadata struct {
	CallSid       string
	ConferenceSid string
	From, To      string
	Direction     string    // a member of Directions, or ""
	Name          string    // the sender's name for the file; "" if unknown
	Source        string    // a member of Sources
	Track         string    // a member of Tracks
	StartTime     time.Time // zero if unknown
}

// Duration returns the length of the audio.
func (r Recording) Duration() time.Duration {
	facts := wav.Facts{Format: wav.Format{SampleRate: r.SampleRate}, Frames: r.Frames}
	return facts.Duration()
}

// Seconds returns the duration rounded to whole seconds. If the recording has any audio, it is at
// least 1.
func (r Recording) Seconds() int64 {
	if r.Frames == 0 {
		return 0
	}
	return max(1, int64(r.Duration().Round(time.Second)/time.Second))
}

// HasMedia reports whether the recording has media.
func (r Recording) HasMedia() bool { return r.Bytes > 0 && r.Waits.IsZero() && r.Deleted.IsZero() }

// EndTime returns StartTime plus the whole seconds of the recording. If StartTime is unknown, it
// returns the zero time.
func (r Recording) EndTime() time.Time {
	if r.StartTime.IsZero() {
		return time.Time{}
	}
	return r.StartTime.Add(time.Duration(r.Seconds()) * time.Second)
}

// price returns the price of a recording, which is rate for each started minute.
func price(seconds, rate int64) int64 { return (seconds + 59) / 60 * rate }

// An Owner selects recordings. It selects all recordings of a project or, if SubscriberID is set,
// only recordings that belong to this subscriber.
type Owner struct {
	ProjectID    string
	SubscriberID string
	Maker        string // credentials that create links; see [Config.CheckMaker]; may be ""
	OperatorID   string // the operator who is signed in to the dashboard; "" for other callers
}

// MayChange returns problem.Forbidden if o is a subscriber. Subscribers may read their recordings,
// but not change them.
func (o Owner) MayChange() error {
	if o.SubscriberID == "" {
		return nil
	}
	return problem.New(problem.Forbidden, "forbidden", "subscribers may read their recordings but not change them")
}

// A Filter selects the recordings to list.
type Filter struct {
	Owner
	CallSid        string    // "" means any
	ConferenceSid  string    // "" means any
	CallBegins     string    // prefix of the call id; also sorts by call id; "" means any
	Party          string    // caller or callee: a number, its end, or an address; "" means any
	PartyBegins    string    // the beginning of a number or an address; "" means any
	Name           string    // beginnings of words, see Metadata.Words; "" means any
	Direction      string    // a member of Directions; "" means any
	CreatedFrom    time.Time // inclusive; zero means any
	CreatedBefore  time.Time // exclusive; zero means any
	IncludeDeleted bool      // include the stubs of deleted recordings

	DurationFrom, DurationBefore time.Duration // inclusive and exclusive; 0 means any

	Flag levels.Flags // a flag that the recordings must have; 0 means any recording
	Tag  string       // a tag that the recordings must have; "" means any recording
	Held bool         // only recordings on hold
}
