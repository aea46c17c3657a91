package recordings

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/selvage/selvage/internal/problem"
)

// Values allowed in [Metadata].
var (
	Directions = []string{"inbound", "outbound", "outbound-api", "outbound-dial"}
	Tracks     = []string{"both", "inbound", "outbound"} // the first is the default
	Sources    = []string{
		"StartCallRecordingApi", "StartConferenceRecording", "DialVerb", "Conference", "OutBoundApi",
		"Trunking", "RecordVerb",
	}
)

// maxText is the maximum length of most fields of a Description, in bytes.
const maxText = 255

// A Description holds the properties of a recording that come with its upload.
type Description struct {
	Metadata
	SubscriberID string // the project's subscriber that owns the recording
	Callback     Callback
	Sid          string // the waiting recording to complete; "" means find it by call or conference

	// Subscribers, Channels, ErrorCode and Late are only for recorders in this process. Senders
	// cannot set them.

	Subscribers []string // more subscribers that own the recording
	Channels    int      // channels of the later media; 0 means 1
	ErrorCode   string   // error code, such as Incomplete, of a recording that has some audio
	Late        bool     // Sid may name a recording that no longer waits for its media

	// An upload repeats an earlier upload if it has the same identity. The identity is the first of
	// these whose fields are set: IdempotencyKey; Path and the bytes; CallSid and the bytes, with
	// the Track if it is set; Sid and the bytes; ConferenceSid and the bytes, with the Track if it is
	// set.
	IdempotencyKey string
	Path           string // path of the file on the sender's machine
}

// Check returns an error that lists all faults of a description. Ingest also calls it, but only
// after it has received the file.
func (r *Recordings) Check(d Description) error {
	var errs []error
	for _, text := range []struct{ param, value string }{
		{"CallSid", d.CallSid},
		{"ConferenceSid", d.ConferenceSid},
		{"From", d.From},
		{"To", d.To},
		{"SubscriberId", d.SubscriberID},
		{"RecordingSid", d.Sid},
		{"Idempotency-Key", d.IdempotencyKey},
	} {
		errs = append(errs, checkText(text.param, text.value, maxText))
	}
	errs = append(errs,
		checkText("Path", d.Path, 4096),
		checkMember("Direction", d.Direction, Directions),
		checkMember("Source", d.Source, Sources),
		checkMember("Track", d.Track, Tracks),
		r.checkCallback(d.Callback),
	)

	if d.CallSid != "" && d.ConferenceSid != "" {
		errs = append(errs, problem.BadParam("ConferenceSid",
			"a recording belongs to a call or a conference: set CallSid or ConferenceSid"))
	}
	tooEarly := !d.StartTime.IsZero() && d.StartTime.Year() < 1970
	tooLate := d.StartTime.After(r.c.Now().Add(24 * time.Hour))
	if tooEarly || tooLate {
		errs = append(errs, problem.BadParam("StartTime", "StartTime must be between 1970 and now"))
	}
	return errors.Join(errs...)
}

// checkText returns a problem that names param unless value is a line of at most limit bytes.
func checkText(param, value string, limit int) error {
	if len(value) > limit {
		return problem.BadParam(param, "%s must have at most %d bytes", param, limit)
	}
	if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return problem.BadParam(param, "%s must be UTF-8 without control characters", param)
	}
	return nil
}

// CutText returns the longest beginning of a party's name or address that From and To of a Description
// may contain.
func CutText(text string) string { return cut(text, maxText) }

// checkMember returns a problem that names param unless value is "" or one of members.
func checkMember(param, value string, members []string) error {
	if value == "" || slices.Contains(members, value) {
		return nil
	}
	return problem.BadParam(param, "%s must be one of %s", param, strings.Join(members, ", "))
}

// withDefaults fills in optional fields.
func (m Metadata) withDefaults() Metadata {
	if m.Track == "" {
		m.Track = Tracks[0]
	}
	if m.Source == "" {
		m.Source = Sources[0]
		if m.ConferenceSid != "" {
			m.Source = Sources[1]
		}
	}
	return m
}

// identity returns a string that all uploads of the same recording share, or "" if nothing
// identifies the upload. content is the digest of the bytes.
func (d Description) identity(content string) string {
	switch {
	case d.IdempotencyKey != "":
		return "key:" + d.IdempotencyKey
	case d.Path != "": // paths are too long for an index
		return fmt.Sprintf("path:%s:%x", content, sha256.Sum256([]byte(d.Path)))
	case d.CallSid != "" && d.Track != "": // two silent tracks may have the same bytes
		return "call:" + content + ":" + d.CallSid + "\n" + d.Track
	case d.CallSid != "":
		return "call:" + content + ":" + d.CallSid
	case d.Sid != "":
		return "sid:" + content + ":" + d.Sid
	case d.ConferenceSid != "" && d.Track != "":
		return "conference:" + content + ":" + d.ConferenceSid + "\n" + d.Track
	case d.ConferenceSid != "":
		return "conference:" + content + ":" + d.ConferenceSid
	}
	return ""
}
