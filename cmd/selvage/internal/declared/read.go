package declared

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A field maps a member of an entry to a pointer into a thing. The pointer is to a string, an
// integer, a boolean, a list of strings, or JSON.
type field struct {
	name string
	to   any
}

// read sets fields from the members of an entry. Members named in skip are allowed but not
// read. All errors are reported together.
func (e entry) read(fields []field, suggest func(string, []string) string, skip ...string) error {
	var errs []error
	for _, m := range e.members {
		if slices.Contains(skip, m.key.Value) {
			continue
		}

		i := slices.IndexFunc(fields, func(f field) bool { return f.name == m.key.Value })
		if i < 0 {
			names := slices.Clone(skip)
			for _, f := range fields {
				names = append(names, f.name)
			}
			hint := suggest(m.key.Value, names)
			if hint == "" {
				hint = "; known are " + strings.Join(names, ", ")
			}
			errs = append(errs, e.child(m.key, m.key.Value).errorf("unknown member%s", hint))
			continue
		}

		if err := readValue(e.child(m.value, m.key.Value), fields[i].to); err != nil {
			errs = append(errs, err)
		}
	}

	return errors.Join(errs...)
}

// readValue stores the value at a place in the variable to which to points.
func readValue(at place, to any) error {
	n := at.node
	if raw, ok := to.(*json.RawMessage); ok {
		value, err := toJSON(at)
		if err != nil {
			return err
		}
		*raw = value
		return nil
	}

	v := reflect.ValueOf(to).Elem()
	// Lists are read item by item; everything else must be a scalar.
	if v.Kind() == reflect.Slice {
		return readList(at, v)
	}
	if n.Kind != yaml.ScalarNode {
		return at.errorf("needs a single value")
	}
	if n.Tag == "!!null" { // otherwise a text would become "null"
		return at.errorf("is %s, which is no value; remove it, or write \"\"", n.Value)
	}

	switch v.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(n.Value)
		if err != nil || n.Tag != "!!bool" {
			return at.errorf("needs true or false; it is %q", n.Value)
		}
		v.SetBool(b)
	case reflect.Int64:
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil {
			return at.errorf("needs a whole number; it is %q", n.Value)
		}
		v.SetInt(i)
	default:
		v.SetString(n.Value)
	}

	return nil
}

// readList stores a list of strings in v.
func readList(at place, v reflect.Value) error {
	if at.node.Kind != yaml.SequenceNode {
		return at.errorf("needs a list, such as [one, two]")
	}
	list := reflect.MakeSlice(v.Type(), 0, len(at.node.Content))
	for i, n := range at.node.Content {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return at.index(n, i).errorf("needs a single value")
		}
		item := reflect.New(v.Type().Elem()).Elem()
		item.SetString(n.Value)
		list = reflect.Append(list, item)
	}
	v.Set(list)
	return nil
}

// toJSON returns the value at a place as JSON, with members in the order of the file.
func toJSON(at place) (json.RawMessage, error) {
	n := at.node
	switch n.Kind {
	case yaml.MappingNode:
		return toObject(at)
	case yaml.SequenceNode:
		return toArray(at)
	}

	var value any = n.Value
	// Only values with these tags keep their type in JSON. All other scalars, such as dates, become
	// strings.
	if slices.Contains([]string{"!!null", "!!bool", "!!int", "!!float"}, n.Tag) {
		if err := n.Decode(&value); err != nil {
			return nil, at.errorf("%v", err)
		}
	}

	raw, err := json.Marshal(value)
	if err != nil {
		return nil, at.errorf("JSON cannot express the value %s", n.Value)
	}
	return raw, nil
}

// toObject returns the mapping at a place as a JSON object.
func toObject(at place) (json.RawMessage, error) {
	content := at.node.Content
	text := []byte{'{'}
	for i := 0; i+1 < len(content); i += 2 {
		key := content[i]
		if key.Kind != yaml.ScalarNode {
			return nil, at.child(key, "").errorf("has a name that is not text")
		}
		name, _ := json.Marshal(key.Value) // encoding a string cannot fail
		value, err := toJSON(at.child(content[i+1], key.Value))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, name...)
		text = append(text, ':')
		text = append(text, value...)
	}
	return append(text, '}'), nil
}

// toArray returns the list at a place as a JSON array.
func toArray(at place) (json.RawMessage, error) {
	text := []byte{'['}
	for i, item := range at.node.Content {
		value, err := toJSON(at.index(item, i))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, value...)
	}
	return append(text, ']'), nil
}

// show formats a value for people.
func show(to any) string {
	v := reflect.ValueOf(to).Elem()
	switch v.Kind() {
	case reflect.Slice:
		if raw, ok := to.(*json.RawMessage); ok {
			return short(string(canonical(*raw)))
		}
		var items []string
		for i := range v.Len() {
			items = append(items, v.Index(i).String())
		}
		return strings.Join(items, ", ")
	case reflect.String:
		return v.String()
	}

	return fmt.Sprint(v.Interface())
}

// maxShown is the maximum number of characters of a value that are shown.
const maxShown = 72

// short shortens a text that is longer than maxShown.
func short(s string) string {
	if r := []rune(s); len(r) > maxShown {
		return string(r[:maxShown-1]) + "…"
	}
	return s
}

// canonical returns JSON in canonical form: equal values have equal bytes.
func canonical(raw json.RawMessage) []byte {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return raw
	}
	b, _ := json.Marshal(value) // the value was decoded from JSON
	return b
}

// same reports whether two values of a field are equal. It ignores the order of lists and duplicates
// in them.
func same(a, b any) bool {
	if first, ok := a.(*json.RawMessage); ok {
		second := b.(*json.RawMessage)
		return string(canonical(*first)) == string(canonical(*second))
	}
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	if x.Kind() != reflect.Slice {
		return x.Interface() == y.Interface()
	}
	return slices.Equal(setOf(x), setOf(y))
}

// setOf returns the different items of a list, sorted.
func setOf(v reflect.Value) (items []string) {
	for i := range v.Len() {
		items = append(items, v.Index(i).String())
	}
	slices.Sort(items)
	return slices.Compact(items)
}
