package templates

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/selvage/selvage/internal/words"
)

// The dashboard and the demo have their English text in their templates. Before a template is parsed
// for another language, each text in it is replaced with its translation: the text between two
// block elements, and attributes that people read. A text includes actions that print values, and
// inline elements without their attributes, such as "Created by <bdi>{{.Name}}</bdi>".

// parseIn adds the templates that match patterns to set, with their text in the language of w.
func parseIn(set *template.Template, w *words.Words, patterns ...string) *template.Template {
	set.Funcs(methods)
	var names []string
	for _, pattern := range patterns {
		matches, err := fs.Glob(pages, pattern)
		if err != nil {
			panic(err) // cannot happen: the pattern is a constant
		}
		names = append(names, matches...)
	}

	for _, name := range names {
		source, err := pages.ReadFile(name)
		if err != nil {
			panic(err) // cannot happen: the file is embedded
		}
		text := string(source)
		if w != words.English() {
			text = translate(text, w.Text)
		}
		template.Must(set.New(path.Base(name)).Parse(text))
	}
	return set
}

// Texts returns the English texts of the dashboard and the demo, in their order. The page of styles
// is left out, because only developers of the pages see it.
func Texts() (all []string, err error) {
	names, err := fs.Glob(pages, "pages/dashboard/*.html")
	if err != nil {
		return nil, err
	}

	for _, name := range append(names, "pages/demo.html") {
		source, err := pages.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if path.Base(name) == "styles.html" {
			continue
		}
		translate(string(source), func(text string) string {
			all = append(all, text)
			return text
		})
	}
	return append(all, scriptTexts()...), nil
}

// A token is a part of a template: an action, a tag or text.
type token struct {
	text string
	name string // name of a tag in lower case, with "/" if it closes; "{{" for an action; "" for text
}

// inline lists the elements that a text may contain.
var inline = []string{"a", "b", "bdi", "code", "em", "kbd", "span", "strong", "time"}

// literal lists the elements whose content is not translated.
var literal = []string{"pre", "script", "style", "code"}

var (
	control = regexp.MustCompile(
		`^\{\{-?\s*(if|else|end|range|with|define|template|block|break|continue|/\*|\$\w+ *:?=)`)
	letters = regexp.MustCompile(`\pL{2}`)
	tagName = regexp.MustCompile(`^</?([A-Za-z][A-Za-z0-9]*)`)
	spaces  = regexp.MustCompile(`\s+`)
	quoted  = regexp.MustCompile(`\btr "((?:[^"\\]|\\.)*)"`)
	spoken  = regexp.MustCompile(
		`\s(?:aria-label|placeholder|title|alt|` +
			`data-(?:label|hint|restored|unsent|copied|uncopied|playing))="`)
)

func (t token) isText() bool    { return t.name == "" }
func (t token) isAction() bool  { return t.name == "{{" }
func (t token) isTag() bool     { return !t.isText() && !t.isAction() }
func (t token) element() string { return strings.TrimPrefix(t.name, "/") }
func (t token) closes() bool    { return strings.HasPrefix(t.name, "/") }

// ends reports whether t ends the text before it. Control actions and block elements do.
func (t token) ends() bool {
	return t.isAction() && control.MatchString(t.text) || t.isTag() && !slices.Contains(inline, t.element())
}

// scan splits a template into tokens.
func scan(source string) (all []token) {
	for source != "" {
		n, name := 0, ""
		switch m := tagName.FindStringSubmatch(source); {
		case strings.HasPrefix(source, "{{"):
			n, name = actionEnd(source), "{{"
		case m != nil:
			n, name = tagEnd(source), strings.ToLower(m[1])
			if source[1] == '/' {
				name = "/" + name
			}
		default:
			for n = 1; n < len(source); n++ {
				if strings.HasPrefix(source[n:], "{{") || tagName.MatchString(source[n:min(n+3, len(source))]) {
					break
				}
			}
		}
		all = append(all, token{source[:n], name})
		source = source[n:]
	}
	return all
}

// actionEnd returns the length of the action at the beginning of source.
func actionEnd(source string) int {
	if at := strings.Index(source, "}}"); at >= 0 {
		return at + 2
	}
	return len(source)
}

// tagEnd returns the length of the tag at the beginning of source. Its attributes may contain
// actions.
func tagEnd(source string) int {
	inQuotes := false
	for i := 0; i < len(source); i++ {
		switch {
		case strings.HasPrefix(source[i:], "{{"):
			i += actionEnd(source[i:]) - 1
		case source[i] == '"':
			inQuotes = !inQuotes
		case source[i] == '>' && !inQuotes:
			return i + 1
		}
	}
	return len(source)
}

// translate returns a template with the result of say in place of each text.
func translate(source string, say func(string) string) string {
	var out strings.Builder
	var run []token
	skipped := "" // the element whose content is not translated
	for _, t := range scan(source) {
		if t.isAction() {
			for _, m := range quoted.FindAllStringSubmatch(t.text, -1) {
				say(m[1]) // only to list the text, which is translated when the template runs
			}
		}
		if t.isTag() {
			t.text = translateAttributes(t.text, say)
		}

		switch {
		case skipped != "" && t.name != "/"+skipped:
			out.WriteString(t.text)
			continue
		case !t.ends():
			run = append(run, t)
			continue
		}
		out.WriteString(translateRun(run, say))
		out.WriteString(t.text)
		run, skipped = nil, ""
		if slices.Contains(literal, t.name) {
			skipped = t.name
		}
	}
	out.WriteString(translateRun(run, say))
	return out.String()
}

// translateAttributes translates the attributes of a tag that people read.
func translateAttributes(tag string, say func(string) string) string {
	var out strings.Builder
	for {
		at := spoken.FindStringIndex(tag)
		if at == nil {
			out.WriteString(tag)
			return out.String()
		}
		out.WriteString(tag[:at[1]])
		tag = tag[at[1]:]

		end := 0
		for end < len(tag) && tag[end] != '"' {
			if strings.HasPrefix(tag[end:], "{{") {
				end += actionEnd(tag[end:])
				continue
			}
			end++
		}
		out.WriteString(translate(tag[:end], say))
		tag = tag[end:]
	}
}

// translateRun translates tokens that belong together. If a tag among them has no counterpart, or
// all their text is inside elements, each part is translated by itself.
func translateRun(run []token, say func(string) string) string {
	first, last := 0, len(run)
	for first < last && isBlank(run[first]) {
		first++
	}
	for last > first && isBlank(run[last-1]) {
		last--
	}
	if first == last {
		return join(run)
	}

	before, inner, after := join(run[:first]), run[first:last], join(run[last:])
	parts, balanced := split(inner)
	switch {
	case !balanced:
		var out strings.Builder
		for _, part := range bySingleTags(inner) {
			if part[0].isTag() {
				out.WriteString(join(part))
			} else {
				out.WriteString(before + sayTokens(part, say))
			}
			before = ""
		}
		return out.String() + after
	case !slices.ContainsFunc(parts, hasOwnText):
		var out strings.Builder
		for _, part := range parts {
			switch {
			case !part[0].isTag():
				out.WriteString(join(part))
			case part[0].name == "code":
				out.WriteString(join(part))
			default:
				out.WriteString(part[0].text + translateRun(part[1:len(part)-1], say) + part[len(part)-1].text)
			}
		}
		return before + out.String() + after
	}
	return before + sayTokens(inner, say) + after
}

func isBlank(t token) bool { return t.isText() && strings.TrimSpace(t.text) == "" }

// hasOwnText reports whether a part of a run is text to translate, rather than an element.
func hasOwnText(part []token) bool { return part[0].isText() && letters.MatchString(part[0].text) }

// split returns the elements and the other tokens of a run. balanced is false if a tag has no
// counterpart.
func split(run []token) (parts [][]token, balanced bool) {
	var open []string
	start := 0
	for i, t := range run {
		switch {
		case t.isTag() && t.closes():
			if len(open) == 0 || open[len(open)-1] != t.element() {
				return nil, false
			}
			open = open[:len(open)-1]
		case t.isTag():
			open = append(open, t.name)
		}
		if len(open) == 0 {
			parts = append(parts, run[start:i+1])
			start = i + 1
		}
	}
	return parts, len(open) == 0
}

// bySingleTags splits a run at each tag.
func bySingleTags(run []token) (parts [][]token) {
	for i, t := range run {
		if i == 0 || t.isTag() || run[i-1].isTag() {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], t)
	}
	return parts
}

func join(all []token) string {
	var b strings.Builder
	for _, t := range all {
		b.WriteString(t.text)
	}
	return b.String()
}

// sayTokens translates tokens as one text. It then puts the original tags with their attributes
// back into the translation. Tags of the same name keep their order.
func sayTokens(run []token, say func(string) string) string {
	var key strings.Builder
	tags := make(map[string][]string)
	for _, t := range run {
		if t.isTag() {
			tags[t.name] = append(tags[t.name], t.text)
			key.WriteString("<" + t.name + ">")
			continue
		}
		key.WriteString(spaces.ReplaceAllString(t.text, " "))
	}

	text := strings.TrimSpace(key.String())
	visible := actions.ReplaceAllString(text, "")
	said := say
	if !letters.MatchString(entity.ReplaceAllString(visible, "")) || strings.TrimSpace(visible) == "selvage" {
		said = func(text string) string { return text }
	}

	whole := join(run)
	lead := whole[:len(whole)-len(strings.TrimLeft(whole, " \n\t"))]
	trail := whole[len(strings.TrimRight(whole, " \n\t")):]
	return lead + restoreTags(said(text), tags) + trail
}

var (
	actions = regexp.MustCompile(`(?s)\{\{.*?\}\}|<[^>]*>`)
	entity  = regexp.MustCompile(`&[a-z]+;`)
	bareTag = regexp.MustCompile(`<(/?[a-z]+)>`)
)

// restoreTags replaces the tags of a text with those of the template.
func restoreTags(text string, tags map[string][]string) string {
	return bareTag.ReplaceAllStringFunc(text, func(tag string) string {
		name := tag[1 : len(tag)-1]
		left := tags[name]
		if len(left) == 0 {
			return tag
		}
		tags[name] = left[1:]
		return left[0]
	})
}
