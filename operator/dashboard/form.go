package dashboard

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
)

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

// blame assigns the parts of an error to the inputs that caused them. It reports whether the
// operator can resolve the error by changing an input.
func (f *form) blame(err error) bool {
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
			rest = itemNumber.ReplaceAllString(rest, "")          // the input holds the whole list
			text = words.Sentences(in.Label, lowerSentence(rest)) // replaces the name with the label
		}
		in.Fault = words.Sentences(in.Fault, text)
		f.Faults = append(f.Faults, fault{Text: text, ID: in.ID(), Short: shortFault(in.Label, p)})
	}
	focusFault(f.More, focusFault(f.Inputs, false))
	return len(f.Faults) > 0
}

// itemNumber matches the number of a list's item, which a message has after the name of the list.
var itemNumber = regexp.MustCompile(`^\.\d+ `)

// focusFault moves the focus to the first input with a wrong value, unless isFound says that an
// earlier input has the focus. It reports whether this or an earlier input now has the focus.
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

// sentence returns text as a sentence, with a capital letter and a period. A text with values is
// already a sentence, and is returned unchanged.
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
