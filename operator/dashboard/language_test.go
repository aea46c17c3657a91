package dashboard_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
)

// TestLanguage shows that the dashboard uses the browser's language, unless another language was
// chosen in that browser. Names that people chose are never translated.
func TestLanguage(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	room, err := w.fabric.Resources.Create(t.Context(), w.one.ID,
		w.fabric.Resources.Kinds().ByPath("conference_rooms"),
		map[string]json.RawMessage{"name": json.RawMessage(`"Webhooks"`)})
	must(t, err)
	base := "/dashboard/projects/" + w.one.ID

	german := func(path string) string {
		t.Helper()
		r := b.request("GET", path, nil)
		r.Header.Set("Accept-Language", "de-AT,de;q=0.9,en;q=0.1")
		return b.send(r).body
	}

	for path, wants := range map[string][]string{
		base: {`<html lang="de">`, ">Aufnahmen</a>", "Nächster Schritt", "Teilnehmer anlegen"},
		base + "/resources/" + room.ID: {"<bdi>Webhooks</bdi></h1>", "Konferenzraum",
			"<title>Webhooks · selvage</title>"},
		base + "/addresses": {">Raum</td>", "Ton, Nachrichten, Video"},
		"/dashboard/kinds":  {"<dd>Ton, Nachrichten, Video</dd>"},
		base + "/kinds/conference_rooms": {"Konferenzraum anlegen", "Höchstzahl der Mitglieder",
			"0 bedeutet: unbegrenzt."},
		base + "/clients/new": {"OAuth-Client anlegen", "Browser-App", "Eine je Zeile"},
		"/dashboard/settings/doctor": {"Daten: Platz", "Der Server läuft als root; das ist nicht nötig",
			"Prüfen Sie die Dateien.", "12 MB von 40 GB frei", "Setzen Sie --listen.", "12 widgets"},
		base + "/search?q=gast": {"/tokens/make/guest?link\"><bdi>Neuer Gast-Link</bdi>", "<bdi>Räume</bdi>"},
		base + "/search?q=einladung": {base + "/subscribers\"><bdi>Teilnehmer</bdi>",
			"/dashboard/operators/invite\"><bdi>Betreiber einladen</bdi>"},
		"/dashboard/projects":  {"<bdi>One</bdi>", "<td>Inhaber</td>"},
		"/dashboard/operators": {"ann@example.com", "<bdi>allen Projekten</bdi>", "Inhaber"},
	} {
		body := german(path)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
	}

	if got := b.get(base).body; !strings.Contains(got, `<html lang="en">`) || !strings.Contains(got, "Next step") {
		t.Error("without a preference, the page is not in English")
	}
	b.post(base, "/dashboard/language", url.Values{"language": {"de"}}).leadsTo(t, base)
	if got := b.get(base).body; !strings.Contains(got, `<html lang="de">`) {
		t.Error("the browser does not remember the language")
	}
	b.post(base, "/dashboard/language", url.Values{"language": {`"><script>`}}).leadsTo(t, base)
	if got := b.get(base).body; !strings.Contains(got, `<html lang="de">`) {
		t.Error("an unknown language replaced the chosen one")
	}
}

// TestFaultsInGerman shows that a form describes errors in the reader's language.
func TestFaultsInGerman(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	b.post(base, "/dashboard/language", url.Values{"language": {"de"}})

	page := b.post(base+"/subscribers/new", base+"/subscribers", url.Values{"email": {"not an address"},
		"password": {"short"}})
	if page.StatusCode != http.StatusUnprocessableEntity {
		t.Fatalf("the form returned %s, want 422", page.Status)
	}
	for _, want := range []string{"E-Mail ist keine E-Mail-Adresse.", "Passwort ist zu kurz (mindestens "} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}

	email := "ada@example.com"
	_, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	b.post(base+"/subscribers", base+"/subscribers/bulk", nil)
	if got := b.get(base + "/subscribers?done=noneselected").body; !strings.Contains(got, "Nichts ist ausgewählt.") {
		t.Error("the notice is not in German")
	}
}
