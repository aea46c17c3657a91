package templates

import "html/template"

// A DocsFrame holds what the pages of the documentation have in common. All of them show it around
// their content.
type DocsFrame struct {
	Title string
	Query string // text in the search field
	Nav   []DocsGroup
}

// A DocsGroup is a heading in the navigation or in a table of contents, with the areas below it.
type DocsGroup struct {
	Name  string
	Areas []DocsArea
}

// A DocsArea is a page that the navigation links to: an area of the API, or a guide.
type DocsArea struct {
	Name    string
	URL     string
	Current bool // the area is the page that is shown
	Text    template.HTML

	// Operations are the operations of the API area. A guide has one for each of its headings, with
	// only an ID and a Summary.
	Operations []DocsOperation
}

// A DocsOperation is an operation of the API.
type DocsOperation struct {
	ID         string // the anchor on the page
	Method     string
	Path       string
	OtherPaths []string // more paths that serve the operation
	Summary    string
	Text       template.HTML
	Access     template.HTML // a sentence that names the accepted credentials and scopes
	Parameters []DocsParameters
	Bodies     []DocsBody
	Responses  []DocsResponse
	Samples    []DocsSample
}

// DocsParameters is a table of parameters. An operation has up to three of them: for its path, its
// query and its headers.
type DocsParameters struct {
	Title   string
	Members []DocsMember
}

// A DocsBody is one format of a request body. If it has no members, About describes it.
type DocsBody struct {
	MediaType string // such as application/json
	About     string
	Members   []DocsMember
}

// A DocsResponse is a response with a status.
type DocsResponse struct {
	Status string // such as 200
	Class  string // the CSS class of the status: good or other
	Text   template.HTML

	// Members are the members of the body, or nil to show none. Schema names the type of the body,
	// if it has a name.
	Schema  string
	Members []DocsMember
}

// A DocsSample is a command or a body to copy.
type DocsSample struct {
	Title string
	Text  string
}

// A DocsMember is a parameter, or a member of an object.
type DocsMember struct {
	Name     string
	Type     string // in words, such as "array of string"
	Required bool
	Text     template.HTML
	Limits   string       // rules in words, such as "at most 10"
	Members  []DocsMember // of an object, or of the objects in an array
}

// Docs is the start page of the documentation. If Query is not empty, the page shows the results of
// the search instead of the introduction.
type Docs struct {
	DocsFrame
	Guides   []DocsGroup // the guides, without the API reference
	Hits     []DocsHit   // the sections of guides that match Query
	Intro    template.HTML
	Setup    string      // shell commands that set the variables in the samples
	Contents []DocsGroup // the API areas, with only the operations that match Query
}

// A DocsHit is a section of a guide that matches a search.
type DocsHit struct {
	Guide string // title of the guide
	Title string // title of the section
	URL   string
	Text  string // an excerpt
}

// DocsPage is the page of an area of the API.
type DocsPage struct {
	DocsFrame
	Area DocsArea
}

// Guide is the page of a guide, such as a tutorial.
type Guide struct {
	DocsFrame
	Text template.HTML
}

// DocsNotFound returns the error page for an unknown page of the documentation.
func DocsNotFound() Error {
	return Error{
		Title:    "Page not found",
		Text:     "See the other pages of the documentation.",
		Continue: &Link{Title: "All documentation", URL: "/docs"},
	}
}

func (Docs) name() string     { return "docs.html" }
func (DocsPage) name() string { return "docsarea.html" }
func (Guide) name() string    { return "docsguide.html" }
