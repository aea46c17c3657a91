package templates

import "html/template"

// A DocsArea is an area of the API, in the navigation and in the contents.
type DocsArea struct {
	Name, URL  string
	Here       bool // the area is the current page
	Text       template.HTML
	Operations []DocsOperation
}

// A DocsGroup is a heading with the areas below it.
type DocsGroup struct {
	Name string
	Tags []DocsArea
}

// A DocsOperation is an operation of the API.
type DocsOperation struct {
	ID, Method, Path, Summary string
	Also                      []string // other paths of the operation
	Text                      template.HTML
	Who                       template.HTML
	Parameters                []DocsParameters
	Bodies                    []DocsBody
	Answers                   []DocsAnswer
	Samples                   []DocsSample
}

// DocsParameters are the parameters in the path, the query or the headers.
type DocsParameters struct {
	Title   string
	Members []DocsMember
}

// A DocsBody is one format of a body. If it has no members, About describes it.
type DocsBody struct {
	Type, About string
	Members     []DocsMember
}

// A DocsAnswer is a response with a status.
type DocsAnswer struct {
	Status, Class string
	Text          template.HTML
	Type          string
	Members       []DocsMember
}

// A DocsSample is an example to copy.
type DocsSample struct{ Title, Text string }

// A DocsMember is a parameter, or a member of an object.
type DocsMember struct {
	Name, Type string
	Required   bool
	Text       template.HTML
	Limits     string
	Members    []DocsMember
}

// Docs is the start page of the API reference: introduction and contents.
type Docs struct {
	Title    string
	Nav      []DocsGroup
	Guides   []DocsGroup // documents besides the API reference
	Query    string      // the search; "" means everything
	Hits     []DocsHit   // the sections of guides that match Query
	Intro    template.HTML
	Setup    string // shell variables that the samples use
	Contents []DocsGroup
}

// A DocsHit is a section of a guide that matches a search.
type DocsHit struct{ Guide, Title, URL, Text string }

// DocsPage is one area of the API reference.
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

// NoGuide returns the error page for an unknown page of the documentation.
func NoGuide() Error {
	return Error{
		Title: "Page not found",
		Text:  "See the other pages of the documentation.",
		Way:   &Link{Title: "All documentation", URL: "/docs"},
	}
}

func (Guide) name() string    { return "docsguide.html" }
func (Docs) name() string     { return "docs.html" }
func (DocsPage) name() string { return "docsarea.html" }
