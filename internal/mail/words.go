package mail

import "strings"

// words are what a kind of letter says, with {names} of facts in them. They are all
// that is to be translated.
type words struct {
	Subject string
	Title   string
	Text    []string
	Button  string // on the link; "" where there is none
	Note    string
}

// A tongue is the words in one language.
type tongue struct {
	tag     string // of BCP 47
	words   map[Kind]words
	changes map[string]string // says what has become of a factor, by the name of it in the facts
	others  string            // who did it, where it was not the owner
	signed  string            // at the foot
	broken  string            // before the link itself
}

// inEnglish is said where there is no other language.
var inEnglish = tongue{"en", english, changes, others, signed, "If the button does not work, open this address:"}

// tongueOf returns the language of a tag, whatever its region.
func tongueOf(tag string) tongue {
	if language, _, _ := strings.Cut(strings.ToLower(tag), "-"); language == german.tag {
		return german
	}
	return inEnglish
}

// Words that several letters share.
const (
	notYou   = "If it was not you, somebody may know your password: set a new one with “Forgot password?” where you sign in, which signs out everybody else."
	ignore   = "If you did not ask for it, leave this mail be: nothing has changed, and nobody gets in without the link."
	halfOur  = "The link works once, for {minutes} minutes."
	signed   = "{brand} sends this mail about your account there."
	facts    = "When: {when}\nDevice: {device}\nNetwork address: {address}\nBy: {by}" // what is not known is left out
	askOwner = "If it was not you, tell an owner of the installation at once: they can sign you out everywhere, and make a link for a new password."
	opFacts  = facts + "\nBy: {maker}"
	others   = "those who run {brand}" // by whom, where it was not the owner
)

// english says each kind.
var english = map[Kind]words{
	Reset: {
		Subject: "Set a new password for {brand}", Title: "Set a new password", Button: "Set a new password",
		Text: []string{"Somebody, probably you, has asked for a new password for the account {to} at {brand}.", halfOur + " Setting the password signs you out everywhere else."}, Note: ignore,
	},
	Verify: {
		Subject: "Confirm your e-mail address for {brand}", Title: "Confirm your e-mail address",
		Button: "Confirm this address",
		Text: []string{"Your account at {brand} has the address {to}. Confirm that it is yours.",
			"The link works once, for {hours} hours."},
		Note: "If you have no account at {brand}, leave this mail be.",
	},
	Invitation: {
		Subject: "You are invited to {brand}", Title: "You are invited to {brand}", Button: "Accept the invitation",
		Text: []string{"{inviter} has made an account for you at {brand}, with the address {to}. Accept the invitation and choose a password to use it.", "The link works once, for {days} days."},
		Note: "If you do not know {inviter}, leave this mail be: without the link nobody can use the account.",
	},
	ChangeAddress: {
		Subject: "Confirm your new e-mail address for {brand}", Title: "Confirm your new address",
		Button: "Use this address",
		Text:   []string{"You want to use {to} for your account at {brand}, in place of {old}. It takes effect once you confirm it.", halfOur}, Note: ignore,
	},
	AddressTaken: {
		Subject: "Your e-mail address was typed at {brand}", Title: "Your address belongs to your account already",
		Text: []string{"Somebody, probably you, wanted to use {to} for another account at {brand}. You have an account with this address, so it stays as it is."},
		Note: "If it was not you, leave this mail be: nothing has changed.",
	},
	AddressChanged: {
		Subject: "Your e-mail address at {brand} has changed", Title: "Your e-mail address has changed",
		Text: []string{"Your account at {brand} had the address {to}. It has {new} now, and mails about it go there.", facts},
		Note: "If it was not you, write to those who run {brand} at once.",
	},
	Registration: {
		Subject: "Confirm your e-mail address for {brand}", Title: "Make your account",
		Button: "Confirm this address",
		Text:   []string{"Somebody, probably you, wants an account at {brand} with the address {to}. Confirm that it is yours, and the account is made.", halfOur + " Open it in the browser where you began, and you are signed in."}, Note: ignore,
	},
	Registered: {
		Subject: "You already have an account at {brand}", Title: "You already have an account",
		Text: []string{"Somebody, probably you, wanted a new account at {brand} with the address {to}. There is one: sign in with it. If you do not know the password any more, choose “Forgot password?” there."},
		Note: "If it was not you, leave this mail be: nothing has changed.",
	},
	PasswordChanged: {
		Subject: "Your password at {brand} has changed", Title: "Your password has changed",
		Text: []string{"The password of your account {to} at {brand} has changed, and all that was signed in with it is signed out.", facts}, Note: notYou,
	},
	PasswordSet: {
		Subject: "Your account at {brand} has a password now", Title: "Your account has a password now",
		Text: []string{"A password was set for your account {to} at {brand}, which had none before. All that was signed in is signed out.", facts}, Note: notYou,
	},
	FactorChanged: {
		Subject: "How you sign in to {brand} has changed", Title: "How you sign in has changed",
		Text: []string{"For your account {to} at {brand}: {what}", facts},
		Note: "If it was not you, somebody may be in your account: set a new password with “Forgot password?” where you sign in, which signs out everybody else. Then remove from your account what is not yours.",
	},
	NewDevice: {
		Subject: "A new sign-in to {brand}", Title: "Somebody signed in on a new device",
		Text: []string{"Your account {to} at {brand} was signed in to on a device, or in a browser, that was not seen with it before.", facts},
		Note: "If it was you, all is well. " + notYou,
	},
	OperatorDevice: {
		Subject: "A new sign-in to the dashboard of {brand}", Title: "Somebody signed in from a new place",
		Text: []string{"Your operator account {to} at {brand} was signed in to from a network that was not seen with it before.", opFacts},
		Note: "If it was you, all is well. " + askOwner,
	},
	OperatorFactor: {
		Subject: "How you sign in to the dashboard of {brand} has changed", Title: "How you sign in has changed",
		Text: []string{"For your operator account {to} at {brand}: {what}", opFacts}, Note: askOwner,
	},
	OperatorPassword: {
		Subject: "Your operator password at {brand} has changed", Title: "Your password has changed",
		Text: []string{"The password of your operator account {to} at {brand} has changed, and all else that was signed in with it is signed out.", opFacts}, Note: askOwner,
	},
	OperatorLink: {
		Subject: "A link for a new operator password at {brand}", Title: "Somebody made a link for a new password",
		Text: []string{"A link was made by which a new password is set for your operator account {to} at {brand}. It works once, for a day, and is not in this mail: whoever made it gives it to you.", opFacts},
		Note: "If you did not ask for it, tell another owner of the installation at once.",
	},
	OperatorAdded: {
		Subject: "A new operator at {brand}: {new}", Title: "There is a new operator",
		Text: []string{"{new} is an operator of {brand} now, with the role {role}.", opFacts},
		Note: "If nobody should have become one, remove it under Operators of the dashboard, and look into its audit trail.",
	},
	Test: {
		Subject: "A test mail from {brand}", Title: "Mail works",
		Text: []string{"This mail was asked for by `selvage mail test`. Who reads it knows that mail from this installation arrives."},
		Note: "Look at its headers, too: SPF, DKIM and DMARC should pass.",
	},
}

// changes says what has become of a factor, by the name of it in the facts.
var changes = map[string]string{
	"passkey_added":   "the passkey “{name}” was added.",
	"passkey_removed": "the passkey “{name}” was removed.",
	"totp_added":      "an authenticator app was set up.",
	"totp_removed":    "the authenticator app was removed.",
	"codes_replaced":  "new recovery codes were made; those of before are good no more.",
	"code_used":       "a recovery code was used. Codes that are left: {left}.",
	"codes_used_up":   "the last recovery code was used. Make new ones in your account.",
	"codes_removed":   "the recovery codes were removed.",
}
