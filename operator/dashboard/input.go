package dashboard

import (
	"html/template"
	"net/url"
	"slices"
	"strings"
)

// An inputKind selects how an input is rendered and submitted.
type inputKind string

const (
	kindText    inputKind = "text"
	kindArea    inputKind = "area" // text of several lines
	kindJSON    inputKind = "json" // a JSON value, as text
	kindColor   inputKind = "color"
	kindSecret  inputKind = "secret" // text that is never shown again
	kindCheck   inputKind = "check"
	kindSelect  inputKind = "select"  // one option from a list
	kindCards   inputKind = "cards"   // one option, each with an explanation
	kindChoices inputKind = "choices" // any number of options
	kindGroup   inputKind = "group"   // other inputs
)

// An input is one field of a form, as the template "input" renders it.
type input struct {
	Kind     inputKind
	Name     string
	Label    string
	Hint     string
	Required bool
	Focus    bool      // whether the field has the focus when the page opens
	Live     *liveHint // hint about the address that is derived from the value
	Fault    string    // describes what is wrong with the value

	// These fields are for text inputs.
	Value       string
	Type        string // HTML type for kindText, such as url or number
	Min         string
	Max         string
	Length      int // maximum number of characters; 0 means no limit
	Rows        int
	Example     string   // an example that is shown in an empty field
	Suggestions []choice // possible values; the browser offers the ones that match
	SuggestURL  string   // URL that returns more suggestions for the typed text; "" if there is none

	Checked bool     // for kindCheck
	Options []choice // for kindSelect, kindCards and kindChoices
	Ordered bool     // for kindChoices: the options are in order of preference
	Members []input  // for kindGroup
}

// selectInput returns an input that selects one of the options.
func selectInput(name, label string, options []choice) input {
	return input{Kind: kindSelect, Name: name, Label: label, Options: options}
}

// checkInput returns a check box.
func checkInput(name, label string, checked bool) input {
	return input{Kind: kindCheck, Name: name, Label: label, Checked: checked}
}

// urlInput returns an input for a URL.
func urlInput(name, label, hint, value string) input {
	return input{Kind: kindText, Type: "url", Name: name, Label: label, Hint: hint, Value: value, Length: 2000}
}

// linesInput returns an input for several values, one per line.
func linesInput(name, label, hint string, rows int, values []string) input {
	text := strings.Join(values, "\n")
	return input{Kind: kindArea, Name: name, Label: label, Hint: hint, Rows: rows, Value: text}
}

// ID returns the id of the input's element.
func (i input) ID() string { return "f-" + strings.ReplaceAll(i.Name, ".", "-") }

// About returns the ids of the elements that describe the input.
func (i input) About() string {
	var ids []string
	if i.Fault != "" {
		ids = append(ids, i.ID()+"-fault")
	}
	if i.Hint != "" {
		ids = append(ids, i.ID()+"-hint")
	}
	if i.Live != nil {
		ids = append(ids, i.ID()+"-tells")
	}
	return strings.Join(ids, " ")
}

// State returns the attributes that the elements of all inputs have in common.
func (i input) State() template.HTMLAttr {
	var b strings.Builder
	if about := i.About(); about != "" {
		b.WriteString(` aria-describedby="` + template.HTMLEscapeString(about) + `"`)
	}
	if i.Fault != "" {
		b.WriteString(` aria-invalid="true"`)
	}
	if i.Required {
		b.WriteString(" required")
	}
	if i.Focus {
		b.WriteString(" autofocus")
	}
	return template.HTMLAttr(b.String()) // safe: the ids are escaped
}

// findInput returns the input with the given name, or nil. It also searches groups.
func findInput(inputs []input, name string) *input {
	for i := range inputs {
		in := &inputs[i]
		if in.Name == name {
			return in
		}
		if member := findInput(in.Members, name); member != nil {
			return member
		}
	}
	return nil
}

// retype fills the inputs with the submitted values, except for secrets.
func retype(inputs []input, posted url.Values) {
	for i := range inputs {
		in := &inputs[i]
		text := posted.Get(in.Name)
		switch in.Kind {
		case kindGroup:
			retype(in.Members, posted)
		case kindCheck:
			in.Checked = text != ""
		case kindSelect, kindCards:
			for j := range in.Options {
				in.Options[j].Chosen = in.Options[j].Value == text
			}
		case kindChoices:
			in.Options = rechosen(in.Options, posted[in.Name], in.Ordered)
		case kindSecret: // a secret is never sent back to the browser
		default:
			in.Value = text
		}
	}
}

// rechosen returns options, with those in values selected. If ordered is set, the options are in
// the order of values.
func rechosen(options []choice, values []string, ordered bool) []choice {
	if !ordered {
		return selectChoices(options, values...)
	}
	known := make([]string, len(options))
	for i, o := range options {
		known[i] = o.Value
	}
	isUnknown := func(value string) bool { return !slices.Contains(known, value) }
	return inOrder(known, slices.DeleteFunc(slices.Clone(values), isUnknown))
}

// A choice is one option that can be selected.
type choice struct {
	Value  string
	Title  string
	Why    string
	Chosen bool
	Name   bool // whether the title is a name, such as that of a scope, which is not translated
}

// selectChoices returns a copy of options in which those with the given values are selected.
func selectChoices(options []choice, values ...string) []choice {
	selected := slices.Clone(options)
	for i := range selected {
		selected[i].Chosen = slices.Contains(values, selected[i].Value)
	}
	return selected
}
