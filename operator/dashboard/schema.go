package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/words"
)

// versionField is the member that holds the number of the current document, for resources with
// versions. No form shows it.
const versionField = "document_version"

// maxLine is the maximum length of text that is edited in a single line, in characters.
const maxLine = 2048

// inputsFor returns the inputs of a form that creates or changes a resource: one for each member of
// the schema that is not read-only. The inputs contain values, or the defaults if values is nil.
func inputsFor(
	fields []kinds.Field, under string, values kinds.Values, examples map[string]json.RawMessage, isNew bool,
) (inputs []input) {
	for _, f := range fields {
		if f.ReadOnly || under == "" && f.Name == versionField {
			continue
		}
		value := values[f.Name]
		if isNew && values == nil {
			value = f.Default
		}
		inputs = append(inputs, inputFor(f, under+f.Name, value, examples[f.Name], isNew))
	}
	return inputs
}

// kindForm returns the form that creates or changes a resource. The members that the kind names for
// its form come first. If it names none, the required members come first. The other members are
// folded.
func kindForm(k *kinds.Kind, values kinds.Values, isNew bool) form {
	inputs := inputsFor(k.Fields, "", values, exampleOf(k), isNew)
	for i := range inputs {
		in := &inputs[i]
		in.Label = cmp.Or(k.Form.Labels[in.Name], in.Label)
		in.Example = cmp.Or(k.Form.Examples[in.Name], in.Example)
		if hint := k.Form.Hints[in.Name]; hint != "" {
			in.Hint = hint
		}
	}

	first := k.Form.First
	if first == nil {
		for _, in := range inputs {
			if in.Required {
				first = append(first, in.Name)
			}
		}
	}
	if first == nil {
		return form{Inputs: inputs}
	}

	var f form
	for _, name := range first {
		if in := findInput(inputs, name); in != nil {
			f.Inputs = append(f.Inputs, *in)
		}
	}
	for _, in := range inputs {
		if !slices.Contains(first, in.Name) {
			f.More = append(f.More, in)
		}
	}
	return f
}

// inputFor returns the input for a member of the schema, with a value.
func inputFor(f kinds.Field, name string, value, example json.RawMessage, isNew bool) input {
	in := input{
		Name:     name,
		Label:    kinds.Label(f.Name),
		Hint:     f.Description,
		Required: f.Required,
		Length:   f.MaxLength,
	}

	text := written(value)
	switch {
	case f.WriteOnly:
		in.Kind = kindSecret
		in.Required = f.Required && isNew
		if !isNew {
			in.Hint = words.Sentences(in.Hint, "The current value is never shown. Leave empty to keep it.")
		}
	case f.Mixed:
		in.setJSON(value, example)
	case f.Type == "object" && f.Members != nil:
		in.Kind = kindGroup
		var inner, shown map[string]json.RawMessage
		_ = json.Unmarshal(value, &inner) // a value other than an object leaves inner empty
		_ = json.Unmarshal(example, &shown)
		in.Members = inputsFor(f.Members, name+".", inner, shown, isNew)
	case f.Type == "array" && f.Items != nil && f.Items.Enum != nil:
		in.Kind = kindChoices
		in.Ordered = true
		in.Required = false
		in.Options = inOrder(f.Items.Enum, listed(value))
	case f.Type == "array" && f.Items != nil && f.Items.Type == "string" && !f.Items.Mixed:
		in.Kind = kindArea
		in.Rows = 4
		in.Value = strings.Join(listed(value), "\n")
		in.Hint = words.Sentences(in.Hint, "One per line.")
	case f.Type == "object" || f.Type == "array":
		in.setJSON(value, example)
		if isPrompt(f) {
			in.Hint = words.Sentences(f.Description, "Plain text, or JSON with the member text.")
		}

	case f.Enum != nil:
		in.Kind = kindSelect
		in.Options = toChoices(f.Enum, text, f.Nullable || !f.Required && f.Default == nil)
	case f.Type == "boolean" && (f.Nullable || f.Default == nil):
		in.Kind = kindSelect
		in.Options = toChoices([]string{"true", "false"}, text, true)
		in.Options[1].Title, in.Options[2].Title = "Yes", "No"
	case f.Type == "boolean":
		in.Kind = kindCheck
		in.Checked = text == "true"
		in.Required = false
	case f.Type == "string" && f.MaxLength > maxLine && f.Format == "":
		in.Kind = kindArea
		in.Value = text
		in.Rows = min(16, 4+f.MaxLength/4000)
	default:
		in.Kind = kindText
		in.Type = "text"
		in.Value = text
		in.Min, in.Max = f.Minimum, f.Maximum
		in.Example = written(example)
		in.setType(f)
	}
	return in
}

// setType sets the type of a text input.
func (i *input) setType(f kinds.Field) {
	switch {
	case f.Type == "integer":
		i.Type = "number"
	case f.Format == "uri":
		i.Type, i.Example = "url", cmp.Or(i.Example, "https://")
	case f.Format == "date-time":
		i.Type, i.Example = "datetime-local", ""
		i.Hint = words.Sentences(i.Hint, "In UTC.")
		if at, err := time.Parse(time.RFC3339, i.Value); err == nil {
			// Browsers omit seconds that are zero. The form would look edited if the value had them.
			i.Value = strings.TrimSuffix(at.UTC().Format("2006-01-02T15:04:05"), ":00")
		}
	case f.Format == "uuid":
		i.Example = "00000000-0000-0000-0000-000000000000"
	}
}

// setJSON turns an input into one for JSON.
func (i *input) setJSON(value, example json.RawMessage) {
	i.Kind = kindJSON
	i.Length = 0
	i.Value = pretty(value)
	i.Example = pretty(example)
	i.Rows = min(24, 3+max(strings.Count(i.Value, "\n"), strings.Count(i.Example, "\n")))
	i.Hint = words.Sentences(i.Hint, "As JSON.")
}

// written returns a value as people type it: a string without quotes, or any other value as JSON.
// It returns "" for null or a missing value.
func written(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text // null leaves the text empty
	}
	return string(value)
}

// pretty returns a value as indented JSON. It returns "" for null or an invalid value.
func pretty(value json.RawMessage) string {
	var b bytes.Buffer
	if value == nil || string(value) == "null" || json.Indent(&b, value, "", "  ") != nil {
		return ""
	}
	return b.String()
}

// listed returns the strings in a JSON array.
func listed(value json.RawMessage) []string {
	var texts []string
	_ = json.Unmarshal(value, &texts) // values other than arrays are ignored
	return texts
}

// inOrder returns values as choices. The values in chosen come first, in the order of chosen.
func inOrder(values, chosen []string) (choices []choice) {
	for _, value := range chosen {
		choices = append(choices, choice{Value: value, Title: value, Chosen: true})
	}
	for _, value := range values {
		if !slices.Contains(chosen, value) {
			choices = append(choices, choice{Value: value, Title: value})
		}
	}
	return choices
}

// toChoices returns values as choices. If orNone is set, the first choice stands for no value.
func toChoices(values []string, chosen string, orNone bool) (choices []choice) {
	if orNone {
		choices = append(choices, choice{Title: "Not set", Chosen: chosen == ""})
	}
	for _, value := range values {
		choices = append(choices, choice{Value: value, Title: value, Chosen: value == chosen})
	}
	return choices
}

// factsOf returns the members of a resource, except secrets, as facts.
func factsOf(k *kinds.Kind, values kinds.Values) (facts []fact) {
	for _, f := range k.Fields {
		value := values[f.Name]
		text := written(value)
		if f.WriteOnly || text == "" {
			continue
		}

		one := fact{Name: cmp.Or(k.Form.Labels[f.Name], kinds.Label(f.Name)), Text: text}
		switch {
		case f.Enum != nil:
			one.Ours = true
		case f.Type == "boolean":
			one.Text = booleanTitles[text]
			one.Ours = true
		case text == "0" && k.Form.Hints[f.Name] == noLimit:
			one.Text = "No limit"
			one.Ours = true
		case f.Type == "array" && f.Items != nil && f.Items.Type == "string" && !f.Items.Mixed:
			one.Text = strings.Join(listed(value), ", ")
		case f.Type == "object" || f.Type == "array":
			one.Text = pretty(value)
			one.Long = true
		case len(text) > 200 || strings.Contains(text, "\n"):
			one.Long = true
		}
		if one.Text != "" && one.Text != "{}" && one.Text != "[]" {
			facts = append(facts, one)
		}
	}
	return facts
}

// booleanTitles describes booleans.
var booleanTitles = map[string]string{"true": "Yes", "false": "No"}

// A fact is a labeled value on a page.
type fact struct {
	Name, Text string
	Long       bool // whether the text may have several lines
	Ours       bool // whether the text comes from the dashboard, not from the resource, so it is translated
}

// noLimit is the hint of an input whose value 0 means no limit.
const noLimit = "0 means no limit."

// badJSON describes where text is not valid JSON, in words for people who may not know JSON.
func badJSON(name, text string, err error) string {
	line := 1
	if syntax, ok := err.(*json.SyntaxError); ok {
		before := text[:min(int(syntax.Offset), len(text))]
		line += strings.Count(before, "\n")
	}
	return fmt.Sprintf("%s is not valid JSON: check the quotes, commas and brackets in line %d", name, line)
}
