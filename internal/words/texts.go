package words

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The dashboard and the demo are written in English. Each of their texts is its own key: the files
// of other languages have an object "texts", from each English text to its translation. English
// needs none.

// separator separates the values in a text, and texts of several sentences. Values cannot contain it.
const (
	separator = "\x1f"
	joint     = "\x1e"
)

var plainValue = strings.NewReplacer(separator, "", joint, "")

// Textf returns an English text with values, for Text to translate. Each verb of the text is %s, or
// %[1]s where languages order values differently.
func Textf(english string, values ...any) string {
	var b strings.Builder
	b.WriteString(english)
	for _, v := range values {
		b.WriteString(separator + plainValue.Replace(fmt.Sprint(v)))
	}
	return b.String()
}

// HasValues reports whether text is a result of Textf with values.
func HasValues(text string) bool { return strings.Contains(text, separator) }

// Sentences joins texts that are translated separately. It leaves out empty ones.
func Sentences(texts ...string) string {
	var all []string
	for _, text := range texts {
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, joint)
}

// Text translates an English text, or a result of Textf or Sentences. Text without a translation
// stays in English.
func (w *Words) Text(text string) string {
	if first, rest, several := strings.Cut(text, joint); several {
		return w.Text(first) + " " + w.Text(rest)
	}

	format, rest, valued := strings.Cut(text, separator)
	if said, ok := w.texts[format]; ok {
		format = said
	} else if w != English() && !valued {
		return w.numbered(text)
	}
	if !valued {
		return format
	}
	var values []any
	for v := range strings.SplitSeq(rest, separator) {
		values = append(values, v)
	}
	return fmt.Sprintf(format, values...)
}

var digits = regexp.MustCompile(`\d+`)

// numbered translates a text with numbers, such as the message of an error. In its key, %d stands for
// each number.
func (w *Words) numbered(text string) string {
	said, ok := w.texts[digits.ReplaceAllString(text, "%d")]
	if !ok {
		return text
	}
	for _, n := range digits.FindAllString(text, -1) {
		said = strings.Replace(said, "%d", n, 1)
	}
	return said
}

// Lacks reports whether the language has no translation of an English text.
func (w *Words) Lacks(english string) bool {
	_, ok := w.texts[english]
	return !ok && w != English()
}

// Texts returns the English texts that the language translates.
func (w *Words) Texts() map[string]string { return w.texts }

// Format formats a time in UTC by a layout of the package time. A language may translate the layout
// and the abbreviated months.
func (w *Words) Format(at time.Time, layout string) string {
	at = at.UTC()
	month := at.Format("Jan")
	return strings.Replace(at.Format(w.Text(layout)), month, w.Text(month), 1)
}
