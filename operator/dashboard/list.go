package dashboard

import (
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

// A pager holds the URLs of a list's previous and next page; each is empty if there is none.
type pager struct{ Prev, Next string }

// query returns the page of a list that the URL requests.
func (v *visit) query() page.Query {
	from, _ := page.ParseToken(v.r.URL.Query().Get("from")) // an invalid token means the first page
	return page.Query{Size: page.DefaultSize, From: from}
}

// searchQuery is like query, for a search that tries several strategies. The token names the row
// and the number of the strategy that found it.
func (v *visit) searchQuery() page.Query {
	token, strategy, _ := strings.Cut(v.r.URL.Query().Get("from"), ".")
	id, ok := page.ParseToken(token)
	if _, err := strconv.ParseUint(strategy, 10, 8); err != nil || !ok {
		return page.Query{Size: page.DefaultSize}
	}
	return page.Query{Size: page.DefaultSize, From: id + "." + strategy}
}

// pager returns links to the previous and next page. They keep all filters of the URL.
func (v *visit) pager(prev, next string) pager {
	link := func(from string) string {
		if from == "" {
			return ""
		}
		q := v.r.URL.Query()
		q.Set("from", page.Token(from))
		return v.r.URL.Path + "?" + q.Encode()
	}
	return pager{Prev: link(prev), Next: link(next)}
}

// A list holds one page of rows for a template.
type list[R any] struct {
	Rows    []R
	Pager   pager
	Base    string // the path of the project's pages
	MayMake bool   // whether the operator may add to the list
}

// listOf returns found as a list, with a row for each item.
func listOf[T, R any](v *visit, found page.Page[T], row func(T) R) list[R] {
	rows := make([]R, len(found.Items))
	for i, item := range found.Items {
		rows[i] = row(item)
	}
	return list[R]{
		Rows:    rows,
		Pager:   v.pager(found.Prev, found.Next),
		Base:    v.base(),
		MayMake: v.mayIn(operator.Write),
	}
}

// convert returns the page with each item converted.
func convert[T, R any](found page.Page[T], item func(T) R) page.Page[R] {
	converted := page.Page[R]{Next: found.Next, Prev: found.Prev}
	for _, one := range found.Items {
		converted.Items = append(converted.Items, item(one))
	}
	return converted
}

// A foundList is a list with a search.
type foundList[R any] struct {
	list[R]
	Finder finder
}

// A status is a word with a colored dot. Kind is good, warn or bad, or "" for a neutral dot.
type status struct{ Kind, Word string }

// plainText returns text in a form that a store can compare: trimmed, of limited length, and valid
// UTF-8 without NUL.
func plainText(text string) string {
	text = strings.TrimSpace(text)
	return strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), 255)], ""), "\x00", "")
}
