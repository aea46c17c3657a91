package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

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
	Title, URL string
	From, To   callParty
	Length     string // how long the parties were connected; "" if nobody answered
	Why        string // why the call ended
	Quality    string
	Status     status
	Running    bool
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
		Record: r, Title: v.words().Format(r.Created, "2 Jan 2006, 15:04:05"), URL: v.base() + "/calls/" + r.ID,
		From: v.callParty(r.From), To: v.callParty(r.To), Why: r.Reason(), Status: callStatus(r),
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

// callStatus returns the state of a running call, or the result of an ended one.
func callStatus(r calls.Record) status {
	if r.Ending && r.State != calls.Completed {
		return status{"warn", "Ending"}
	}
	switch r.State {
	case calls.Created:
		return status{"warn", "Connecting"}
	case calls.Ringing:
		return status{"warn", "Ringing"}
	case calls.InCall:
		return status{"good", "In call"}
	}

	return map[calls.Result]status{
		calls.Connected: {"good", resultTitles[calls.Connected]}, calls.Busy: {"", resultTitles[calls.Busy]},
		calls.Missed: {"warn", resultTitles[calls.Missed]}, calls.Canceled: {"", resultTitles[calls.Canceled]},
		calls.Failed: {"bad", resultTitles[calls.Failed]},
	}[r.Result()]
}

// resultTitles describes the results of calls in words.
var resultTitles = map[calls.Result]string{
	calls.Connected: "Answered", calls.Busy: "Busy", calls.Missed: "Missed", calls.Canceled: "Canceled",
	calls.Failed: "Failed",
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

// callFinder returns the search form of the list of calls.
func (v *visit) callFinder() finder {
	var results []choice
	for _, r := range calls.Results() {
		results = append(results, choice{Value: string(r), Title: resultTitles[r]})
	}
	return v.finder("Part of a name, number or address", "555", "",
		v.choiceFilter("result", "Result", "Any", results),
		v.dayFilter("after", "Began from"), v.dayFilter("before", "Began until"),
		v.textFilter("caller", "From address", "/private/grace"), v.textFilter("callee", "To address", "/private/alan"),
		v.textFilter("subscriber", "Subscriber", "email or id"))
}

// callFilter reads the filters from the URL, except for the search box. err describes invalid days.
func (a *callPages) callFilter(v *visit) (ask calls.Filter, err error) {
	q := v.r.URL.Query()
	for _, r := range calls.Results() {
		if string(r) == q.Get("result") {
			ask.Result = r
		}
	}
	ask.From, ask.To = plainText(q.Get("caller")), plainText(q.Get("callee"))
	who, err := a.subscriberID(v, plainText(q.Get("subscriber")))
	if err != nil {
		return ask, err
	}
	if who != "" {
		ask.Subscribers = []string{who}
	}
	ask.CreatedFrom, ask.CreatedBefore, err = parseDays(q.Get("after"), q.Get("before"))
	return ask, err
}

// maxCallers is the maximum number of subscribers whose calls are searched at once.
const maxCallers = 20

// narrow adds the text in the search box to a filter. It looks for subscribers only if the text has
// a letter and the filter has no subscriber. If the text finds subscribers who have calls, it
// selects the calls of these subscribers. Otherwise, or if the URL asks for it, it selects the
// calls with a party whose name, number or address contains the text.
func (a *callPages) narrow(v *visit, ask *calls.Filter, text string) error {
	if text == "" {
		return nil
	}
	theirs := *ask
	var err error
	byParty := v.r.URL.Query().Get("by") == "party"
	if !byParty && len(ask.Subscribers) == 0 && strings.ContainsFunc(text, unicode.IsLetter) {
		theirs.Subscribers, err = a.callers(v, text)
	}
	if err != nil {
		return err
	}

	ask.Party = text
	if len(theirs.Subscribers) == 0 {
		return nil
	}
	found, err := a.Calls.List(v.r.Context(), v.project.ID, theirs, page.Query{Size: 1})
	if len(found.Items) > 0 {
		*ask = theirs
	}
	return err
}

// callers returns the subscribers whom text identifies by an address, email or name. It returns
// none if there are more than maxCallers.
func (a *callPages) callers(v *visit, text string) (ids []string, err error) {
	ctx := v.r.Context()
	if strings.HasPrefix(text, "/") {
		one, err := a.Fabric.Addresses.FindAt(ctx, v.project.ID, text)
		if err == nil && one.Type == subscriberType {
			ids = append(ids, one.ResourceID)
		}
		return ids, problem.IgnoreNotFound(err)
	}

	found, err := a.Fabric.Subscribers.Search(ctx, v.project.ID, text, page.Query{Size: maxCallers})
	if found.Next != "" {
		return nil, err
	}
	for _, s := range found.Items {
		ids = append(ids, s.ID)
	}
	return ids, err
}

// A callsPage lists ended calls. Its first page also lists the running ones.
type callsPage struct {
	list[callRow]
	Running []callRow
	More    bool // there are more running calls than the page shows
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
	ask, err := a.callFilter(v)
	p := callsPage{Finder: v.callFinder().exportable(v), First: !v.r.URL.Query().Has("from")}
	options := templates.Options{Status: http.StatusOK, Connect: []string{"'self'"}}
	if err != nil {
		if !p.Finder.blame(err) {
			return err
		}
		options.Status = http.StatusUnprocessableEntity
		p.list = listOf(v, page.Page[calls.Record]{}, v.callRow)
		return a.pageWith(v, options, "Calls", "calls", p)
	}

	if err := a.narrow(v, &ask, p.Finder.Query); err != nil {
		return err
	}
	if p.Finder.Query != "" && ask.Party == "" {
		q := v.r.URL.Query()
		q.Del("from")
		q.Set("by", "party")
		p.ByParty = v.base() + "/calls?" + q.Encode()
	}
	running, err := a.runningCalls(v.r.Context(), v.project.ID, ask)
	if err != nil {
		return err
	}

	ask.State = calls.Completed
	found, err := a.Calls.List(v.r.Context(), v.project.ID, ask, v.query())
	if err != nil {
		return err
	}
	if p.First {
		p.More = running.Next != ""
		for _, r := range running.Items {
			p.Running = append(p.Running, v.callRow(r))
		}
	}
	p.list, p.Live = listOf(v, found, v.callRow), v.live(callsMark(running.Items, found.Items))
	return a.pageWith(v, options, "Calls", "calls", p)
}

// exportCalls serves GET /dashboard/projects/{project}/calls/export.
func (a *callPages) exportCalls(v *visit) error {
	if a.Calls == nil {
		return problem.NoSuch("page")
	}
	ask, err := a.callFilter(v)
	if err == nil {
		err = a.narrow(v, &ask, v.callFinder().Query)
	}
	if err != nil {
		return err
	}

	list := func(q page.Query) (page.Page[calls.Record], error) {
		return a.Calls.List(v.r.Context(), v.project.ID, ask, q)
	}
	header := []string{"id", "created", "from", "to", "state", "result", "reason", "seconds", "recording_sid"}
	return writeCSV(a.site, v, "calls", header, list, func(r calls.Record) []string {
		length := ""
		if !r.Answered.IsZero() {
			length = strconv.FormatFloat(r.Duration(v.now).Seconds(), 'f', 3, 64)
		}
		return []string{r.ID, csvTime(r.Created), names.Party(r.From), names.Party(r.To), string(r.State),
			string(r.Result()), r.Reason(), length, r.RecordingSid}
	})
}

// runningCalls returns the running calls that match a filter. No running call matches a filter by
// result.
func (a *callPages) runningCalls(
	ctx context.Context, projectID string, ask calls.Filter,
) (found page.Page[calls.Record], err error) {
	if ask.Result != "" {
		return found, nil
	}
	ask.Running = true
	return a.Calls.List(ctx, projectID, ask, page.Query{Size: maxRunning})
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
	ask, err := a.callFilter(v)
	if err == nil {
		err = a.narrow(v, &ask, v.callFinder().Query)
	}
	if err != nil {
		return err
	}

	return a.follow(v, func(ctx context.Context) (string, error) {
		running, err := a.runningCalls(ctx, v.project.ID, ask)
		if err != nil {
			return "", err
		}
		past := ask
		past.State = calls.Completed
		ended, err := a.Calls.List(ctx, v.project.ID, past, page.Query{Size: 1})
		return callsMark(running.Items, ended.Items), err
	})
}
