package mail

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGerman shows that German has words for each kind of letter and for each change to a factor,
// with the same placeholders as in English.
func TestGerman(t *testing.T) {
	for kind, english := range inEnglish.words {
		translated, ok := german.words[kind]
		if !ok {
			t.Errorf("the letter %s is not translated to German", kind)
			continue
		}
		checkTranslation(t, kind, translated, english)
	}
	if got, want := len(german.words), len(inEnglish.words); got != want {
		t.Errorf("German has words for %d kinds of letters, want %d, as in English", got, want)
	}

	for name, english := range inEnglish.changes {
		translated := german.changes[name]
		if translated == "" {
			t.Errorf("the change %s is not translated to German", name)
		}
		checkPlaceholders(t, name, translated, english)
	}
	if got, want := len(german.changes), len(inEnglish.changes); got != want {
		t.Errorf("German has words for %d changes, want %d, as in English", got, want)
	}
}

// checkTranslation checks that the German words for a letter are complete.
func checkTranslation(t *testing.T, kind Kind, got, english words) {
	t.Helper()
	for field, text := range map[string]string{"subject": got.Subject, "title": got.Title, "note": got.Note} {
		if text == "" {
			t.Errorf("the letter %s has no %s in German", kind, field)
		}
	}
	if len(got.Text) != len(english.Text) {
		t.Errorf("the letter %s has %d paragraphs in German, want %d, as in English",
			kind, len(got.Text), len(english.Text))
	}
	if hasButton, want := got.Button != "", english.Button != ""; hasButton != want {
		t.Errorf("the letter %s has a button in German: %t, want %t, as in English", kind, hasButton, want)
	}

	gotText := strings.Join(append(got.Text, got.Subject, got.Note), " ")
	englishText := strings.Join(append(english.Text, english.Subject, english.Note), " ")
	checkPlaceholders(t, string(kind), gotText, englishText)
}

// checkPlaceholders checks that a German text has the same placeholders as the English one.
func checkPlaceholders(t *testing.T, name, got, english string) {
	t.Helper()
	gotPlaceholders, want := placeholders(got), placeholders(english)
	if !slices.Equal(gotPlaceholders, want) {
		t.Errorf("%s has the placeholders %v in German, want %v, as in English", name, gotPlaceholders, want)
	}
}

// placeholders returns the sorted placeholders in a text, without duplicates.
func placeholders(text string) []string {
	found := regexp.MustCompile(`\{[a-z]+\}`).FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

func TestTongueOf(t *testing.T) {
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
}

// TestGermanLetter shows that a letter is entirely in German, including the date and the device.
func TestGermanLetter(t *testing.T) {
	sender := Sender{Address: "no-reply@example.com"}
	reset := Draft{
		Kind:     Reset,
		Language: "de",
		To:       "ada@example.com",
		Brand:    Brand{Name: "Acme"},
		Link:     "https://id.example/reset",
		Facts:    map[string]string{"minutes": "30"},
	}
	m, err := reset.write("id", sender)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Neues Passwort für Acme"; m.Subject != want {
		t.Errorf("the subject is %q, want %q", m.Subject, want)
	}
	if want := `<html lang="de">`; !strings.Contains(m.HTML, want) {
		t.Errorf("the HTML is %s, want it to contain %s", m.HTML, want)
	}
	if english := "If the button"; strings.Contains(m.HTML, english) {
		t.Errorf("the HTML is %s, want it without %q", m.HTML, english)
	}

	device := Draft{
		Kind:     NewDevice,
		Language: "de",
		To:       "ada@example.com",
		Brand:    Brand{Name: "Acme"},
		Facts: map[string]string{
			"when":  "2026-11-02T12:30:00Z",
			"agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0",
		},
	}
	m, err = device.write("id", sender)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Wann: 2.11.2026, 12:30 Uhr (UTC)", "Gerät: Firefox auf Linux"} {
		if !strings.Contains(m.Text, want) {
			t.Errorf("the text is %s, want it to contain %q", m.Text, want)
		}
	}
}
