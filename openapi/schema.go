package openapi

import (
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Schema describes a value.
type Schema struct {
	Type        string // the type in words, such as "array of string" or "string or null"
	Description string
	Limits      []string // rules in words, such as "one of PUT, POST" or "at most 10"
	Properties  []Property
	Name        string // the name of the component, or ""
}

// A Property is a member of an object.
type Property struct {
	Name     string
	Required bool
	Schema   Schema
}

// maxDepth limits how deeply schemas are nested, because schemas may refer to themselves. A schema
// that is nested more deeply is left out.
const maxDepth = 8

// schema describes the schema n, with its references resolved. depth is the number of schemas that
// contain n. If n describes an array, Properties describes the items of the array.
func (d *Document) schema(n *yaml.Node, depth int) (s Schema) {
	if n == nil || depth > maxDepth {
		return s
	}
	if target := value(n, "$ref"); target != "" {
		s.Name = target[strings.LastIndexByte(target, '/')+1:]
	}

	n = d.resolve(n)
	s.Type, s.Description, s.Limits = d.typeOf(n, depth), value(n, "description"), limits(n)
	inner := n
	if items := get(n, "items"); items != nil {
		inner = d.resolve(items)
	}

	required := words(get(inner, "required"))
	eachMember(get(inner, "properties"), func(name string, p *yaml.Node) {
		s.Properties = append(s.Properties, Property{
			Name:     name,
			Required: slices.Contains(required, name),
			Schema:   d.schema(p, depth+1),
		})
	})
	return s
}

// typeOf describes the type of a schema in words.
func (d *Document) typeOf(n *yaml.Node, depth int) string {
	if c := get(n, "const"); c != nil {
		return jsonText(c)
	}

	types := words(get(n, "type"))
	if t := value(n, "type"); t != "" {
		types = []string{t}
	}

	for i, t := range types {
		if items := d.resolve(get(n, "items")); t == "array" && items != nil && len(items.Content) > 0 &&
			depth <= maxDepth {
			types[i] = "array of " + d.typeOf(items, depth+1)
		}
	}

	name := strings.Join(types, " or ")
	if format := value(n, "format"); format != "" {
		name += ", " + format
	}
	return name
}

// limits describes in words which values a schema allows.
func limits(n *yaml.Node) (all []string) {
	if enum := get(n, "enum"); enum != nil {
		all = append(all, "one of "+strings.Join(words(enum), ", "))
	} else if items := get(n, "items"); items != nil && get(items, "enum") != nil {
		all = append(all, "each one of "+strings.Join(words(get(items, "enum")), ", "))
	}

	for _, l := range []struct{ key, before, after string }{
		{"minimum", "at least ", ""},
		{"maximum", "at most ", ""},
		{"minLength", "at least ", " characters"},
		{"maxLength", "at most ", " characters"},
		{"minItems", "at least ", " items"},
		{"maxItems", "at most ", " items"},
		{"pattern", "matches ", ""},
	} {
		v := value(n, l.key)
		if v == "" || l.key == "minLength" && v == "1" { // 1 only says that the text is not empty
			continue
		}
		if v == "1" {
			l.after = strings.TrimSuffix(l.after, "s")
		}
		all = append(all, l.before+v+l.after)
	}

	if v := get(n, "default"); v != nil && jsonText(v) != `""` {
		all = append(all, "default "+jsonText(v))
	}
	if value(n, "writeOnly") == "true" {
		all = append(all, "only in requests")
	}
	if value(n, "readOnly") == "true" {
		all = append(all, "only in responses")
	}
	return all
}

// example returns an example value for a schema.
func (d *Document) example(n *yaml.Node, depth int) *yaml.Node {
	n = d.resolve(n)
	if n == nil || depth > maxDepth {
		return mapping()
	}
	if examples := get(n, "examples"); examples != nil && len(examples.Content) > 0 {
		return examples.Content[0]
	}

	for _, key := range []string{"const", "default"} {
		if v := get(n, key); v != nil {
			return v
		}
	}

	if enum := get(n, "enum"); enum != nil {
		return enum.Content[0]
	}
	if variants := get(n, "oneOf"); variants != nil {
		return d.example(variants.Content[0], depth+1)
	}

	return d.exampleOfType(n, depth)
}

// exampleOfType returns an example value for the type of a schema.
func (d *Document) exampleOfType(n *yaml.Node, depth int) *yaml.Node {
	t := value(n, "type")
	if types := words(get(n, "type")); len(types) > 0 {
		t = types[0]
		if slices.Contains(types, "null") {
			t = "null"
		}
	}

	switch t {
	case "object":
		m := mapping()
		eachMember(get(n, "properties"), func(name string, p *yaml.Node) {
			if value(p, "writeOnly") == "" {
				put(m, name, d.example(p, depth+1))
			}
		})
		return m
	case "array":
		items := get(n, "items")
		if resolved := d.resolve(items); items == nil || get(resolved, "properties") == nil &&
			get(resolved, "oneOf") == nil {
			return &yaml.Node{Kind: yaml.SequenceNode}
		}
		return list(d.example(items, depth+1))
	case "integer", "number":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: "0"}
	case "boolean":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "false"}
	case "null":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	}

	return textNode(map[string]string{
		"uuid":      "c6b5a4d3-e2f1-4a0b-9c8d-7e6f5a4b3c19",
		"uri":       "https://pbx.example.org/",
		"date-time": "2026-11-21T08:00:00Z",
	}[value(n, "format")])
}

// jsonText returns a value as JSON, with members in order.
func jsonText(n *yaml.Node) string {
	var b strings.Builder
	writeJSON(&b, n)
	return b.String()
}

// writeJSON appends a value as JSON.
func writeJSON(b *strings.Builder, n *yaml.Node) {
	opening, closing := "{", "}"
	switch n.Kind {
	case yaml.ScalarNode:
		b.WriteString(scalarJSON(n))
		return
	case yaml.SequenceNode:
		opening, closing = "[", "]"
	}

	b.WriteString(opening)
	for i, child := range n.Content {
		if i > 0 && (n.Kind == yaml.SequenceNode || i%2 == 0) {
			b.WriteByte(',')
		}
		writeJSON(b, child)
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			b.WriteByte(':')
		}
	}
	b.WriteString(closing)
}

// scalarJSON returns a scalar as JSON. Timestamps are strings.
func scalarJSON(n *yaml.Node) string {
	var v any
	_ = n.Decode(&v) // scalars always decode
	if n.ShortTag() == "!!timestamp" {
		v = n.Value
	}

	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // JSON lacks only .inf and .nan, which no schema contains
	return strings.TrimSuffix(b.String(), "\n")
}
