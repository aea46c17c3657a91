package words_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/words"
)

// file reads the messages of a language. A message may have several plural forms.
func file(t *testing.T, tag string) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(tag + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var messages map[string]any
	if err := json.Unmarshal(raw, &messages); err != nil {
		t.Fatal(err)
	}

	all := make(map[string][]string)
	delete(messages, "texts") // TestTexts checks them
	for key, message := range messages {
		switch m := message.(type) {
		case string:
			all[key] = []string{m}
		case map[string]any:
			for _, form := range []string{"one", "other"} {
				text, _ := m[form].(string)
				all[key] = append(all[key], text)
			}
		}
	}
	return all
}

var (
	value   = regexp.MustCompile(`\{\{\.[A-Za-z]+\}\}`)
	element = regexp.MustCompile(`<[^>]+>`)
)

// TestComplete shows that every language has each message, with the same values and HTML elements.
func TestComplete(t *testing.T) {
	english := file(t, "en")
	for _, w := range words.All() {
		messages := file(t, w.Tag)
		for key, want := range english {
			got, ok := messages[key]
			if !ok || len(got) != len(want) {
				t.Errorf("%s lacks the message %s or its plural forms", w.Tag, key)
				continue
			}

			for i := range got {
				if strings.TrimSpace(got[i]) == "" {
					t.Errorf("%s has an empty message %s", w.Tag, key)
				}
				for _, part := range []*regexp.Regexp{value, element} {
					a, b := part.FindAllString(want[i], -1), part.FindAllString(got[i], -1)
					slices.Sort(a)
					slices.Sort(b)
					if !slices.Equal(a, b) && key != "apps.since" {
						t.Errorf("%s has %q in %s, and English has %q", w.Tag, b, key, a)
					}
				}
			}
		}

		for key := range messages {
			if english[key] == nil {
				t.Errorf("%s has the message %s, which English lacks", w.Tag, key)
			}
		}
	}
}

// sources returns the sources that use messages: the templates and the Go code.
func sources(t *testing.T) (templates, programs string) {
	t.Helper()
	var pages, code strings.Builder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == "test" ||
			strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2) {
			if err != nil {
				return err
			}
			return fs.SkipDir
		}

		into := map[string]*strings.Builder{".html": &pages, ".go": &code}[filepath.Ext(path)]
		if into == nil || strings.HasSuffix(path, "_test.go") {
			return nil
		}

		raw, err := os.ReadFile(path)
		into.Write(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages.String(), code.String()
}

// prefixes lists the beginnings of keys that the code composes. The code adds a word to each
// prefix.
var prefixes = []string{"fault.", "home.", "scope.", "passkey.cancelled-"}

// TestUsed shows that each message is used, and that every message in use exists.
func TestUsed(t *testing.T) {
	english := file(t, "en")
	pages, code := sources(t)
	for key := range english {
		used := strings.Contains(pages, `"`+key+`"`) || strings.Contains(code, `"`+key+`"`)
		for _, prefix := range prefixes {
			if rest, ok := strings.CutPrefix(key, prefix); ok && strings.Contains(code, `"`+prefix+`"`) {
				used = used || strings.Contains(code+pages, `"`+strings.TrimSuffix(rest, ".why")+`"`)
			}
		}
		if !used {
			t.Errorf("no source uses the message %s", key)
		}
	}

	said := regexp.MustCompile(`(?:\{\{(?:[^}]*\()?(?:say|rich) |[^A-Za-z](?:Say|HTML)\()"([a-z][^" ]*)"`)
	n := 0
	for _, m := range said.FindAllStringSubmatch(pages+code, -1) {
		if n++; english[m[1]] == nil && !slices.Contains(prefixes, m[1]) {
			t.Errorf("the message %s does not exist", m[1])
		}
	}
	if n < 100 {
		t.Errorf("only %d messages are used in the sources, want at least 100", n)
	}
}

func TestChoose(t *testing.T) {
	tests := []struct {
		wishes []string
		want   string
	}{
		{nil, "en"}, {[]string{""}, "en"}, {[]string{"de"}, "de"}, {[]string{"de-CH"}, "de"},
		{[]string{"fr", "de"}, "de"}, {[]string{"fr,de;q=0.2,en;q=0.1"}, "de"},
		{[]string{"en-GB,de"}, "en"}, {[]string{"fr"}, "en"}, {[]string{"*"}, "en"},
		{[]string{"x;;y", "de"}, "de"}, {[]string{"xx,de,en"}, "de"}, {[]string{"xx,yy;q=0.4", "de"}, "de"},
		{[]string{strings.Repeat("fr,", 500), "de"}, "de"}, {[]string{"zh-Hant", "nl"}, "en"},
	}

	for _, tt := range tests {
		if got := words.Choose(tt.wishes...).Tag; got != tt.want {
			t.Errorf("Choose(%.40q) = %s, want %s", tt.wishes, got, tt.want)
		}
	}
}

func TestSay(t *testing.T) {
	german, now := words.In("de"), time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC)
	for got, want := range map[string]string{
		words.English().Date(now):                           "9 March 2026",
		german.Date(now):                                    "9. März 2026",
		words.English().Ago(now, now.Add(-2*time.Minute)):   "2 minutes ago",
		words.English().Ago(now, now.Add(-119*time.Minute)): "119 minutes ago",
		german.Ago(now, now.Add(-50*time.Hour)):             "vor 2 Tagen",
		german.Ago(now, now.Add(time.Minute)):               "gerade eben",
		german.Ago(now, time.Time{}):                        "",
		string(german.HTML("to-app", "App", `<script>"`)):   `weiter zu <strong>&lt;script&gt;&#34;</strong>`,
		german.Say("login.submit", "App", "{{.App}}"):       "Bei {{.App}} anmelden",
		german.Say("no such key"):                           "no such key",
	} {
		if got != want {
			t.Errorf("the message is %q, want %q", got, want)
		}
	}
}

// TestFormatsInGerman shows that days, months and numbers are written as the language writes them.
func TestFormatsInGerman(t *testing.T) {
	de := words.In("de")
	for layout, want := range map[string]string{
		"2 Jan":                "29. Nov.",
		"2 Jan 2006":           "29. Nov. 2026",
		"2 Jan 2006, 15:04:05": "29. Nov. 2026, 09:05:00",
	} {
		if got := de.Format(time.Date(2026, time.November, 29, 9, 5, 0, 0, time.UTC), layout); got != want {
			t.Errorf("Format(%q) = %q, want %q", layout, got, want)
		}
	}

	if got, want := de.Number("1,234.5 MB"), "1.234,5 MB"; got != want {
		t.Errorf("Number = %q, want %q", got, want)
	}
	if got := words.English().Number("1,234.5 MB"); got != "1,234.5 MB" {
		t.Errorf("in English, Number = %q, want it unchanged", got)
	}
}

// TestApostrophes shows that messages have typographic apostrophes.
func TestApostrophes(t *testing.T) {
	straight := regexp.MustCompile(`\pL'\pL`)
	for key, texts := range file(t, "en") {
		for _, text := range texts {
			if straight.MatchString(text) {
				t.Errorf("%s has a straight apostrophe: %q", key, text)
			}
		}
	}

	for _, page := range []string{"../../templates/pages/*.html", "../../templates/pages/dashboard/*.html"} {
		names, err := filepath.Glob(page)
		if err != nil || len(names) == 0 {
			t.Fatalf("%d pages are found, %v, want some", len(names), err)
		}
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if found := straight.FindString(string(raw)); found != "" {
				t.Errorf("%s has a straight apostrophe: %q", name, found)
			}
		}
	}
}
