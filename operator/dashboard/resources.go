package dashboard

import (
	"cmp"
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
	ID         string
	Title      string
	URL        string
	Kind       string
	Created    time.Time
	Subscriber bool
}

// A resourceListPage is the list of resources.
type resourceListPage struct {
	foundList[resourceRow]
	Kind string // the chosen kind; "" if the list has all kinds
}

// resourceFinder returns the search form of the list of resources.
func (a *resourcePages) resourceFinder(v *visit) finder {
	var options []choice
	for _, k := range a.Fabric.Resources.Kinds().All() {
		options = append(options, choice{Value: k.Path, Title: kindTitle(k)})
	}
	options = append(options, choice{Value: subscriberKind, Title: "Subscriber"})
	kind := v.choiceFilter("kind", "Kind", "All kinds", options)
	return v.finder("Name, email or id", "lobby", "", kind).exportable(v)
}

// listResources serves GET /dashboard/projects/{project}/resources. The query parameter q restricts
// the list to resources that match it, and the parameter kind restricts it to one kind.
func (a *resourcePages) listResources(v *visit) error {
	search := a.resourceFinder(v)
	kind, query := search.chosen("kind"), v.query()
	if kind == subscriberKind && search.Query != "" {
		query = v.searchQuery()
	}
	found, err := a.findResources(v, kind, search.Query, query)
	if err != nil {
		return err
	}

	row := func(r fabric.Resource) resourceRow { return a.resourceRow(v, r) }
	return a.page(v, http.StatusOK, "Resources", "resources", resourceListPage{
		foundList: foundList[resourceRow]{list: listOf(v, found, row), Finder: search},
		Kind:      kind,
	})
}

// findResources returns a page of the resources of a kind that match text. The kind "" means
// subscribers and resources of all kinds.
func (a *resourcePages) findResources(
	v *visit, kind, text string, query page.Query,
) (page.Page[fabric.Resource], error) {
	if kind == subscriberKind {
		found, err := a.Fabric.Subscribers.Search(v.r.Context(), v.project.ID, text, query)
		if err != nil {
			return page.Page[fabric.Resource]{}, err
		}
		return convert(found, asResource), nil
	}

	filter := fabric.ThingFilter{Text: text}
	if k := a.Fabric.Resources.Kinds().ByPath(kind); k != nil {
		filter.Type = k.Type
	}
	found, err := a.Fabric.Resources.Search(v.r.Context(), v.project.ID, filter, query)
	if err != nil {
		return page.Page[fabric.Resource]{}, err
	}
	return convert(found, resourceOf), nil
}

// resourceOf returns a thing as a resource, even if it is a subscriber.
func resourceOf(t fabric.Thing) fabric.Resource {
	if t.Resource != nil {
		return *t.Resource
	}
	return asResource(*t.Subscriber)
}

// asResource returns a subscriber as a resource.
func asResource(s fabric.Subscriber) fabric.Resource {
	return fabric.Resource{ID: s.ID, Type: subscriberType, DisplayName: s.Title(), Created: s.Created}
}

// findResource returns the resource with an id. It excludes subscribers, which have their own pages.
func (a *resourcePages) findResource(v *visit, id string) (fabric.Resource, error) {
	t, err := a.Fabric.Resources.FindThing(v.r.Context(), v.project.ID, id)
	if err != nil {
		return fabric.Resource{}, err
	}
	if t.Resource == nil {
		return fabric.Resource{}, problem.NoSuch("resource")
	}
	return *t.Resource, nil
}

// exportResources serves GET /dashboard/projects/{project}/resources/export.
func (a *resourcePages) exportResources(v *visit) error {
	search := a.resourceFinder(v)
	list := func(query page.Query) (page.Page[fabric.Resource], error) {
		return a.findResources(v, search.chosen("kind"), search.Query, query)
	}
	line := func(r fabric.Resource) []string {
		return []string{r.ID, r.Type, r.DisplayName, csvTime(r.Created)}
	}
	return writeCSV(a.site, v, "resources", []string{"id", "type", "name", "created"}, list, line)
}

// bulkResources serves POST /dashboard/projects/{project}/resources/bulk. It deletes the selected
// resources, but not subscribers.
func (a *resourcePages) bulkResources(v *visit) error {
	return a.bulk(v, bulkPage{
		Title:  "Delete resources",
		Button: "Delete resources",
		Danger: true,
		Text: "Their addresses are deleted too, and calls to them are refused. This cannot be undone. " +
			"Resources that handle the calls of another one are left out.",
		Action:  v.base() + "/resources/bulk",
		Back:    v.base() + "/resources",
		changed: "resourcesdeleted",
		nameOf: func(id string) (string, error) {
			r, err := a.findResource(v, id)
			if err != nil {
				return "", err
			}
			return a.resourceRow(v, r).Title, nil
		},
		change: func(id string) error {
			if _, err := a.findResource(v, id); err != nil {
				return err
			}
			return a.Fabric.Resources.DeleteThing(v.r.Context(), v.project.ID, id)
		},
	})
}

// subscriberKind selects subscribers in the list of resources. Subscribers are not stored as
// resources.
const subscriberKind = "subscribers"

// subscriberType is the type of a subscriber's addresses.
const subscriberType = "subscriber"

// kindTitle returns the title of a kind. If the name of its type differs, kindTitle adds the name,
// because people may look for either.
func kindTitle(k *kinds.Kind) string {
	typeName := strings.ReplaceAll(k.Type, "_", " ")
	if strings.EqualFold(typeName, k.Title) {
		return k.Title
	}
	return words.Sentences(k.Title, "("+typeName+")")
}

func (a *resourcePages) resourceRow(v *visit, r fabric.Resource) resourceRow {
	row := resourceRow{
		ID:         r.ID,
		Title:      cmp.Or(r.DisplayName, r.ID),
		URL:        v.thingURL(r.Type, r.ID),
		Kind:       strings.ReplaceAll(r.Type, "_", " "),
		Created:    r.Created,
		Subscriber: r.Type == subscriberType,
	}
	if k := a.Fabric.Resources.Kinds().ByType(r.Type); k != nil {
		row.Kind = kindTitle(k)
	}
	if row.Kind != "" {
		row.Kind = strings.ToUpper(row.Kind[:1]) + row.Kind[1:]
	}
	return row
}

// thingURL returns the URL of the page of a resource or subscriber.
func (v *visit) thingURL(typ, id string) string {
	if typ == subscriberType {
		return v.base() + "/subscribers/" + id
	}
	return v.base() + "/resources/" + id
}
