package laml

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// A callList is a page of calls. Besides paging, it has only one member: as in a list, clients take
// the member that they do not know for the items.
type callList struct {
	paging
	Calls []callDocument `json:"calls"`
}

// listCalls serves GET /Calls.
func (a *API) listCalls(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	q, err := parseCallQuery(r)
	if err != nil {
		return err
	}
	if o.SubscriberID != "" {
		q.filter.Subscribers = []string{o.SubscriberID}
	}
	var found page.Page[calls.Record]
	if !q.matchesNone {
		found, err = a.calls.List(r.Context(), o.ProjectID, q.filter, q.query)
		if err != nil {
			return err
		}
	}

	doc := callList{
		paging: q.neighbors(found.Prev, found.Next),
		Calls:  make([]callDocument, 0, len(found.Items)),
	}
	for _, rec := range found.Items {
		doc.Calls = append(doc.Calls, callDocumentOf(rec))
	}
	return web.JSON(w, http.StatusOK, doc)
}

// A callQuery is a parsed request for a list of calls.
type callQuery struct {
	pageQuery
	filter      calls.Filter
	matchesNone bool
}

// Names of the filters of calls.
const (
	callStatus = "Status"
	callFrom   = "From"
	callTo     = "To"
	callParent = "ParentCallSid"
	callStart  = "StartTime"
	callEnd    = "EndTime"
)

var callFilters = []string{
	callStatus, callFrom, callTo, callParent,
	callStart, callStart + "<", callStart + ">",
	callEnd, callEnd + "<", callEnd + ">",
}

// parseCallQuery parses the query of a list of calls. Calls never have a parent.
func parseCallQuery(r *http.Request) (callQuery, error) {
	p, values, err := parsePageQuery(r, callFilters)
	if err != nil {
		return callQuery{}, err
	}
	q := callQuery{pageQuery: p, matchesNone: values.Get(callParent) != ""}
	q.path += "/Calls"

	f := &q.filter
	f.From = values.Get(callFrom)
	f.To = values.Get(callTo)
	var badStart, badEnd error
	f.CreatedFrom, f.CreatedBefore, badStart = parseSpan(values, callStart)
	f.EndedFrom, f.EndedBefore, badEnd = parseSpan(values, callEnd)
	return q, errors.Join(q.parseStatus(values), badStart, badEnd)
}

// parseStatus parses the status by which to filter.
func (q *callQuery) parseStatus(values url.Values) error {
	f := &q.filter
	switch status := values.Get(callStatus); status {
	case "":
	case "queued", "initiated":
		f.State = calls.Created
	case "ringing":
		f.State = calls.Ringing
	case "in-progress":
		f.State = calls.InCall
	default:
		for result, name := range resultStatuses {
			if name == status {
				f.Result = result
				return nil
			}
		}
		return problem.BadParam(callStatus, "Status must be queued, ringing, in-progress, completed, busy, "+
			"no-answer, canceled or failed")
	}
	return nil
}

// showCall serves GET /Calls/{file}.
func (a *API) showCall(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	rec, err := a.findCall(r, o)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, callDocumentOf(rec))
}

// findCall returns the call in the path.
func (a *API) findCall(r *http.Request, o recordings.Owner) (calls.Record, error) {
	id, ext := parseFile(r.PathValue("file"))
	if ext != "" && ext != ".json" {
		return calls.Record{}, problem.NoSuch("call")
	}
	return a.calls.Find(r.Context(), o.ProjectID, o.SubscriberID, id)
}

// endCall serves POST /Calls/{file}. Status=completed ends a call. Status=canceled ends a call that
// has not been answered. The call's node ends the call within a second, so the response may still
// show it in progress.
func (a *API) endCall(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	if err := o.MayChange(); err != nil {
		return err
	}
	fields, err := web.Fields(r)
	if err != nil {
		return err
	}

	var status, document, script string
	err = single(fields, map[string]*string{"Status": &status, "Url": &document, "Twiml": &script})
	if err != nil {
		return err
	}
	switch {
	case document != "" || script != "":
		return problem.BadParam("Url", "this server does not run documents: calls can only be ended")
	case status == "":
		return problem.Missing("Status")
	case status != "completed" && status != "canceled":
		return problem.BadParam("Status", "Status must be completed, or canceled for a call that nobody has answered")
	}

	rec, err := a.findCall(r, o)
	if err != nil {
		return err
	}
	if rec.State == calls.Completed || status == "canceled" && rec.State == calls.InCall {
		return notInProgress()
	}
	err = a.calls.HangUp(r.Context(), o.ProjectID, rec.ID)
	if errors.Is(err, problem.NotFound) { // the call ended in the meantime
		return notInProgress()
	}
	if err != nil {
		return err
	}

	rec, err = a.calls.Find(r.Context(), o.ProjectID, "", rec.ID)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, callDocumentOf(rec))
}

// notInProgress returns the error for a change that comes too late in a call.
func notInProgress() error {
	return problem.New(problem.Invalid, "21220", "the call is not in progress")
}

// A callDocument is a call in the format that clients read. It always has all members. Unknown
// values are null. For two members, the vendor's documentation and clients use different names, so
// a callDocument has both names.
type callDocument struct {
	Sid             string            `json:"sid"`
	AccountSid      string            `json:"account_sid"`
	APIVersion      string            `json:"api_version"`
	ParentCallSid   *string           `json:"parent_call_sid"`
	To              string            `json:"to"`
	ToFormatted     string            `json:"to_formatted"`
	FormattedTo     string            `json:"formatted_to"`
	From            string            `json:"from"`
	FromFormatted   string            `json:"from_formatted"`
	FormattedFrom   string            `json:"formatted_from"`
	PhoneNumberSid  *string           `json:"phone_number_sid"`
	Status          string            `json:"status"`
	DateCreated     string            `json:"date_created"`
	DateUpdated     string            `json:"date_updated"`
	StartTime       string            `json:"start_time"`
	EndTime         *string           `json:"end_time"`
	Duration        int               `json:"duration"`
	Price           *float64          `json:"price"`
	PriceUnit       string            `json:"price_unit"`
	Direction       string            `json:"direction"`
	AnsweredBy      *string           `json:"answered_by"`
	ForwardedFrom   *string           `json:"forwarded_from"`
	CallerName      *string           `json:"caller_name"`
	GroupSid        *string           `json:"group_sid"`
	Annotation      *string           `json:"annotation"`
	URI             string            `json:"uri"`
	SubresourceURIs map[string]string `json:"subresource_uris"`
	Details         calls.Document    `json:"details"` // an extension of selvage
}

// callDocumentOf returns the document for a call.
func callDocumentOf(r calls.Record) callDocument {
	details := r.Document()
	uri := prefix + "/Accounts/" + r.ProjectID + "/Calls/" + url.PathEscape(r.ID)

	return callDocument{
		Sid:             r.ID,
		AccountSid:      r.ProjectID,
		APIVersion:      "2010-04-01",
		To:              r.To.Address,
		ToFormatted:     r.To.Address,
		FormattedTo:     r.To.Address,
		From:            r.From.Address,
		FromFormatted:   r.From.Address,
		FormattedFrom:   r.From.Address,
		Status:          callStatusOf(r),
		DateCreated:     date(r.Created),
		DateUpdated:     date(lastChange(r)),
		StartTime:       date(r.Created),
		EndTime:         optional(date(r.Ended)),
		Duration:        details.Duration,
		PriceUnit:       "USD",
		Direction:       "inbound",
		CallerName:      optional(r.From.Name),
		URI:             uri + ".json",
		SubresourceURIs: map[string]string{"recordings": uri + "/Recordings.json"},
		Details:         details,
	}
}

// resultStatuses maps the results of ended calls to statuses.
var resultStatuses = map[calls.Result]string{
	calls.Connected: "completed",
	calls.Busy:      "busy",
	calls.Missed:    "no-answer",
	calls.Canceled:  "canceled",
	calls.Failed:    "failed",
}

// callStatusOf returns the status of a call.
func callStatusOf(r calls.Record) string {
	switch r.State {
	case calls.Created:
		return "queued"
	case calls.Ringing:
		return "ringing"
	case calls.InCall:
		return "in-progress"
	}
	return resultStatuses[r.Result()]
}

// lastChange returns the time of the last change that the record of a call shows.
func lastChange(r calls.Record) time.Time {
	switch {
	case !r.Ended.IsZero():
		return r.Ended
	case !r.Answered.IsZero():
		return r.Answered
	}
	return r.Created
}
