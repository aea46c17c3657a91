package mail

import "strings"

// words holds the words for one kind of letter. They contain the names of facts, as in {name}. No
// other part of a letter is translated.
type words struct {
	Subject string
	Title   string
	Text    []string
	Button  string // the label of the link; "" if the letter has no link
	Note    string
}

// A tongue holds the words of all letters in one language.
type tongue struct {
	tag     string // BCP 47
	words   map[Kind]words
	changes map[string]string // descriptions of changes to a second factor, by the fact "what"
	others  string            // the author of a change that the account's owner did not make
	signed  string            // the footer
	broken  string            // the sentence before the address of the link
	date    string            // the layout of times, in UTC
	device  *strings.Replacer // translates the names of devices that package agent returns
}

// inEnglish is used for languages without a translation.
var inEnglish = tongue{
	tag:     "en",
	words:   english,
	changes: changes,
	others:  others,
	signed:  signed,
	broken:  "If the button does not work, open this address:",
	date:    "2 January 2006, 15:04 UTC",
	device:  strings.NewReplacer(),
}

// tongueOf returns the tongue for a language tag, regardless of the region.
func tongueOf(tag string) tongue {
	if language, _, _ := strings.Cut(strings.ToLower(tag), "-"); language == german.tag {
		return german
	}
	return inEnglish
}

// Phrases that several letters share.
const (
	notYou = "If this was not you, someone may know your password. Set a new one with " +
		"“Forgot password?” where you sign in; that signs out everyone else."
	ignore = "If you did not request this, ignore this email: nothing has changed, " +
		"and nobody can get in without the link."
	linkLife = "The link works once, for {minutes} minutes."
	signed   = "{brand} sent this email about your account there."
	facts    = "When: {when}\nDevice: {device}\nNetwork address: {address}\nBy: {by}" // unknown lines are left out
	askOwner = "If this was not you, tell an owner of the installation immediately. " +
		"They can sign you out everywhere and create a link for a new password."
	opFacts = facts + "\nBy: {maker}"
	others  = "the operators of {brand}" // the author of a change if this is not the account's owner
)

// english holds the English words for each kind of letter.
var english = map[Kind]words{
	Reset: {
		Subject: "Set a new password for {brand}",
		Title:   "Set a new password",
		Button:  "Set a new password",
		Text: []string{
			"Someone, probably you, requested a new password for the account {to} at {brand}.",
			linkLife + " Setting the password signs you out everywhere else.",
		},
		Note: ignore,
	},
	Verify: {
		Subject: "Confirm your email address for {brand}",
		Title:   "Confirm your email address",
		Button:  "Confirm this address",
		Text: []string{
			"Your account at {brand} uses the address {to}. Confirm that it is yours.",
			"The link works once, for {hours} hours.",
		},
		Note: "If you have no account at {brand}, ignore this email.",
	},
	Invitation: {
		Subject: "You are invited to {brand}",
		Title:   "You are invited to {brand}",
		Button:  "Accept the invitation",
		Text: []string{
			"{inviter} created an account for you at {brand} with the address {to}. " +
				"To use it, accept the invitation and choose a password.",
			"The link works once, for {days} days.",
		},
		Note: "If you do not know {inviter}, ignore this email: nobody can use the account without the link.",
	},
	ChangeAddress: {
		Subject: "Confirm your new email address for {brand}",
		Title:   "Confirm your new address",
		Button:  "Use this address",
		Text: []string{
			"You asked to use {to} instead of {old} for your account at {brand}. " +
				"The change takes effect when you confirm it.",
			linkLife,
		},
		Note: ignore,
	},
	AddressTaken: {
		Subject: "Your email address was entered at {brand}",
		Title:   "Your address already belongs to your account",
		Text: []string{"Someone, probably you, tried to use {to} for another account at {brand}. " +
			"You already have an account with this address, so nothing was changed."},
		Note: "If this was not you, ignore this email.",
	},
	AddressChanged: {
		Subject: "Your email address at {brand} has changed",
		Title:   "Your email address has changed",
		Text: []string{
			"Your account at {brand} used the address {to}. It now uses {new}, and emails about it go there.",
			facts},
		Note: "If this was not you, contact the operators of {brand} immediately.",
	},
	Registration: {
		Subject: "Confirm your email address for {brand}",
		Title:   "Create your account",
		Button:  "Confirm this address",
		Text: []string{
			"Someone, probably you, wants to create an account at {brand} with the address {to}. " +
				"Confirm that the address is yours to create it.",
			linkLife + " Open it in the browser where you started to be signed in.",
		},
		Note: ignore,
	},
	Registered: {
		Subject: "You already have an account at {brand}",
		Title:   "You already have an account",
		Text: []string{"Someone, probably you, tried to create an account at {brand} with the address {to}. " +
			"It already has one: sign in with it. If you forgot the password, choose “Forgot password?” there."},
		Note: "If this was not you, ignore this email: nothing has changed.",
	},
	PasswordChanged: {
		Subject: "Your password at {brand} has changed",
		Title:   "Your password has changed",
		Text: []string{
			"The password of your account {to} at {brand} has changed, and every login that used it has ended.",
			facts},
		Note: notYou,
	},
	PasswordSet: {
		Subject: "Your account at {brand} now has a password",
		Title:   "Your account now has a password",
		Text: []string{
			"A password was set for your account {to} at {brand}, which had none before. Every login has ended.",
			facts},
		Note: notYou,
	},
	FactorChanged: {
		Subject: "How you sign in to {brand} has changed",
		Title:   "How you sign in has changed",
		Text:    []string{"For your account {to} at {brand}: {what}", facts},
		Note: "If this was not you, someone may have access to your account. Set a new password with " +
			"“Forgot password?” " +
			"where you sign in; that signs out everyone else. Then remove what is not yours from your account.",
	},
	NewDevice: {
		Subject: "A new sign-in to {brand}",
		Title:   "New sign-in from an unknown device",
		Text: []string{
			"Someone signed in to your account {to} at {brand} on a device or browser that has not used it before.",
			facts},
		Note: "If this was you, there is nothing to do. " + notYou,
	},
	OperatorDevice: {
		Subject: "A new sign-in to the dashboard of {brand}",
		Title:   "New sign-in from an unknown network",
		Text: []string{
			"Someone signed in to your operator account {to} at {brand} from a network that has not used it before.",
			opFacts},
		Note: "If this was you, there is nothing to do. " + askOwner,
	},
	OperatorFactor: {
		Subject: "How you sign in to the dashboard of {brand} has changed",
		Title:   "How you sign in has changed",
		Text:    []string{"For your operator account {to} at {brand}: {what}", opFacts},
		Note:    askOwner,
	},
	OperatorPassword: {
		Subject: "Your operator password at {brand} has changed",
		Title:   "Your password has changed",
		Text: []string{
			"The password of your operator account {to} at {brand} has changed, and every other login has ended.",
			opFacts},
		Note: askOwner,
	},
	OperatorLink: {
		Subject: "A link for a new operator password at {brand}",
		Title:   "Someone created a link for a new password",
		Text: []string{"Someone created a link that sets a new password for your operator account {to} at {brand}. " +
			"It works once, for a day, and is not in this email: you get it from the person who created it.", opFacts},
		Note: "If you did not ask for it, tell another owner of the installation immediately.",
	},
	OperatorAdded: {
		Subject: "A new operator at {brand}: {new}",
		Title:   "There is a new operator",
		Text:    []string{"{new} is now an operator of {brand}, with the role {role}.", opFacts},
		Note: "If you did not expect this, remove the operator in the dashboard under Operators, and " +
			"check the audit trail.",
	},
	Test: {
		Subject: "A test email from {brand}",
		Title:   "Email works",
		Text: []string{
			"This email was sent by `selvage mail test`. If you can read it, email from this installation arrives."},
		Note: "Check its headers as well: SPF, DKIM and DMARC should pass.",
	},
}

// changes describes changes to a second factor, by the fact "what".
var changes = map[string]string{
	"passkey_added":   "the passkey “{name}” was added.",
	"passkey_removed": "the passkey “{name}” was removed.",
	"totp_added":      "an authenticator app was set up.",
	"totp_removed":    "the authenticator app was removed.",
	"codes_replaced":  "new recovery codes were created; the old ones no longer work.",
	"code_used":       "a recovery code was used. Codes left: {left}.",
	"codes_used_up":   "the last recovery code was used. Create new ones in your account.",
	"codes_removed":   "the recovery codes were removed.",
}
