package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/selvage/selvage/internal/suggest"
)

// parseFile parses selvage.yaml. The error lists all problems with their positions. For an unknown
// key it suggests the closest valid one.
func parseFile(name string, text []byte) (layer, error) {
	var doc, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, syntaxError(name, text, err)
	}

	f := file{name: name, known: paths(), values: make(layer)}
	f.section(doc.Content[0], "")
	switch err := dec.Decode(&more); {
	case err == nil:
		f.fail(&more, "a second YAML document starts here; move its keys into the first")
	case !errors.Is(err, io.EOF):
		f.errs = append(f.errs, syntaxError(name, text, err))
	}
	return f.values, errors.Join(f.errs...)
}

// syntaxError describes where a file is not valid YAML. It first looks for the most common cause, a
// line that is indented with a tab, because the parser rarely names it. The parser's own errors
// contain at most a line, never a column.
func syntaxError(name string, text []byte, err error) error {
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if tab := strings.Index(indent, "\t"); tab >= 0 && strings.TrimSpace(line) != "" {
			return fmt.Errorf("%s:%d:%d: YAML does not allow tabs for indentation; use spaces", name, n, tab+1)
		}
	}

	if at, reason, ok := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: line "), ": "); ok &&
		!strings.HasPrefix(at, "yaml") {
		return fmt.Errorf("%s:%s: %s", name, at, reason)
	}
	return fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
}

// A file is a configuration file that is being parsed.
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

// section parses the keys of a mapping. prefix is the path of the mapping, followed by a dot.
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
			f.fail(key, "the key %q is set twice", key.Value)
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

// suggest suggests a key with the same name in another section. If there is none, it suggests a
// similar key in this section.
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
	return suggest.Meant(key, here)
}

// isList reports whether a key takes a list of values.
func isList(at string) bool {
	return slices.ContainsFunc(Settings(), func(s Setting) bool {
		return s.Path == at && s.kind.Kind() == reflect.Slice
	})
}

func (f *file) value(at string, n *yaml.Node) {
	switch {
	case n.Tag == "!!null":
	case n.Kind == yaml.ScalarNode:
		f.values[at] = value{f.at(n), n.Value}
	case n.Kind == yaml.SequenceNode && !isList(at):
		f.fail(n, "%s needs a single value, not a list", at)
	case n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, isNotScalar):
		var items []string
		for _, e := range n.Content {
			items = append(items, e.Value)
		}
		f.values[at] = value{f.at(n), strings.Join(items, ",")}
	default:
		f.fail(n, "%s needs a value, not a section", at)
	}
}

func isNotScalar(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode }
