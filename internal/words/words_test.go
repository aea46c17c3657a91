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

// readMessages reads the messages of a language. A message may have several plural forms.
func readMessages(t *testing.T, tag string) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(tag + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var messages map[string]any
	if err := json.Unmarshal(raw, &messages); err != nil {
		t.Fatal(err)
	}

	forms := make(map[string][]string)
	delete(messages, "texts") // TestTexts checks them
	for key, message := range messages {
		switch m := message.(type) {
		case string:
			forms[key] = []string{m}
		case map[string]any:
			for _, form := range []string{"one", "other"} {
				text, _ := m[form].(string)
				forms[key] = append(forms[key], text)
			}
		}
	}
	return forms
}

var (
	value   = regexp.MustCompile(`\{\{\.[A-Za-z]+\}\}`)
	element = regexp.MustCompile(`<[^>]+>`)
)

// TestComplete shows that every language has each message, with the same values and HTML elements.
func TestComplete(t *testing.T) {
	english := readMessages(t, "en")
	for _, w := range words.All() {
		messages := readMessages(t, w.Tag)
		for key, want := range english {
			got, ok := messages[key]
			if !ok {
				t.Errorf("%s lacks the message %s", w.Tag, key)
				continue
			}
			if len(got) != len(want) {
				t.Errorf("%s has %d forms of the message %s, want %d, as in English",
					w.Tag, len(got), key, len(want))
				continue
			}
			for i := range got {
				checkMessage(t, w.Tag, key, got[i], want[i])
			}
		}

		for key := range messages {
			if english[key] == nil {
				t.Errorf("%s has the message %s, which English lacks", w.Tag, key)
			}
		}
	}
}

// checkMessage checks that a message is not empty, and that it has the same values and HTML elements
// as the English one.
func checkMessage(t *testing.T, tag, key, got, english string) {
	t.Helper()
	if strings.TrimSpace(got) == "" {
		t.Errorf("%s has an empty message %s", tag, key)
	}
	if key == "apps.since" {
		return
	}
	for _, part := range []*regexp.Regexp{value, element} {
		want := slices.Sorted(slices.Values(part.FindAllString(english, -1)))
		found := slices.Sorted(slices.Values(part.FindAllString(got, -1)))
		if !slices.Equal(found, want) {
			t.Errorf("%s has %q in the message %s, want %q, as in English", tag, found, key, want)
		}
	}
}

// readSources returns the sources that use messages: the templates and the Go code.
func readSources(t *testing.T) (templates, code string) {
	t.Helper()
	sources := map[string]*strings.Builder{".html": {}, ".go": {}}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && isSkipped(d.Name()) {
			return fs.SkipDir
		}
		source := sources[filepath.Ext(path)]
		if source == nil || strings.HasSuffix(path, "_test.go") {
			return nil
		}

		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		source.Write(text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources[".html"].String(), sources[".go"].String()
}

// isSkipped reports whether a folder contains no sources that use messages.
func isSkipped(folder string) bool {
	hidden := strings.HasPrefix(folder, ".") && folder != "." && folder != ".."
	return hidden || folder == "node_modules" || folder == "test"
}

// prefixes lists the beginnings of keys that the code composes. The code adds a word to each
// prefix.
var prefixes = []string{"fault.", "home.", "scope.", "passkey.cancelled-"}

// TestUsed shows that each message is used, and that every message in use exists.
func TestUsed(t *testing.T) {
	english := readMessages(t, "en")
	pages, code := readSources(t)
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

	call := regexp.MustCompile(`(?:\{\{(?:[^}]*\()?(?:say|rich) |[^A-Za-z](?:Say|HTML)\()"([a-z][^" ]*)"`)
	calls := call.FindAllStringSubmatch(pages+code, -1)
	for _, match := range calls {
		key := match[1]
		if english[key] == nil && !slices.Contains(prefixes, key) {
			t.Errorf("the message %s does not exist", key)
		}
	}
	if len(calls) < 100 {
		t.Errorf("the sources use messages only %d times, want at least 100 times", len(calls))
	}
}

func TestChoose(t *testing.T) {
	tests := []struct {
		wishes []string
		want   string
	}{
		{nil, "en"},
		{[]string{""}, "en"},
		{[]string{"de"}, "de"},
		{[]string{"de-CH"}, "de"},
		{[]string{"fr", "de"}, "de"},
		{[]string{"fr,de;q=0.2,en;q=0.1"}, "de"},
		{[]string{"en-GB,de"}, "en"},
		{[]string{"fr"}, "en"},
		{[]string{"*"}, "en"},
		{[]string{"x;;y", "de"}, "de"},
		{[]string{"de;q=0,*"}, "en"},
		{[]string{"de;q=0,x;;y"}, "en"}, // RFC 9110, section 12.5.4
		{[]string{"x;;y,de; q=0.000"}, "en"},
		{[]string{"x;;y,de;q=0.5"}, "de"},
		{[]string{"x;;y,de;q=high"}, "de"},
		{[]string{"xx,de,en"}, "de"},
		{[]string{"xx,yy;q=0.4", "de"}, "de"},
		{[]string{strings.Repeat("fr,", 500), "de"}, "de"},
		{[]string{"zh-Hant", "nl"}, "en"},
	}

	for _, tt := range tests {
		if got := words.Choose(tt.wishes...).Tag; got != tt.want {
			t.Errorf("Choose(%.40q) = %s, want %s", tt.wishes, got, tt.want)
		}
	}
}

func TestSay(t *testing.T) {
	english, german := words.English(), words.In("de")
	now := time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC)
	tests := []struct {
		name, got, want string
	}{
		{"Date in English", english.Date(now), "9 March 2026"},
		{"Date in German", german.Date(now), "9. März 2026"},
		{"Ago, two minutes", english.Ago(now, now.Add(-2*time.Minute)), "2 minutes ago"},
		{"Ago, almost two hours", english.Ago(now, now.Add(-119*time.Minute)), "119 minutes ago"},
		{"Ago in German", german.Ago(now, now.Add(-50*time.Hour)), "vor 2 Tagen"},
		{"Ago in the future", german.Ago(now, now.Add(time.Minute)), "gerade eben"},
		{"Ago, never", german.Ago(now, time.Time{}), ""},
		{
			name: "HTML with a value that looks like HTML",
			got:  string(german.HTML("to-app", "App", `<script>"`)),
			want: `weiter zu <strong>&lt;script&gt;&#34;</strong>`,
		},
		{
			name: "Say with a value that looks like a placeholder",
			got:  german.Say("login.submit", "App", "{{.App}}"),
			want: "Bei {{.App}} anmelden",
		},
		{"Say with an unknown key", german.Say("no such key"), "no such key"},
	}

	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

// TestFormatsInGerman shows that dates and numbers follow the German conventions.
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
	for key, texts := range readMessages(t, "en") {
		for _, text := range texts {
			if straight.MatchString(text) {
				t.Errorf("%s has a straight apostrophe: %q", key, text)
			}
		}
	}

	for _, page := range []string{"../../templates/pages/*.html", "../../templates/pages/dashboard/*.html"} {
		names, err := filepath.Glob(page)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s matches %d files, %v, want some", page, len(names), err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if found := straight.FindString(string(text)); found != "" {
				t.Errorf("%s has a straight apostrophe: %q", name, found)
			}
		}
	}
}
