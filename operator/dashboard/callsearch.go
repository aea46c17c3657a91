package dashboard

import (
	"strings"
	"unicode"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// callFinder returns the search form of the list of calls.
func (v *visit) callFinder() finder {
	var results []choice
	for _, r := range calls.Results() {
		results = append(results, choice{Value: string(r), Title: resultTitles[r]})
	}
	return v.finder("Part of a name, number or address", "555", "",
		v.choiceFilter("result", "Result", "Any", results),
		v.dayFilter("after", "Began on or after"),
		v.dayFilter("before", "Began on or before"),
		v.textFilter("caller", "From address", "/private/grace"),
		v.textFilter("callee", "To address", "/private/alan"),
		v.textFilter("subscriber", "Subscriber", "email or id"))
}

// callFilter reads the filters from the URL, but not the search box. It returns an error for invalid
// days.
func (a *callPages) callFilter(v *visit) (calls.Filter, error) {
	q := v.r.URL.Query()
	subscriberID, err := a.subscriberID(v, plainText(q.Get("subscriber")))
	if err != nil {
		return calls.Filter{}, err
	}
	from, before, err := parseDays(q.Get("after"), q.Get("before"))
	if err != nil {
		return calls.Filter{}, err
	}

	filter := calls.Filter{
		From:          plainText(q.Get("caller")),
		To:            plainText(q.Get("callee")),
		CreatedFrom:   from,
		CreatedBefore: before,
	}
	if subscriberID != "" {
		filter.Subscribers = []string{subscriberID}
	}
	for _, result := range calls.Results() {
		if string(result) == q.Get("result") {
			filter.Result = result
		}
	}
	return filter, nil
}

// wholeFilter reads the filters and the search box from the URL.
func (a *callPages) wholeFilter(v *visit) (calls.Filter, error) {
	filter, err := a.callFilter(v)
	if err != nil {
		return calls.Filter{}, err
	}
	return a.narrow(v, filter, v.callFinder().Query)
}

// maxCallers is the maximum number of subscribers whose calls are searched at once.
const maxCallers = 20

// narrow adds the text in the search box to a filter. If the text identifies subscribers with calls,
// the filter then selects the calls of these subscribers. Otherwise it selects the calls with a party
// whose name, number or address contains the text.
func (a *callPages) narrow(v *visit, filter calls.Filter, text string) (calls.Filter, error) {
	if text == "" {
		return filter, nil
	}

	if mayBeSubscriber(v, filter, text) {
		bySubscriber, found, err := a.bySubscriber(v, filter, text)
		if err != nil || found {
			return bySubscriber, err
		}
	}
	filter.Party = text
	return filter, nil
}

// mayBeSubscriber reports whether to look for subscribers with the text in the search box. It
// returns false if the text has no letters, if the URL asks for parties only, or if the filter
// already selects subscribers.
func mayBeSubscriber(v *visit, filter calls.Filter, text string) bool {
	onlyParties := v.r.URL.Query().Get("by") == "party"
	return !onlyParties && len(filter.Subscribers) == 0 && strings.ContainsFunc(text, unicode.IsLetter)
}

// bySubscriber adds the subscribers whom text identifies to a filter. It reports whether the filter
// then selects any calls.
func (a *callPages) bySubscriber(v *visit, filter calls.Filter, text string) (_ calls.Filter, found bool, err error) {
	ids, err := a.callers(v, text)
	if err != nil || len(ids) == 0 {
		return calls.Filter{}, false, err
	}

	filter.Subscribers = ids
	first, err := a.Calls.List(v.r.Context(), v.project.ID, filter, page.Query{Size: 1})
	if err != nil {
		return calls.Filter{}, false, err
	}
	return filter, len(first.Items) > 0, nil
}

// callers returns the subscribers whom text identifies by an address, email or name. It returns
// none if there are more than maxCallers.
func (a *callPages) callers(v *visit, text string) (ids []string, err error) {
	ctx := v.r.Context()
	if strings.HasPrefix(text, "/") {
		address, err := a.Fabric.Addresses.FindAt(ctx, v.project.ID, text)
		if err != nil {
			return nil, problem.IgnoreNotFound(err)
		}
		if address.Type != subscriberType {
			return nil, nil
		}
		return []string{address.ResourceID}, nil
	}

	found, err := a.Fabric.Subscribers.Search(ctx, v.project.ID, text, page.Query{Size: maxCallers})
	if err != nil || found.Next != "" {
		return nil, err
	}
	for _, s := range found.Items {
		ids = append(ids, s.ID)
	}
	return ids, nil
}
