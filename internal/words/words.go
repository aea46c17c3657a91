// Package words holds the text of the pages in each supported language. Each language has a file
// of messages. The reader's preferences select the language.
//
// A message has a key, such as "login.title". Tests ensure that every key is used, and that every
// file contains it. Pages name messages by their keys, and pass the values in a message by name.
package words

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

//go:embed *.json
var files embed.FS

// tags lists the supported languages, one for each file. English comes first and is the fallback.
var tags = func() []language.Tag {
	all := []language.Tag{language.English}
	names, _ := fs.Glob(files, "*.json") // cannot fail: the pattern is valid
	for _, name := range names {
		if tag := language.MustParse(strings.TrimSuffix(name, ".json")); tag != language.English {
			all = append(all, tag)
		}
	}
	return all
}()

// Words formats messages in one language.
type Words struct {
	Tag      string // BCP 47, for <html lang>
	Name     string // the language's own name
	tag      language.Tag
	messages map[string]message
	texts    map[string]string // by the English text
}

// A message holds a text for each plural form that its language needs. In a file, it is a string,
// or an object whose members are named after the forms. {{.App}} stands for the value with the name
// App.
type message map[plural.Form]string

// forms holds the plural forms by their names in CLDR.
var forms = map[string]plural.Form{
	"zero": plural.Zero, "one": plural.One, "two": plural.Two,
	"few": plural.Few, "many": plural.Many, "other": plural.Other,
}

// UnmarshalJSON requires the form "other", because every language has it.
func (m *message) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*m = message{plural.Other: text}
		return nil
	}

	var named map[string]string
	if err := json.Unmarshal(raw, &named); err != nil {
		return err
	}
	*m = make(message)
	for name, text := range named {
		form, ok := forms[name]
		if !ok {
			return fmt.Errorf("no plural form is named %q", name)
		}
		(*m)[form] = text
	}
	if _, ok := (*m)[plural.Other]; !ok {
		return errors.New(`the plural form "other" is missing`)
	}
	return nil
}

var matcher = sync.OnceValue(func() language.Matcher { return language.NewMatcher(tags) })

// read reads the files when they are first used, because most commands show no pages.
var read = sync.OnceValue(func() (all []*Words) {
	for _, tag := range tags {
		w, err := load(tag)
		if err != nil {
			panic(err) // cannot happen: the files are part of the binary
		}
		all = append(all, w)
	}
	return all
})

// load reads the file of a language.
func load(tag language.Tag) (*Words, error) {
	raw, err := files.ReadFile(tag.String() + ".json")
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}

	w := &Words{Tag: tag.String(), tag: tag, messages: make(map[string]message)}
	for key, raw := range all {
		if key == "texts" {
			if err := json.Unmarshal(raw, &w.texts); err != nil {
				return nil, err
			}
			continue
		}

		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, fmt.Errorf("message %s: %w", key, err)
		}
		w.messages[key] = m
	}
	w.Name = w.Say("language")
	return w, nil
}

// Tags returns the supported languages as BCP 47 tags.
func Tags() []language.Tag { return slices.Clone(tags) }

// All returns the words of every supported language.
func All() []*Words { return read() }

// English returns the English words.
func English() *Words { return read()[0] }

// In returns the words for a BCP 47 tag. It returns nil if the tag matches no supported language.
func In(tag string) *Words {
	if asked, err := language.Parse(tag); err == nil {
		if _, i, sure := matcher().Match(asked); sure >= language.High {
			return read()[i]
		}
	}
	return nil
}

// Choose returns the words for the first wish that matches a supported language, or the English
// words. Each wish is a BCP 47 tag or the value of an Accept-Language header.
func Choose(wishes ...string) *Words {
	const maxBytes = 1000 // limits the time for parsing a wish
	for _, wish := range wishes {
		if len(wish) > maxBytes {
			continue
		}

		asked, _, err := language.ParseAcceptLanguage(wish)
		if err != nil { // a part is malformed
			asked = parseParts(wish)
		}
		for _, tag := range asked {
			if w := In(tag.String()); w != nil {
				return w
			}
		}
	}
	return English()
}

// parseParts returns the tags in an Accept-Language header with malformed parts, in order. It uses what
// can be read of each part. Like the library, it omits tags with the weight 0 (RFC 9110, section 12.5.4).
func parseParts(header string) (asked []language.Tag) {
	for part := range strings.SplitSeq(header, ",") {
		tag, weight, _ := strings.Cut(part, ";")
		name, value, _ := strings.Cut(weight, "=")
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if strings.TrimSpace(name) == "q" && err == nil && q <= 0 {
			continue
		}
		asked = append(asked, language.Make(strings.TrimSpace(tag)))
	}
	return asked
}

// Say returns a message. The parameter values contains alternating names and values, such as "App",
// "Acme". The value "Count", an integer, selects the plural form. If key is unknown, Say returns it
// unchanged.
func (w *Words) Say(key string, values ...any) string {
	m, ok := w.messages[key]
	if !ok {
		return key
	}

	form := plural.Other
	replacements := make([]string, 0, len(values))
	for i := 0; i+1 < len(values); i += 2 {
		name, value := values[i].(string), fmt.Sprint(values[i+1])
		replacements = append(replacements, "{{."+name+"}}", value)
		if n, err := strconv.Atoi(value); err == nil && name == "Count" {
			form = plural.Cardinal.MatchPlural(w.tag, n, 0, 0, 0, 0)
		}
	}

	text, ok := m[form]
	if !ok {
		text = m[plural.Other]
	}
	return strings.NewReplacer(replacements...).Replace(text)
}

// HTML returns a message that contains HTML elements, with its values escaped.
func (w *Words) HTML(key string, values ...any) template.HTML {
	escaped := make([]any, len(values))
	for i, v := range values {
		escaped[i] = v
		if i%2 == 1 {
			escaped[i] = html.EscapeString(fmt.Sprint(v))
		}
	}
	return template.HTML(w.Say(key, escaped...)) // safe: the message is part of the binary, and the values are escaped
}

// Date formats a day.
func (w *Words) Date(t time.Time) string {
	months := strings.Split(w.Say("months"), " ")
	return w.Say("date", "Day", t.Day(), "Month", months[t.Month()-1], "Year", t.Year())
}

// Ago describes how long before now the time then was. If then is the zero time, Ago returns "".
func (w *Words) Ago(now, then time.Time) string {
	past := now.Sub(then)
	switch {
	case then.IsZero():
		return ""
	case past < 2*time.Minute:
		return w.Say("ago.now")
	case past < 2*time.Hour:
		return w.Say("ago.minutes", "Count", int(past/time.Minute))
	case past < 48*time.Hour:
		return w.Say("ago.hours", "Count", int(past/time.Hour))
	}
	return w.Say("ago.days", "Count", int(past/(24*time.Hour)))
}
