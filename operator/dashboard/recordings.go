package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator/names"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/templates"
)

// recordingPages serves the pages that list, show, upload and delete recordings.
type recordingPages struct {
	*site
	trail      *trail
	Recordings *recordings.Recordings // nil if the server keeps no recordings
	Calls      *calls.Records         // nil if calls have no pages
}

// A recordingRow is a row in the list of recordings.
type recordingRow struct {
	recordings.Recording
	At      time.Time // when the call started, or when the recording was stored
	Title   string
	URL     string // URL of the recording's page
	Media   string // URL of the audio; "" if there is none
	Length  string
	Size    string
	Who     string // who called whom
	Call    string // id of the call or the conference
	CallURL string // URL of the recordings of the call or the conference
	Stored  string // the day on which the recording was stored, if this is not the day of the call
	Status  status
}

func (v *visit) recordingRow(r recordings.Recording) recordingRow {
	row := recordingRow{
		Recording: r,
		At:        r.Created,
		URL:       v.base() + "/recordings/" + r.Sid,
		Length:    formatLength(r.Duration()),
		Size:      v.size(r.Bytes),
		Who:       between(v.words(), r.From, r.To),
		Call:      r.CallSid,
		CallURL:   v.base() + "/recordings?" + url.Values{"call": {r.CallSid}}.Encode(),
		Status:    recordingStatus(r.Status),
	}

	if r.ConferenceSid != "" {
		row.Call = r.ConferenceSid
		row.CallURL = v.base() + "/recordings?" + url.Values{"conference": {r.ConferenceSid}}.Encode()
	}
	if r.HasMedia() {
		row.Media = "/api/laml/2010-04-01/Accounts/" + r.ProjectID + "/Recordings/" + r.Sid
	}
	if !r.StartTime.IsZero() {
		row.At = r.StartTime
		if row.At.UTC().Format(time.DateOnly) != r.Created.UTC().Format(time.DateOnly) {
			row.Stored = v.words().Format(r.Created, "2 Jan 2006")
		}
	}
	row.Title = v.words().Format(row.At, "2 Jan 2006, 15:04:05")
	return row
}

// between describes who called whom, in the language of w.
func between(w *words.Words, from, to string) string {
	if from == "" && to != "" {
		return w.Text(words.Textf("to %s", to))
	}
	return names.Between(from, to)
}

// recordingStatus describes the status of a recording.
func recordingStatus(s recordings.Status) status {
	word := recordingStates[s]
	switch s {
	case recordings.Completed:
		return status{Kind: "good", Word: word}
	case recordings.Absent:
		return status{Kind: "bad", Word: word}
	}
	return status{Kind: "warn", Word: word}
}

// recordingStates describes the statuses of recordings.
var recordingStates = map[recordings.Status]string{
	recordings.InProgress: "In progress",
	recordings.Paused:     "Paused",
	recordings.Stopped:    "Stopped",
	recordings.Completed:  "Completed",
	recordings.Absent:     "No audio",
}

// listRecordings serves GET /dashboard/projects/{project}/recordings.
func (a *recordingPages) listRecordings(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	return a.recordingsPage(v, http.StatusOK, nil)
}

// A recordingListPage is the list of recordings.
type recordingListPage struct {
	list[recordingRow]
	Finder finder
	Saved  savedFilters
	API    string // URL of the API
	ID     string // id of the project
	Live   string // the URL of the list's event stream; "" if the search is invalid
	Faults faults
}

// recordingsPage shows the recordings that match the search in the URL.
func (a *recordingPages) recordingsPage(v *visit, code int, wrong faults) error {
	p := recordingListPage{
		Finder: v.recordingFinder().exportable(v),
		API:    a.PublicURL,
		ID:     v.project.ID,
		Faults: wrong,
	}
	found, isValid, err := a.recordingsFor(v, &p)
	if err != nil {
		return err
	}
	if !isValid {
		code = http.StatusUnprocessableEntity
	}
	p.list = listOf(v, found, v.recordingRow)

	p.Saved, err = a.savedFilters(v, p.Finder)
	if err != nil {
		return err
	}
	if wrong != nil {
		p.Saved.retype(v.r.PathValue("id"), v.form.Get("name"))
	}
	options := templates.Options{Status: code, Media: true, Connect: []string{"'self'"}}
	return a.pageWith(v, options, "Recordings", "recordings", p)
}

// recordingsFor returns the recordings for a page. If the search is invalid, it adds the reasons to the
// page and returns false.
func (a *recordingPages) recordingsFor(
	v *visit, p *recordingListPage,
) (found page.Page[recordings.Recording], isValid bool, err error) {
	filter, err := a.recordingFilter(v)
	if err != nil {
		if p.Finder.blame(err) {
			return found, false, nil
		}
		return found, false, err
	}

	found, err = a.findRecordings(v.r.Context(), filter, p.Finder.Query, v.query())
	wrong, ok := describeFaults(err)
	if err != nil && !ok {
		return found, false, err
	}
	p.Live = liveURL(v, found.Items, func(r recordings.Recording) string { return r.Sid })
	if ok {
		p.Faults = wrong
	}
	return found, !ok, nil
}

// exportRecordings serves GET /dashboard/projects/{project}/recordings/export.
func (a *recordingPages) exportRecordings(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	filter, err := a.recordingFilter(v)
	if err != nil {
		return err
	}

	text := v.recordingFinder().Query
	list := func(query page.Query) (page.Page[recordings.Recording], error) {
		return a.findRecordings(v.r.Context(), filter, text, query)
	}
	line := func(r recordings.Recording) []string {
		seconds := strconv.FormatFloat(r.Duration().Seconds(), 'f', 3, 64)
		return []string{r.Sid, r.CallSid, r.From, r.To, r.Direction, string(r.Status), csvTime(r.StartTime),
			csvTime(r.Created), seconds, strconv.FormatInt(r.Bytes, 10)}
	}
	header := []string{"sid", "call_sid", "from", "to", "direction", "status", "start_time", "created", "seconds",
		"bytes"}
	return writeCSV(a.site, v, "recordings", header, list, line)
}

// deleteRecording serves POST /dashboard/projects/{project}/recordings/{sid}/delete.
func (a *recordingPages) deleteRecording(v *visit) error {
	sid := v.r.PathValue("sid")
	if v.form.Get("confirm") != "delete" {
		return a.recordingPage(v, http.StatusUnprocessableEntity,
			faultAt("confirm", "Type “delete” to confirm. Nothing was deleted."))
	}
	if a.Recordings == nil {
		return problem.NoSuch("recording")
	}

	err := a.Recordings.Delete(v.r.Context(), v.project.ID, sid)
	if wrong, ok := describeFaults(err); ok {
		return a.recordingPage(v, http.StatusConflict, wrong)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.base() + "/recordings?done=recordingdeleted")
}
