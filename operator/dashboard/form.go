package dashboard

import (
	"cmp"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
)

// An input is one field of a form, as the template "input" renders it.
type input struct {
	Kind        string // text, area, select, check, choices, cards, json, group, secret or color
	Type        string // type of a text input: text, url, number, datetime-local, email, password or date
	Name        string
	Label       string
	Hint        string
	Value       string
	Min         string
	Max         string
	Length      int // maximum number of characters; 0 means no limit
	Rows        int
	Example     string // an example that is shown in an empty field
	Required    bool
	Focus       bool // the field has the focus when the page opens
	Checked     bool
	Options     []choice
	Ordered     bool      // the options are in order of preference
	Members     []input   // the members of a group
	Live        *liveHint // hint about the address that is derived from the value
	Suggestions []choice  // possible values; the browser offers the ones that match
	SuggestURL  string    // URL that returns more suggestions for the typed text; "" if there is none
	Fault       string    // describes what is wrong with the value
}

// selectInput returns an input that selects one of the options.
func selectInput(name, label string, options []choice) input {
	return input{Kind: "select", Name: name, Label: label, Options: options}
}

// checkInput returns a check box.
func checkInput(name, label string, checked bool) input {
	return input{Kind: "check", Name: name, Label: label, Checked: checked}
}

// urlInput returns an input for a URL.
func urlInput(name, label, hint, value string) input {
	return input{Kind: "text", Type: "url", Name: name, Label: label, Hint: hint, Value: value, Length: 2000}
}

// linesInput returns an input for several values, one per line.
func linesInput(name, label, hint string, rows int, values []string) input {
	text := strings.Join(values, "\n")
	return input{Kind: "area", Name: name, Label: label, Hint: hint, Rows: rows, Value: text}
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

// A form holds the fields of a form and the errors in the submitted values.
type form struct {
	Inputs []input
	More   []input // fields that few people need, folded by default
	About  string  // the title of the folded fields; "" means a general title
	Faults faults
	Seen   string // digests of the shown values, in an edit form; see marks
}

// Open reports whether the folded fields are shown, because one of them has an error.
func (f form) Open() bool { return slices.ContainsFunc(f.More, isWrong) }

// isWrong reports whether an input, or a member of it, has a wrong value.
func isWrong(i input) bool { return i.Fault != "" || slices.ContainsFunc(i.Members, isWrong) }

// find returns the input with the given name, or nil.
func (f *form) find(name string) *input {
	if in := findInput(f.Inputs, name); in != nil {
		return in
	}
	return findInput(f.More, name)
}

// retype fills all inputs with the submitted values, except for secrets.
func (f *form) retype(posted url.Values) {
	retype(f.Inputs, posted)
	retype(f.More, posted)
}

// mark stores the shown values, so that the form can be merged with changes by other operators.
func (f *form) mark() { f.Seen = marks(f.Inputs, f.More) }

// blame assigns the parts of an error to the inputs that caused them. ok is false if the operator
// cannot resolve the error by changing an input.
func (f *form) blame(err error) (ok bool) {
	for _, p := range problem.All(err) {
		if p.Kind != problem.Invalid && p.Kind != problem.Conflict {
			return false
		}
		text := sentence(p.Message)
		in := cmp.Or(f.find(pathOf(p)), f.find(p.Param))
		if in == nil {
			f.Faults = append(f.Faults, fault{Text: text})
			continue
		}

		if rest, ok := strings.CutPrefix(p.Message, in.Name); ok {
			text = words.Sentences(in.Label, lowerSentence(rest)) // replaces the name with the label
		}
		in.Fault = words.Sentences(in.Fault, text)
		f.Faults = append(f.Faults, fault{Text: text, ID: in.ID(), Short: shortFault(in.Label, p)})
	}
	focusFault(f.More, focusFault(f.Inputs, false))
	return len(f.Faults) > 0
}

// focusFault moves the focus to the first input with a wrong value. It returns true if there is
// one, or if isFound is set because an earlier input has the focus.
func focusFault(inputs []input, isFound bool) bool {
	for i := range inputs {
		in := &inputs[i]
		in.Focus = !isFound && in.Fault != ""
		isFound = focusFault(in.Members, isFound || in.Focus)
	}
	return isFound
}

// pathOf returns the path of a nested member if the message of p begins with one.
func pathOf(p *problem.Error) string {
	first, _, _ := strings.Cut(p.Message, " ")
	return strings.TrimSuffix(first, ":")
}

// findInput returns the input with the given name, in any group, or nil.
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

// sentence returns text as a sentence, with a capital letter and a period. A text with values is one
// already.
func sentence(text string) string {
	if text == "" || words.HasValues(text) {
		return text
	}
	return strings.TrimSuffix(strings.ToUpper(text[:1])+text[1:], ".") + "."
}

// lowerSentence returns text as the end of a sentence, with a period. It does not change the first
// letter, because text follows the subject of the sentence.
func lowerSentence(text string) string {
	text = strings.TrimSpace(text)
	if words.HasValues(text) {
		return text
	}
	return strings.TrimSuffix(text, ".") + "."
}

// retype fills the inputs with the submitted values, except for secrets.
func retype(inputs []input, posted url.Values) {
	for i := range inputs {
		in := &inputs[i]
		text := posted.Get(in.Name)
		switch in.Kind {
		case "group":
			retype(in.Members, posted)
		case "check":
			in.Checked = text != ""
		case "select", "cards":
			for j := range in.Options {
				in.Options[j].Chosen = in.Options[j].Value == text
			}
		case "choices":
			in.Options = rechosen(in.Options, posted[in.Name], in.Ordered)
		case "secret": // a secret is never sent back to the browser
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
	Name   bool // the title is a name, such as a scope, which is not translated
}

// selectChoices returns a copy of options in which those with the given values are selected.
func selectChoices(options []choice, values ...string) []choice {
	selected := slices.Clone(options)
	for i := range selected {
		selected[i].Chosen = slices.Contains(values, selected[i].Value)
	}
	return selected
}

// inSentence returns title for use inside a sentence. In English this is lower case, except for
// abbreviations such as "SIP gateway".
func (v *visit) inSentence(title string) string {
	if w := v.words(); w != words.English() {
		return w.Text(title)
	}

	first, _, _ := strings.Cut(title, " ")
	if len(first) > 1 && strings.ToLower(first[1:]) == first[1:] {
		return strings.ToLower(title[:1]) + title[1:]
	}
	return title
}
