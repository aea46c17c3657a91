package dashboard

import (
	"cmp"
	"encoding/csv"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// A finder is the search form of a list: a search box, and filters that are folded until one of
// them is set. The URL contains their values, so that a search can be linked and bookmarked.
type finder struct {
	Label   string // label of the search box; "" if the list has no box
	Hint    string // an example, shown in the empty search box
	Query   string // the text in the search box
	Filters []input
	Faults  faults // wrong values of filters
	All     string // URL of the whole list
	Export  string // URL of the list as CSV; "" if there is none
}

// Count returns the number of filters that are set, not counting the search box.
func (f finder) Count() (n int) {
	for _, in := range f.Filters {
		if in.isSet() {
			n++
		}
	}
	return n
}

// blame assigns the parts of an error to the filters that caused them. ok is false if the operator
// cannot resolve the error by changing a filter.
func (f *finder) blame(err error) (ok bool) {
	filters := form{Inputs: f.Filters}
	ok = filters.blame(err)
	f.Faults = filters.Faults
	return ok
}

// chosen returns the chosen option of a filter, or "".
func (f finder) chosen(name string) string {
	for _, in := range f.Filters {
		if in.Name != name {
			continue
		}
		for _, o := range in.Options {
			if o.Chosen {
				return o.Value
			}
		}
	}
	return ""
}

// Any reports whether the search restricts the list.
func (f finder) Any() bool { return f.Query != "" || f.Count() > 0 }

// isSet reports whether an input has a value.
func (i input) isSet() bool {
	for _, o := range i.Options {
		if o.Chosen && o.Value != "" {
			return true
		}
	}
	return i.Value != ""
}

// finder returns the search form of the list at the visit's path. The query parameter q holds the
// text in the search box. old is the name of this parameter in links from earlier versions, or "".
func (v *visit) finder(label, hint, old string, filters ...input) finder {
	q := v.r.URL.Query()
	return finder{
		Label:   label,
		Hint:    hint,
		Query:   plainText(cmp.Or(q.Get("q"), q.Get(old))),
		Filters: filters,
		All:     v.r.URL.Path,
	}
}

// textFilter returns a filter by text, with its value from the URL.
func (v *visit) textFilter(name, label, hint string) input {
	return input{Kind: kindText, Type: "search", Name: name, Label: label, Example: hint,
		Value: plainText(v.r.URL.Query().Get(name))}
}

// dayFilter returns a filter by a day.
func (v *visit) dayFilter(name, label string) input {
	return input{Kind: kindText, Type: "date", Name: name, Label: label, Value: v.r.URL.Query().Get(name)}
}

// parseDays returns the time range of a filter from the text of its first and of its last day. The
// range includes the last day. Empty text sets no limit.
func parseDays(after, before string) (from, end time.Time, err error) {
	from, wrongAfter := parseDay("after", after)
	last, wrongBefore := parseDay("before", before)
	if err := errors.Join(wrongAfter, wrongBefore); err != nil {
		return time.Time{}, time.Time{}, err
	}
	if last.IsZero() {
		return from, last, nil
	}
	return from, last.AddDate(0, 0, 1), nil
}

// parseDay returns the first moment of the day in a filter, or the zero time if text is empty.
func parseDay(filter, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, problem.BadParam(filter, "%s must be a day, such as 2030-01-31", filter)
	}
	return day, nil
}

// numberFilter returns a filter by a number that is not negative.
func (v *visit) numberFilter(name, label string) input {
	return input{Kind: kindText, Type: "number", Min: "0", Name: name, Label: label, Value: v.r.URL.Query().Get(name)}
}

// choiceFilter returns a filter with a list of values, whose first value matches everything.
func (v *visit) choiceFilter(name, label, everything string, options []choice) input {
	options = append([]choice{{Title: everything}}, options...)
	return input{Kind: kindSelect, Name: name, Label: label, Options: selectChoices(options, v.r.URL.Query().Get(name))}
}

// exportable adds a link for downloading the list as CSV.
func (f finder) exportable(v *visit) finder {
	q := v.r.URL.Query()
	q.Del("from")
	f.Export = f.All + "/export"
	if len(q) > 0 {
		f.Export += "?" + q.Encode()
	}
	return f
}

// writeCSV sends the rows of a list as CSV, with one line per row. It stops once it has sent
// maxExported rows. It changes cells that a spreadsheet would treat as a formula.
func writeCSV[T any](
	a *site, v *visit, name string, header []string, list func(page.Query) (page.Page[T], error), line func(T) []string,
) error {
	found, err := list(page.Query{Size: page.MaxSize})
	if err != nil {
		return err
	}

	web.NoStore(v.w)
	h := v.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+url.PathEscape(name)+`.csv"`)
	h.Set("X-Content-Type-Options", "nosniff")
	out := csv.NewWriter(v.w)
	_ = out.Write(header) // the browser may have disconnected, here and below
	written := 0
	for {
		for _, one := range found.Items {
			_ = out.Write(audit.Neutral(line(one)))
		}
		out.Flush()
		written += len(found.Items)
		if out.Error() != nil || found.Next == "" || written >= maxExported {
			return nil
		}
		found, err = list(page.Query{Size: page.MaxSize, From: found.Next})
		if err != nil {
			web.LogInternal(v.r, a.Log, err)
			panic(http.ErrAbortHandler) // abort, so that the browser sees that the file is incomplete
		}
	}
}
