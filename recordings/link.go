package recordings

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A MediaAuth says who may fetch the media of a project's recordings. Whatever it
// is, the rest of a recording needs credentials.
type MediaAuth string

// The ways.
const (
	Public MediaAuth = "public" // whoever knows the Sid
	Basic  MediaAuth = "basic"  // who may see the recording's document
	Signed MediaAuth = "signed" // those, and whoever has a link that they made
)

// LongestLink is how long a link can last: its key is kept for longer.
const LongestLink = 30 * 24 * time.Hour

// Links makes and verifies the codes of links, under keys that all nodes have and
// that no other purpose shares.
type Links interface {
	// Code returns the code of a message, which verifies for 31 days.
	Code(purpose, message string) (code string, err error)
	// VerifyCode tells, in a time that says nothing about it, whether code is that of
	// the message.
	VerifyCode(purpose, message, code string) bool
}

// A Link lets its bearer fetch the media of one recording in one format.
type Link struct {
	Expires   time.Time
	Signature string
}

// MediaAuth tells who may fetch the media of a project, as it was within the last
// 300 ms. For an unknown project that is a problem.NotFound, as for an unknown
// recording.
func (r *Recordings) MediaAuth(ctx context.Context, projectID string) (MediaAuth, error) {
	if !isUUID(projectID) {
		return "", problem.NoSuch("recording")
	}
	auth, err := r.auth.Load(projectID, func() (MediaAuth, error) { return r.store.MediaAuth(ctx, projectID) })
	if errors.Is(err, problem.NotFound) {
		err = problem.NoSuch("recording")
	}
	return auth, err
}

// Sign makes a link to a recording in a format, for a time.
func (r *Recordings) Sign(rec Recording, f Format, lasts time.Duration) (Link, error) {
	if r.links == nil {
		return Link{}, errors.New("signing link: there are no keys")
	}
	expires := r.now().Add(lasts).Truncate(time.Second)
	code, err := r.links.Code(purpose(rec.ProjectID), message(rec.Sid, f, expires.Unix()))
	return Link{expires, code}, err
}

// Verify tells whether a link to a recording in a format holds. exp and sig are
// what it says.
func (r *Recordings) Verify(projectID, sid string, f Format, exp, sig string) bool {
	expires, err := strconv.ParseInt(exp, 10, 64)
	if err != nil || r.links == nil || strconv.FormatInt(expires, 10) != exp || sig == "" {
		return false
	}
	now := r.now()
	if at := time.Unix(expires, 0); !now.Before(at) || at.After(now.Add(LongestLink+time.Minute)) {
		return false
	}
	return r.links.VerifyCode(purpose(projectID), message(sid, f, expires), sig)
}

func purpose(projectID string) string { return "media link " + projectID }

func message(sid string, f Format, expires int64) string {
	return sid + "\n" + string(f) + "\n" + strconv.FormatInt(expires, 10)
}

// A Format is what media can be fetched as.
type Format string

// The formats.
const (
	WAV      Format = "wav"
	MP3      Format = "mp3"
	Original Format = "original" // the bytes as they came
)

// Formats are all of them, the one that most can play first.
var Formats = []Format{WAV, MP3, Original}

// BestFormat is the first of [Formats] that the media can be had in, or may be once it
// has come.
func (r Recording) BestFormat() Format {
	return Formats[max(0, slices.IndexFunc(Formats, r.Can))]
}
