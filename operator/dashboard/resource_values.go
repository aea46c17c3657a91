package dashboard

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/problem"
)

// valuesFrom returns the members that a form sets, in the API's format. An empty optional member is
// omitted from a new resource. In an existing resource, it becomes null or empty. All invalid
// values are reported.
func valuesFrom(
	fields []kinds.Field, under string, posted url.Values, old kinds.Values, isNew bool,
) (kinds.Values, []error) {
	sent := make(kinds.Values)
	var errs []error
	for _, f := range fields {
		if f.ReadOnly || under == "" && f.Name == versionField {
			continue
		}
		raw, invalid := valueOf(f, under+f.Name, posted, old[f.Name], isNew)
		errs = append(errs, invalid...)
		if raw != nil && invalid == nil {
			sent[f.Name] = raw
		}
	}
	return sent, errs
}

// valueOf returns one member as JSON, or nil if the member must be omitted. The first cases are fields
// with an input of their own. All other objects, arrays and mixed values are edited as JSON.
func valueOf(
	f kinds.Field, name string, posted url.Values, old json.RawMessage, isNew bool,
) (json.RawMessage, []error) {
	text := posted.Get(name)
	switch {
	case f.WriteOnly:
		isMissing := text == "" && isNew && f.Required
		if text == "" && !isMissing {
			return nil, nil
		}
		return quoted(text), nil // a missing value is an error of the kind
	case f.Type == "object" && f.Members != nil && !f.Mixed:
		return groupOf(f, name, posted, old, isNew)
	case f.Type == "array" && f.Items != nil && f.Items.Enum != nil:
		return marshal(append([]string{}, posted[name]...)), nil
	case f.Type == "array" && f.Items != nil && f.Items.Type == "string" && !f.Items.Mixed:
		if list := splitLines(text); len(list) > 0 || !isNew {
			return marshal(list), nil
		}
		return nil, nil
	case f.Type == "boolean" && !f.Nullable && f.Default != nil:
		return marshal(text != ""), nil

	case f.Mixed, f.Type == "object", f.Type == "array":
		return jsonOf(f, name, text, isNew)
	case strings.TrimSpace(text) == "":
		return empty(f, old, isNew), nil
	case f.Type == "integer" || f.Type == "boolean":
		return json.RawMessage(numberOrString(strings.TrimSpace(text))), nil
	case f.Format == "date-time":
		return quoted(rfc3339(text)), nil
	case f.MaxLength <= maxLine || f.Format != "":
		return quoted(strings.TrimSpace(text)), nil
	}
	return quoted(strings.ReplaceAll(text, "\r\n", "\n")), nil // forms send line ends as CRLF
}

// empty returns the value that an empty input stands for, or nil if the member must be omitted.
func empty(f kinds.Field, old json.RawMessage, isNew bool) json.RawMessage {
	isOptional := isNew && !f.Required
	wasOmitted := !isNew && old == nil
	switch {
	case isOptional, wasOmitted:
		return nil
	case f.Nullable:
		return json.RawMessage("null")
	}
	return quoted("")
}

// groupOf returns an object whose members have inputs of their own. Members without an input keep the
// values that they have in old.
func groupOf(
	f kinds.Field, name string, posted url.Values, old json.RawMessage, isNew bool,
) (json.RawMessage, []error) {
	var whole kinds.Values
	_ = json.Unmarshal(old, &whole) // a value other than an object is ignored
	if whole == nil {               // there is no value, or it is null
		whole = make(kinds.Values)
	}
	sent, errs := valuesFrom(f.Members, name+".", posted, whole, isNew)
	for member, value := range sent {
		whole[member] = value
	}
	if errs != nil || len(whole) == 0 && !f.Required {
		return nil, errs
	}
	return marshal(whole), nil
}

// jsonOf returns a member that is edited as JSON.
func jsonOf(f kinds.Field, name, text string, isNew bool) (json.RawMessage, []error) {
	if strings.TrimSpace(text) == "" {
		switch {
		case f.Required:
			return nil, []error{problem.Missing(name)}
		case isNew:
			return nil, nil
		case f.Type == "array":
			return json.RawMessage("[]"), nil
		}
		return json.RawMessage("{}"), nil
	}

	if trimmed := strings.TrimSpace(text); isPrompt(f) && trimmed[0] != '{' {
		return marshal(map[string]string{"text": strings.ReplaceAll(trimmed, "\r\n", "\n")}), nil
	}

	var raw json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, []error{problem.BadParam(name, "%s", badJSON(name, text, err))}
	}
	return raw, nil
}

// isPrompt reports whether a member holds instructions for an agent. People may type them as plain
// text.
func isPrompt(f kinds.Field) bool {
	return f.Type == "object" && (f.Name == "prompt" || f.Name == "post_prompt")
}

// changedMembers returns the members in sent whose values differ from those in old.
func changedMembers(sent, old kinds.Values) kinds.Values {
	changes := make(kinds.Values)
	for name, value := range sent {
		if string(plain(value)) != string(plain(old[name])) {
			changes[name] = value
		}
	}
	return changes
}

// plain returns raw in a canonical form, for comparison.
func plain(raw json.RawMessage) json.RawMessage {
	var v any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return raw
	}
	return marshal(v)
}

// splitLines returns the non-empty lines of text, trimmed.
func splitLines(text string) []string {
	all := strings.Split(text, "\n")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// rfc3339 converts a time from an input to the API's format. It returns any other text unchanged.
func rfc3339(text string) string {
	for _, format := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err := time.Parse(format, text); err == nil {
			return at.Format(time.RFC3339)
		}
	}
	return text
}

// numberOrString returns valid JSON, such as a number or a boolean, unchanged. It returns any other
// text as a JSON string, which the schema then rejects with a message.
func numberOrString(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	return string(quoted(text))
}

func quoted(text string) json.RawMessage { return marshal(text) }

func marshal(v any) json.RawMessage {
	raw, _ := json.Marshal(v) // cannot fail for strings, lists and maps of JSON
	return raw
}
