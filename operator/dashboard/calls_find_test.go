package dashboard_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// TestFindCalls shows that calls are found by any part of a name, a number or an address, and by
// subscribers, even if several have the same name. If a text names subscribers, a link leads to the
// calls of other parties with that name.
func TestFindCalls(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	list := "/dashboard/projects/" + w.one.ID + "/calls"
	person := func(mail, name string) string {
		in := fabric.SubscriberInput{Email: &mail, Profile: fabric.Profile{FirstName: &name}}
		sub, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, in)
		must(t, err)
		return sub.ID
	}
	between := func(from, to calls.Party) calls.Record {
		return w.addCall(func(r *calls.Record) {
			over(calls.NormalClearing, true)(r)
			r.From, r.To = from, to
		})
	}

	number := calls.Party{Address: "+14155550134"}
	grace := between(calls.Party{Address: "/private/g1", SubscriberID: person("grace@example.com", "Grace")}, number)
	other := between(number, calls.Party{Address: "/private/g2", SubscriberID: person("hopper@example.org", "Grace")})
	guest := between(calls.Party{Name: "Visitor 7"}, calls.Party{Name: "Lobby", Address: "/public/lobby"})
	namesake := between(calls.Party{Name: "Grace"}, calls.Party{Name: "Desk", Address: "/public/desk"})
	person("lobbyist@example.com", "Nobody called")

	for text, want := range map[string][]calls.Record{
		"grace":             {grace, other},
		"grace@example.com": {grace},
		"555":               {grace, other},
		"(415) 555-0134":    {grace, other},
		"0134":              {grace, other},
		"sit":               {guest},
		"lobby":             {guest},
		"/private/g":        {grace, other},
		"7":                 {guest},
		"nobody":            nil,
		"5550135":           nil,
	} {
		body := b.get(list + "?q=" + url.QueryEscape(text)).body
		var found []calls.Record
		for _, r := range []calls.Record{grace, other, guest, namesake} {
			if strings.Contains(body, "/calls/"+r.ID+`"`) {
				found = append(found, r)
			}
		}
		if !slices.Equal(found, want) {
			t.Errorf("the search for %q finds %+v, want %+v", text, found, want)
		}
	}

	byParty := b.get(list+"?q=grace&result=connected").find(t, `id="by-party" href="([^"]+)"`)
	named := b.get(byParty)
	named.wantText(t, "/calls/"+namesake.ID+`"`)
	named.wantNoText(t, `id="by-party"`)
}
