package docsite

import (
	"net/http"
	"sync"

	"github.com/selvage/selvage/docs"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/sdk"
	"github.com/selvage/selvage/templates"
)

// guidePrefix is the path prefix of the guides.
const guidePrefix = "/docs/guides/"

// A group is a heading in the navigation, with its documents in reading order.
type group struct {
	name      string
	documents []document
}

// A document is a page. name is the last part of its URL, and title is its title in the navigation.
type document struct{ name, title string }

// contents lists all documents.
var contents = []group{
	{"First steps", []document{
		{"start", "Get started"},
		{"guide", "Guide"},
		{"promises", "Promises"},
		{"glossary", "Glossary"},
	}},
	{"Tutorials", []document{
		{"browser", "An app in a browser"},
		{"web", "A server-rendered web app"},
		{"mobile", "An app on a phone"},
		{"device", "A television, a command line"},
		{"backend", "A backend"},
		{"calls", "Calls between browsers"},
		{"phones", "Phones"},
		{"gateways", "Phone numbers and gateways"},
		{"switches", "Recordings from your switch"},
		{"moving", "Moving from a cloud"},
		{"declared", "Projects in a repository"},
		{"nodes", "Two nodes"},
	}},
	{"Reference", []document{
		{"configuration", "Configuration"},
		{"cli", "Command line"},
		{"apply", "Projects from a file"},
		{"api", "API"},
		{"sdk", "Browser SDK"},
	}},
	{"Operating", []document{
		{"operations", "Operations"},
		{"deploy", "Deploy"},
		{"https", "HTTPS and proxies"},
		{"databases", "Databases"},
		{"backup", "Backup and restore"},
		{"redis", "Redis"},
		{"high-availability", "High availability"},
		{"mail", "Email"},
		{"delivery", "Deliveries"},
		{"accounts", "Accounts"},
		{"keys", "Keys"},
		{"limits", "Limits"},
		{"monitoring", "Monitoring"},
		{"audit", "Audit trail"},
		{"troubleshooting", "Troubleshooting"},
		{"security", "Security"},
		{"performance", "Performance"},
		{"scale", "Scale"},
	}},
	{"Internals", []document{
		{"architecture", "Architecture"},
		{"testing", "Testing"},
		{"divergences", "Divergences"},
		{"openid", "OpenID conformance"},
	}},
}

// readSource returns the Markdown of a document.
func readSource(name string) ([]byte, error) {
	if name == "sdk" {
		return sdk.Readme, nil
	}
	return docs.Files.ReadFile(name + ".md")
}

// A guide is a rendered document.
type guide struct {
	document
	rendered
}

// guides maps the name of each document to a function that renders the document on the first call.
var guides = func() map[string]func() (guide, error) {
	all := make(map[string]func() (guide, error))
	for _, g := range contents {
		for _, d := range g.documents {
			all[d.name] = sync.OnceValues(func() (guide, error) {
				text, err := readSource(d.name)
				if err != nil {
					return guide{}, err
				}
				r, err := render(text)
				if err != nil {
					return guide{}, err
				}
				return guide{d, r}, nil
			})
		}
	}
	return all
}()

// guideNav returns the navigation. The name of the current document may be "".
func guideNav(current string) (groups []templates.DocsGroup) {
	for _, g := range contents {
		shown := templates.DocsGroup{Name: g.name}
		for _, d := range g.documents {
			area := templates.DocsArea{
				Name:    d.title,
				URL:     guidePrefix + d.name,
				Current: d.name == current,
			}
			if area.Current { // only the current document shows its headings
				if p, err := guides[d.name](); err == nil {
					area.Operations = p.headings
				}
			}
			shown.Areas = append(shown.Areas, area)
		}
		groups = append(groups, shown)
	}
	return groups
}

// showGuide serves GET /docs/guides/{name}.
func showGuide(w http.ResponseWriter, r *http.Request) error {
	find, ok := guides[r.PathValue("name")]
	if !ok {
		return problem.NoSuch("page")
	}
	p, err := find()
	if err != nil {
		return err
	}
	view := templates.Guide{
		DocsFrame: templates.DocsFrame{
			Title: p.title + " · selvage",
			Nav:   guideNav(p.name),
		},
		Text: p.html,
	}
	return templates.Write(w, view, templates.Options{Scripts: true})
}
