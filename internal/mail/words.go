package mail

import "strings"

// words holds the texts of one kind of letter. A placeholder such as {name} is replaced by the
// letter's fact with this name.
type words struct {
	Subject string
	Title   string
	Text    []string
	Button  string // the label of the link; "" if the letter has no link
	Note    string
}

// A tongue holds the words of all kinds of letters in one language, and the texts that they share.
type tongue struct {
	tag     string // BCP 47
	words   map[Kind]words
	changes map[string]string // descriptions of changes to a second factor, keyed by the value of the fact "what"
	others  string            // name for the author of a change that an operator or a key made
	signed  string            // the footer
	broken  string            // the sentence before the address of the link
	date    string            // the layout of times, in UTC
	device  *strings.Replacer // translates the names of devices that package agent returns
}

// inEnglish is the tongue for English, and for languages without a translation.
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
		"“Forgot password?” on the sign-in page. This signs out everyone else."
	ignore = "If you did not request this, you can ignore this email. " +
		"Nothing changes unless someone uses the link."
	linkLife = "The link can be used once and expires in {minutes} minutes."
	signed   = "{brand} sent you this email about your account."
	// A line whose fact is missing is left out.
	facts    = "When: {when}\nDevice: {device}\nIP address: {address}\nBy: {by}"
	opFacts  = facts + "\nBy: {maker}"
	askOwner = "If this was not you, tell an owner of this installation immediately. " +
		"Owners can sign you out everywhere and create a link for a new password."
	others = "the operators of {brand}"
)

// english holds the English words for each kind of letter.
var english = map[Kind]words{
	Reset: {
		Subject: "Set a new password for {brand}",
		Title:   "Set a new password",
		Button:  "Set a new password",
		Text: []string{
			"Someone, probably you, requested a new password for the account {to} at {brand}.",
			linkLife + " Setting the password signs you out everywhere.",
		},
		Note: ignore,
	},
	Verify: {
		Subject: "Confirm your email address for {brand}",
		Title:   "Confirm your email address",
		Button:  "Confirm this address",
		Text: []string{
			"Your account at {brand} uses the address {to}. Please confirm that this address is yours.",
			"The link can be used once and expires in {hours} hours.",
		},
		Note: "If you do not have an account at {brand}, you can ignore this email.",
	},
	Invitation: {
		Subject: "You are invited to {brand}",
		Title:   "You are invited to {brand}",
		Button:  "Accept the invitation",
		Text: []string{
			"{inviter} created an account for you at {brand} with the address {to}. " +
				"To use it, accept the invitation and choose a password.",
			"The link can be used once and expires in {days} days.",
		},
		Note: "If you do not know {inviter}, you can ignore this email. " +
			"Nobody can use the account without the link.",
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
		Title:   "You already have an account with this address",
		Text: []string{
			"Someone, probably you, tried to use {to} for a different account at {brand}. " +
				"You already have an account with this address, so nothing has changed.",
		},
		Note: "If this was not you, you can ignore this email.",
	},
	AddressChanged: {
		Subject: "Your email address at {brand} has changed",
		Title:   "Your email address has changed",
		Text: []string{
			"The email address of your account at {brand} has changed from {to} to {new}. " +
				"Future emails about your account will go to the new address.",
			facts,
		},
		Note: "If this was not you, contact the operators of {brand} immediately.",
	},
	Registration: {
		Subject: "Confirm your email address for {brand}",
		Title:   "Create your account",
		Button:  "Confirm this address",
		Text: []string{
			"Someone, probably you, wants to create an account at {brand} with the address {to}. " +
				"To create the account, confirm that the address is yours.",
			linkLife + " To be signed in right away, open it in the browser where you started.",
		},
		Note: ignore,
	},
	Registered: {
		Subject: "You already have an account at {brand}",
		Title:   "You already have an account",
		Text: []string{
			"Someone, probably you, tried to create an account at {brand} with the address {to}. " +
				"There is already an account with this address, so you can sign in. " +
				"If you forgot the password, choose “Forgot password?” on the sign-in page.",
		},
		Note: "If this was not you, you can ignore this email. Nothing has changed.",
	},
	PasswordChanged: {
		Subject: "Your password at {brand} has changed",
		Title:   "Your password has changed",
		Text: []string{
			"The password of your account {to} at {brand} has changed. " +
				"All other devices and apps were signed out.",
			facts,
		},
		Note: notYou,
	},
	PasswordSet: {
		Subject: "Your account at {brand} now has a password",
		Title:   "Your account now has a password",
		Text: []string{
			"Your account {to} at {brand} had no password, and now has one. " +
				"All other devices and apps were signed out.",
			facts,
		},
		Note: notYou,
	},
	FactorChanged: {
		Subject: "Security notice about your account at {brand}",
		Title:   "Security notice",
		Text: []string{
			"In your account {to} at {brand}, {what}",
			facts,
		},
		Note: "If this was not you, someone may have access to your account. Set a new password with " +
			"“Forgot password?” on the sign-in page. This signs out everyone else. " +
			"Then remove anything you do not recognize from your account.",
	},
	NewDevice: {
		Subject: "A new sign-in to {brand}",
		Title:   "New sign-in on a new device",
		Text: []string{
			"Someone signed in to your account {to} at {brand} on a new device or in a new browser.",
			facts,
		},
		Note: "If this was you, you do not need to do anything. " + notYou,
	},
	OperatorDevice: {
		Subject: "A new sign-in to the dashboard of {brand}",
		Title:   "New sign-in from a new network",
		Text: []string{
			"Someone signed in to your operator account {to} at {brand} from a network that you have " +
				"not signed in from before.",
			opFacts,
		},
		Note: "If this was you, you do not need to do anything. " + askOwner,
	},
	OperatorFactor: {
		Subject: "Security notice about your operator account at {brand}",
		Title:   "Security notice",
		Text: []string{
			"In your operator account {to} at {brand}, {what}",
			opFacts,
		},
		Note: askOwner,
	},
	OperatorPassword: {
		Subject: "Your operator password at {brand} has changed",
		Title:   "Your password has changed",
		Text: []string{
			"The password of your operator account {to} at {brand} has changed. " +
				"You were signed out everywhere else.",
			opFacts,
		},
		Note: askOwner,
	},
	OperatorLink: {
		Subject: "A link for a new operator password at {brand}",
		Title:   "Someone created a link for a new password",
		Text: []string{
			"Someone created a link that sets a new password for your operator account {to} at {brand}. " +
				"The link can be used once and expires in a day. It is not in this email; " +
				"get it from the person who created it.",
			opFacts,
		},
		Note: "If you did not ask for a link, immediately tell an owner who did not create it.",
	},
	OperatorAdded: {
		Subject: "A new operator at {brand}: {new}",
		Title:   "There is a new operator",
		Text: []string{
			"{new} is now an operator of {brand} with the role {role}.",
			opFacts,
		},
		Note: "If you did not expect this, remove the operator under Operators in the dashboard, and " +
			"check the audit trail.",
	},
	Test: {
		Subject: "A test email from {brand}",
		Title:   "Email works",
		Text: []string{
			"The command “selvage mail test” sent this email. " +
				"It arrived, so this installation can send email.",
		},
		Note: "Check the headers of this email, too: SPF, DKIM and DMARC should pass.",
	},
}

// changes describes changes to a second factor. Its keys are values of the fact "what". Each
// description continues a sentence.
var changes = map[string]string{
	"passkey_added":   "the passkey “{name}” was added.",
	"passkey_removed": "the passkey “{name}” was removed.",
	"totp_added":      "an authenticator app was set up.",
	"totp_removed":    "the authenticator app was removed.",
	"codes_replaced":  "new recovery codes were created. The old ones no longer work.",
	"code_used":       "a recovery code was used. Codes left: {left}.",
	"codes_used_up":   "the last recovery code was used. Create new codes in your account.",
	"codes_removed":   "the recovery codes were removed.",
}
