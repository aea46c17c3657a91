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

// valuesFrom returns the members that a form says, as the API takes them; what was left empty
// and need not be there is left out of a new one, and null or nothing in a change. What
// cannot even be read is gathered.
func valuesFrom(fields []kinds.Field, under string, posted url.Values, old kinds.Values, isNew bool) (kinds.Values, []error) {
	sent, errs := make(kinds.Values), []error(nil)
	for _, f := range fields {
		if f.ReadOnly || under == "" && f.Name == versionField {
			continue
		}
		raw, err := valueOf(f, under+f.Name, posted, old[f.Name], isNew)
		if err != nil {
			errs = append(errs, err...)
		} else if raw != nil {
			sent[f.Name] = raw
		}
	}
	return sent, errs
}

// valueOf returns the JSON of one member; nil leaves it out.
func valueOf(f kinds.Field, name string, posted url.Values, old json.RawMessage, isNew bool) (json.RawMessage, []error) {
	text := posted.Get(name)
	switch {
	case f.WriteOnly:
		if text == "" && !(isNew && f.Required) {
			return nil, nil
		}
		return quoted(text), nil
	case f.Type == "object" && f.Members != nil && !f.Mixed:
		return groupOf(f, name, posted, old, isNew)
	case f.Type == "array" && f.Items != nil && f.Items.Enum != nil:
		return marshal(append([]string{}, posted[name]...)), nil
	case f.Type == "array" && f.Items != nil && f.Items.Type == "string" && !f.Items.Mixed:
		if list := lines(text); len(list) > 0 || !isNew {
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
	return quoted(strings.ReplaceAll(text, "\r\n", "\n")), nil // as it was before it was in a form
}

// empty returns what an empty input means.
func empty(f kinds.Field, old json.RawMessage, isNew bool) json.RawMessage {
	switch {
	case isNew && !f.Required, !isNew && old == nil:
		return nil
	case f.Nullable:
		return json.RawMessage("null")
	}
	return quoted("")
}

func groupOf(f kinds.Field, name string, posted url.Values, old json.RawMessage, isNew bool) (json.RawMessage, []error) {
	whole := make(kinds.Values)
	_ = json.Unmarshal(old, &whole) // of what is no object nothing stays
	sent, errs := valuesFrom(f.Members, name+".", posted, whole, isNew)
	for member, value := range sent {
		whole[member] = value
	}
	if errs != nil || len(whole) == 0 && !f.Required {
		return nil, errs
	}
	return marshal(whole), nil
}

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
	var any json.RawMessage
	if err := json.Unmarshal([]byte(text), &any); err != nil {
		return nil, []error{problem.BadParam(name, "%s", badJSON(name, text, err))}
	}
	return any, nil
}

// changed returns what of the members that were sent is not so already.
func changed(sent, old kinds.Values) kinds.Values {
	left := make(kinds.Values)
	for name, value := range sent {
		if string(plain(value)) != string(plain(old[name])) {
			left[name] = value
		}
	}
	return left
}

// plain writes JSON in one way, so that it can be compared.
func plain(raw json.RawMessage) json.RawMessage {
	var v any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return raw
	}
	return marshal(v)
}

// lines returns the lines of a text that have something in them.
func lines(text string) []string {
	all := strings.Split(text, "\n")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// rfc3339 returns a time of an input as the API takes it; what is none stays as it is.
func rfc3339(text string) string {
	for _, format := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err := time.Parse(format, text); err == nil {
			return at.Format(time.RFC3339)
		}
	}
	return text
}

// numberOrString returns a text that is a number or a boolean as it is; what is none is a
// string, which the schema refuses in words.
func numberOrString(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	return string(quoted(text))
}

func quoted(text string) json.RawMessage { return marshal(text) }

func marshal(v any) json.RawMessage {
	raw, _ := json.Marshal(v) // texts, lists and maps of JSON always encode
	return raw
}
