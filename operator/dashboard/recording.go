package dashboard

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
	"github.com/selvage/selvage/templates"
)

// A recordingPage shows one recording.
type recordingPage struct {
	Recording recordingRow
	Legs      []leg
	CallPage  string // URL of the page of the recording's call, or ""
	StoredAt  string
	Length    string // length in seconds, for scripts
	At        string // start position in seconds; "" means the beginning
	Sound     []fact
	Snippets  []snippet
	Base      string
	API       string
	MayChange bool
	Tags      string // as typed, or as stored
	Hold      string // as typed, or as stored
	Seen      string // digests of the stored values; see marks
	Accesses  []accessRow
	Faults    faults
}

// A leg is the waveform of one channel.
type leg struct{ Name, Path string }

// showRecording serves GET /dashboard/projects/{project}/recordings/{sid}. The query
// parameter t is the position in seconds at which the player starts.
func (a *recordingPages) showRecording(v *visit) error { return a.recordingPage(v, http.StatusOK, nil) }

func (a *recordingPages) recordingPage(v *visit, code int, wrong faults) error {
	if a.Recordings == nil {
		return problem.NoSuch("recording")
	}
	owner := recordings.Owner{ProjectID: v.project.ID}
	r, err := a.Recordings.Find(v.r.Context(), owner, v.r.PathValue("sid"))
	if err != nil {
		return err
	}

	p := recordingPage{
		Recording: v.recordingRow(r),
		StoredAt:  v.words().Format(r.Created, "2 Jan 2006, 15:04:05"),
		Length:    strconv.FormatFloat(r.Duration().Seconds(), 'f', 3, 64),
		At:        startAt(v.r.URL.Query().Get("t"), r.Duration()),
		Sound:     soundFacts(v.words(), r),
		Snippets:  a.recordingSnippets(r),
		Base:      v.base(),
		API:       a.PublicURL,
		MayChange: v.mayIn(operator.Write),
		Tags:      strings.Join(r.Tags, " "),
		Hold:      r.Hold,
		Seen:      marks(markInputs(r)),
		Faults:    wrong,
	}
	if wrong != nil && v.form.Has("tags") {
		p.Tags = v.form.Get("tags")
		p.Hold = v.form.Get("hold")
	}
	p.Accesses, err = a.accessesOf(v, r.Sid)
	if err != nil {
		return err
	}
	p.CallPage, err = a.callPageOf(v, r)
	if err != nil {
		return err
	}
	p.Legs, err = a.legsOf(v, owner, r)
	if err != nil {
		return err
	}
	return a.pageWith(v, templates.Options{Status: code, Media: true}, "Recording", "recording", p)
}

// legsOf returns the waveforms of a recording, or none if the recording has no audio to draw.
func (a *recordingPages) legsOf(v *visit, owner recordings.Owner, r recordings.Recording) ([]leg, error) {
	if !r.HasMedia() {
		return nil, nil
	}
	_, outline, err := a.Recordings.Outline(v.r.Context(), owner, r.Sid)
	if errors.Is(err, problem.NotAcceptable) || errors.Is(err, problem.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return legs(outline, r.Frames), nil
}

// callPageOf returns the URL of the page of a recording's call, or "" if the call has no page.
func (a *recordingPages) callPageOf(v *visit, r recordings.Recording) (string, error) {
	if a.Calls == nil || r.CallSid == "" {
		return "", nil
	}
	call, err := a.Calls.Find(v.r.Context(), v.project.ID, "", r.CallSid)
	if err != nil {
		return "", problem.IgnoreNotFound(err)
	}
	return v.base() + "/calls/" + call.ID, nil
}

// recordingSnippets returns code that fetches a recording.
func (a *recordingPages) recordingSnippets(r recordings.Recording) []snippet {
	address := fmt.Sprintf("%s/api/laml/2010-04-01/Accounts/%s/Recordings/%s", a.PublicURL, r.ProjectID, r.Sid)
	curl := fmt.Sprintf("# KEY is an API key with the scope Voice\ncurl -u %s:KEY %s.json\n"+
		"curl -u %s:KEY -o call.wav %s.wav", r.ProjectID, address, r.ProjectID, address)
	cli := "selvage recording show " + r.Sid + "\nselvage recording download " + r.Sid
	return []snippet{{Title: "curl", Text: curl}, {Title: "Command line", Text: cli}}
}

// startAt returns the start position in a link, in seconds. The link specifies it as seconds or as
// a time such as 1:02:03. For any other text, startAt returns "".
func startAt(text string, whole time.Duration) string {
	var seconds float64
	for part := range strings.SplitSeq(text, ":") {
		n, err := strconv.ParseFloat(part, 64)
		if err != nil || n < 0 || n > 1e6 {
			return ""
		}
		seconds = seconds*60 + n
	}
	if seconds == 0 || math.IsNaN(seconds) || seconds >= whole.Seconds() {
		return ""
	}
	return strconv.FormatFloat(seconds, 'f', -1, 64)
}

// These are the dimensions of a waveform, in the units of its drawing.
const (
	pixels   = 480 // width
	halfHigh = 24  // height of each half
)

// legs draws the waveforms of the first eight channels.
func legs(o levels.Outline, frames int64) (drawn []leg) {
	o = o.Scale(int(min((frames+pixels-1)/pixels, math.MaxInt32)), frames)
	names := []string{"Sound"}
	if o.Channels > 1 {
		names = []string{"First leg", "Second leg"}
	}
	for channel := range min(o.Channels, 8) {
		name := words.Textf("Leg %s", channel+1)
		if channel < len(names) {
			name = names[channel]
		}
		drawn = append(drawn, leg{Name: name, Path: waveform(o, channel)})
	}
	return drawn
}

// waveform draws a channel as an SVG path. The path follows the upper edge and then returns along
// the lower edge.
func waveform(o levels.Outline, channel int) string {
	var above, below strings.Builder
	rightEdge := "" // extends the last point to the right edge
	n := o.Length()
	step := float64(pixels) / float64(max(1, n))
	for i := range n {
		most := int(o.Data[2*(i*o.Channels+channel)+1])
		fmt.Fprintf(&above, "L%.0f %d", float64(i)*step, halfHigh-max(1, most*halfHigh/127))

		back := n - 1 - i
		least := int(o.Data[2*(back*o.Channels+channel)])
		y := halfHigh + max(1, -least*halfHigh/127)
		if i == 0 {
			rightEdge = fmt.Sprintf("H%dV%d", pixels, y)
		}
		fmt.Fprintf(&below, "L%.0f %d", float64(back)*step, y)
	}
	return fmt.Sprintf("M0 %d", halfHigh) + above.String() + rightEdge + below.String() + "Z"
}

// soundFacts describes the audio of a recording, or returns nil if the audio was not measured.
func soundFacts(w *words.Words, r recordings.Recording) (facts []fact) {
	if r.Levels == nil {
		return nil
	}

	l := r.Levels
	add := func(name, text string) { facts = append(facts, fact{Name: name, Text: text}) }
	if l.Loudness != nil {
		add("Loudness", w.Number(fmt.Sprintf("%.1f LUFS", *l.Loudness)))
	}
	if l.Peak != nil {
		add("Peak", w.Number(fmt.Sprintf("%.1f dB", *l.Peak)))
	}

	for i, t := range l.Talk {
		name := "Talk"
		if len(l.Talk) > 1 {
			name = words.Textf("Talk on leg %s", i+1)
		}
		add(name, formatLength(time.Duration(t*float64(time.Second))))
	}

	if l.LongestSilence >= 1 {
		add("Longest silence", formatLength(time.Duration(l.LongestSilence*float64(time.Second))))
	}
	for _, name := range l.Flags.Names() {
		add("Flag", flagTitles[name])
	}
	return facts
}
