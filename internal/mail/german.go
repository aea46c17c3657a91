package mail

// german holds the German words for each kind of letter. They use the same facts as the English
// words.
var german = tongue{
	words: map[Kind]words{
		Reset: {
			Subject: "Neues Passwort für {brand}", Title: "Neues Passwort festlegen",
			Button: "Neues Passwort festlegen",
			Text: []string{"Jemand, wahrscheinlich Sie, hat ein neues Passwort für das Konto {to} bei " +
				"{brand} angefordert.",
				germanHalfOur + " Wenn Sie das Passwort festlegen, werden Sie " +
					"überall sonst abgemeldet."},
			Note: germanIgnore,
		},
		Verify: {
			Subject: "Bestätigen Sie Ihre E-Mail-Adresse für {brand}",
			Title:   "Bestätigen Sie Ihre E-Mail-Adresse", Button: "Diese Adresse bestätigen",
			Text: []string{"Ihr Konto bei {brand} hat die Adresse {to}. Bestätigen Sie, dass es Ihre ist.",
				"Der Link gilt einmal, {hours} Stunden lang."},
			Note: "Wenn Sie kein Konto bei {brand} haben, lassen Sie diese E-Mail liegen.",
		},
		Invitation: {
			Subject: "Sie sind zu {brand} eingeladen", Title: "Sie sind zu {brand} eingeladen",
			Button: "Einladung annehmen",
			Text: []string{"{inviter} hat bei {brand} ein Konto für Sie angelegt, mit der Adresse " +
				"{to}. Nehmen Sie die Einladung an und wählen Sie ein Passwort, um es zu " +
				"nutzen.",
				"Der Link gilt einmal, {days} Tage lang."},
			Note: "Wenn Sie {inviter} nicht kennen, lassen Sie diese E-Mail liegen: Ohne den Link " +
				"kann niemand das Konto nutzen.",
		},
		ChangeAddress: {
			Subject: "Bestätigen Sie Ihre neue E-Mail-Adresse für {brand}",
			Title:   "Bestätigen Sie Ihre neue Adresse", Button: "Diese Adresse verwenden",
			Text: []string{"Sie möchten für Ihr Konto bei {brand} {to} statt {old} verwenden. Es gilt, " +
				"sobald Sie es bestätigen.",
				germanHalfOur},
			Note: germanIgnore,
		},
		AddressTaken: {
			Subject: "Ihre E-Mail-Adresse wurde bei {brand} eingegeben",
			Title:   "Ihre Adresse gehört schon zu Ihrem Konto",
			Text: []string{"Jemand, wahrscheinlich Sie, wollte {to} für ein anderes Konto bei " +
				"{brand} verwenden. Sie haben ein Konto mit dieser Adresse, also bleibt es, wie es ist."},
			Note: "Wenn Sie es nicht waren, lassen Sie diese E-Mail liegen: Es wurde nichts geändert.",
		},
		AddressChanged: {
			Subject: "Ihre E-Mail-Adresse bei {brand} ist geändert", Title: "Ihre E-Mail-Adresse ist geändert",
			Text: []string{"Ihr Konto bei {brand} hatte die Adresse {to}. Jetzt hat es {new}, und " +
				"E-Mails dazu gehen dorthin.",
				germanFacts},
			Note: "Wenn Sie es nicht waren, schreiben Sie sofort an die Betreiber von {brand}.",
		},
		Registration: {
			Subject: "Bestätigen Sie Ihre E-Mail-Adresse für {brand}", Title: "Ihr Konto anlegen",
			Button: "Diese Adresse bestätigen",
			Text: []string{"Jemand, wahrscheinlich Sie, möchte bei {brand} ein Konto mit der Adresse " +
				"{to}. Bestätigen Sie, dass sie Ihnen gehört, und das Konto wird angelegt.",
				germanHalfOur + " Öffnen Sie ihn in dem Browser, in dem Sie begonnen haben, und Sie sind angemeldet."},
			Note: germanIgnore,
		},
		Registered: {
			Subject: "Sie haben schon ein Konto bei {brand}", Title: "Sie haben schon ein Konto",
			Text: []string{"Jemand, wahrscheinlich Sie, wollte bei {brand} ein neues Konto mit der " +
				"Adresse {to}. Es gibt schon eins: Melden Sie sich damit an. Wenn Sie das Passwort " +
				"nicht mehr wissen, wählen Sie dort „Passwort vergessen?“."},
			Note: "Wenn Sie es nicht waren, lassen Sie diese E-Mail liegen: Es wurde nichts geändert.",
		},
		PasswordChanged: {
			Subject: "Ihr Passwort bei {brand} ist geändert", Title: "Ihr Passwort ist geändert",
			Text: []string{"Das Passwort Ihres Kontos {to} bei {brand} ist geändert, und alles, was " +
				"damit angemeldet war, ist abgemeldet.",
				germanFacts}, Note: germanNotYou,
		},
		PasswordSet: {
			Subject: "Ihr Konto bei {brand} hat jetzt ein Passwort", Title: "Ihr Konto hat jetzt ein Passwort",
			Text: []string{"Für Ihr Konto {to} bei {brand}, das noch keins hatte, wurde ein Passwort " +
				"festgelegt. Alles, was angemeldet war, ist abgemeldet.",
				germanFacts}, Note: germanNotYou,
		},
		FactorChanged: {
			Subject: "Wie Sie sich bei {brand} anmelden, hat sich geändert",
			Title:   "Ihre Anmeldung hat sich geändert",
			Text: []string{"Für Ihr Konto {to} bei {brand}: {what}",
				germanFacts},
			Note: "Wenn Sie es nicht waren, ist vielleicht jemand in Ihrem Konto: Legen Sie dort, wo " +
				"Sie sich anmelden, mit „Passwort vergessen?“ ein neues Passwort fest; das meldet alle " +
				"anderen ab. Entfernen Sie dann aus Ihrem Konto, was nicht Ihres ist.",
		},
		NewDevice: {
			Subject: "Eine neue Anmeldung bei {brand}", Title: "Jemand hat sich auf einem neuen Gerät angemeldet",
			Text: []string{"Bei Ihrem Konto {to} bei {brand} hat sich jemand auf einem Gerät oder in " +
				"einem Browser angemeldet, der damit noch nicht gesehen wurde.",
				germanFacts},
			Note: "Wenn Sie es waren, ist alles gut. " + germanNotYou,
		},
		OperatorDevice: {
			Subject: "Neue Anmeldung am Dashboard von {brand}", Title: "Anmeldung von einem neuen Ort",
			Text: []string{"Bei Ihrem Betreiberkonto {to} bei {brand} hat sich jemand aus einem Netz " +
				"angemeldet, das dafür noch nicht bekannt war.", germanOpFacts},
			Note: "Wenn Sie es waren, ist alles gut. " + germanAskOwner,
		},
		OperatorFactor: {
			Subject: "Ihre Anmeldung am Dashboard von {brand} ist geändert", Title: "Ihre Anmeldung ist geändert",
			Text: []string{"Für Ihr Betreiberkonto {to} bei {brand}: {what}", germanOpFacts}, Note: germanAskOwner,
		},
		OperatorPassword: {
			Subject: "Ihr Betreiberpasswort bei {brand} ist geändert", Title: "Ihr Passwort ist geändert",
			Text: []string{"Das Passwort Ihres Betreiberkontos {to} bei {brand} ist geändert, und alles " +
				"andere, was damit angemeldet war, ist abgemeldet.", germanOpFacts}, Note: germanAskOwner,
		},
		OperatorLink: {
			Subject: "Ein Link für ein neues Betreiberpasswort bei {brand}",
			Title:   "Es gibt einen Link für ein neues Passwort",
			Text: []string{"Jemand hat einen Link erstellt, mit dem für Ihr Betreiberkonto {to} bei " +
				"{brand} ein neues Passwort festgelegt wird. Er gilt einmal, einen Tag lang, und steht " +
				"nicht in dieser E-Mail: Sie bekommen ihn von dem, der ihn erstellt hat.", germanOpFacts},
			Note: "Wenn Sie nicht darum gebeten haben, sagen Sie es sofort einem anderen Eigentümer " +
				"der Installation.",
		},
		OperatorAdded: {
			Subject: "Neuer Betreiber bei {brand}: {new}", Title: "Es gibt einen neuen Betreiber",
			Text: []string{"{new} gehört jetzt zu den Betreibern von {brand}, mit der Rolle {role}.", germanOpFacts},
			Note: "Wenn das niemand sollte, entfernen Sie das Konto unter „Operators“ im Dashboard und " +
				"sehen Sie in das Protokoll.",
		},
		Test: {
			Subject: "Eine Test-E-Mail von {brand}", Title: "E-Mails kommen an",
			Text: []string{"Diese E-Mail wurde mit `selvage mail test` angefordert. Wer sie liest, " +
				"weiß, dass E-Mails dieser Installation ankommen."},
			Note: "Sehen Sie auch in die Kopfzeilen: SPF, DKIM und DMARC sollten stimmen.",
		},
	},
	changes: map[string]string{
		"passkey_added":   "Der Passkey „{name}“ wurde hinzugefügt.",
		"passkey_removed": "Der Passkey „{name}“ wurde entfernt.",
		"totp_added":      "Eine Authenticator-App wurde eingerichtet.",
		"totp_removed":    "Die Authenticator-App wurde entfernt.",
		"codes_replaced":  "Neue Wiederherstellungscodes wurden erstellt; die alten gelten nicht mehr.",
		"code_used":       "Ein Wiederherstellungscode wurde verwendet. Codes, die übrig sind: {left}.",
		"codes_used_up":   "Der letzte Wiederherstellungscode wurde verwendet. Erstellen Sie in Ihrem Konto neue.",
		"codes_removed":   "Die Wiederherstellungscodes wurden entfernt.",
	},
	tag:    "de",
	others: "die Betreiber von {brand}",
	signed: "{brand} schickt diese E-Mail zu Ihrem Konto dort.",
	broken: "Wenn der Knopf nicht geht, öffnen Sie diese Adresse:",
}

const (
	germanNotYou = "Wenn Sie es nicht waren, kennt vielleicht jemand Ihr Passwort: Legen Sie dort, wo " +
		"Sie sich anmelden, mit „Passwort vergessen?“ ein neues fest; das meldet alle anderen ab."
	germanIgnore = "Wenn Sie das nicht angefordert haben, lassen Sie diese E-Mail liegen: Es wurde " +
		"nichts geändert, und ohne den Link kommt niemand hinein."
	germanHalfOur  = "Der Link gilt einmal, {minutes} Minuten lang."
	germanAskOwner = "Wenn Sie es nicht waren, sagen Sie es sofort einem Eigentümer der Installation: " +
		"Er kann Sie überall abmelden und einen Link für ein neues Passwort erstellen."
	germanOpFacts = germanFacts + "\nDurch: {maker}"
	germanFacts   = "Wann: {when}\nGerät: {device}\nNetzwerkadresse: {address}\nDurch: {by}"
)
