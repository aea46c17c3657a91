package mail

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTongues shows that every language has words for each kind of letter and for each change to a
// factor, with the same placeholders as in English.
func TestTongues(t *testing.T) {
	fact := regexp.MustCompile(`\{[a-z]+\}`)
	facts := func(texts ...string) []string {
		all := fact.FindAllString(strings.Join(texts, " "), -1)
		slices.Sort(all)
		return slices.Compact(all)
	}

	same := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s has the placeholders %v in German, want %v as in English", what, got, want)
		}
	}

	for kind, want := range inEnglish.words {
		got, ok := german.words[kind]
		if !ok || len(got.Text) != len(want.Text) || (got.Button == "") != (want.Button == "") ||
			got.Subject == "" || got.Title == "" || got.Note == "" {
			t.Errorf("the words for %s are missing or incomplete in German", kind)
			continue
		}
		same(string(kind), facts(append(got.Text, got.Subject, got.Note)...),
			facts(append(want.Text, want.Subject, want.Note)...))
	}

	for name, want := range inEnglish.changes {
		if german.changes[name] == "" {
			t.Errorf("the change %s is not translated to German", name)
		}
		same(name, facts(german.changes[name]), facts(want))
	}
	if len(german.words) != len(inEnglish.words) || len(german.changes) != len(inEnglish.changes) {
		t.Error("some words exist only in German")
	}

	for tag, want := range map[string]string{
		"":      "en",
		"de":    "de",
		"de-AT": "de",
		"DE":    "de",
		"fr":    "en",
		"den":   "en",
	} {
		if got := tongueOf(tag).tag; got != want {
			t.Errorf("tongueOf(%q) = %s, want %s", tag, got, want)
		}
	}

	m, err := Draft{
		Kind:     Reset,
		Language: "de",
		To:       "ada@example.com",
		Brand:    Brand{Name: "Acme"},
		Link:     "https://id.example/reset",
		Facts:    map[string]string{"minutes": "30"},
	}.write(
		"id", Sender{Address: "no-reply@example.com"})
	if err != nil || m.Subject != "Neues Passwort für Acme" ||
		!strings.Contains(m.HTML, `<html lang="de">`) || strings.Contains(m.HTML, "If the button") {
		t.Errorf("an email in German: %v, %q, want a German subject and text", err, m.Subject)
	}

	m, err = Draft{
		Kind:     NewDevice,
		Language: "de",
		To:       "ada@example.com",
		Brand:    Brand{Name: "Acme"},
		Facts: map[string]string{"when": "2026-11-02T12:30:00Z",
			"agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0"},
	}.write("id", Sender{Address: "no-reply@example.com"})
	if err != nil || !strings.Contains(m.Text, "Wann: 2.11.2026, 12:30 Uhr (UTC)") ||
		!strings.Contains(m.Text, "Gerät: Firefox auf Linux") {
		t.Errorf("an email in German about a device: %v, %s, want a German date and device", err, m.Text)
	}
}
