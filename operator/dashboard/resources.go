package dashboard

import (
	"net/http"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
)

// resourcePages serves the pages that list, show, create and change resources, and list their
// addresses.
type resourcePages struct {
	*site
	tokens *tokenPages
}

// A resourceRow is a row in the list of resources.
type resourceRow struct {
	ID, Title, URL, Kind string
	Created              time.Time
	Subscriber           bool
}

// resourceFinder returns the search form of the list of resources.
func (a *resourcePages) resourceFinder(v *visit) finder {
	var all []choice
	for _, k := range a.Fabric.Resources.Kinds().All() {
		all = append(all, choice{Value: k.Path, Title: kindTitle(k)})
	}
	all = append(all, choice{Value: subscriberKind, Title: "Subscriber"})
	return v.finder("Name, email or id", "lobby", "", v.choiceFilter("kind", "Kind", "All kinds", all)).exportable(v)
}

// listResources serves GET /dashboard/projects/{project}/resources. The query parameter q restricts
// the list to resources whose name contains it, and kind to one kind.
func (a *resourcePages) listResources(v *visit) error {
	f := a.resourceFinder(v)
	kind, q := f.chosen("kind"), v.query()
	if kind == subscriberKind && f.Query != "" {
		q = v.searchQuery()
	}
	found, err := a.findResources(v, kind, f.Query, q)
	if err != nil {
		return err
	}
	return a.page(v, http.StatusOK, "Resources", "resources", struct {
		foundList[resourceRow]
		Kind string
	}{foundList[resourceRow]{listOf(v, found, func(r fabric.Resource) resourceRow { return a.resourceRow(v, r) }), f},
		kind})
}

// findResources returns a page of the resources of a kind whose name contains text. The kind ""
// means subscribers and resources of all kinds.
func (a *resourcePages) findResources(
	v *visit, kind, text string, q page.Query,
) (p page.Page[fabric.Resource], err error) {
	if kind == subscriberKind {
		people, err := a.Fabric.Subscribers.Search(v.r.Context(), v.project.ID, text, q)
		p.Next, p.Prev = people.Next, people.Prev
		for _, s := range people.Items {
			p.Items = append(p.Items, asResource(s))
		}
		return p, err
	}

	filter := fabric.ThingFilter{Text: text}
	if k := a.Fabric.Resources.Kinds().ByPath(kind); k != nil {
		filter.Type = k.Type
	}
	things, err := a.Fabric.Resources.Search(v.r.Context(), v.project.ID, filter, q)
	p.Next, p.Prev = things.Next, things.Prev
	for _, t := range things.Items {
		if t.Resource != nil {
			p.Items = append(p.Items, *t.Resource)
		} else {
			p.Items = append(p.Items, asResource(*t.Subscriber))
		}
	}
	return p, err
}

// exportResources serves GET /dashboard/projects/{project}/resources/export.
func (a *resourcePages) exportResources(v *visit) error {
	f := a.resourceFinder(v)
	list := func(q page.Query) (page.Page[fabric.Resource], error) {
		return a.findResources(v, f.chosen("kind"), f.Query, q)
	}
	return writeCSV(a.site, v, "resources", []string{"id", "type", "name", "created"}, list,
		func(r fabric.Resource) []string { return []string{r.ID, r.Type, r.DisplayName, csvTime(r.Created)} })
}

// bulkResources serves POST /dashboard/projects/{project}/resources/bulk. It deletes the selected
// resources, but not subscribers.
func (a *resourcePages) bulkResources(v *visit) error {
	ctx, all := v.r.Context(), a.Fabric.Resources
	find := func(id string) (fabric.Resource, error) {
		t, err := all.FindThing(ctx, v.project.ID, id)
		if err == nil && t.Resource == nil {
			err = problem.NoSuch("resource")
		}
		if err != nil {
			return fabric.Resource{}, err
		}
		return *t.Resource, nil
	}

	return a.bulk(v, bulkPage{
		Title: "Delete resources", Button: "Delete resources", Danger: true,
		Text: "Their addresses are deleted too, and calls to them are refused. This cannot be undone. " +
			"Resources that handle the calls of another one are left out.",
		Action: v.base() + "/resources/bulk", Back: v.base() + "/resources", changed: "resourcesdeleted",
		nameOf: func(id string) (string, error) {
			r, err := find(id)
			return a.resourceRow(v, r).Title, err
		},
		change: func(id string) error {
			if _, err := find(id); err != nil {
				return err
			}
			return all.DeleteThing(ctx, v.project.ID, id)
		},
	})
}

// subscriberKind selects subscribers in the list of resources. Subscribers are not stored as
// resources.
const subscriberKind = "subscribers"

// subscriberType is the type of a subscriber's addresses.
const subscriberType = "subscriber"

func asResource(s fabric.Subscriber) fabric.Resource {
	return fabric.Resource{ID: s.ID, Type: subscriberType, DisplayName: s.Title(), Created: s.Created}
}

// kindTitle returns the title of a kind. If the name of its type differs, kindTitle adds the name,
// because people look for either.
func kindTitle(k *kinds.Kind) string {
	if other := strings.ReplaceAll(k.Type, "_", " "); !strings.EqualFold(other, k.Title) {
		return words.Sentences(k.Title, "("+other+")")
	}
	return k.Title
}

func (a *resourcePages) resourceRow(v *visit, r fabric.Resource) resourceRow {
	row := resourceRow{
		ID:      r.ID,
		Title:   r.DisplayName,
		URL:     v.thingURL(r.Type, r.ID),
		Kind:    strings.ReplaceAll(r.Type, "_", " "),
		Created: r.Created,

		Subscriber: r.Type == subscriberType,
	}
	if row.Title == "" {
		row.Title = r.ID
	}

	if k := a.Fabric.Resources.Kinds().ByType(r.Type); k != nil {
		row.Kind = kindTitle(k)
	}
	if row.Kind != "" {
		row.Kind = strings.ToUpper(row.Kind[:1]) + row.Kind[1:]
	}
	return row
}

// listAddresses serves GET /dashboard/projects/{project}/addresses. The query parameter q
// restricts the list to addresses whose title contains it.
func (a *resourcePages) listAddresses(v *visit) error {
	f := v.finder("Title", "lobby", "name")
	all := fabric.Token{Kind: fabric.SAT, ProjectID: v.project.ID} // may call every address
	found, err := a.Fabric.Addresses.List(v.r.Context(), all, fabric.AddressFilter{DisplayName: f.Query}, v.query())
	if err != nil {
		return err
	}
	p := struct {
		list[addressRow]
		Finder finder
	}{listOf(v, found, v.addressRow), f}
	return a.page(v, http.StatusOK, "Addresses", "addresses", p)
}

type addressRow struct {
	fabric.Address
	Is  string // describes the type of the address
	Has string // describes the channels of the address
	Of  string // URL of the address's resource
}

func (v *visit) addressRow(a fabric.Address) addressRow {
	return addressRow{Address: a, Is: addressTypes[a.Type], Has: v.describeChannels(a.Channels),
		Of: v.thingURL(a.Type, a.ResourceID)}
}

// addressTypes describes the types of addresses.
var addressTypes = map[string]string{fabric.TypeApp: "App", fabric.TypeRoom: "Room", fabric.TypeCall: "Call",
	fabric.TypeSubscriber: "Subscriber"}

// channelTitles describes the channels of addresses.
var channelTitles = map[string]string{"audio": "Audio", "messaging": "Messages", "video": "Video"}

// describeChannels returns channels in the reader's language.
func (v *visit) describeChannels(channels []string) string {
	all := make([]string, len(channels))
	for i, name := range channels {
		all[i] = v.say(channelTitles[name])
	}
	return strings.Join(all, ", ")
}

// thingURL returns the URL of the page of a resource or subscriber.
func (v *visit) thingURL(typ, id string) string {
	if typ == subscriberType {
		return v.base() + "/subscribers/" + id
	}
	return v.base() + "/resources/" + id
}
