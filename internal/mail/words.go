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

// Words that several letters share.
const (
	notYou  = "If it was not you, somebody may know your password: set a new one with “Forgot password?” where you sign in, which signs out everybody else."
	ignore  = "If you did not ask for it, leave this mail be: nothing has changed, and nobody gets in without the link."
	halfOur = "The link works once, for {minutes} minutes."
	signed  = "{brand} sends this mail about your account there."
	facts   = "When: {when}\nDevice: {device}\nNetwork address: {address}"
)

// english says each kind.
var english = map[Kind]words{
	Reset: {
		Subject: "Set a new password for {brand}", Title: "Set a new password", Button: "Set a new password",
		Text: []string{"Somebody, probably you, has asked for a new password for the account {to} at {brand}.", halfOur + " Setting the password signs you out everywhere else."}, Note: ignore,
	},
	Verify: {
		Subject: "Confirm your e-mail address for {brand}", Title: "Confirm your e-mail address", Button: "Confirm this address",
		Text: []string{"Your account at {brand} has the address {to}. Confirm that it is yours.", "The link works once, for {hours} hours."}, Note: "If you have no account at {brand}, leave this mail be.",
	},
	Invitation: {
		Subject: "{inviter} invites you to {brand}", Title: "You are invited to {brand}", Button: "Accept the invitation",
		Text: []string{"{inviter} has made an account for you at {brand}, with the address {to}. Accept the invitation and choose a password to use it.", "The link works once, for {days} days."},
		Note: "If you do not know {inviter}, leave this mail be: without the link nobody can use the account.",
	},
	ChangeAddress: {
		Subject: "Confirm your new e-mail address for {brand}", Title: "Confirm your new address", Button: "Use this address",
		Text: []string{"You want to use {to} for your account at {brand}, in place of {old}. It takes effect once you confirm it.", halfOur}, Note: ignore,
	},
	AddressChanged: {
		Subject: "Your e-mail address at {brand} has changed", Title: "Your e-mail address has changed",
		Text: []string{"Your account at {brand} had the address {to}. It has {new} now, and mails about it go there."},
		Note: "If it was not you, write to those who run {brand} at once.",
	},
	Registration: {
		Subject: "Finish your account at {brand}", Title: "Finish your account", Button: "Choose a password",
		Text: []string{"Somebody, probably you, wants an account at {brand} with the address {to}. Choose a password to make it.", halfOur}, Note: ignore,
	},
	Registered: {
		Subject: "You already have an account at {brand}", Title: "You already have an account",
		Text: []string{"Somebody, probably you, wanted a new account at {brand} with the address {to}. There is one: sign in with it. If you do not know the password any more, choose “Forgot password?” there."},
		Note: "If it was not you, leave this mail be: nothing has changed.",
	},
	PasswordChanged: {
		Subject: "Your password at {brand} has changed", Title: "Your password has changed",
		Text: []string{"The password of your account {to} at {brand} has changed, and all that was signed in with it is signed out."}, Note: notYou,
	},
	FactorChanged: {
		Subject: "How you sign in to {brand} has changed", Title: "How you sign in has changed",
		Text: []string{"For your account {to} at {brand}: {what}."}, Note: notYou,
	},
	NewDevice: {
		Subject: "A new sign-in to {brand}", Title: "Somebody signed in on a new device",
		Text: []string{"Your account {to} at {brand} was signed in to on a device, or in a browser, that was not seen with it before.", facts},
		Note: "If it was you, all is well. " + notYou,
	},
	Test: {
		Subject: "A test mail from {brand}", Title: "Mail works",
		Text: []string{"This mail was asked for by `selvage mail test`. Who reads it knows that mail from this installation arrives."},
		Note: "Look at its headers, too: SPF, DKIM and DMARC should pass.",
	},
}

// fill puts facts in the place of their names. What is put in is never looked through
// for names again.
func (w words) fill(values map[string]string) words {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "{"+name+"}", oneLine(value))
	}
	r := strings.NewReplacer(pairs...)
	filled := words{Subject: oneLine(r.Replace(w.Subject)), Title: r.Replace(w.Title), Button: w.Button, Note: r.Replace(w.Note)}
	for _, p := range w.Text {
		filled.Text = append(filled.Text, r.Replace(p))
	}
	return filled
}
