package laml

import (
	"errors"
	"net/http"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
)

// A list is a page of recordings. Clients expect the items in the only member that they do not
// know, so there must be exactly one such member.
type list struct {
	paging
	Recordings []document `json:"recordings"`
}

// A paging contains the members that all pages have.
type paging struct {
	URI             string  `json:"uri"`
	FirstPageURI    string  `json:"first_page_uri"`
	NextPageURI     *string `json:"next_page_uri"`
	PreviousPageURI *string `json:"previous_page_uri"`
	Page            int     `json:"page"`
	PageSize        int     `json:"page_size"`
}

// listRecordings serves GET /Recordings, both for an account and below a call or a conference.
func (a *API) listRecordings(w http.ResponseWriter, r *http.Request, o recordings.Owner, urls mediaURLs) error {
	q, err := parseListQuery(r)
	if err != nil {
		return err
	}
	q.filter.Owner = o
	found, err := a.recordings.List(r.Context(), q.filter, q.query)
	if err != nil {
		return err
	}

	doc := list{q.neighbors(found.Prev, found.Next), make([]document, 0, len(found.Items))}
	for _, rec := range found.Items {
		doc.Recordings = append(doc.Recordings, a.document(rec, urls))
	}
	return web.JSON(w, http.StatusOK, doc)
}

// A pageQuery is a parsed request for a page of a list.
type pageQuery struct {
	path  string     // path of the list, which links repeat
	kept  url.Values // the filters, which links repeat
	page  int
	query page.Query
}

// neighbors returns the paging members for the requested page, with links to the previous and the
// next page. prev and next are the first ids of these pages, or "" for a missing page.
func (q pageQuery) neighbors(prev, next string) paging {
	p := paging{URI: q.uri(q.page, q.query.From), FirstPageURI: q.uri(0, ""), Page: q.page, PageSize: q.query.Size}
	if next != "" {
		p.NextPageURI = optional(q.uri(q.page+1, next))
	}
	if prev != "" && q.page > 0 {
		p.PreviousPageURI = optional(q.uri(q.page-1, prev))
	}
	return p
}

// uri returns a link to a page as a path.
func (q pageQuery) uri(number int, from string) string {
	values := url.Values{"Page": {strconv.Itoa(number)}, "PageSize": {strconv.Itoa(q.query.Size)}}
	for name, v := range q.kept {
		values[name] = v
	}
	if number > 0 {
		values.Set("PageToken", page.Token(from))
	}
	return q.path + "?" + values.Encode()
}

// Names of the filters.
const (
	createdOn      = "DateCreated"
	createdBefore  = "DateCreated<"
	createdFrom    = "DateCreated>"
	includeDeleted = "IncludeSoftDeleted"
	flagged        = "Flag"
	tagged         = "Tag"
	held           = "Hold"
	party          = "Party"
	byName         = "Name"
	direction      = "Direction"
	longer         = "Duration>"
	shorter        = "Duration<"
)

var filters = []string{"CallSid", "ConferenceSid", createdOn, createdBefore, createdFrom, includeDeleted,
	flagged, tagged, held, party, byName, direction, longer, shorter, urlTTL}

// A listQuery is a parsed request for a list of recordings.
type listQuery struct {
	pageQuery
	filter recordings.Filter
}

// parseListQuery parses the query of a list, and the call or conference in its path.
func parseListQuery(r *http.Request) (listQuery, error) {
	p, values, err := parsePageQuery(r, filters)
	q := listQuery{pageQuery: p}
	if err != nil {
		return q, err
	}

	q.filter.CallSid, q.filter.ConferenceSid = values.Get("CallSid"), values.Get("ConferenceSid")
	if call := r.PathValue("CallSid"); call != "" {
		q.path, q.filter.CallSid = q.path+"/Calls/"+url.PathEscape(call), call
	}
	if conference := r.PathValue("ConferenceSid"); conference != "" {
		q.path, q.filter.ConferenceSid = q.path+"/Conferences/"+url.PathEscape(conference), conference
	}

	q.path += "/Recordings"
	q.filter.CreatedFrom, q.filter.CreatedBefore, err = parseSpan(values, createdOn)
	q.filter.Party, q.filter.Name = values.Get(party), values.Get(byName)
	return q, errors.Join(err, q.deleted(values), q.flagged(values), q.marked(values), q.directed(values),
		q.lasting(values))
}

// parsePageQuery parses the page in a query, and keeps the parameters named in filters. The result
// has the path of the account.
func parsePageQuery(r *http.Request, filters []string) (pageQuery, url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return pageQuery{}, nil, problem.New(problem.Malformed, "bad_request", "the query is invalid")
	}

	q := pageQuery{path: prefix + "/Accounts/" + r.PathValue("AccountSid"), kept: make(url.Values)}
	for name, v := range values {
		if len(v) > 1 {
			return q, values, problem.BadParam(name, "%s is repeated", name)
		}
		if slices.Contains(filters, name) && v[0] != "" {
			q.kept[name] = v
		}
	}
	return q, values, q.paging(values)
}

// paging parses which page is requested. It lowers a size above the maximum, because clients send
// the limit for a whole listing as the page size.
func (q *pageQuery) paging(values url.Values) (err error) {
	q.query.Size = page.DefaultSize
	if size := values.Get("PageSize"); size != "" {
		q.query.Size, err = strconv.Atoi(size)
		if err != nil || q.query.Size < 1 {
			return problem.BadParam("PageSize", "PageSize must be an integer from 1 to %d", page.MaxSize)
		}
		q.query.Size = min(q.query.Size, page.MaxSize)
	}

	if number := values.Get("Page"); number != "" {
		q.page, err = strconv.Atoi(number)
		if err != nil || q.page < 0 {
			return problem.BadParam("Page", "Page must be an integer from 0")
		}
	}

	// The token in the query identifies every page except the first. The number is only for the
	// client.
	token, ok := "", true
	if given := values.Get("PageToken"); given != "" {
		token, ok = page.ParseToken(given)
	}
	switch {
	case !ok:
		return problem.BadParam("PageToken", "PageToken is not from this list")
	case q.page > 0 && token == "":
		return problem.BadParam("PageToken", "PageToken is required for every page after the first")
	case q.page > 0:
		q.query.From = token
	}
	return nil
}

// parseSpan parses a filter by time. The parameter name> is an inclusive lower bound, and name< an
// exclusive upper bound. The parameter name itself is a day or a second.
func parseSpan(values url.Values, name string) (from, before time.Time, err error) {
	for _, bound := range []struct {
		param string
		at    *time.Time
	}{{name + ">", &from}, {name + "<", &before}} {
		text := values.Get(bound.param)
		if text == "" {
			continue
		}
		at, ok := parseDate(text)
		if !ok {
			return from, before, badDate(bound.param)
		}
		*bound.at = at
	}

	text := values.Get(name)
	if text == "" {
		return from, before, nil
	}

	on, ok := parseDate(text)
	if !ok {
		return from, before, badDate(name)
	}
	if from.Before(on) {
		from = on
	}

	if end := on.Add(span(on)); before.IsZero() || before.After(end) {
		before = end
	}
	return from, before, nil
}

// span returns the length of the period that a time stands for. For midnight, it is a day, because
// clients write days as midnight. For other times, it is a second.
func span(at time.Time) time.Duration {
	if at.Equal(at.Truncate(24 * time.Hour)) {
		return 24 * time.Hour
	}
	return time.Second
}

// parseDate parses a date in the forms of clients and documents: a day, ISO 8601 or RFC 2822.
func parseDate(text string) (time.Time, bool) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	t, err := mail.ParseDate(text)
	return t.UTC(), err == nil
}

func badDate(param string) error {
	return problem.BadParam(param,
		"%s must be a date like 2026-11-20, 2026-11-20T10:11:12Z or Fri, 20 Nov 2026 10:11:12 +0000", param)
}

// deleted parses whether the list includes the stubs of deleted recordings.
func (q *listQuery) deleted(values url.Values) error {
	switch values.Get(includeDeleted) {
	case "", "false":
		return nil
	case "true":
		q.filter.IncludeDeleted = true
		return nil
	}
	return problem.BadParam(includeDeleted, "%s must be true or false", includeDeleted)
}

// directed parses the direction of calls by which to filter.
func (q *listQuery) directed(values url.Values) error {
	q.filter.Direction = values.Get(direction)
	if q.filter.Direction == "" || slices.Contains(recordings.Directions, q.filter.Direction) {
		return nil
	}
	return problem.BadParam(direction, "%s must be one of %s", direction, strings.Join(recordings.Directions, ", "))
}

// maxSeconds is the maximum duration in a query: one year.
const maxSeconds = 366 * 24 * 60 * 60

// lasting parses the durations, in seconds, by which to filter.
func (q *listQuery) lasting(values url.Values) error {
	for _, bound := range []struct {
		param string
		to    *time.Duration
	}{{longer, &q.filter.DurationFrom}, {shorter, &q.filter.DurationBefore}} {
		text := values.Get(bound.param)
		if text == "" {
			continue
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds >= 0 && seconds <= maxSeconds) {
			return problem.BadParam(bound.param, "%s must be a number of seconds", bound.param)
		}
		*bound.to = time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
	}
	return nil
}

// marked parses the tag by which to filter, and whether to list only recordings on hold.
func (q *listQuery) marked(values url.Values) error {
	q.filter.Tag = values.Get(tagged)
	if q.filter.Tag != "" {
		if err := recordings.CheckTag(tagged, q.filter.Tag); err != nil {
			return err
		}
	}
	return flag(values, held, &q.filter.Held)
}

// flagged parses the flag by which to filter.
func (q *listQuery) flagged(values url.Values) error {
	name := values.Get(flagged)
	if name == "" {
		return nil
	}
	var ok bool
	q.filter.Flag, ok = levels.FlagOf(name)
	if !ok {
		return problem.BadParam(flagged, "%s must be one of %s", flagged, strings.Join(levels.FlagNames(), ", "))
	}
	return nil
}
