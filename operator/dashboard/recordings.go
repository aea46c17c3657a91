package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator/names"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
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
	At                                   time.Time // when the call started, or when the recording was stored
	Title, URL, Media, Length, Size, Who string
	Call, CallURL                        string // the call or conference, and the URL of its recordings
	Stored                               string // the day on which it was stored, if this is not the day of the call
	Status                               status
}

func (v *visit) recordingRow(r recordings.Recording) recordingRow {
	row := recordingRow{
		Recording: r, At: r.Created, URL: v.base() + "/recordings/" + r.Sid,
		Length: formatLength(r.Duration()), Size: v.size(r.Bytes), Who: names.Between(r.From, r.To),
		Status: status{"", recordingStates[r.Status]},
	}
	if !r.StartTime.IsZero() {
		row.At = r.StartTime
		if row.At.UTC().Format(time.DateOnly) != r.Created.UTC().Format(time.DateOnly) {
			row.Stored = v.words().Format(r.Created, "2 Jan 2006")
		}
	}
	row.Title = v.words().Format(row.At, "2 Jan 2006, 15:04:05")

	row.Call, row.CallURL = r.CallSid, v.base()+"/recordings?"+url.Values{"call": {r.CallSid}}.Encode()
	if r.ConferenceSid != "" {
		row.Call, row.CallURL = r.ConferenceSid, v.base()+"/recordings?"+
			url.Values{"conference": {r.ConferenceSid}}.Encode()
	}
	if r.HasMedia() {
		row.Media = "/api/laml/2010-04-01/Accounts/" + r.ProjectID + "/Recordings/" + r.Sid
	}
	switch r.Status {
	case recordings.Completed:
		row.Status.Kind = "good"
	case recordings.Absent:
		row.Status.Kind = "bad"
	default:
		row.Status.Kind = "warn"
	}
	return row
}

// recordingStates describes the statuses of recordings.
var recordingStates = map[recordings.Status]string{recordings.InProgress: "In progress",
	recordings.Paused: "Paused", recordings.Stopped: "Stopped", recordings.Completed: "Completed",
	recordings.Absent: "No audio"}

// humanize returns a code such as "in-progress" as people write it: "In progress".
func humanize(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.ReplaceAll(s[1:], "-", " ")
}

// formatLength formats a duration as 0:07 or 1:02:03.
func formatLength(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// formatSize formats n bytes with a unit, or returns "" if n is unknown.
func formatSize(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%d kB", n/1000)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// flagTitles are the names of the flags that describe the audio of a recording.
var flagTitles = map[string]string{
	"silent": "Silent", "one-way": "Only one leg talks", "clipped": "Clipped", "dead-air": "Long silence",
}

// recordingFinder returns the search form above the list of recordings.
func (v *visit) recordingFinder() finder {
	var flags, directions []choice
	for _, name := range levels.FlagNames() {
		flags = append(flags, choice{Value: name, Title: flagTitles[name]})
	}

	for _, name := range recordings.Directions {
		directions = append(directions, choice{Value: name, Title: name})
	}
	return v.finder("Name, id, first or last digits", "+1415", "",
		v.dayFilter("after", "Stored from"), v.dayFilter("before", "Stored until"),
		v.numberFilter("longer", "At least (seconds)"), v.numberFilter("shorter", "Less than (seconds)"),
		v.choiceFilter("flag", "Audio", "Any", flags), v.choiceFilter("direction", "Direction", "Any", directions),
		v.textFilter("tag", "Tag", ""),
		v.choiceFilter("held", "Hold", "Any", []choice{{Value: "yes", Title: "Only on hold"}}),
		v.textFilter("party", "Number or address", "or its end"),
		v.textFilter("name", "Name", "words of it"),
		v.textFilter("call", "Call or recording", "beginning of an id"),
		v.textFilter("conference", "Conference id", ""),
		v.textFilter("subscriber", "Subscriber", "email or id"))
}

// recordingFilter reads the filters from the URL, except for the search box. err describes invalid
// days.
func (a *recordingPages) recordingFilter(v *visit) (ask recordings.Filter, err error) {
	q := v.r.URL.Query()
	text := func(name string) string { return plainText(q.Get(name)) }
	who, err := a.subscriberID(v, text("subscriber"))
	if err != nil {
		return ask, err
	}

	ask = recordings.Filter{
		Owner:      recordings.Owner{ProjectID: v.project.ID, SubscriberID: who},
		CallBegins: text("call"), Party: text("party"), ConferenceSid: text("conference"), Name: text("name"),
		DurationFrom: parseSeconds(q.Get("longer")), DurationBefore: parseSeconds(q.Get("shorter")),
	}
	ask.Tag, ask.Held = strings.ToLower(text("tag")), q.Get("held") == "yes"
	if q.Get("flag") != "" {
		ask.Flag, _ = levels.FlagOf(q.Get("flag"))
	}
	if slices.Contains(recordings.Directions, q.Get("direction")) {
		ask.Direction = q.Get("direction")
	}
	ask.CreatedFrom, ask.CreatedBefore, err = parseDays(q.Get("after"), q.Get("before"))
	return ask, err
}

// minEnd is the minimum number of digits after a plus for which findRecordings also looks for
// numbers that end in them. A text with fewer digits is only taken as the beginning of a number.
const minEnd = 7

// findRecordings returns a page of the recordings that match a filter and the text in the search
// box. The text is first taken as a number, an address, or a part of one. If no recording matches, or
// too many numbers begin with the text, it is taken as the beginning of the id of a call or a
// recording, the id of a conference, or words of a name.
func (a *recordingPages) findRecordings(
	ctx context.Context, ask recordings.Filter, text string, q page.Query,
) (page.Page[recordings.Recording], error) {
	if text == "" {
		return a.searchRecordings(ctx, ask, q)
	}

	byParty, byBeginning, byCall := ask, ask, ask
	byParty.Party, byBeginning.PartyBegins, byCall.CallBegins = text, text, text
	all := []recordings.Filter{byParty, byBeginning, byCall}
	switch digits := recordings.Digits(text); {
	case digits == "":
		all = []recordings.Filter{byParty, byCall}
	case strings.HasPrefix(text, "+") && len(digits) < minEnd:
		all = all[1:]
	}
	byConference, byName := ask, ask
	byConference.ConferenceSid, byName.Name = text, strings.TrimSpace(ask.Name+" "+text)
	all = append(all, byConference)
	if len(recordings.Words(text)) > 0 {
		all = append(all, byName)
	}

	var tooMany error
	for _, f := range all {
		found, err := a.searchRecordings(ctx, f, q)
		if f.PartyBegins != "" && errors.Is(err, problem.Invalid) {
			tooMany = err
			continue
		}
		if err != nil || len(found.Items) > 0 || found.Next != "" || found.Prev != "" {
			return found, err
		}
	}
	return page.Page[recordings.Recording]{}, tooMany
}

// parseSeconds returns text as a duration, or 0 if it is not a number of seconds within a year.
func parseSeconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 366*24*60*60 {
		return 0
	}
	return time.Duration(n) * time.Second
}

// parseDays returns the time range of a filter from the text of its first and of its last day. The
// range includes the last day. Empty text sets no limit.
func parseDays(after, before string) (from, end time.Time, err error) {
	from, wrong := parseDay("after", after)
	end, err = parseDay("before", before)
	if !end.IsZero() {
		end = end.AddDate(0, 0, 1) // the last day is included
	}
	return from, end, errors.Join(wrong, err)
}

// parseDay returns the first moment of the day in a filter, or the zero time if text is empty.
func parseDay(filter, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, problem.BadParam(filter, "%s must be a day, such as 2030-01-31", filter)
	}
	return at, nil
}

// listRecordings serves GET /dashboard/projects/{project}/recordings.
func (a *recordingPages) listRecordings(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	return a.recordingsPage(v, http.StatusOK, nil)
}

// recordingsPage shows the recordings that match the search in the URL.
func (a *recordingPages) recordingsPage(v *visit, code int, wrong faults) error {
	p := struct {
		list[recordingRow]
		Finder  finder
		Saved   savedFilters
		API, ID string
		Live    string
		Faults  faults
	}{API: a.PublicURL, ID: v.project.ID, Faults: wrong}

	ask, err := a.recordingFilter(v)
	p.Finder = v.recordingFinder().exportable(v)
	var found page.Page[recordings.Recording]
	if err != nil {
		if !p.Finder.blame(err) {
			return err
		}
		code = http.StatusUnprocessableEntity
	} else {
		found, err = a.findRecordings(v.r.Context(), ask, p.Finder.Query, v.query())
		if wrong, ok := describeFaults(err); ok {
			p.Faults, code, err = wrong, http.StatusUnprocessableEntity, nil
		}
		if err != nil {
			return err
		}
		p.Live = liveURL(v, found.Items, func(i recordings.Recording) string { return i.Sid })
	}

	if p.Saved, err = a.savedFilters(v, p.Finder); err != nil {
		return err
	}
	if wrong != nil {
		p.Saved.retype(v.r.PathValue("id"), v.form.Get("name"))
	}
	p.list = listOf(v, found, v.recordingRow)
	return a.pageWith(v, templates.Options{Status: code, Media: true, Connect: []string{"'self'"}},
		"Recordings", "recordings", p)
}

// searchRecordings returns a page of the recordings that match a filter. The filter may consist
// only of the beginning of a call's id. If no call matches, the text is then used as the beginning
// of a recording's id.
func (a *recordingPages) searchRecordings(
	ctx context.Context, ask recordings.Filter, q page.Query,
) (page.Page[recordings.Recording], error) {
	found, err := a.Recordings.List(ctx, ask, q)
	alone := recordings.Filter{Owner: ask.Owner, CallBegins: ask.CallBegins}
	if err != nil || len(found.Items) > 0 || ask.CallBegins == "" || ask != alone || ask.SubscriberID != "" {
		return found, err
	}
	found.Items, err = a.Recordings.FindBeginning(ctx, ask.ProjectID, ask.CallBegins)
	return found, err
}

// exportRecordings serves GET /dashboard/projects/{project}/recordings/export.
func (a *recordingPages) exportRecordings(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	ask, err := a.recordingFilter(v)
	if err != nil {
		return err
	}

	text := v.recordingFinder().Query
	list := func(q page.Query) (page.Page[recordings.Recording], error) {
		return a.findRecordings(v.r.Context(), ask, text, q)
	}

	header := []string{"sid", "call_sid", "from", "to", "direction", "status", "start_time", "created", "seconds",
		"bytes"}
	return writeCSV(a.site, v, "recordings", header, list, func(r recordings.Recording) []string {
		return []string{r.Sid, r.CallSid, r.From, r.To, r.Direction, string(r.Status), csvTime(r.StartTime),
			csvTime(r.Created), strconv.FormatFloat(r.Duration().Seconds(), 'f', 3, 64), strconv.FormatInt(r.Bytes, 10)}
	})
}

// csvTime formats a time for a CSV file, or returns "" for the zero time.
func csvTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
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
