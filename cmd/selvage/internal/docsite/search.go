package docsite

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/selvage/selvage/templates"
)

// A section is the text of a document below one heading.
type section struct {
	guide string // title of the document
	title string
	url   string
	text  string // text without markup, on one line

	lowTitle, lowText string // title and text in lower case, for comparison
}

// sections returns the sections of all documents, in reading order.
var sections = sync.OnceValues(func() (all []section, err error) {
	for _, g := range contents {
		for _, d := range g.documents {
			markdown, err := readSource(d.name)
			if err != nil {
				return nil, err
			}
			all = append(all, sectionsOf(d, markdown)...)
		}
	}
	return all, nil
})

// sectionsOf splits a document at its headings.
func sectionsOf(d document, source []byte) (all []section) {
	doc := parseMarkdown(source)
	var b strings.Builder
	end := func() { // ends the last section
		if len(all) > 0 {
			last := &all[len(all)-1]
			last.text = strings.Join(strings.Fields(b.String()), " ")
			last.lowTitle = strings.ToLower(d.title + " " + last.title)
			last.lowText = strings.ToLower(last.text)
		}
		b.Reset()
	}

	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			writeText(&b, n, source)
			continue
		}
		end()
		s := section{guide: d.title, title: plain(h, source), url: guidePrefix + d.name}
		if h.Level > 1 {
			id, _ := h.AttributeString("id")
			name, _ := id.([]byte)
			s.url += "#" + string(name)
		}
		all = append(all, s)
	}
	end()
	return all
}

// writeText writes the text of a node, including code, without markup.
func writeText(b *strings.Builder, n ast.Node, source []byte) {
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // Walk cannot fail here
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if entering {
				b.Write(linesOf(n.Lines(), source))
			}
		}

		if !entering && n.Type() == ast.TypeBlock {
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
}

// linesOf returns the text of lines.
func linesOf(lines *text.Segments, source []byte) (all []byte) {
	for i := range lines.Len() {
		line := lines.At(i)
		all = append(all, line.Value(source)...)
	}
	return all
}

// These are the limits of what a search reads and returns.
const (
	maxQuery    = 100 // bytes
	maxSections = 20
)

// titleScore is the score of a word in a heading. It exceeds that of all occurrences in a text.
const titleScore = 1000

// clean returns a query as valid text of limited length.
func clean(query string) string {
	query = strings.TrimSpace(query)
	return strings.TrimSpace(strings.ToValidUTF8(query[:min(len(query), maxQuery)], ""))
}

// findSections returns the sections that contain every word of query, best match first. A word in a
// heading counts more than any number of words in the text.
func findSections(query string) (found []templates.DocsHit, err error) {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil, nil
	}
	all, err := sections()
	if err != nil {
		return nil, err
	}

	type ranked struct {
		section
		score int
	}
	var matching []ranked
	for _, s := range all {
		if score := s.score(words); score > 0 {
			matching = append(matching, ranked{s, score})
		}
	}

	slices.SortStableFunc(matching, func(x, y ranked) int { return y.score - x.score })
	for _, s := range matching[:min(len(matching), maxSections)] {
		found = append(found, templates.DocsHit{
			Guide: s.guide,
			Title: s.title,
			URL:   s.url,
			Text:  excerpt(s.text, s.lowText, words),
		})
	}
	return found, nil
}

// score returns how well a section matches words: the higher, the better. It returns 0 if the
// section lacks one of them.
func (s section) score(words []string) (score int) {
	for _, word := range words {
		count := strings.Count(s.lowText, word)
		if strings.Contains(s.lowTitle, word) {
			count += titleScore
		}
		if count == 0 {
			return 0
		}
		score += count
	}
	return score
}

// excerptSize is the length of an excerpt in bytes.
const excerptSize = 180

// excerpt returns the part of text around the first occurrence of one of words. If text contains
// none of the words, it returns the beginning of text.
func excerpt(text, low string, words []string) string {
	first := -1
	for _, word := range words {
		i := strings.Index(low, word)
		if i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	if len(low) != len(text) { // in some languages, lower-case letters differ in size
		first = 0
	}

	start := min(max(first-excerptSize/3, 0), len(text))
	for start > 0 && start < len(text) && (text[start-1] != ' ' || !utf8.RuneStart(text[start])) {
		start--
	}
	part := text[start:]
	if start > 0 {
		part = "… " + part
	}
	if len(part) > excerptSize {
		part = part[:excerptSize]
		part = part[:max(strings.LastIndexByte(part, ' '), 0)] + " …"
	}
	return strings.ToValidUTF8(part, "")
}
