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

// A list is a page of recordings. Clients take the one member they do not know to be the list,
// so there must be no other such member.
type list struct {
	paging
	Recordings []document `json:"recordings"`
}

// paging holds the members that every page has.
type paging struct {
	URI             string  `json:"uri"`
	FirstPageURI    string  `json:"first_page_uri"`
	NextPageURI     *string `json:"next_page_uri"`
	PreviousPageURI *string `json:"previous_page_uri"`
	Page            int     `json:"page"`
	PageSize        int     `json:"page_size"`
}

// listRecordings serves GET /Recordings, also below a call or a conference.
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

	doc := list{q.links(), make([]document, 0, len(found.Items))}
	if found.Next != "" {
		doc.NextPageURI = optional(q.uri(q.page+1, found.Next))
	}
	if found.Prev != "" && q.page > 0 {
		doc.PreviousPageURI = optional(q.uri(q.page-1, found.Prev))
	}
	for _, rec := range found.Items {
		doc.Recordings = append(doc.Recordings, a.document(rec, urls))
	}
	return web.JSON(w, http.StatusOK, doc)
}

// A listQuery is a parsed request for a list.
type listQuery struct {
	path   string     // of the list, repeated in links
	kept   url.Values // the filters, repeated in links
	page   int
	query  page.Query
	filter recordings.Filter
}

// links returns the members of the requested page, without its neighbors.
func (q listQuery) links() paging {
	return paging{URI: q.uri(q.page, q.query.From), FirstPageURI: q.uri(0, ""), Page: q.page, PageSize: q.query.Size}
}

// uri returns the root-relative link to a page.
func (q listQuery) uri(number int, from string) string {
	values := url.Values{"Page": {strconv.Itoa(number)}, "PageSize": {strconv.Itoa(q.query.Size)}}
	for name, v := range q.kept {
		values[name] = v
	}
	if number > 0 {
		values.Set("PageToken", page.Token(from))
	}
	return q.path + "?" + values.Encode()
}

// The names of the filters.
const (
	createdOn      = "DateCreated"
	createdBefore  = "DateCreated<"
	createdFrom    = "DateCreated>"
	includeDeleted = "IncludeSoftDeleted"
	flagged        = "Flag"
)

var filters = []string{"CallSid", "ConferenceSid", createdOn, createdBefore, createdFrom, includeDeleted,
	flagged, urlTTL}

// parseListQuery parses the query of a list, and the call or conference in its path.
func parseListQuery(r *http.Request) (listQuery, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return listQuery{}, problem.New(problem.Malformed, "bad_request", "the query is invalid")
	}

	q := listQuery{path: prefix + "/Accounts/" + r.PathValue("AccountSid"), kept: make(url.Values)}
	for name, v := range values {
		if len(v) > 1 {
			return q, problem.BadParam(name, "%s is repeated", name)
		}
		if slices.Contains(filters, name) && v[0] != "" {
			q.kept[name] = v
		}
	}

	q.filter.CallSid, q.filter.ConferenceSid = values.Get("CallSid"), values.Get("ConferenceSid")
	if call := r.PathValue("CallSid"); call != "" {
		q.path, q.filter.CallSid = q.path+"/Calls/"+url.PathEscape(call), call
	}
	if conference := r.PathValue("ConferenceSid"); conference != "" {
		q.path, q.filter.ConferenceSid = q.path+"/Conferences/"+url.PathEscape(conference), conference
	}

	q.path += "/Recordings"
	return q, errors.Join(q.paging(values), q.created(values), q.deleted(values), q.flagged(values))
}

// paging parses which page is wanted. A size above the maximum is lowered, since clients send the
// limit of a whole listing.
func (q *listQuery) paging(values url.Values) (err error) {
	q.query.Size = page.DefaultSize
	if size := values.Get("PageSize"); size != "" {
		if q.query.Size, err = strconv.Atoi(size); err != nil || q.query.Size < 1 {
			return problem.BadParam("PageSize", "PageSize must be an integer from 1 to %d", page.MaxSize)
		}
		q.query.Size = min(q.query.Size, page.MaxSize)
	}

	if number := values.Get("Page"); number != "" {
		if q.page, err = strconv.Atoi(number); err != nil || q.page < 0 {
			return problem.BadParam("Page", "Page must be an integer from 0")
		}
	}

	// Every page but the first is found by its token; the number is only repeated to the client.
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

// created parses the bounds of the creation date.
func (q *listQuery) created(values url.Values) error {
	f := &q.filter
	if text := values.Get(createdFrom); text != "" {
		from, ok := parseDate(text)
		if !ok {
			return badDate(createdFrom)
		}
		f.CreatedFrom = from
	}

	if text := values.Get(createdBefore); text != "" {
		before, ok := parseDate(text)
		if !ok {
			return badDate(createdBefore)
		}
		f.CreatedBefore = before
	}

	if text := values.Get(createdOn); text != "" {
		on, ok := parseDate(text)
		if !ok {
			return badDate(createdOn)
		}
		q.within(on, on.Add(span(on)))
	}
	return nil
}

// within narrows the filter to recordings created from from and before before.
func (q *listQuery) within(from, before time.Time) {
	f := &q.filter
	if f.CreatedFrom.Before(from) {
		f.CreatedFrom = from
	}
	if f.CreatedBefore.IsZero() || f.CreatedBefore.After(before) {
		f.CreatedBefore = before
	}
}

// span returns the length of the period that a client named: a day for midnight, which is how
// clients write a day, and a second for all other times.
func span(at time.Time) time.Duration {
	if at.Equal(at.Truncate(24 * time.Hour)) {
		return 24 * time.Hour
	}
	return time.Second
}

// parseDate parses a date as clients and documents write it: a day, ISO 8601 or RFC 2822.
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

// deleted parses whether to list the stubs of deleted recordings too.
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

// flagged parses the flag that the recordings must have.
func (q *listQuery) flagged(values url.Values) error {
	name := values.Get(flagged)
	if name == "" {
		return nil
	}
	var ok bool
	if q.filter.Flag, ok = levels.FlagOf(name); !ok {
		return problem.BadParam(flagged, "%s must be one of %s", flagged, strings.Join(levels.FlagNames(), ", "))
	}
	return nil
}
