package docsite

import (
	"html/template"
	"regexp"
	"strings"
)

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	strong   = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	emphasis = regexp.MustCompile(`\*([^*]+)\*`)
)

// rich converts the document's Markdown to HTML. It supports paragraphs, code, strong text and
// emphasis.
func rich(markdown string) template.HTML {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(markdown), "\n\n") {
		if paragraph != "" {
			line := strings.ReplaceAll(strings.TrimSpace(paragraph), "\n", " ")
			b.WriteString("<p>" + spans(line) + "</p>\n")
		}
	}
	return template.HTML(b.String())
}

// inline converts one paragraph to HTML, without paragraph tags.
func inline(markdown string) template.HTML { return template.HTML(spans(markdown)) }

// spans escapes a text and then converts its marks to HTML. It leaves code unchanged.
func spans(text string) string {
	var codes []string
	// Take code out first, so that the marks in it are not converted.
	text = codeSpan.ReplaceAllStringFunc(text, func(span string) string {
		codes = append(codes, "<code>"+template.HTMLEscapeString(strings.Trim(span, "`"))+"</code>")
		return "\x00"
	})
	text = template.HTMLEscapeString(strings.ReplaceAll(text, "\x00", "\x01"))
	text = strong.ReplaceAllString(text, "<strong>$1</strong>")
	text = emphasis.ReplaceAllString(text, "<em>$1</em>")
	for _, code := range codes {
		text = strings.Replace(text, "\x01", code, 1)
	}
	return text
}
