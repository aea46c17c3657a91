package docsite

import (
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/openapi"
	"github.com/selvage/selvage/templates"
)

// A reference is an OpenAPI document, prepared for serving.
type reference struct {
	yaml   []byte
	etag   string
	intro  template.HTML
	setup  string
	groups []templates.DocsGroup
}

// loadReference builds the document and prepares its pages.
func loadReference(c openapi.Config) (*reference, error) {
	doc, err := openapi.Build(c)
	if err != nil {
		return nil, err
	}

	text, err := doc.YAML()
	if err != nil {
		return nil, err
	}

	return &reference{
		yaml:   text,
		etag:   web.ETag(text),
		intro:  rich(doc.Description()),
		setup:  setUp(c.PublicURL),
		groups: view(doc),
	}, nil
}

// showContents serves GET /docs: the introduction and a list of operations. With the parameter q,
// it serves the matching sections of guides and the matching operations.
func (s *Site) showContents(w http.ResponseWriter, r *http.Request) error {
	doc, err := s.load()
	if err != nil {
		return err
	}

	query, guides := clean(r.URL.Query().Get("q")), guideNav("")
	hits, err := findSections(query)
	if err != nil {
		return err
	}

	return templates.Write(w, templates.Docs{
		DocsFrame: templates.DocsFrame{
			Title: "Documentation of selvage",
			Query: query,
			Nav:   slices.Concat(guides, doc.groups),
		},
		Guides:   guides,
		Hits:     hits,
		Intro:    doc.intro,
		Setup:    doc.setup,
		Contents: findOperations(doc.groups, query),
	}, templates.Options{Scripts: true, Connect: []string{"'self'"}})
}

// findOperations returns the operations that contain every word of query in their text or in the
// name of their area.
func findOperations(groups []templates.DocsGroup, query string) (found []templates.DocsGroup) {
	words := strings.Fields(strings.ToLower(query))
	for _, g := range groups {
		kept := templates.DocsGroup{Name: g.Name}
		for _, area := range g.Areas {
			all := area.Operations
			area.Operations = nil
			for _, op := range all {
				text := strings.ToLower(area.Name + " " + op.Method + " " + op.Path + " " + op.Summary)
				if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
					area.Operations = append(area.Operations, op)
				}
			}
			if len(area.Operations) > 0 {
				kept.Areas = append(kept.Areas, area)
			}
		}

		if len(kept.Areas) > 0 {
			found = append(found, kept)
		}
	}

	return found
}

// showArea serves GET /docs/{area}.
func (s *Site) showArea(w http.ResponseWriter, r *http.Request) error {
	doc, err := s.load()
	if err != nil {
		return err
	}

	page := templates.DocsPage{}
	for _, g := range doc.groups {
		shown := templates.DocsGroup{Name: g.Name}
		for _, area := range g.Areas {
			if area.URL == r.URL.Path {
				area.Current = true
				page.Area = area
				page.Title = area.Name + " – API of selvage"
			}
			shown.Areas = append(shown.Areas, area)
		}
		page.Nav = append(page.Nav, shown)
	}

	if page.Title == "" {
		return problem.NoSuch("page")
	}
	return templates.Write(w, page, templates.Options{Scripts: true})
}

// serveYAML serves GET /docs/openapi.yaml (RFC 9512).
func (s *Site) serveYAML(w http.ResponseWriter, r *http.Request) error {
	doc, err := s.load()
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-cache")
	web.ServeDocument(w, r, "application/yaml", doc.etag, doc.yaml)
	return nil
}
