package dashboard

import (
	"errors"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/problem"
)

// An input is one thing that a form asks for, as the part "input" draws it.
type input struct {
	Kind        string // text, area, select, check, choices, cards, json, group, secret; see the part
	Type        string // of a text: text, url, number, datetime-local, email, password, date
	Name, Label string
	Hint        string
	Value       string
	Min, Max    string
	Length      int // the most characters; 0 says nothing
	Rows        int
	Example     string // shown where nothing is written yet
	Required    bool
	Checked     bool
	Options     []choice
	Ordered     bool      // the choices are in an order of preference
	Members     []input   // of a group
	Tells       *liveHint // of what is new, where it names an address
	Offers      []choice  // what may be typed, of which a browser offers what fits
	Finds       string    // a path of ours that gives more of what fits; "" for none
	Fault       string    // what is wrong with it
}

// ID is the id of its element.
func (i input) ID() string { return "f-" + strings.ReplaceAll(i.Name, ".", "-") }

// About names the elements that tell of it.
func (i input) About() string {
	var ids []string
	if i.Fault != "" {
		ids = append(ids, i.ID()+"-fault")
	}
	if i.Hint != "" {
		ids = append(ids, i.ID()+"-hint")
	}
	if i.Tells != nil {
		ids = append(ids, i.ID()+"-tells")
	}
	return strings.Join(ids, " ")
}

// State are the attributes that hold for each kind of element.
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
	return template.HTMLAttr(b.String()) // ids are escaped
}

// A form is what is asked for, and what is wrong with what was typed.
type form struct {
	Inputs []input
	Faults []fault
	Seen   string // the marks of what is there, of a form that changes something
}

// A fault is a sentence of what is wrong, and the id of the input that it is about; ""
// for none.
type fault struct{ Text, ID string }

// blame puts what is wrong to the inputs that it is about. ok is false for an error that
// nobody can mend by typing something else.
func (f *form) blame(err error) (ok bool) {
	for _, p := range problem.All(err) {
		if p.Kind != problem.Invalid && p.Kind != problem.Conflict {
			return false
		}
		text := sentence(p.Message)
		at := find(f.Inputs, pathOf(p))
		if at == nil {
			at = find(f.Inputs, p.Param)
		}
		if at == nil {
			f.Faults = append(f.Faults, fault{Text: text})
			continue
		}
		if rest, ok := strings.CutPrefix(p.Message, at.Name); ok {
			text = sentence(at.Label + rest) // as people see it called
		}
		if at.Fault == "" {
			at.Fault = text
		}
		f.Faults = append(f.Faults, fault{text, at.ID()})
	}
	return len(f.Faults) > 0
}

// pathOf returns the member of a member that a message begins with.
func pathOf(p *problem.Error) string {
	first, _, _ := strings.Cut(p.Message, " ")
	return strings.TrimSuffix(first, ":")
}

// find returns the input of a name, in whatever group.
func find(all []input, name string) *input {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
		if at := find(all[i].Members, name); at != nil {
			return at
		}
	}
	return nil
}

// sentence begins and ends a message as a sentence.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.TrimSuffix(strings.ToUpper(text[:1])+text[1:], ".") + "."
}

// retype has a form show what was typed.
func retype(all []input, posted url.Values) {
	for i := range all {
		in := &all[i]
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
			all := make([]string, len(in.Options))
			for j, o := range in.Options {
				all[j] = o.Value
			}
			if !in.Ordered {
				in.Options = chosen(in.Options, posted[in.Name]...)
				continue
			}
			in.Options = inOrder(all, slices.DeleteFunc(
				slices.Clone(posted[in.Name]), func(s string) bool { return !slices.Contains(all, s) }))
		case "secret": // a secret is not sent back
		default:
			in.Value = text
		}
	}
}

// join makes one error of all that is wrong.
func join(all []error) error { return errors.Join(all...) }

// lower writes a title within a sentence: "SIP gateway" stays as it is.
func lower(title string) string {
	first, _, _ := strings.Cut(title, " ")
	if len(first) > 1 && strings.ToLower(first[1:]) == first[1:] {
		return strings.ToLower(title[:1]) + title[1:]
	}
	return title
}

// label writes the name of a member for people.
func label(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words {
		if up := strings.ToUpper(w); slices.Contains([]string{"URL", "ID", "SIP", "SMS", "URI", "FPS", "AI"}, up) {
			words[i] = up
		}
	}
	text := strings.Join(words, " ")
	return strings.ToUpper(text[:1]) + text[1:]
}
