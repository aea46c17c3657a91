package templates

import (
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"
)

// A FieldFault holds what is wrong with one input.
type FieldFault struct {
	ID    string // id of the input
	Texts []string
}

// An input is one field of a form.
type input interface {
	ID() string
	About() string            // ids of the elements that describe it
	State() template.HTMLAttr // attributes that all kinds of elements have
}

// The type faults stands for the errors in a form. Its methods take the id of an input. Those that
// return attributes also take the ids of other elements that describe the input.
type faults interface {
	At(id string) FieldFault
	State(id string, others ...string) template.HTMLAttr
	Described(id string, others ...string) template.HTMLAttr
}

// The interfaces of the other methods that pages call.
type (
	countable  interface{ Count() int }
	filterable interface{ Any() bool }
	foldable   interface{ Open() bool }
	named      interface{ FullName() string }
	reachable  interface{ Path() string }
	setting    interface{ Shown() string }
)

// methods has a function for each method that pages call. Templates cannot look up methods by name:
// if they could, the linker would have to keep every exported method of every type. Pages are
// therefore rendered by a copy of html/template that Datadog generates from the one in Go. When a
// release of Go fixes html/template, update that module, too.
var methods = template.FuncMap{
	"id":    input.ID,
	"about": input.About,
	"state": input.State,

	"fault":      faults.At,
	"faultState": faults.State,
	"described":  faults.Described,

	"count":    countable.Count,
	"filtered": filterable.Any,
	"fullName": named.FullName,
	"isOpen":   foldable.Open,
	"path":     reachable.Path,
	"shown":    setting.Shown,

	"isAfter": time.Time.After,
	"isZero":  time.Time.IsZero,
}
