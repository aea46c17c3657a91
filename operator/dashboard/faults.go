package dashboard

import (
	"html/template"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// A fault describes an error in a form.
type fault struct {
	Text  string
	ID    string // id of the input that caused it, or ""
	Short string // the text above the form, if it differs from the text at the input
}

// shortFault returns a short text for an error that has a long explanation, or "". label is the label
// of the input.
func shortFault(label string, p *problem.Error) string {
	if strings.Contains(p.Message, " is too easy to guess: ") {
		return words.Sentences(label, "is too easy to guess.")
	}
	return ""
}

// faults are the errors in a form. Templates show them all above the form, and each again at its
// input.
type faults []fault

// faultAt returns faults with a single error.
func faultAt(id, text string) faults { return faults{{Text: text, ID: id}} }

// moved returns f with the errors of one input assigned to another. Pages use it for inputs whose ids
// differ from the names of parameters.
func (f faults) moved(from, to string) faults {
	for i := range f {
		if f[i].ID == from {
			f[i].ID = to
		}
	}
	return f
}

// At returns what is wrong with the input with the given id.
func (f faults) At(id string) templates.FieldFault {
	at := templates.FieldFault{ID: id}
	for _, one := range f {
		if one.ID == id {
			at.Texts = append(at.Texts, one.Text)
		}
	}
	return at
}

// Described returns the aria-describedby attribute of the element with the given id. The attribute
// names the element with the error, if there is one, and then others.
func (f faults) Described(id string, others ...string) template.HTMLAttr {
	if len(f.At(id).Texts) > 0 {
		others = append([]string{id + "-fault"}, others...)
	}
	if len(others) == 0 {
		return ""
	}
	return template.HTMLAttr(` aria-describedby="` + strings.Join(others, " ") + `"`) // safe: templates supply the ids
}

// State returns the attributes of an input: those of Described and, if its value is wrong,
// aria-invalid. The first wrong input of a form also gets the focus.
func (f faults) State(id string, others ...string) template.HTMLAttr {
	all := f.Described(id, others...)
	if len(f.At(id).Texts) == 0 {
		return all
	}
	all += ` aria-invalid="true"`
	if f[0].ID == id {
		all += " autofocus"
	}
	return all
}
