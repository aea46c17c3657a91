package recordings

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings/levels"
	"github.com/selvage/selvage/recordings/wav"
)

// A Recording is one recorded call or conference, with the facts of its audio.
type Recording struct {
	ID        string // orders by creation; told to nobody
	MediaKey  string // names the media; the ID, but of one that waited for it
	Sid       string // random, 122 bits
	ProjectID string
	Metadata
	Status    Status
	ErrorCode string // why there is no audio; "" where there is

	Codec      string // as ffmpeg names it, such as pcm_s16le
	SampleRate int
	Channels   int
	Bits       int      // of a sample as stored; 0 where a codec has no such number
	Frames     int64    // samples of each channel
	Bytes      int64    // of the file
	SHA256     string   // of the file, in hex
	Repairs    []string // what was wrong with the header, a sentence each
	Price      int64    // millionths of a dollar, frozen at ingest

	Levels *levels.Facts // how it sounds; nil where nothing could be measured

	Live

	Created time.Time
	Updated time.Time
	Deleted time.Time // zero while it lives
}

// A Status says how far a recording has come.
type Status string

// The statuses. In the first three a recording waits for its media.
const (
	InProgress Status = "in-progress"
	Paused     Status = "paused"
	Stopped    Status = "stopped"
	Completed  Status = "completed"
	Absent     Status = "absent" // there is nothing to hear
)

// NoAudio is the ErrorCode of an upload that holds a header and no audio, or
// silence alone, and of a recording that waited for its media in vain.
const NoAudio = "16102"

// Metadata is what is known of the call besides its sound. Only one of CallSid
// and ConferenceSid is set.
type Metadata struct {
	CallSid       string
	ConferenceSid string
	From, To      string
	Direction     string    // a member of Directions, or ""
	Source        string    // a member of Sources
	Track         string    // a member of Tracks
	StartTime     time.Time // zero where unknown
}

// Duration is the length of the audio.
func (r Recording) Duration() time.Duration {
	var f wav.Facts
	f.SampleRate, f.Frames = r.SampleRate, r.Frames
	return f.Duration()
}

// Seconds is the duration in whole seconds, to the nearest, and at least one
// where there is any audio.
func (r Recording) Seconds() int64 {
	if r.Frames == 0 {
		return 0
	}
	return max(1, int64(r.Duration().Round(time.Second)/time.Second))
}

// HasMedia tells whether there are bytes of it.
func (r Recording) HasMedia() bool { return r.Bytes > 0 && r.Waits.IsZero() && r.Deleted.IsZero() }

// EndTime is when the recording ended, by its whole seconds; zero where it is not
// known when it began.
func (r Recording) EndTime() time.Time {
	if r.StartTime.IsZero() {
		return time.Time{}
	}
	return r.StartTime.Add(time.Duration(r.Seconds()) * time.Second)
}

// price is what a number of seconds costs: each minute begun, at the rate of a
// minute.
func price(seconds, rate int64) int64 { return (seconds + 59) / 60 * rate }

// An Owner says whose recordings are meant: all of a project or, with a
// SubscriberID, those of them that are tied to that subscriber.
type Owner struct {
	ProjectID    string
	SubscriberID string
}

// MayChange refuses a subscriber, who may read its recordings and change nothing.
func (o Owner) MayChange() error {
	if o.SubscriberID == "" {
		return nil
	}
	return problem.New(problem.Forbidden, "forbidden", "a subscriber may read its recordings and change nothing")
}

// A Filter says which recordings to list.
type Filter struct {
	Owner
	CallSid        string    // "" means any
	ConferenceSid  string    // "" means any
	CallBegins     string    // of calls whose ids begin so, listed by these ids; "" means any
	Party          string    // who called or was called: a number, or an address; "" means any
	Direction      string    // a member of Directions; "" means any
	CreatedFrom    time.Time // that moment or later; zero means any
	CreatedBefore  time.Time // before that moment; zero means any
	IncludeDeleted bool      // the stubs too

	Flag levels.Flags // one flag that they have; 0 means any recording
}

// newID makes an ID at a time: a UUID of version 7, with the fraction of the
// millisecond behind the version (RFC 9562, section 6.2, method 3).
func newID(now time.Time) (string, error) {
	u, err := uuid.NewRandom()
	if err != nil {
		return "", fmt.Errorf("making an id: %w", err)
	}
	stamp(&u, now)
	fraction := now.Nanosecond() % int(time.Millisecond) >> 8
	binary.BigEndian.PutUint16(u[6:], 7<<12|uint16(fraction))
	return u.String(), nil
}

// FirstID returns the least ID that a recording made at or after a time can have,
// so that a store can find recordings by time through their IDs.
func FirstID(at time.Time) string {
	var u uuid.UUID
	stamp(&u, at)
	return u.String()
}

func stamp(u *uuid.UUID, at time.Time) {
	ms := uint64(max(0, at.UnixMilli()))
	binary.BigEndian.PutUint32(u[0:], uint32(ms>>16))
	binary.BigEndian.PutUint16(u[4:], uint16(ms))
}
