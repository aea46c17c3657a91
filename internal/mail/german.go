package mail

import "strings"

// german holds the German words for each kind of letter. They use the same facts as the English
// words.
var german = tongue{
	words: map[Kind]words{
		Reset: {
			Subject: "Neues Passwort für {brand}",
			Title:   "Neues Passwort festlegen",
			Button:  "Neues Passwort festlegen",
			Text: []string{"Jemand, wahrscheinlich Sie, hat ein neues Passwort für das Konto {to} bei " +
				"{brand} angefordert.",
				germanHalfOur + " Wenn Sie ein neues Passwort festlegen, werden Sie " +
					"auf allen anderen Geräten abgemeldet."},
			Note: germanIgnore,
		},
		Verify: {
			Subject: "Bestätigen Sie Ihre E-Mail-Adresse für {brand}",
			Title:   "Bestätigen Sie Ihre E-Mail-Adresse",
			Button:  "Diese Adresse bestätigen",
			Text: []string{"Ihr Konto bei {brand} hat die Adresse {to}. Bestätigen Sie, dass sie Ihnen gehört.",
				"Der Link ist {hours} Stunden gültig und funktioniert nur einmal."},
			Note: "Wenn Sie kein Konto bei {brand} haben, können Sie diese E-Mail ignorieren.",
		},
		Invitation: {
			Subject: "Sie sind zu {brand} eingeladen",
			Title:   "Sie sind zu {brand} eingeladen",
			Button:  "Einladung annehmen",
			Text: []string{"{inviter} hat bei {brand} ein Konto mit der Adresse {to} für Sie " +
				"angelegt. Nehmen Sie die Einladung an und wählen Sie ein Passwort, um es zu " +
				"nutzen.",
				"Der Link ist {days} Tage gültig und funktioniert nur einmal."},
			Note: "Wenn Sie {inviter} nicht kennen, können Sie diese E-Mail ignorieren: Ohne den " +
				"Link kann niemand das Konto nutzen.",
		},
		ChangeAddress: {
			Subject: "Bestätigen Sie Ihre neue E-Mail-Adresse für {brand}",
			Title:   "Bestätigen Sie Ihre neue Adresse",
			Button:  "Diese Adresse verwenden",
			Text: []string{"Sie möchten für Ihr Konto bei {brand} die Adresse {to} statt {old} " +
				"verwenden. Sie gilt, sobald Sie sie bestätigen.",
				germanHalfOur},
			Note: germanIgnore,
		},
		AddressTaken: {
			Subject: "Ihre E-Mail-Adresse wurde bei {brand} eingegeben",
			Title:   "Ihre Adresse gehört schon zu Ihrem Konto",
			Text: []string{"Jemand, wahrscheinlich Sie, wollte {to} für ein anderes Konto bei " +
				"{brand} verwenden. Sie gehört aber schon zu Ihrem Konto. Daran ändert sich nichts."},
			Note: "Wenn Sie es nicht waren, können Sie diese E-Mail ignorieren: Es wurde nichts geändert.",
		},
		AddressChanged: {
			Subject: "Ihre E-Mail-Adresse bei {brand} wurde geändert",
			Title:   "Ihre E-Mail-Adresse wurde geändert",
			Text: []string{"Ihr Konto bei {brand} hatte die Adresse {to}. Jetzt hat es die Adresse " +
				"{new}. Künftige E-Mails erhalten Sie dort.",
				germanFacts},
			Note: "Wenn Sie es nicht waren, wenden Sie sich sofort an die Betreiber von {brand}.",
		},
		Registration: {
			Subject: "Bestätigen Sie Ihre E-Mail-Adresse für {brand}",
			Title:   "Konto anlegen",
			Button:  "Diese Adresse bestätigen",
			Text: []string{"Jemand, wahrscheinlich Sie, möchte bei {brand} ein Konto mit der Adresse " +
				"{to} anlegen. Bestätigen Sie, dass die Adresse Ihnen gehört. Danach wird das Konto angelegt.",
				germanHalfOur + " Öffnen Sie ihn in dem Browser, in dem Sie begonnen haben: Dann sind Sie " +
					"gleich angemeldet."},
			Note: germanIgnore,
		},
		Registered: {
			Subject: "Sie haben schon ein Konto bei {brand}",
			Title:   "Sie haben schon ein Konto",
			Text: []string{"Jemand, wahrscheinlich Sie, wollte bei {brand} ein neues Konto mit der " +
				"Adresse {to} anlegen. Es gibt schon eines: Melden Sie sich damit an. Wenn Sie das Passwort " +
				"nicht mehr wissen, wählen Sie dort „Passwort vergessen?“."},
			Note: "Wenn Sie es nicht waren, können Sie diese E-Mail ignorieren: Es wurde nichts geändert.",
		},
		PasswordChanged: {
			Subject: "Ihr Passwort bei {brand} wurde geändert",
			Title:   "Ihr Passwort wurde geändert",
			Text: []string{"Das Passwort Ihres Kontos {to} bei {brand} wurde geändert. Alle Geräte und " +
				"Apps wurden abgemeldet.",
				germanFacts},
			Note: germanNotYou,
		},
		PasswordSet: {
			Subject: "Ihr Konto bei {brand} hat jetzt ein Passwort",
			Title:   "Ihr Konto hat jetzt ein Passwort",
			Text: []string{"Für Ihr Konto {to} bei {brand}, das noch keines hatte, wurde ein Passwort " +
				"festgelegt. Alle Geräte und Apps wurden abgemeldet.",
				germanFacts},
			Note: germanNotYou,
		},
		FactorChanged: {
			Subject: "Ihre Anmeldung bei {brand} wurde geändert",
			Title:   "Ihre Anmeldung wurde geändert",
			Text: []string{"Für Ihr Konto {to} bei {brand}: {what}",
				germanFacts},
			Note: "Wenn Sie es nicht waren, hat vielleicht jemand Zugriff auf Ihr Konto: Legen Sie " +
				"auf der Anmeldeseite mit „Passwort vergessen?“ ein neues Passwort fest. Das meldet alle " +
				"anderen ab. Entfernen Sie danach aus Ihrem Konto alles, was nicht von Ihnen stammt.",
		},
		NewDevice: {
			Subject: "Neue Anmeldung bei {brand}",
			Title:   "Anmeldung auf einem neuen Gerät",
			Text: []string{"Mit Ihrem Konto {to} bei {brand} hat sich jemand auf einem neuen Gerät oder " +
				"in einem neuen Browser angemeldet.",
				germanFacts},
			Note: "Wenn Sie es waren, müssen Sie nichts weiter tun. " + germanNotYou,
		},
		OperatorDevice: {
			Subject: "Neue Anmeldung am Dashboard von {brand}",
			Title:   "Anmeldung von einem neuen Ort",
			Text: []string{"Mit Ihrem Betreiberkonto {to} bei {brand} hat sich jemand aus einem Netz " +
				"angemeldet, aus dem Sie sich noch nie angemeldet haben.", germanOpFacts},
			Note: "Wenn Sie es waren, müssen Sie nichts weiter tun. " + germanAskOwner,
		},
		OperatorFactor: {
			Subject: "Ihre Anmeldung am Dashboard von {brand} wurde geändert",
			Title:   "Ihre Anmeldung wurde geändert",
			Text:    []string{"Für Ihr Betreiberkonto {to} bei {brand}: {what}", germanOpFacts},
			Note:    germanAskOwner,
		},
		OperatorPassword: {
			Subject: "Ihr Betreiberpasswort bei {brand} wurde geändert",
			Title:   "Ihr Passwort wurde geändert",
			Text: []string{"Das Passwort Ihres Betreiberkontos {to} bei {brand} wurde geändert. Alle " +
				"anderen Geräte wurden abgemeldet.", germanOpFacts},
			Note: germanAskOwner,
		},
		OperatorLink: {
			Subject: "Ein Link für ein neues Betreiberpasswort bei {brand}",
			Title:   "Es gibt einen Link für ein neues Passwort",
			Text: []string{"Jemand hat einen Link erstellt, mit dem für Ihr Betreiberkonto {to} bei " +
				"{brand} ein neues Passwort festgelegt werden kann. Er ist einen Tag gültig, funktioniert " +
				"nur einmal und steht nicht in dieser E-Mail: Sie erhalten ihn von der Person, die ihn " +
				"erstellt hat.", germanOpFacts},
			Note: "Wenn Sie nicht darum gebeten haben, wenden Sie sich sofort an einen anderen " +
				"Eigentümer der Installation.",
		},
		OperatorAdded: {
			Subject: "Neuer Betreiber bei {brand}: {new}",
			Title:   "Es gibt einen neuen Betreiber",
			Text:    []string{"{new} gehört jetzt zu den Betreibern von {brand}, mit der Rolle {role}.", germanOpFacts},
			Note: "Wenn das nicht geplant war, entfernen Sie das Konto unter „Betreiber“ im Dashboard " +
				"und prüfen Sie das Protokoll.",
		},
		Test: {
			Subject: "Eine Test-E-Mail von {brand}",
			Title:   "E-Mails kommen an",
			Text: []string{"Diese E-Mail wurde mit `selvage mail test` angefordert. Da Sie sie lesen, " +
				"kommen E-Mails dieser Installation an."},
			Note: "Prüfen Sie auch die Kopfzeilen: SPF, DKIM und DMARC sollten bestanden sein.",
		},
	},
	changes: map[string]string{
		"passkey_added":   "Der Passkey „{name}“ wurde hinzugefügt.",
		"passkey_removed": "Der Passkey „{name}“ wurde entfernt.",
		"totp_added":      "Eine Authenticator-App wurde eingerichtet.",
		"totp_removed":    "Die Authenticator-App wurde entfernt.",
		"codes_replaced":  "Neue Wiederherstellungscodes wurden erstellt; die alten gelten nicht mehr.",
		"code_used":       "Ein Wiederherstellungscode wurde verwendet. Verbleibende Codes: {left}.",
		"codes_used_up":   "Der letzte Wiederherstellungscode wurde verwendet. Erstellen Sie in Ihrem Konto neue.",
		"codes_removed":   "Die Wiederherstellungscodes wurden entfernt.",
	},
	tag:    "de",
	others: "die Betreiber von {brand}",
	signed: "{brand} schickt Ihnen diese E-Mail zu Ihrem Konto.",
	broken: "Falls die Schaltfläche nicht funktioniert, öffnen Sie diese Adresse:",
	date:   "2.1.2006, 15:04 Uhr (UTC)",
	device: strings.NewReplacer("A browser", "Ein Browser", "An app", "Eine App",
		"An unknown device", "Ein unbekanntes Gerät", " on ", " auf "),
}

const (
	germanNotYou = "Wenn Sie es nicht waren, kennt vielleicht jemand Ihr Passwort: Legen Sie " +
		"auf der Anmeldeseite mit „Passwort vergessen?“ ein neues fest. Das meldet alle anderen ab."
	germanIgnore = "Wenn Sie das nicht angefordert haben, können Sie diese E-Mail ignorieren: Es wurde " +
		"nichts geändert, und ohne den Link erhält niemand Zugriff."
	germanHalfOur  = "Der Link ist {minutes} Minuten gültig und funktioniert nur einmal."
	germanAskOwner = "Wenn Sie es nicht waren, wenden Sie sich sofort an einen Eigentümer der Installation: " +
		"Er kann Sie überall abmelden und einen Link für ein neues Passwort erstellen."
	germanOpFacts = germanFacts + "\nDurch: {maker}"
	germanFacts   = "Wann: {when}\nGerät: {device}\nNetzwerkadresse: {address}\nDurch: {by}"
)
