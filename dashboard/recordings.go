package dashboard

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/templates"
)

// A recordingRow is a recording as it is listed.
type recordingRow struct {
	recordings.Recording
	Title, URL, Media, Length, Size, Who string
	Status                               status
}

func (v *visit) recordingRow(r recordings.Recording) recordingRow {
	row := recordingRow{
		Recording: r, Title: r.Created.UTC().Format("2 Jan 2006, 15:04:05"), URL: v.base() + "/recordings/" + r.Sid,
		Length: length(r.Duration()), Size: size(r.Bytes), Who: between(r.From, r.To), Status: status{"", words(string(r.Status))},
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

func words(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.ReplaceAll(s[1:], "-", " ")
}

// between tells who called whom.
func between(from, to string) string {
	switch {
	case from == "" && to == "":
		return ""
	case to == "":
		return from
	case from == "":
		return "to " + to
	}
	return from + " → " + to
}

// length writes a duration as people read it: 0:07, 1:02:03.
func length(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

func size(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// A recordingFilter is what an address asks for.
type recordingFilter struct{ Call, Conference, After, Before string }

func (v *visit) recordingFilter() (f recordingFilter, ask recordings.Filter, err error) {
	q := v.r.URL.Query()
	f = recordingFilter{strings.TrimSpace(q.Get("call")), strings.TrimSpace(q.Get("conference")), q.Get("after"), q.Get("before")}
	ask = recordings.Filter{Owner: recordings.Owner{ProjectID: v.project.ID}, CallSid: f.Call, ConferenceSid: f.Conference}
	if f.After != "" {
		if ask.CreatedFrom, err = time.Parse(time.DateOnly, f.After); err != nil {
			return f, ask, problem.BadParam("after", "from must be a day, such as 2030-01-31")
		}
	}
	if f.Before != "" {
		end, err := time.Parse(time.DateOnly, f.Before)
		if err != nil {
			return f, ask, problem.BadParam("before", "until must be a day, such as 2030-01-31")
		}
		ask.CreatedBefore = end.AddDate(0, 0, 1)
	}
	return f, ask, nil
}

// listRecordings serves GET /dashboard/projects/{project}/recordings.
func (a *API) listRecordings(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	p := struct {
		Recordings    []recordingRow
		Filter        recordingFilter
		Pager         pager
		Base, API, ID string
		Now           time.Time
		Faults        []string
	}{Base: v.base(), API: a.PublicURL, ID: v.project.ID, Now: v.now}
	f, ask, err := v.recordingFilter()
	p.Filter = f
	code := http.StatusOK
	if err != nil {
		p.Faults, _ = faults(err)
		code = http.StatusUnprocessableEntity
	} else {
		found, err := a.Recordings.List(v.r.Context(), ask, v.query())
		if err != nil {
			return err
		}
		p.Pager = v.pager(found.Prev, found.Next)
		for _, r := range found.Items {
			p.Recordings = append(p.Recordings, v.recordingRow(r))
		}
	}
	return a.pageWith(v, templates.Options{Status: code, Media: true}, "Recordings", "recordings", p)
}

// showRecording serves GET /dashboard/projects/{project}/recordings/{sid}.
func (a *API) showRecording(v *visit) error { return a.recordingPage(v, http.StatusOK, nil) }

func (a *API) recordingPage(v *visit, code int, wrong []string) error {
	if a.Recordings == nil {
		return problem.NoSuch("recording")
	}
	r, err := a.Recordings.Find(v.r.Context(), recordings.Owner{ProjectID: v.project.ID}, v.r.PathValue("sid"))
	if err != nil {
		return err
	}
	p := struct {
		Recording recordingRow
		Base      string
		API       string
		MayDelete bool
		Now       time.Time
		Faults    []string
	}{v.recordingRow(r), v.base(), a.PublicURL, v.mayIn(operator.Write), v.now, wrong}
	return a.pageWith(v, templates.Options{Status: code, Media: true}, "Recording", "recording", p)
}

// deleteRecording serves POST /dashboard/projects/{project}/recordings/{sid}/delete.
func (a *API) deleteRecording(v *visit) error {
	sid := v.r.PathValue("sid")
	if v.form.Get("confirm") != "delete" {
		return a.recordingPage(v, http.StatusUnprocessableEntity, []string{"That is not the word. Nothing was deleted."})
	}
	if a.Recordings == nil {
		return problem.NoSuch("recording")
	}
	if err := a.Recordings.Delete(v.r.Context(), v.project.ID, sid); err != nil {
		return err
	}
	return v.redirect(v.base() + "/recordings?done=deleted")
}
