package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// searchPages serves the search by name or id. It finds pages of the dashboard, and rows that have
// a page of their own.
type searchPages struct {
	*site
	Config
}

// A searchPage holds the results of a search, grouped by kind.
type searchPage struct {
	Query  string
	Groups []hitGroup
}

// Count returns the number of results.
func (p searchPage) Count() (n int) {
	for _, g := range p.Groups {
		n += len(g.Hits)
	}
	return n
}

// A hitGroup holds results of one kind.
type hitGroup struct {
	Title string
	Hits  []hit
	More  string // URL of a list with more results; "" if there are no more
}

// A hit is one result. Note adds a detail, such as an address.
type hit struct{ Title, Note, URL string }

// maxHits is the maximum number of results of one kind. Searches ask for one more, which shows
// whether there are more.
const maxHits = 6

// search serves GET /dashboard/search and GET /dashboard/projects/{project}/search. The query
// parameter q is an id, or a name or a part of one. The second path also searches the project.
func (a *searchPages) search(v *visit) error {
	p := searchPage{Query: plainText(v.r.URL.Query().Get("q"))}
	searches := []func(*visit, string) (hitGroup, error){a.findPages, a.findProjects}
	if v.project.ID != "" && p.Query != "" {
		searches = append(searches, a.findByID, a.findSubscribers, a.findAddresses, a.findClients, a.findKeys,
			a.findWebhooks, a.findRecordings)
	}

	for _, find := range searches {
		g, err := find(v, p.Query)
		if isNoMatch(err) {
			continue
		}
		if err != nil {
			return err
		}
		g.limit(v, p.Query)
		if p.Query == "" || len(g.Hits) > 0 {
			p.Groups = append(p.Groups, g)
		}
	}
	return a.page(v, http.StatusOK, "Search", "search", p)
}

// isNoMatch reports whether a search failed because nothing of its kind can match the text. An outage
// is not such an error: the search would then lack rows that exist.
func isNoMatch(err error) bool {
	p := problem.First(err)
	return p != nil && p.Kind != problem.Unavailable
}

// lists maps the title of a group of results to the path of the list that can be searched with the
// same query.
var lists = map[string]string{
	"Subscribers":   "subscribers",
	"Resources":     "resources",
	"OAuth clients": "clients",
	"API keys":      "keys",
	"Webhooks":      "webhooks",
	"Recordings":    "recordings",
}

// limit removes all but maxHits results. If there were more, it adds a link to the list of them.
func (g *hitGroup) limit(v *visit, query string) {
	if query == "" || len(g.Hits) <= maxHits {
		return
	}
	g.Hits = g.Hits[:maxHits]
	if list := lists[g.Title]; list != "" {
		g.More = v.base() + "/" + list + "?" + url.Values{"q": {query}}.Encode()
	} else if g.Title == "Projects" {
		g.More = Prefix + "/projects?" + url.Values{"q": {query}}.Encode()
	}
}

// matches reports whether a title contains each word of a query.
func matches(title, query string) bool {
	title = strings.ToLower(title)
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		if !strings.Contains(title, word) {
			return false
		}
	}
	return true
}

// findPages finds entries of the navigation and shortcuts.
func (a *searchPages) findPages(v *visit, query string) (hitGroup, error) {
	g := hitGroup{Title: "Pages"}
	projects, err := a.projectsOf(v)
	if err != nil {
		return g, err
	}
	current, err := a.current(v, projects)
	if err != nil {
		return g, err
	}
	projectID := current.ID
	if query == "" {
		g.Title = "Actions"
		g.Hits = a.findShortcuts(v, projectID, "")
		return g, nil
	}

	for _, l := range a.linksFor(v, projectID) {
		if isFound(v.words(), query, l.title, string(l.group)) {
			g.Hits = append(g.Hits, hit{Title: v.say(l.title), Note: string(l.group), URL: l.path})
		}
	}
	for _, h := range a.findShortcuts(v, projectID, query) {
		if !slices.Contains(g.Hits, h) {
			g.Hits = append(g.Hits, h)
		}
	}
	return g, nil
}

// maxProjectPages is the maximum number of pages that findProjects reads. Several thousand projects
// are searched before a page without results is returned.
const maxProjectPages = 10

// findProjects finds the operator's projects by a part of the name or by id.
func (a *searchPages) findProjects(v *visit, query string) (hitGroup, error) {
	g := hitGroup{Title: "Projects"}
	q := page.Query{Size: maxProjects}
	for range maxProjectPages {
		found, err := a.searchProjects(v, query, q)
		if err != nil {
			return hitGroup{}, err
		}
		for _, p := range found.Items {
			g.Hits = append(g.Hits, hit{Title: p.Name, URL: Prefix + "/projects/" + p.ID})
		}
		if found.Next == "" || len(g.Hits) > maxHits {
			break
		}
		q.From = found.Next
	}
	return g, nil
}

// findWebhooks finds webhooks by parts of the name or of the URL.
func (a *searchPages) findWebhooks(v *visit, query string) (hitGroup, error) {
	found, err := a.site.Fabric.Webhooks.List(v.r.Context(), v.project.ID, page.Query{Size: page.MaxSize})
	if err != nil {
		return hitGroup{}, err
	}
	g := hitGroup{Title: "Webhooks"}
	for _, w := range found.Items {
		if matches(w.Name+" "+w.URL, query) {
			row := v.webhookRow(w)
			g.Hits = append(g.Hits, hit{Title: row.Title, Note: row.Host, URL: row.Path})
		}
	}
	return g, nil
}

// findSubscribers finds subscribers by the beginning of an email, a reference or a name.
func (a *searchPages) findSubscribers(v *visit, query string) (hitGroup, error) {
	found, err := a.site.Fabric.Subscribers.Search(v.r.Context(), v.project.ID, query, page.Query{Size: maxHits + 1})
	if err != nil {
		return hitGroup{}, err
	}
	g := hitGroup{Title: "Subscribers"}
	for _, s := range found.Items {
		row := v.subscriberRow(s)
		g.Hits = append(g.Hits, hit{Title: row.Title, Note: s.FullName(), URL: row.URL})
	}
	return g, nil
}

// findAddresses finds resources by a part of their title, or by the path of their address.
func (a *searchPages) findAddresses(v *visit, query string) (hitGroup, error) {
	found, err := a.addressesLike(v, query)
	if err != nil {
		return hitGroup{}, err
	}
	g := hitGroup{Title: "Resources"}
	for _, one := range found {
		if one.Type == subscriberType {
			continue
		}
		g.Hits = append(g.Hits, hit{
			Title: one.DisplayName,
			Note:  one.Path(),
			URL:   v.thingURL(one.Type, one.ResourceID),
		})
	}
	return g, nil
}

// addressesLike returns the address with the path query. If query is not a path, it returns the first
// addresses with query in their title.
func (a *searchPages) addressesLike(v *visit, query string) ([]fabric.Address, error) {
	if strings.HasPrefix(query, "/") {
		one, err := a.site.Fabric.Addresses.FindAt(v.r.Context(), v.project.ID, query)
		if err != nil {
			return nil, problem.IgnoreNotFound(err)
		}
		return []fabric.Address{one}, nil
	}
	found, err := a.site.Fabric.Addresses.List(v.r.Context(), anyCaller(v),
		fabric.AddressFilter{DisplayName: query}, page.Query{Size: 2 * maxHits})
	return found.Items, err
}

// findClients finds OAuth clients by a part of the name.
func (a *searchPages) findClients(v *visit, query string) (hitGroup, error) {
	found, err := a.Clients.Clients.Search(v.r.Context(), v.project.ID, idp.ClientFilter{Text: query},
		page.Query{Size: maxHits + 1})
	if err != nil {
		return hitGroup{}, err
	}
	g := hitGroup{Title: "OAuth clients"}
	for _, c := range found.Items {
		row := v.clientRow(c)
		g.Hits = append(g.Hits, hit{Title: row.Title, URL: row.URL})
	}
	return g, nil
}

// findKeys finds API keys by name, or by the beginning of the key.
func (a *searchPages) findKeys(v *visit, query string) (hitGroup, error) {
	found, err := a.site.Fabric.APIKeys.List(v.r.Context(), v.project.ID, page.Query{Size: page.MaxSize})
	if err != nil {
		return hitGroup{}, err
	}
	g := hitGroup{Title: "API keys"}
	for _, k := range found.Items {
		isKey := k.Prefix != "" && strings.HasPrefix(query, k.Prefix)
		if isKey || matches(k.Name, query) {
			row := v.keyRow(k)
			g.Hits = append(g.Hits, hit{Title: row.Title, Note: k.Prefix, URL: row.URL})
		}
	}
	return g, nil
}

// findRecordings finds recordings by their id, by the beginning of the call's id, or by a number or
// address.
func (a *searchPages) findRecordings(v *visit, query string) (hitGroup, error) {
	g := hitGroup{Title: "Recordings"}
	if a.Recordings == nil {
		return g, nil
	}
	owner, ctx := recordings.Owner{ProjectID: v.project.ID}, v.r.Context()
	one, err := a.Recordings.Find(ctx, owner, query)
	if err == nil {
		g.Hits = append(g.Hits, v.recordingHit(one))
		return g, nil
	}
	if !isNoMatch(err) {
		return g, err
	}

	filters := []recordings.Filter{{Owner: owner, CallBegins: query}, {Owner: owner, Party: query}}
	if recordings.Digits(query) != "" {
		filters = append(filters, recordings.Filter{Owner: owner, PartyBegins: query})
	}
	for _, filter := range filters {
		found, err := a.Recordings.List(ctx, filter, page.Query{Size: maxHits + 1})
		if isNoMatch(err) {
			break // too many numbers begin with the query
		}
		if err != nil {
			return g, err
		}
		for _, r := range found.Items {
			if one := v.recordingHit(r); !slices.Contains(g.Hits, one) {
				g.Hits = append(g.Hits, one)
			}
		}
	}
	return g, nil
}

// recordingHit returns a recording as a result. Its title says who called whom, if that is known.
func (v *visit) recordingHit(r recordings.Recording) hit {
	row := v.recordingRow(r)
	if row.Who == "" {
		return hit{Title: row.Title, URL: row.URL}
	}
	return hit{Title: row.Who, Note: row.Title, URL: row.URL}
}
