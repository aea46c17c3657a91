package dashboard

import (
	"net/http"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/words"
)

// resourcePages serves the pages that list, show, create and change resources, and that list their
// addresses.
type resourcePages struct {
	*site
}

// A resourceRow is a row in the list of resources.
type resourceRow struct {
	ID, Title, URL, Kind string
	Created              time.Time
}

// listResources serves GET /dashboard/projects/{project}/resources. The query parameter kind
// restricts the list to one kind.
func (a *resourcePages) listResources(v *visit) error {
	kind := v.r.URL.Query().Get("kind")
	found, err := a.findResources(v, kind)
	if err != nil {
		return err
	}

	p := struct {
		list[resourceRow]
		Kinds []choice
		Kind  string
	}{
		list: listOf(v, found, func(r fabric.Resource) resourceRow { return a.resourceRow(v, r) }),
		Kind: kind,
	}
	for _, k := range a.Fabric.Resources.Kinds().All() {
		p.Kinds = append(p.Kinds, choice{Value: k.Path, Title: kindTitle(k), Chosen: k.Path == kind})
	}
	p.Kinds = append(p.Kinds, choice{Value: subscriberKind, Title: "Subscriber", Chosen: kind == subscriberKind})
	return a.page(v, http.StatusOK, "Resources", "resources", p)
}

func (a *resourcePages) findResources(v *visit, kind string) (page.Page[fabric.Resource], error) {
	if k := a.Fabric.Resources.Kinds().ByPath(kind); k != nil {
		return a.Fabric.Resources.List(v.r.Context(), v.project.ID, k, v.query())
	}
	if kind == subscriberKind {
		people, err := a.Fabric.Subscribers.List(v.r.Context(), v.project.ID, v.query())
		p := page.Page[fabric.Resource]{Next: people.Next, Prev: people.Prev}
		for _, s := range people.Items {
			p.Items = append(p.Items, asResource(s))
		}
		return p, err
	}
	things, err := a.Fabric.Resources.ListThings(v.r.Context(), v.project.ID, v.query())
	p := page.Page[fabric.Resource]{Next: things.Next, Prev: things.Prev}
	for _, t := range things.Items {
		if t.Resource != nil {
			p.Items = append(p.Items, *t.Resource)
		} else {
			p.Items = append(p.Items, asResource(*t.Subscriber))
		}
	}
	return p, err
}

// subscriberKind selects subscribers in the list of resources. They are not stored as resources.
const subscriberKind = "subscribers"

// subscriberType is the type of a subscriber's addresses.
const subscriberType = "subscriber"

func asResource(s fabric.Subscriber) fabric.Resource {
	return fabric.Resource{ID: s.ID, Type: subscriberType, DisplayName: s.Title(), Created: s.Created}
}

// kindTitle returns the title of a kind. If the name of its type differs, the name follows the
// title, because people look for either.
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
	all := fabric.Token{Kind: fabric.SAT, ProjectID: v.project.ID} // can reach every address
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
	Has string // its channels
	Of  string // URL of the address's resource
}

func (v *visit) addressRow(a fabric.Address) addressRow {
	return addressRow{Address: a, Has: strings.Join(a.Channels, ", "), Of: v.thingURL(a.Type, a.ResourceID)}
}

// thingURL returns the URL of the page of a resource or subscriber.
func (v *visit) thingURL(typ, id string) string {
	if typ == subscriberType {
		return v.base() + "/subscribers/" + id
	}
	return v.base() + "/resources/" + id
}
