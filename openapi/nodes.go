package openapi

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// read parses a source file. The file must contain a mapping.
func read(name string) (*yaml.Node, error) {
	text, err := sources.ReadFile("source/" + name)
	if err != nil {
		return nil, fmt.Errorf("reading source: %w", err)
	}
	return parse(text)
}

// parse parses text, which must be a mapping.
func parse(text []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("the document is not a mapping")
	}
	return plain(doc.Content[0]), nil
}

// plain returns a copy of a node without comments, in which aliases and merges (<<) are resolved.
func plain(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return plain(n.Alias)
	}
	copied := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value}
	for i := 0; i < len(n.Content); i++ {
		if n.Kind == yaml.MappingNode && i%2 == 0 && n.Content[i].Value == "<<" {
			i++
			copied.Content = append(copied.Content, plain(n.Content[i]).Content...)
			continue
		}
		copied.Content = append(copied.Content, plain(n.Content[i]))
	}
	return copied
}

// unstyled removes the styles of n and its children, so that a node read from JSON is written in block
// style. It returns n.
func unstyled(n *yaml.Node) *yaml.Node {
	n.Style = 0
	for _, child := range n.Content {
		unstyled(child)
	}
	return n
}

// get returns the value of the member named key, or nil.
func get(m *yaml.Node, key string) *yaml.Node {
	for i := 0; m != nil && i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// take removes the member named key from a mapping and returns its value. It returns nil if there is no
// such member.
func take(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			v := m.Content[i+1]
			m.Content = append(m.Content[:i:i], m.Content[i+2:]...)
			return v
		}
	}
	return nil
}

// put sets the member named key. A new member is added at the end.
func put(m *yaml.Node, key string, v *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content[i+1] = v
			return
		}
	}
	m.Content = append(m.Content, textNode(key), v)
}

// sub returns the value of the member named key, which is a mapping. It creates the member if it
// does not exist.
func sub(m *yaml.Node, key string) *yaml.Node {
	v := get(m, key)
	if v == nil {
		v = mapping()
		put(m, key, v)
	}
	return v
}

// eachMember calls f for each member of a mapping, in order.
func eachMember(m *yaml.Node, f func(key string, v *yaml.Node)) {
	for i := 0; m != nil && i+1 < len(m.Content); i += 2 {
		f(m.Content[i].Value, m.Content[i+1])
	}
}

// words returns the values of a sequence of scalars.
func words(n *yaml.Node) (all []string) {
	if n != nil {
		for _, item := range n.Content {
			all = append(all, item.Value)
		}
	}
	return all
}

// textNode returns a string node.
func textNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// yes returns a node with the value true.
func yes() *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"} }

// list returns a sequence in flow style, on one line.
func list(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: items}
}

// texts returns a sequence of strings.
func texts(all ...string) *yaml.Node {
	l := list()
	for _, s := range all {
		l.Content = append(l.Content, textNode(s))
	}
	return l
}

// mapping returns a mapping. pairs contains its keys and values, which alternate.
func mapping(pairs ...any) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(pairs); i += 2 {
		v, ok := pairs[i+1].(*yaml.Node)
		if !ok {
			v = textNode(pairs[i+1].(string))
		}
		put(m, pairs[i].(string), v)
	}
	return m
}

// ref returns a reference to a component.
func ref(kind, name string) *yaml.Node {
	m := mapping("$ref", "#/components/"+kind+"/"+name)
	m.Style = yaml.FlowStyle
	return m
}
