package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseFile reads selvage.yaml. It refuses keys that there are not, with their
// place and what was meant, and gathers everything that is wrong.
func parseFile(name string, text []byte) (layer, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	f := file{name: name, known: paths(), values: make(layer)}
	if len(doc.Content) > 0 {
		f.section(doc.Content[0], "")
	}
	return f.values, errors.Join(f.errs...)
}

// A file is a configuration file while it is read.
type file struct {
	name   string
	known  []string
	values layer
	errs   []error
}

func (f *file) fail(n *yaml.Node, format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("%s: %s", f.at(n), fmt.Sprintf(format, args...)))
}

func (f *file) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d:%d", f.name, n.Line, n.Column) }

// section reads the keys of a mapping; prefix is the path of the section and a
// dot.
func (f *file) section(n *yaml.Node, prefix string) {
	if n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		f.fail(n, "%s needs keys and values below it", describe(prefix))
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		at := prefix + key.Value
		switch {
		case seen[at]:
			f.fail(key, "the key %q is there twice", key.Value)
		case !slices.Contains(f.known, at):
			f.fail(key, "unknown key %q%s", key.Value, f.suggest(prefix, key.Value))
		case f.isSection(at):
			f.section(val, at+".")
		default:
			f.value(at, val)
		}
		seen[at] = true
	}
}

func describe(prefix string) string {
	if prefix == "" {
		return "the file"
	}
	return strings.TrimSuffix(prefix, ".")
}

func (f *file) isSection(at string) bool {
	return slices.ContainsFunc(f.known, func(k string) bool { return strings.HasPrefix(k, at+".") })
}

// suggest gives what was meant: a key of this section, or one of that name in
// another.
func (f *file) suggest(prefix, key string) string {
	var here []string
	for _, k := range f.known {
		if rest, ok := strings.CutPrefix(k, prefix); ok && !strings.Contains(rest, ".") {
			here = append(here, rest)
		}
		if path.Ext(k) == "."+key {
			return fmt.Sprintf("; did you mean %q?", k)
		}
	}
	return didYouMean(key, here)
}

func (f *file) value(at string, n *yaml.Node) {
	switch {
	case n.Tag == "!!null":
	case n.Kind == yaml.ScalarNode:
		f.values[at] = value{f.at(n), n.Value}
	case n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, func(e *yaml.Node) bool { return e.Kind != yaml.ScalarNode }):
		var items []string
		for _, e := range n.Content {
			items = append(items, e.Value)
		}
		f.values[at] = value{f.at(n), strings.Join(items, ",")}
	default:
		f.fail(n, "%s needs a value, not a section", at)
	}
}
