package words

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The dashboard and the demo are written in English. Each English text is its own key: the file of
// every other language has an object "texts", which maps each English text to its translation.

// These characters are removed from values.
const (
	separator = "\x1f" // comes before each value in a text
	joint     = "\x1e" // separates the texts that [Sentences] joins
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

// Sentences joins texts that are translated separately. It omits empty texts.
func Sentences(texts ...string) string {
	var all []string
	for _, text := range texts {
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, joint)
}

// Text translates an English text, or a result of Textf or Sentences. A text without a translation
// remains in English.
func (w *Words) Text(text string) string {
	if first, rest, several := strings.Cut(text, joint); several {
		return w.Text(first) + " " + w.Text(rest)
	}

	format, rest, valued := strings.Cut(text, separator)
	if translated, ok := w.texts[format]; ok {
		format = translated
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

// numbered translates a text that contains numbers, such as an error message. In the key of its
// translation, each number is replaced with %d.
func (w *Words) numbered(text string) string {
	translated, ok := w.texts[digits.ReplaceAllString(text, "%d")]
	if !ok {
		return text
	}
	for _, n := range digits.FindAllString(text, -1) {
		translated = strings.Replace(translated, "%d", n, 1)
	}
	return translated
}

// Lacks reports whether the language has no translation of an English text.
func (w *Words) Lacks(english string) bool {
	_, ok := w.texts[english]
	return !ok && w != English()
}

// Texts returns the language's translations, by their English texts.
func (w *Words) Texts() map[string]string { return w.texts }

// dayLayout is the layout of a day and a month. Each language has its own.
const dayLayout = "2 Jan"

// Format formats a time in UTC by a layout of package time. The order of day and month, and the
// abbreviations of months, are those of the language.
func (w *Words) Format(at time.Time, layout string) string {
	at = at.UTC()
	month := at.Format("Jan")
	layout = strings.Replace(layout, dayLayout, w.Text(dayLayout), 1)
	return strings.Replace(at.Format(layout), month, w.Text(month), 1)
}

// Number takes a number that is formatted for English, such as 1,234.5, and returns it with the
// separators of the language. A unit may follow the number.
func (w *Words) Number(english string) string {
	return strings.NewReplacer(",", w.Say("thousands"), ".", w.Say("decimal")).Replace(english)
}
