// Package words holds what pages and mails say to subscribers, in each language that there
// is: a file of messages each, and which of them somebody reads.
//
// A message has a key, such as "login.title". Every key is in every file, and each is used:
// tests hold that. Who writes a page names messages alone; what is in a message beside
// words comes by name.
package words

import (
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
)

//go:embed *.json
var files embed.FS

// tags are the languages, English first, which is said where none fits.
var tags = []language.Tag{language.English, language.German}

// Words say messages in one language.
type Words struct {
	Tag       string // of BCP 47, as <html lang> has it
	Name      string // of the language, in itself
	localizer *i18n.Localizer
}

var matcher = sync.OnceValue(func() language.Matcher { return language.NewMatcher(tags) })

// read reads the files when something is said first: most commands say nothing to subscribers.
var read = sync.OnceValue(func() (all []*Words) {
	bundle := i18n.NewBundle(language.English)
	bundle.RegisterUnmarshalFunc("json", json.Unmarshal)
	for _, tag := range tags {
		if _, err := bundle.LoadMessageFileFS(files, tag.String()+".json"); err != nil {
			panic(err) // the files are part of the binary
		}
		w := &Words{Tag: tag.String(), localizer: i18n.NewLocalizer(bundle, tag.String())}
		w.Name = w.Say("language")
		all = append(all, w)
	}
	return all
})

// Tags names the languages there are, by BCP 47.
func Tags() []language.Tag { return slices.Clone(tags) }

// All returns every language there is.
func All() []*Words { return read() }

// English says them in English.
func English() *Words { return read()[0] }

// In says them in the language of a tag of BCP 47, or nil where there is none near it.
func In(tag string) *Words {
	if asked, err := language.Parse(tag); err == nil {
		if _, i, sure := matcher().Match(asked); sure >= language.High {
			return read()[i]
		}
	}
	return nil
}

// Choose returns the language of the first wish that can be met: each is a tag of BCP 47, or
// several as Accept-Language has them.
func Choose(wishes ...string) *Words {
	for _, wish := range wishes {
		if len(wish) > 1000 {
			continue
		}
		asked, _, err := language.ParseAcceptLanguage(wish)
		if err != nil { // for one tag that there is not: the others count in their order
			for part := range strings.SplitSeq(wish, ",") {
				tag, _, _ := strings.Cut(part, ";")
				asked = append(asked, language.Make(strings.TrimSpace(tag)))
			}
		}
		for _, tag := range asked {
			if w := In(tag.String()); w != nil {
				return w
			}
		}
	}
	return English()
}

// Say says a message, with values by their names: "App", "Acme". Of a value "Count" is the
// number for which there is a form of the message. A key that is in no file is said as it is.
func (w *Words) Say(key string, values ...any) string {
	data := make(map[string]any, len(values)/2)
	for i := 0; i+1 < len(values); i += 2 {
		data[values[i].(string)] = values[i+1]
	}
	said, err := w.localizer.Localize(&i18n.LocalizeConfig{MessageID: key, TemplateData: data,
		PluralCount: data["Count"]})
	if err != nil {
		return key
	}
	return said
}

// HTML says a message that has elements in it, with values that have none.
func (w *Words) HTML(key string, values ...any) template.HTML {
	escaped := make([]any, len(values))
	for i, v := range values {
		if escaped[i] = v; i%2 == 1 {
			escaped[i] = html.EscapeString(fmt.Sprint(v))
		}
	}
	return template.HTML(w.Say(key, escaped...)) // the message is ours
}

// Date writes a day.
func (w *Words) Date(t time.Time) string {
	months := strings.Split(w.Say("months"), " ")
	return w.Say("date", "Day", t.Day(), "Month", months[t.Month()-1], "Year", t.Year())
}

// Ago says how long ago a moment was; "" of none.
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
