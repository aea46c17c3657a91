package openapitest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// A path is one of the document's paths, after the prefix of one of its servers.
type path struct {
	name  string // the path in the document
	steps []string
	item  *openapi3.PathItem
}

// findPaths fills d.paths, with more specific paths first.
func (d *Document) findPaths() {
	for name, item := range d.Paths.Map() {
		for _, prefix := range Prefixes(item) {
			d.paths = append(d.paths, path{name: name, steps: strings.Split(prefix+name, "/"), item: item})
		}
	}
	slices.SortFunc(d.paths, func(a, b path) int { return strings.Compare(a.rank(), b.rank()) })
}

// Prefixes returns the path prefixes of the servers that are listed in item itself, or "" if it
// lists none.
func Prefixes(item *openapi3.PathItem) (all []string) {
	if len(item.Servers) == 0 {
		return []string{""}
	}
	for _, s := range item.Servers {
		if u, err := url.Parse(s.URL); err == nil {
			all = append(all, strings.TrimSuffix(u.Path, "/"))
		}
	}
	return all
}

// rank returns a key by which paths are sorted. In each segment, a literal comes first, then a
// parameter with a suffix, and then a parameter without one.
func (p path) rank() string {
	var b strings.Builder
	for _, step := range p.steps {
		switch {
		case !strings.Contains(step, "{"):
			b.WriteByte('a')
		case !strings.HasSuffix(step, "}"):
			fmt.Fprintf(&b, "b%03d", 999-len(step)) // {Sid}.peaks.json before {Sid}.json
		default:
			b.WriteByte('c')
		}
	}
	return b.String() + p.name
}

// find returns the path in the document that matches the URL target.
func (d *Document) find(target string) (path, bool) {
	u, err := url.Parse(target)
	if err != nil {
		return path{}, false
	}
	steps := strings.Split(u.EscapedPath(), "/")
	for _, p := range d.paths {
		if p.matches(steps) {
			return p, true
		}
	}
	return path{}, false
}

// matches reports whether the segments of a URL match p. A parameter does not match a segment with
// a known file extension, unless the extension is part of the path.
func (p path) matches(steps []string) bool {
	if len(steps) != len(p.steps) {
		return false
	}

	for i, want := range p.steps {
		open := strings.IndexByte(want, '{')
		if open < 0 {
			if steps[i] != want {
				return false
			}
			continue
		}
		after := want[strings.IndexByte(want, '}')+1:]
		got, ok := strings.CutSuffix(steps[i], after)
		if !ok || got == "" || got == "." || got == ".." || after == "" && hasKnownExtension(got) {
			return false
		}
	}

	return true
}

// hasKnownExtension reports whether a segment ends with a file extension that occurs in paths.
func hasKnownExtension(step string) bool {
	return slices.ContainsFunc([]string{".json", ".mp3", ".wav"}, func(ext string) bool {
		return strings.HasSuffix(step, ext)
	})
}
