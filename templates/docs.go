package templates

import "html/template"

// A DocsArea is an area of the API, as navigation and contents have it.
type DocsArea struct {
	Name, URL  string
	Here       bool // it is the page
	Text       template.HTML
	Operations []DocsOperation
}

// A DocsGroup is a heading over areas.
type DocsGroup struct {
	Name string
	Tags []DocsArea
}

// A DocsOperation is one thing that can be asked for.
type DocsOperation struct {
	ID, Method, Path, Summary string
	Also                      []string // other paths of the same
	Text                      template.HTML
	Who                       template.HTML
	Parameters                []DocsParameters
	Bodies                    []DocsBody
	Answers                   []DocsAnswer
	Samples                   []DocsSample
}

// DocsParameters are those of the path, the query or the headers.
type DocsParameters struct {
	Title   string
	Members []DocsMember
}

// A DocsBody is one form of a body. Without members About says what it is.
type DocsBody struct {
	Type, About string
	Members     []DocsMember
}

// A DocsAnswer is an answer by its status.
type DocsAnswer struct {
	Status, Class string
	Text          template.HTML
	Type          string
	Members       []DocsMember
}

// A DocsSample is something to copy.
type DocsSample struct{ Title, Text string }

// A DocsMember is a parameter, or a member of an object.
type DocsMember struct {
	Name, Type string
	Required   bool
	Text       template.HTML
	Limits     string
	Members    []DocsMember
}

// Docs is what an API can be asked for: the introduction and contents.
type Docs struct {
	Title    string
	Nav      []DocsGroup
	Guides   []DocsGroup // documents to read, beside the API
	Query    string      // what to find; "" is everything
	Intro    template.HTML
	Setup    string // what a shell needs to know first
	Contents []DocsGroup
}

// DocsPage is one area of it.
type DocsPage struct {
	Title, Query string
	Nav          []DocsGroup
	Area         DocsArea
}

// Guide is a document of the manual.
type Guide struct {
	Title, Query string
	Nav          []DocsGroup
	Text         template.HTML
}

// NoGuide is the page where the documentation has none.
func NoGuide() Error {
	return Error{
		Title: "Page not found", Text: "See the other pages of the documentation.",
		Way: &Link{Title: "All of the documentation", URL: "/docs"},
	}
}

func (Guide) name() string    { return "docsguide.html" }
func (Docs) name() string     { return "docs.html" }
func (DocsPage) name() string { return "docsarea.html" }
