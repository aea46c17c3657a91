package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator/names"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/templates"
)

// callPages serves the pages that list, show and end calls.
type callPages struct {
	*site
	trail      *trail
	Calls      *calls.Records         // nil hides all calls
	Recordings *recordings.Recordings // nil if the server keeps no recordings
	Move       func(ctx context.Context, projectID, id, address string) error
}

// A callRow is a row in a list of calls.
type callRow struct {
	calls.Record
	Title   string
	URL     string
	From    callParty
	To      callParty
	Length  string // how long the parties were connected; "" if nobody answered
	Why     string // why the call ended
	Quality string
	Status  status
	Running bool
}

// A callParty is one side of a call. Its URL is empty unless the party is a subscriber.
type callParty struct{ Name, Address, URL string }

func (v *visit) callParty(p calls.Party) callParty {
	party := callParty{Name: p.Name, Address: p.Address}
	if p.SubscriberID != "" {
		party.URL = v.base() + "/subscribers/" + p.SubscriberID
	}
	if party.Name == "" && party.Address == "" {
		party.Name = "Erased"
	}
	if party.Name == party.Address {
		party.Name = ""
	}
	return party
}

func (v *visit) callRow(r calls.Record) callRow {
	row := callRow{
		Record:  r,
		Title:   v.words().Format(r.Created, "2 Jan 2006, 15:04:05"),
		URL:     v.base() + "/calls/" + r.ID,
		From:    v.callParty(r.From),
		To:      v.callParty(r.To),
		Why:     r.Reason(),
		Status:  callStatus(r),
		Running: r.State != calls.Completed,
	}
	if !r.Answered.IsZero() {
		row.Length = formatLength(r.Duration(v.now))
	}
	if q := r.Document().Quality; q != nil {
		row.Quality = qualityOf(q.MOS)
	}
	return row
}

// callStatus returns the state of a running call, or the result of an ended call.
func callStatus(r calls.Record) status {
	if r.Ending && r.State != calls.Completed {
		return status{Kind: "warn", Word: "Ending"}
	}
	switch r.State {
	case calls.Created:
		return status{Kind: "warn", Word: "Connecting"}
	case calls.Ringing:
		return status{Kind: "warn", Word: "Ringing"}
	case calls.InCall:
		return status{Kind: "good", Word: "In call"}
	}

	result := r.Result()
	return status{Kind: resultKinds[result], Word: resultTitles[result]}
}

// resultKinds maps the results of calls to the kinds of their status.
var resultKinds = map[calls.Result]string{
	calls.Connected: "good",
	calls.Missed:    "warn",
	calls.Failed:    "bad",
}

// resultTitles describes the results of calls in words.
var resultTitles = map[calls.Result]string{
	calls.Connected: "Answered",
	calls.Busy:      "Busy",
	calls.Missed:    "Missed",
	calls.Canceled:  "Canceled",
	calls.Failed:    "Failed",
}

// qualityOf describes mos, a mean opinion score, in words.
func qualityOf(mos float64) string {
	switch {
	case mos >= 4:
		return "Good"
	case mos >= 3.5:
		return "Fair"
	}
	return "Poor"
}

// A callsPage lists ended calls. The first page of the list also contains the running calls.
type callsPage struct {
	list[callRow]
	Running []callRow
	More    bool // whether there are more running calls than the page shows
	First   bool
	ByParty string // the URL of a search by parties, if only calls of certain subscribers are listed
	Finder  finder
	Live    string
}

// maxRunning is the maximum number of running calls that the list shows.
const maxRunning = 100

// listCalls serves GET /dashboard/projects/{project}/calls.
func (a *callPages) listCalls(v *visit) error {
	if a.Calls == nil {
		return problem.NoSuch("page")
	}
	p := callsPage{Finder: v.callFinder().exportable(v), First: !v.r.URL.Query().Has("from")}
	options := templates.Options{Status: http.StatusOK, Connect: []string{"'self'"}}
	filter, err := a.callFilter(v)
	if err != nil {
		if !p.Finder.blame(err) {
			return err
		}
		options.Status = http.StatusUnprocessableEntity
		p.list = listOf(v, page.Page[calls.Record]{}, v.callRow)
		return a.pageWith(v, options, "Calls", "calls", p)
	}

	filter, err = a.narrow(v, filter, p.Finder.Query)
	if err != nil {
		return err
	}
	if p.Finder.Query != "" && filter.Party == "" {
		q := v.r.URL.Query()
		q.Del("from")
		q.Set("by", "party")
		p.ByParty = v.base() + "/calls?" + q.Encode()
	}
	running, err := a.runningCalls(v.r.Context(), v.project.ID, filter)
	if err != nil {
		return err
	}
	filter.State = calls.Completed
	ended, err := a.Calls.List(v.r.Context(), v.project.ID, filter, v.query())
	if err != nil {
		return err
	}

	if p.First {
		p.More = running.Next != ""
		for _, r := range running.Items {
			p.Running = append(p.Running, v.callRow(r))
		}
	}
	p.list = listOf(v, ended, v.callRow)
	p.Live = v.live(callsMark(running.Items, ended.Items))
	return a.pageWith(v, options, "Calls", "calls", p)
}

// exportCalls serves GET /dashboard/projects/{project}/calls/export.
func (a *callPages) exportCalls(v *visit) error {
	if a.Calls == nil {
		return problem.NoSuch("page")
	}
	filter, err := a.wholeFilter(v)
	if err != nil {
		return err
	}

	list := func(query page.Query) (page.Page[calls.Record], error) {
		return a.Calls.List(v.r.Context(), v.project.ID, filter, query)
	}
	line := func(r calls.Record) []string {
		seconds := ""
		if !r.Answered.IsZero() {
			seconds = strconv.FormatFloat(r.Duration(v.now).Seconds(), 'f', 3, 64)
		}
		return []string{r.ID, csvTime(r.Created), names.Party(r.From), names.Party(r.To), string(r.State),
			string(r.Result()), r.Reason(), seconds, r.RecordingSid}
	}
	header := []string{"id", "created", "from", "to", "state", "result", "reason", "seconds", "recording_sid"}
	return writeCSV(a.site, v, "calls", header, list, line)
}

// runningCalls returns the running calls that match a filter. No running call matches a filter by
// result.
func (a *callPages) runningCalls(
	ctx context.Context, projectID string, filter calls.Filter,
) (page.Page[calls.Record], error) {
	if filter.Result != "" {
		return page.Page[calls.Record]{}, nil
	}
	filter.Running = true
	return a.Calls.List(ctx, projectID, filter, page.Query{Size: maxRunning})
}

// callsMark returns a string that changes when a call begins, is answered or ends.
func callsMark(running, ended []calls.Record) string {
	h := sha256.New()
	for _, r := range slices.Concat(running, ended[:min(1, len(ended))]) {
		fmt.Fprintln(h, r.ID, r.State)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// followCalls serves GET /dashboard/projects/{project}/calls/live.
func (a *callPages) followCalls(v *visit) error {
	if a.Calls == nil {
		return problem.NoSuch("page")
	}
	filter, err := a.wholeFilter(v)
	if err != nil {
		return err
	}

	return a.follow(v, func(ctx context.Context) (string, error) {
		running, err := a.runningCalls(ctx, v.project.ID, filter)
		if err != nil {
			return "", err
		}
		past := filter
		past.State = calls.Completed
		ended, err := a.Calls.List(ctx, v.project.ID, past, page.Query{Size: 1})
		if err != nil {
			return "", err
		}
		return callsMark(running.Items, ended.Items), nil
	})
}
