package laml

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

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

	doc := list{
		paging:     q.neighbors(found.Prev, found.Next),
		Recordings: make([]document, 0, len(found.Items)),
	}
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
	p := paging{
		URI:          q.uri(q.page, q.query.From),
		FirstPageURI: q.uri(0, ""),
		Page:         q.page,
		PageSize:     q.query.Size,
	}
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
	values := maps.Clone(q.kept)
	values.Set("Page", strconv.Itoa(number))
	values.Set("PageSize", strconv.Itoa(q.query.Size))
	if number > 0 {
		values.Set("PageToken", page.Token(from))
	}
	return q.path + "?" + values.Encode()
}

// Query parameters of a list.
const (
	callParam       = "CallSid"
	conferenceParam = "ConferenceSid"
	createdParam    = "DateCreated"
	deletedParam    = "IncludeSoftDeleted"
	flagParam       = "Flag"
	tagParam        = "Tag"
	holdParam       = "Hold"
	partyParam      = "Party"
	nameParam       = "Name"
	directionParam  = "Direction"
	durationParam   = "Duration"
)

// listFilters contains the parameters that links to other pages repeat.
var listFilters = []string{
	callParam, conferenceParam, createdParam, createdParam + "<", createdParam + ">", deletedParam,
	flagParam, tagParam, holdParam, partyParam, nameParam, directionParam,
	durationParam + ">", durationParam + "<", urlTTL,
}

// A listQuery is a parsed request for a list of recordings.
type listQuery struct {
	pageQuery
	filter recordings.Filter
}

// parseListQuery parses the query of a list, and the call or conference in its path.
func parseListQuery(r *http.Request) (listQuery, error) {
	p, values, err := parsePageQuery(r, listFilters)
	if err != nil {
		return listQuery{}, err
	}

	q := listQuery{pageQuery: p}
	q.filter.CallSid = values.Get(callParam)
	q.filter.ConferenceSid = values.Get(conferenceParam)
	if call := r.PathValue("CallSid"); call != "" {
		q.path += "/Calls/" + url.PathEscape(call)
		q.filter.CallSid = call
	}
	if conference := r.PathValue("ConferenceSid"); conference != "" {
		q.path += "/Conferences/" + url.PathEscape(conference)
		q.filter.ConferenceSid = conference
	}
	q.path += "/Recordings"

	q.filter.Party = values.Get(partyParam)
	q.filter.Name = values.Get(nameParam)
	return q, errors.Join(
		q.parseCreated(values),
		q.parseDeleted(values),
		q.parseFlag(values),
		q.parseMarks(values),
		q.parseDirection(values),
		q.parseDuration(values),
	)
}

// parseCreated parses the time of creation by which to filter.
func (q *listQuery) parseCreated(values url.Values) (err error) {
	q.filter.CreatedFrom, q.filter.CreatedBefore, err = parseSpan(values, createdParam)
	return err
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
			return pageQuery{}, nil, problem.BadParam(name, "%s is repeated", name)
		}
		if slices.Contains(filters, name) && v[0] != "" {
			q.kept[name] = v
		}
	}
	if err := q.parsePaging(values); err != nil {
		return pageQuery{}, nil, err
	}
	return q, values, nil
}

// parsePaging parses which page is requested. It lowers a size above the maximum, because clients
// send the limit for a whole listing as the page size.
func (q *pageQuery) parsePaging(values url.Values) error {
	q.query.Size = page.DefaultSize
	if text := values.Get("PageSize"); text != "" {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 {
			return problem.BadParam("PageSize", "PageSize must be an integer from 1 to %d", page.MaxSize)
		}
		q.query.Size = min(size, page.MaxSize)
	}
	if text := values.Get("Page"); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil || number < 0 {
			return problem.BadParam("Page", "Page must be an integer from 0")
		}
		q.page = number
	}

	var from string
	if token := values.Get("PageToken"); token != "" {
		id, ok := page.ParseToken(token)
		if !ok {
			return problem.BadParam("PageToken", "PageToken is not from this list")
		}
		from = id
	}
	// The token identifies every page except the first. The number is only for the client.
	if q.page == 0 {
		return nil
	}
	if from == "" {
		return problem.BadParam("PageToken", "PageToken is required for every page after the first")
	}
	q.query.From = from
	return nil
}

// parseDeleted parses whether the list includes the stubs of deleted recordings.
func (q *listQuery) parseDeleted(values url.Values) error {
	switch values.Get(deletedParam) {
	case "", "false":
		return nil
	case "true":
		q.filter.IncludeDeleted = true
		return nil
	}
	return problem.BadParam(deletedParam, "%s must be true or false", deletedParam)
}

// parseDirection parses the direction of calls by which to filter.
func (q *listQuery) parseDirection(values url.Values) error {
	q.filter.Direction = values.Get(directionParam)
	if q.filter.Direction == "" || slices.Contains(recordings.Directions, q.filter.Direction) {
		return nil
	}
	return problem.BadParam(directionParam, "%s must be one of %s",
		directionParam, strings.Join(recordings.Directions, ", "))
}

// parseDuration parses the durations by which to filter.
func (q *listQuery) parseDuration(values url.Values) (err error) {
	q.filter.DurationFrom, err = parseSeconds(values, durationParam+">")
	if err != nil {
		return err
	}
	q.filter.DurationBefore, err = parseSeconds(values, durationParam+"<")
	return err
}

// parseMarks parses the tag by which to filter, and whether to list only recordings on hold.
func (q *listQuery) parseMarks(values url.Values) error {
	q.filter.Tag = values.Get(tagParam)
	if q.filter.Tag != "" {
		if err := recordings.CheckTag(tagParam, q.filter.Tag); err != nil {
			return err
		}
	}
	return parseBool(values, holdParam, &q.filter.Held)
}

// parseFlag parses the flag by which to filter.
func (q *listQuery) parseFlag(values url.Values) error {
	name := values.Get(flagParam)
	if name == "" {
		return nil
	}
	flag, ok := levels.FlagOf(name)
	if !ok {
		return problem.BadParam(flagParam, "%s must be one of %s",
			flagParam, strings.Join(levels.FlagNames(), ", "))
	}
	q.filter.Flag = flag
	return nil
}
