package web

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A PageRequest is a request for a page of a list. Its parameters are page_number, page_size and
// page_token, as in the vendor's JSON APIs.
type PageRequest struct {
	page.Query
	number int // page number, from 0
}

// ReadPage parses the page parameters in a query. For each faulty parameter it returns a
// problem.Invalid; the problems are joined.
func ReadPage(q url.Values) (PageRequest, error) {
	p := PageRequest{Query: page.Query{Size: page.DefaultSize}}
	errs := []error{
		readInt(q, "page_size", &p.Size, 1, page.MaxSize),
		readInt(q, "page_number", &p.number, 0, 1<<31-1),
	}

	token := q.Get("page_token")
	switch id, ok := page.ParseToken(token); {
	case ok:
		p.From = id
	case token != "":
		errs = append(errs, pageToken("page_token_is_invalid", "page_token is invalid"))
	case p.number > 0:
		errs = append(errs, pageToken("page_token_required",
			"page_token is required when page_number is greater than 0"))
	}
	return p, errors.Join(errs...)
}

func pageToken(code, message string) error {
	return &problem.Error{Kind: problem.Invalid, Code: code, Param: "page_token", Message: message}
}

// readInt stores the integer parameter named param in *into, if the parameter is present. The
// integer must be from low to high.
func readInt(q url.Values, param string, into *int, low, high int) error {
	if !q.Has(param) {
		return nil
	}
	n, err := strconv.Atoi(q.Get(param))
	if err != nil || n < low || n > high {
		return problem.BadParam(param, "%s must be an integer from %d to %d", param, low, high)
	}
	*into = n
	return nil
}

type list[T any] struct {
	Data  []T   `json:"data"`
	Links links `json:"links"`
}

// links holds paths without a host, so that they lead to the server that the client used. Next is
// absent on the last page, and Prev on the first page.
type links struct {
	Self  string `json:"self"`
	First string `json:"first"`
	Next  string `json:"next,omitempty"`
	Prev  string `json:"prev,omitempty"`
}

// AnswerPage writes a page of a list as JSON, in which each item is the result of show. The
// parameter filters lists the names of the query parameters that the links keep.
func AnswerPage[T, U any](
	w http.ResponseWriter, r *http.Request, asked PageRequest, p page.Page[T], show func(T) U, filters ...string,
) error {
	body := list[U]{Data: make([]U, len(p.Items))}
	for i, item := range p.Items {
		body.Data[i] = show(item)
	}

	link := linker(r, asked, filters)
	body.Links = links{Self: link(asked.number, asked.From), First: link(0, "")}
	if p.Next != "" {
		body.Links.Next = link(asked.number+1, p.Next)
	}
	if p.Prev != "" && asked.number > 0 {
		body.Links.Prev = link(asked.number-1, p.Prev)
	}
	return JSON(w, http.StatusOK, body)
}

// linker returns a function that returns links to the pages of the requested list.
func linker(r *http.Request, asked PageRequest, filters []string) func(number int, from string) string {
	given := r.URL.Query()
	return func(number int, from string) string {
		q := url.Values{"page_number": {strconv.Itoa(number)}, "page_size": {strconv.Itoa(asked.Size)}}
		if from != "" {
			q.Set("page_token", page.Token(from))
		}
		for _, name := range filters {
			if given.Has(name) {
				q.Set(name, given.Get(name))
			}
		}
		return r.URL.EscapedPath() + "?" + q.Encode()
	}
}
