package dashboard_test

import (
	"net/url"
	"testing"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
)

// TestLanguage shows that the dashboard uses the browser's language, unless another language was
// chosen in that browser. Names that people chose are never translated.
func TestLanguage(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	room := w.room("Webhooks")
	base := "/dashboard/projects/" + w.one.ID
	byGuest := w.addCall(func(r *calls.Record) { r.From = calls.Party{} })

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
		base + "/search?q=gast":          {"/tokens/make/guest?link\"><bdi>Neuer Gast-Link</bdi>", "<bdi>Räume</bdi>"},
		base + "/search?q=" + byGuest.ID: {"<bdi>an /private/bob</bdi>"},
		base + "/search?q=einladung": {base + "/subscribers\"><bdi>Teilnehmer</bdi>",
			"/dashboard/operators/invite\"><bdi>Betreiber einladen</bdi>"},
		"/dashboard/projects":  {"<bdi>One</bdi>", "<td>Inhaber</td>"},
		"/dashboard/operators": {"ann@example.com", "<bdi>allen Projekten</bdi>", "Inhaber"},
	} {
		r := b.request("GET", path, nil)
		r.Header.Set("Accept-Language", "de-AT,de;q=0.9,en;q=0.1")
		b.send(r).wantText(t, wants...)
	}

	b.get(base).wantText(t, `<html lang="en">`, "Next step") // without a preference
	b.post(base, "/dashboard/language", url.Values{"language": {"de"}}).leadsTo(t, base)
	b.get(base).wantText(t, `<html lang="de">`)
	b.post(base, "/dashboard/language", url.Values{"language": {`"><script>`}}).leadsTo(t, base)
	b.get(base).wantText(t, `<html lang="de">`) // an unknown language is ignored
}

// TestFaultsInGerman shows that a form describes errors in the reader's language.
func TestFaultsInGerman(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	b.post(base, "/dashboard/language", url.Values{"language": {"de"}})

	wrong := url.Values{"email": {"not an address"}, "password": {"short"}}
	b.post(base+"/subscribers/new", base+"/subscribers", wrong).
		wantRefused(t, "E-Mail ist keine E-Mail-Adresse.", "Passwort ist zu kurz (mindestens ")

	email := "ada@example.com"
	_, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	b.post(base+"/subscribers", base+"/subscribers/bulk", nil)
	b.get(base+"/subscribers?done=noneselected").wantText(t, "Nichts ist ausgewählt.")
}
