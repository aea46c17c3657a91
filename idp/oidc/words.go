package oidc

import (
	"net/http"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/agent"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// passwordRule returns a sentence that states how long a new password must be.
func (pg *pages) passwordRule(r *http.Request) string {
	least, most := pg.Fabric.Subscribers.PasswordLength()
	return pg.words(r).Say("password.rule", "Least", least, "Most", most)
}

// faults lists the codes of errors that have a message in every language.
var faults = []string{
	"wrong_credentials", "wrong_password", "wrong_code", "code_used", "passkey_unknown", "passkey_stale",
	"passkey_refused", "passkey_cloned", "passkey_known",
	"no_passkeys", "too_many_passkeys", "enrolment_over", "enrolled", "too_many_codes",
}

// fault describes an error in the language of r. It explains only in English why a password is
// weak.
func (pg *pages) fault(r *http.Request, p *problem.Error) string {
	say := pg.words(r)
	switch {
	case slices.Contains(faults, p.Code):
		return say.Say("fault." + p.Code)
	case (p.Param == "password" || p.Param == "email") && say == words.English():
		return "The " + p.Message + "."
	case p.Code == "weak_password":
		return say.Say("fault.weak_password")
	case p.Param == "password":
		return say.Say("fault.password")
	}
	if p.Param == "email" {
		return say.Say("fault.email")
	}
	return say.Say("fault.other")
}

// nameless maps the generic names that agent.Name returns to message keys.
var nameless = map[string]string{"A browser": "agent.browser", "An app": "agent.app",
	"An unknown device": "agent.none"}

// deviceOf describes the sender of a User-Agent, such as "Firefox on Linux".
func deviceOf(say *words.Words, userAgent string) string {
	product, system, found := strings.Cut(agent.Name(userAgent), " on ")
	if key, ok := nameless[product]; ok {
		product = say.Say(key)
	}
	if !found {
		return product
	}
	return say.Say("agent.on", "Browser", product, "System", system)
}

var errAddressTaken = pageError(http.StatusConflict, "error.address", "error.address-text")

func changeWords(say *words.Words, email, project, token string) templates.Confirm {
	return templates.Confirm{
		Title: say.Say("address.use"), Text: say.Say("address.use-text", "Project", project, "Email", email),
		Action: "/change-address", Token: token, Button: say.Say("address.use-submit", "Email", email),
	}
}

func changedWords(say *words.Words, email, projectID string) templates.Notice {
	return templates.Notice{Button: &templates.Link{Title: say.Say("account.back"),
		URL: accountURL(projectID)}, ID: "address-changed", Title: say.Say("address.changed"),
		Text: []string{say.Say("address.changed-text", "Email", email)}}
}

// accountLink returns a link to the account page. It is for people who open a link in an email, and
// so cannot return to an app.
func accountLink(say *words.Words, projectID string) *templates.Link {
	return &templates.Link{Title: say.Say("login.submit", "App", say.Say("your-account")), URL: accountURL(projectID)}
}

// These are the errors if people cannot create accounts, or already have one.
var (
	errNoRegistration = pageError(http.StatusNotFound, "error.registration", "error.registration-text")
	errHasAccount     = pageError(http.StatusConflict, "error.registered", "error.registered-text")
)

// registrationSent returns the notice after a registration, which is the same for every address.
func registrationSent(say *words.Words, mailbox bool) templates.Notice {
	return templates.Notice{
		ID: "mail-sent", Title: say.Say("forgot.sent"), Mailbox: mailbox,
		Text: []string{say.Say("register.sent-text"), say.Say("register.sent-link")},
	}
}

func welcomeHere(say *words.Words, email, project, token string) templates.Confirm {
	return templates.Confirm{
		Title: say.Say("welcome.title"), Text: say.Say("welcome.here", "Project", project, "Email", email),
		Action: "/welcome", Token: token, Button: say.Say("welcome.submit"),
	}
}

func welcomeElsewhere(say *words.Words, email, project, token string) templates.NewPassword {
	return templates.NewPassword{
		Title: say.Say("welcome.title"), Text: say.Say("welcome.elsewhere", "Project", project, "Email", email),
		Action: "/welcome", Token: token, Email: email, Button: say.Say("welcome.submit"),
	}
}

func accountMade(say *words.Words, email, projectID string) templates.Notice {
	return templates.Notice{ID: "account-made", Account: accountLink(say, projectID),
		Title: say.Say("welcome.done"), Text: []string{say.Say("welcome.done-text", "Email", email)}}
}
