package recordings

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// A MediaAuth determines who may fetch the media of a project's recordings. Everything else about a
// recording always requires credentials.
type MediaAuth string

// Values of MediaAuth.
const (
	Public MediaAuth = "public" // anyone who knows the Sid
	Basic  MediaAuth = "basic"  // callers that may read the recording's document
	Signed MediaAuth = "signed" // the same callers, and anyone with a link that they created
)

// LongestLink is the maximum lifetime of a link. Keys are kept longer.
const LongestLink = 30 * 24 * time.Hour

// clockSkew is how far the clock of the node that created a link may be ahead.
const clockSkew = time.Minute

// Links creates and verifies the codes in links. All nodes share the keys, which are used for no
// other purpose.
type Links interface {
	// Code returns a code for message. It can be verified for 31 days.
	Code(purpose, message string) (code string, err error)
	// VerifyCode reports in constant time whether code is a code for message.
	VerifyCode(purpose, message, code string) bool
}

// A Link lets its bearer fetch the media of one recording in one format.
type Link struct {
	Expires   time.Time
	Signature string
}

// MediaAuth returns who may fetch the media of a project. The result may be up to 300 ms old. For
// an unknown project, it returns the same problem.NotFound as for an unknown recording.
func (r *Recordings) MediaAuth(ctx context.Context, projectID string) (MediaAuth, error) {
	if !isUUID(projectID) {
		return "", problem.NoSuch("recording")
	}
	auth, err := r.auth.Load(projectID, func() (MediaAuth, error) { return r.c.Store.MediaAuth(ctx, projectID) })
	if errors.Is(err, problem.NotFound) {
		return "", problem.NoSuch("recording")
	}
	if err != nil {
		return "", err
	}
	return auth, nil
}

// Sign creates a link to a recording in format f. The link is valid for the given time, unless its
// maker is revoked earlier; see [Owner].
func (r *Recordings) Sign(rec Recording, f Format, lifetime time.Duration, maker string) (Link, error) {
	if r.c.Links == nil {
		return Link{}, errors.New("signing link: no key is configured")
	}
	now := r.c.Now()
	expires := now.Add(lifetime).Truncate(time.Second)

	made := "" // the time of creation, and the maker
	if maker != "" {
		made = strconv.FormatInt(now.UnixMicro(), 10) + "\n" + maker
	}

	message := signedText(rec.Sid, f, expires.Unix(), made)
	signature, err := r.c.Links.Code(linkPurpose(rec.ProjectID), message)
	if err != nil {
		return Link{}, err
	}
	if made != "" {
		signature += "." + base64.RawURLEncoding.EncodeToString([]byte(made))
	}
	return Link{Expires: expires, Signature: signature}, nil
}

// Verify reports whether a link to a recording in format f is valid. exp and sig are the link's
// parameters. If this node currently cannot know whether the link's maker was revoked, Verify
// returns an error.
func (r *Recordings) Verify(projectID, sid string, f Format, exp, sig string) (bool, error) {
	if r.c.Links == nil || sig == "" {
		return false, nil
	}
	seconds, err := strconv.ParseInt(exp, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != exp {
		return false, nil
	}
	now := r.c.Now()
	expires := time.Unix(seconds, 0)
	hasExpired := !now.Before(expires)
	isTooLong := expires.After(now.Add(LongestLink + clockSkew))
	if hasExpired || isTooLong {
		return false, nil
	}

	code, made := cutMaker(sig)
	message := signedText(sid, f, seconds, made)
	if !r.c.Links.VerifyCode(linkPurpose(projectID), message, code) {
		return false, nil
	}
	return r.isMakerLive(made)
}

// cutMaker splits off the third part of a signature, which contains the link's maker and the time
// when the link was created. Links from the command line have only two parts.
func cutMaker(sig string) (code, made string) {
	i := strings.LastIndexByte(sig, '.')
	if i <= 0 || strings.Count(sig, ".") != 2 {
		return sig, ""
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(sig[i+1:])
	if err != nil || len(text) == 0 {
		return "", ""
	}
	return sig[:i], string(text)
}

// isMakerLive reports whether a link has no maker, or its maker has not been revoked since the link
// was created.
func (r *Recordings) isMakerLive(made string) (bool, error) {
	if made == "" {
		return true, nil
	}
	created, maker, _ := strings.Cut(made, "\n")
	micros, err := strconv.ParseInt(created, 10, 64)
	if err != nil || r.c.CheckMaker == nil {
		return false, nil
	}
	err = r.c.CheckMaker(maker, time.UnixMicro(micros))
	if errors.Is(err, problem.Unauthenticated) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, nil
}

// linkPurpose returns the purpose of the codes in links to a project's media.
func linkPurpose(projectID string) string { return "media link " + projectID }

// signedText returns the message that a link signs. made contains the maker and the time of
// creation, or is "".
func signedText(sid string, f Format, expires int64, made string) string {
	text := sid + "\n" + string(f) + "\n" + strconv.FormatInt(expires, 10)
	if made != "" {
		text += "\n" + made
	}
	return text
}

// A Format is a form in which media can be fetched.
type Format string

// The supported formats.
const (
	WAV      Format = "wav"
	MP3      Format = "mp3"
	Original Format = "original" // the uploaded bytes
)

// Formats lists all formats, the most widely playable first.
var Formats = []Format{WAV, MP3, Original}

// BestFormat returns MP3 for an MP3, and otherwise the first of [Formats] in which the media is
// available. If the recording has no media yet, it returns the first format.
func (r Recording) BestFormat() Format {
	if r.Codec == "mp3" && r.HasMedia() {
		return MP3
	}
	return Formats[max(0, slices.IndexFunc(Formats, r.Can))]
}
