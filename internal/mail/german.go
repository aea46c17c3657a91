package mail

import "strings"

// german holds the German words. They have the same placeholders as the English words.
var german = tongue{
	words: map[Kind]words{
		Reset: {
			Subject: "Neues Passwort für {brand}",
			Title:   "Neues Passwort festlegen",
			Button:  "Neues Passwort festlegen",
			Text: []string{
				"Jemand, wahrscheinlich Sie, hat ein neues Passwort für das Konto {to} bei {brand} " +
					"angefordert.",
				germanLinkLife + " Sobald Sie ein neues Passwort festlegen, werden Sie überall " +
					"abgemeldet.",
			},
			Note: germanIgnore,
		},
		Verify: {
			Subject: "Bestätigen Sie Ihre E-Mail-Adresse für {brand}",
			Title:   "Bestätigen Sie Ihre E-Mail-Adresse",
			Button:  "Diese Adresse bestätigen",
			Text: []string{
				"Ihr Konto bei {brand} verwendet die Adresse {to}. " +
					"Bitte bestätigen Sie, dass diese Adresse Ihnen gehört.",
				"Der Link ist {hours} Stunden gültig und kann nur einmal verwendet werden.",
			},
			Note: "Wenn Sie kein Konto bei {brand} haben, können Sie diese E-Mail ignorieren.",
		},
		Invitation: {
			Subject: "Sie sind zu {brand} eingeladen",
			Title:   "Sie sind zu {brand} eingeladen",
			Button:  "Einladung annehmen",
			Text: []string{
				"{inviter} hat bei {brand} ein Konto mit der Adresse {to} für Sie angelegt. " +
					"Um es zu nutzen, nehmen Sie die Einladung an und wählen Sie ein Passwort.",
				"Der Link ist {days} Tage gültig und kann nur einmal verwendet werden.",
			},
			Note: "Wenn Sie {inviter} nicht kennen, können Sie diese E-Mail ignorieren. Ohne den " +
				"Link kann niemand das Konto nutzen.",
		},
		ChangeAddress: {
			Subject: "Bestätigen Sie Ihre neue E-Mail-Adresse für {brand}",
			Title:   "Bestätigen Sie Ihre neue Adresse",
			Button:  "Diese Adresse verwenden",
			Text: []string{
				"Sie möchten für Ihr Konto bei {brand} die Adresse {to} statt {old} verwenden. " +
					"Die Änderung gilt, sobald Sie sie bestätigen.",
				germanLinkLife,
			},
			Note: germanIgnore,
		},
		AddressTaken: {
			Subject: "Ihre E-Mail-Adresse wurde bei {brand} eingegeben",
			Title:   "Sie haben schon ein Konto mit dieser Adresse",
			Text: []string{
				"Jemand, wahrscheinlich Sie, wollte {to} für ein anderes Konto bei {brand} verwenden. " +
					"Sie haben schon ein Konto mit dieser Adresse. Deshalb wurde nichts geändert.",
			},
			Note: "Wenn Sie es nicht waren, können Sie diese E-Mail ignorieren.",
		},
		AddressChanged: {
			Subject: "Ihre E-Mail-Adresse bei {brand} wurde geändert",
			Title:   "Ihre E-Mail-Adresse wurde geändert",
			Text: []string{
				"Die E-Mail-Adresse Ihres Kontos bei {brand} wurde von {to} in {new} geändert. " +
					"Künftige E-Mails zu Ihrem Konto gehen an die neue Adresse.",
				germanFacts,
			},
			Note: "Wenn Sie es nicht waren, wenden Sie sich sofort an die Betreiber von {brand}.",
		},
		Registration: {
			Subject: "Bestätigen Sie Ihre E-Mail-Adresse für {brand}",
			Title:   "Konto anlegen",
			Button:  "Diese Adresse bestätigen",
			Text: []string{
				"Jemand, wahrscheinlich Sie, möchte bei {brand} ein Konto mit der Adresse {to} anlegen. " +
					"Bestätigen Sie dafür, dass die Adresse Ihnen gehört.",
				germanLinkLife + " Wenn Sie ihn in dem Browser öffnen, in dem Sie begonnen haben, sind " +
					"Sie gleich angemeldet.",
			},
			Note: germanIgnore,
		},
		Registered: {
			Subject: "Sie haben schon ein Konto bei {brand}",
			Title:   "Sie haben schon ein Konto",
			Text: []string{
				"Jemand, wahrscheinlich Sie, wollte bei {brand} ein neues Konto mit der Adresse {to} " +
					"anlegen. Es gibt schon ein Konto mit dieser Adresse; " +
					"Sie können sich damit anmelden. Wenn Sie das Passwort nicht mehr wissen, wählen " +
					"Sie auf der Anmeldeseite „Passwort vergessen?“.",
			},
			Note: "Wenn Sie es nicht waren, können Sie diese E-Mail ignorieren. Es wurde nichts geändert.",
		},
		PasswordChanged: {
			Subject: "Ihr Passwort bei {brand} wurde geändert",
			Title:   "Ihr Passwort wurde geändert",
			Text: []string{
				"Das Passwort Ihres Kontos {to} bei {brand} wurde geändert. " +
					"Alle anderen Geräte und Apps wurden abgemeldet.",
				germanFacts,
			},
			Note: germanNotYou,
		},
		PasswordSet: {
			Subject: "Ihr Konto bei {brand} hat jetzt ein Passwort",
			Title:   "Ihr Konto hat jetzt ein Passwort",
			Text: []string{
				"Ihr Konto {to} bei {brand} hatte kein Passwort und hat jetzt eines. " +
					"Alle anderen Geräte und Apps wurden abgemeldet.",
				germanFacts,
			},
			Note: germanNotYou,
		},
		FactorChanged: {
			Subject: "Sicherheitshinweis zu Ihrem Konto bei {brand}",
			Title:   "Sicherheitshinweis",
			Text: []string{
				"Ihr Konto {to} bei {brand}: {what}",
				germanFacts,
			},
			Note: "Wenn Sie es nicht waren, hat vielleicht jemand Zugriff auf Ihr Konto. Legen Sie " +
				"auf der Anmeldeseite mit „Passwort vergessen?“ ein neues Passwort fest. Damit werden alle " +
				"anderen abgemeldet. Entfernen Sie danach aus Ihrem Konto alles, was Sie nicht kennen.",
		},
		NewDevice: {
			Subject: "Neue Anmeldung bei {brand}",
			Title:   "Anmeldung auf einem neuen Gerät",
			Text: []string{
				"Mit Ihrem Konto {to} bei {brand} hat sich jemand auf einem neuen Gerät oder in einem " +
					"neuen Browser angemeldet.",
				germanFacts,
			},
			Note: "Wenn Sie es waren, müssen Sie nichts weiter tun. " + germanNotYou,
		},
		OperatorDevice: {
			Subject: "Neue Anmeldung bei der Verwaltung von {brand}",
			Title:   "Anmeldung aus einem neuen Netz",
			Text: []string{
				"Mit Ihrem Betreiberkonto {to} bei {brand} hat sich jemand aus einem Netz angemeldet, " +
					"aus dem Sie sich noch nie angemeldet haben.",
				germanOpFacts,
			},
			Note: "Wenn Sie es waren, müssen Sie nichts weiter tun. " + germanAskOwner,
		},
		OperatorFactor: {
			Subject: "Sicherheitshinweis zu Ihrem Betreiberkonto bei {brand}",
			Title:   "Sicherheitshinweis",
			Text: []string{
				"Ihr Betreiberkonto {to} bei {brand}: {what}",
				germanOpFacts,
			},
			Note: germanAskOwner,
		},
		OperatorPassword: {
			Subject: "Ihr Betreiberpasswort bei {brand} wurde geändert",
			Title:   "Ihr Passwort wurde geändert",
			Text: []string{
				"Das Passwort Ihres Betreiberkontos {to} bei {brand} wurde geändert. " +
					"Sie wurden überall sonst abgemeldet.",
				germanOpFacts,
			},
			Note: germanAskOwner,
		},
		OperatorLink: {
			Subject: "Ein Link für ein neues Betreiberpasswort bei {brand}",
			Title:   "Jemand hat einen Link für ein neues Passwort erstellt",
			Text: []string{
				"Jemand hat einen Link erstellt, mit dem für Ihr Betreiberkonto {to} bei {brand} ein " +
					"neues Passwort festgelegt werden kann. " +
					"Er ist einen Tag gültig und kann nur einmal verwendet werden. " +
					"Er steht nicht in dieser E-Mail. Sie erhalten ihn von der Person, die ihn erstellt " +
					"hat.",
				germanOpFacts,
			},
			Note: "Wenn Sie nicht um einen Link gebeten haben, wenden Sie sich sofort an einen Inhaber, " +
				"der ihn nicht erstellt hat.",
		},
		OperatorAdded: {
			Subject: "Neuer Betreiber bei {brand}: {new}",
			Title:   "Es gibt einen neuen Betreiber",
			Text: []string{
				"{new} gehört jetzt mit der Rolle {role} zu den Betreibern von {brand}.",
				germanOpFacts,
			},
			Note: "Wenn Sie das nicht erwartet haben, entfernen Sie das Konto in der Verwaltung unter " +
				"„Betreiber“ und prüfen Sie das Protokoll.",
		},
		Test: {
			Subject: "Eine Test-E-Mail von {brand}",
			Title:   "E-Mails kommen an",
			Text: []string{
				"Der Befehl „selvage mail test“ hat diese E-Mail gesendet. Sie ist angekommen; " +
					"diese Installation kann also E-Mails senden.",
			},
			Note: "Prüfen Sie auch die Kopfzeilen dieser E-Mail: SPF, DKIM und DMARC sollten bestanden sein.",
		},
	},
	changes: map[string]string{
		"passkey_added":   "Der Passkey „{name}“ wurde hinzugefügt.",
		"passkey_removed": "Der Passkey „{name}“ wurde entfernt.",
		"totp_added":      "Eine Authenticator-App wurde eingerichtet.",
		"totp_removed":    "Die Authenticator-App wurde entfernt.",
		"codes_replaced":  "Neue Wiederherstellungscodes wurden erstellt. Die alten gelten nicht mehr.",
		"code_used":       "Ein Wiederherstellungscode wurde verwendet. Verbleibende Codes: {left}.",
		"codes_used_up": "Der letzte Wiederherstellungscode wurde verwendet. Erstellen Sie in Ihrem Konto " +
			"neue Codes.",
		"codes_removed": "Die Wiederherstellungscodes wurden entfernt.",
	},
	tag:    "de",
	others: "die Betreiber von {brand}",
	signed: "{brand} hat Ihnen diese E-Mail zu Ihrem Konto gesendet.",
	broken: "Falls die Schaltfläche nicht funktioniert, öffnen Sie diese Adresse:",
	date:   "2.1.2006, 15:04 Uhr (UTC)",
	device: strings.NewReplacer(
		"A browser", "Ein Browser",
		"An app", "Eine App",
		"An unknown device", "Ein unbekanntes Gerät",
		" on ", " auf ",
	),
}

const (
	germanNotYou = "Wenn Sie es nicht waren, kennt vielleicht jemand Ihr Passwort. Legen Sie auf der " +
		"Anmeldeseite mit „Passwort vergessen?“ ein neues fest. Damit werden alle anderen abgemeldet."
	germanIgnore = "Wenn Sie das nicht angefordert haben, können Sie diese E-Mail ignorieren. " +
		"Solange niemand den Link verwendet, ändert sich nichts."
	germanLinkLife = "Der Link ist {minutes} Minuten gültig und kann nur einmal verwendet werden."
	germanAskOwner = "Wenn Sie es nicht waren, wenden Sie sich sofort an einen Inhaber dieser Installation. " +
		"Er kann Sie überall abmelden und einen Link für ein neues Passwort erstellen."
	germanFacts   = "Wann: {when}\nGerät: {device}\nIP-Adresse: {address}\nDurch: {by}"
	germanOpFacts = germanFacts + "\nDurch: {maker}"
)
