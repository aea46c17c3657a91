package declared

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A File is a parsed file. Its values have not been checked yet.
type File struct {
	projects []project
	suggest  func(string, []string) string
}

// A project is a project in a file, with the lists of the things in it.
type project struct {
	entry
	things map[string][]entry // entries by the name of their list, such as "clients"
}

// An entry is one thing in a file, with its members in order.
type entry struct {
	place
	members []pair
}

// A pair is a member: its name and its value.
type pair struct{ key, value *yaml.Node }

// member returns the value of a member, or nil if the entry has no such member.
func (e entry) member(name string) *yaml.Node {
	for _, m := range e.members {
		if m.key.Value == name {
			return m.value
		}
	}
	return nil
}

// lists names the members of a project that hold things.
var lists = []string{"keys", "clients", "subscribers", "resources", "upstreams", "webhooks"}

// Parse parses a YAML or JSON file. Its errors use name as the name of the file. It reports all
// problems together.
func (d *Declarer) Parse(name string, text []byte) (*File, error) {
	content, err := parseYAML(name, text)
	if err != nil {
		return nil, err
	}
	p := parser{suggest: d.c.Suggest}
	root := p.mapping(place{file: name, node: content})
	for _, m := range root.members {
		if m.key.Value != "projects" {
			p.fail(root.child(m.key, ""), "unknown member %q; the only one is projects", m.key.Value)
		}
	}

	f := &File{suggest: d.c.Suggest}
	list := root.member("projects")
	if list == nil && p.errs == nil {
		p.fail(root.place, "the file needs projects: with a list below it")
	}

	for _, e := range p.list(root.child(list, "projects")) {
		f.projects = append(f.projects, p.project(e))
	}
	return f, errors.Join(p.errs...)
}

// parseYAML returns the content of a YAML file with a single document.
func parseYAML(name string, text []byte) (*yaml.Node, error) {
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: the file is empty; it needs projects: with a list below it", name)
	}
	if err != nil {
		return nil, yamlError(name, err)
	}

	// A second document would be ignored silently, so it is an error.
	var second yaml.Node
	err = dec.Decode(&second)
	switch {
	case errors.Is(err, io.EOF):
		return doc.Content[0], nil
	case err != nil:
		return nil, yamlError(name, err)
	}
	return nil, fmt.Errorf("%s:%d:%d: a second document begins; list all projects in the first",
		name, second.Line, second.Column)
}

// yamlError adds the name of the file to an error of the YAML parser. The parser's errors are
// "yaml: line 7: reason" or "yaml: reason".
func yamlError(name string, err error) error {
	if located, ok := strings.CutPrefix(err.Error(), "yaml: line "); ok {
		return fmt.Errorf("%s:%s", name, located)
	}
	return fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
}

// A parser collects the problems of a file.
type parser struct {
	suggest func(string, []string) string
	errs    []error
}

func (p *parser) fail(at place, format string, args ...any) {
	p.errs = append(p.errs, at.errorf(format, args...))
}

// project separates the lists of things in a project from its other members.
func (p *parser) project(e entry) project {
	parsed := project{entry: entry{place: e.place}, things: make(map[string][]entry)}
	for _, m := range e.members {
		if isList(m.key.Value) {
			parsed.things[m.key.Value] = p.list(e.child(m.value, m.key.Value))
		} else {
			parsed.members = append(parsed.members, m)
		}
	}
	return parsed
}

func isList(name string) bool { return slices.Contains(lists, name) }

// list parses a list of things.
func (p *parser) list(at place) (all []entry) {
	if at.node == nil {
		return nil
	}
	if at.node.Kind != yaml.SequenceNode {
		p.fail(at, "needs a list, each item after a -")
		return nil
	}
	for i, n := range at.node.Content {
		all = append(all, p.mapping(at.index(n, i)))
	}
	return all
}

// mapping parses the members of a thing.
func (p *parser) mapping(at place) entry {
	e := entry{place: at}
	if at.node.Kind != yaml.MappingNode {
		p.fail(at, "needs members, each with a name and a value")
		return e
	}

	for i := 0; i+1 < len(at.node.Content); i += 2 {
		key, value := at.node.Content[i], at.node.Content[i+1]
		if e.member(key.Value) != nil {
			p.fail(at.child(key, key.Value), "is set twice")
			continue
		}
		if alias := findAlias(value); alias != nil {
			p.fail(at.child(alias, key.Value), "is an alias; write the value out")
			continue
		}
		if value.Tag == "!!null" && value.Value == "" {
			p.fail(at.child(key, key.Value), `has no value; remove it, or write "" or []`)
			continue
		}
		e.members = append(e.members, pair{key, value})
	}

	return e
}

// findAlias returns the first alias at or below n, or nil. Aliases are rejected, because a few of them
// can expand to more data than fits into memory.
func findAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n
	}
	for _, child := range n.Content {
		if alias := findAlias(child); alias != nil {
			return alias
		}
	}
	return nil
}
