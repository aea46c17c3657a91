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

// parseFile parses selvage.yaml. The error lists all problems with their positions, and suggests the
// closest valid key for each unknown key.
func parseFile(name string, text []byte) (layer, error) {
	var doc yaml.Node
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

	var second yaml.Node
	err = dec.Decode(&second)
	switch {
	case err == nil:
		f.fail(&second, "a second YAML document starts here; move its keys into the first")
	case !errors.Is(err, io.EOF):
		f.errs = append(f.errs, syntaxError(name, text, err))
	}
	return f.values, errors.Join(f.errs...)
}

// syntaxError describes where a file is not valid YAML. It first looks for the most common cause, a
// line that is indented with a tab, because the errors of the parser rarely mention a tab. They also
// contain at most a line, never a column.
func syntaxError(name string, text []byte, err error) error {
	lineNumber := 0
	for line := range strings.Lines(string(text)) {
		lineNumber++
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		tab := strings.Index(indent, "\t")
		if tab >= 0 && strings.TrimSpace(line) != "" {
			return fmt.Errorf("%s:%d:%d: YAML does not allow tabs for indentation; use spaces",
				name, lineNumber, tab+1)
		}
	}

	// The parser's errors are "yaml: line 7: reason" or "yaml: reason".
	if located, ok := strings.CutPrefix(err.Error(), "yaml: line "); ok {
		return fmt.Errorf("%s:%s", name, located)
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
	f.errs = append(f.errs, fmt.Errorf("%s: %s", f.position(n), fmt.Sprintf(format, args...)))
}

func (f *file) position(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", f.name, n.Line, n.Column)
}

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
		keyPath := prefix + key.Value
		switch {
		case seen[keyPath]:
			f.fail(key, "the key %q is set twice", key.Value)
		case !slices.Contains(f.known, keyPath):
			f.fail(key, "unknown key %q%s", key.Value, f.suggest(prefix, key.Value))
		case f.isSection(keyPath):
			f.section(val, keyPath+".")
		default:
			f.value(keyPath, val)
		}
		seen[keyPath] = true
	}
}

// describe names the mapping with this prefix.
func describe(prefix string) string {
	if prefix == "" {
		return "the file"
	}
	return strings.TrimSuffix(prefix, ".")
}

func (f *file) isSection(keyPath string) bool {
	return slices.ContainsFunc(f.known, func(k string) bool { return strings.HasPrefix(k, keyPath+".") })
}

// suggest suggests a key with the same name in another section. If there is none, it suggests a
// similar key in this section.
func (f *file) suggest(prefix, key string) string {
	var siblings []string
	for _, k := range f.known {
		if rest, ok := strings.CutPrefix(k, prefix); ok && !strings.Contains(rest, ".") {
			siblings = append(siblings, rest)
		}
		if path.Ext(k) == "."+key {
			return fmt.Sprintf("; did you mean %q?", k)
		}
	}
	return suggest.Meant(key, siblings)
}

// isList reports whether a key takes a list of values.
func isList(keyPath string) bool {
	return slices.ContainsFunc(Settings(), func(s Setting) bool {
		return s.Path == keyPath && s.kind.Kind() == reflect.Slice
	})
}

// value parses the value of a key. A key without a value keeps its default.
func (f *file) value(keyPath string, n *yaml.Node) {
	switch {
	case n.Tag == "!!null":
	case n.Kind == yaml.ScalarNode:
		f.values[keyPath] = value{f.position(n), n.Value}
	case n.Kind == yaml.SequenceNode && !isList(keyPath):
		f.fail(n, "%s needs a single value, not a list", keyPath)
	case n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, isNotScalar):
		var items []string
		for _, item := range n.Content {
			items = append(items, item.Value)
		}
		f.values[keyPath] = value{f.position(n), strings.Join(items, ",")}
	default:
		f.fail(n, "%s needs a value, not a section", keyPath)
	}
}

func isNotScalar(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode }
