package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	table "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/selvage/selvage/templates"
)

// rendered is the result of rendering Markdown.
type rendered struct {
	html     template.HTML
	headings []templates.DocsOperation // headings of the second level
	anchors  map[string]bool           // all IDs on the page
	links    []string                  // link targets, as served here
}

// markdown supports the part of GitHub's Markdown that our documents use. HTML is omitted.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
	goldmark.WithParserOptions(parser.WithAutoHeadingID(),
		parser.WithASTTransformers(util.Prioritized(links{}, 100))),
)

// render converts Markdown to a page.
func render(source []byte) (r rendered, err error) {
	doc := parseMarkdown(source)
	r.anchors = make(map[string]bool)
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}

		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			name, _ := id.([]byte)
			r.anchors[string(name)] = true
			if n.Level == 2 {
				r.headings = append(r.headings, templates.DocsOperation{ID: string(name), Summary: plain(n, source)})
			}
		case *ast.Link:
			r.links = append(r.links, string(n.Destination))
		case *table.Table:
			label(n, source)
		}

		return ast.WalkContinue, nil
	})
	if err != nil {
		return r, fmt.Errorf("reading Markdown: %w", err)
	}

	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, doc); err != nil {
		return r, fmt.Errorf("writing Markdown: %w", err)
	}

	r.html = template.HTML(b.String()) // goldmark omits HTML and dangerous links
	return r, nil
}

// maxWhole is the maximum length, in bytes, of code that a table cell keeps on one line.
const maxWhole = 32

// label sets data-label of each cell to the heading of its column. Phones show each row as a list
// with these labels. label also sets the class "whole" on cells that hold only short code, such as
// a key.
func label(t *table.Table, source []byte) {
	var labels []string
	for cell := t.FirstChild().FirstChild(); cell != nil; cell = cell.NextSibling() {
		labels = append(labels, plain(cell, source))
	}

	for row := t.FirstChild().NextSibling(); row != nil; row = row.NextSibling() {
		column := 0
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cell.SetAttributeString("data-label", []byte(labels[column]))
			if isCode(cell) && len(plain(cell, source)) <= maxWhole {
				cell.SetAttributeString("class", []byte("whole"))
			}
			column++
		}
	}
}

// isCode reports whether a node holds exactly one piece of code.
func isCode(n ast.Node) bool {
	return n.ChildCount() == 1 && n.FirstChild().Kind() == ast.KindCodeSpan
}

// parseMarkdown parses a document. Its headings have the same IDs as on the served page.
func parseMarkdown(source []byte) ast.Node {
	ctx := parser.NewContext(parser.WithIDs(&ids{used: make(map[string]int)}))
	return markdown.Parser().Parse(text.NewReader(source), parser.WithContext(ctx))
}

// plain returns the text of a node without markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // Walk cannot fail here
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// ids gives headings the same IDs as GitHub, so that links work in both places.
type ids struct{ used map[string]int }

// Generate implements parser.IDs. It appends a number to the ID of a repeated heading.
func (i *ids) Generate(value []byte, _ ast.NodeKind) []byte {
	var b strings.Builder
	for _, r := range strings.ToLower(string(value)) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}

	id := b.String()
	n := i.used[id]
	i.used[id]++
	if n > 0 {
		id = fmt.Sprintf("%s-%d", id, n)
	}

	return []byte(id)
}

// Put implements parser.IDs.
func (i *ids) Put([]byte) {}

// links rewrites links between documents to the URLs at which the documents are served.
type links struct{}

// Transform implements [parser.ASTTransformer].
func (links) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // Walk cannot fail here
		if l, ok := n.(*ast.Link); ok && entering {
			l.Destination = []byte(served(string(l.Destination)))
		}
		return ast.WalkContinue, nil
	})
}

// served returns the URL at which the target of a document's link is served.
func served(link string) string {
	u, err := url.Parse(link)
	if err != nil || u.IsAbs() || u.Path == "" || strings.HasPrefix(u.Path, "/") {
		return link
	}
	switch name := path.Base(u.Path); {
	case name == "openapi.yaml":
		u.Path = "/docs/openapi.yaml"
	case u.Path == "../sdk/README.md":
		u.Path = guidePrefix + "sdk"
	case path.Ext(name) == ".md":
		u.Path = guidePrefix + strings.TrimSuffix(name, ".md")
	}
	return u.String()
}
