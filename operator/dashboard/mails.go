package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// mailPages serves the page on which owners see the emails of the installation. Its forms send an
// email again, and send a test email.
type mailPages struct {
	*site
	Installation Installation
}

// A Letter is an email to a subscriber or an operator.
type Letter struct {
	ID, Kind, To string
	State        string // pending, sent, kept or dead
	Attempts     int
	Error        string // why the last attempt failed
	Created, Due time.Time
}

// Mailing gives access to the emails of an installation.
type Mailing struct {
	State func(ctx context.Context) (MailState, error)

	// List returns a page of recent letters, newest first. The state "" means all states.
	List  func(ctx context.Context, state string, q page.Query) (page.Page[Letter], error)
	Retry func(ctx context.Context, id string) error // queues a letter again, to be sent immediately
	Test  func(ctx context.Context, to string) error // sends a test email; the owner sees the error
}

// MailState describes how emails are sent.
type MailState struct {
	From   string
	IsKept bool   // emails are stored on this machine and not sent
	Box    string // URL of the local mailbox; "" if there is none
}

// A letterRow is a row in the list of emails.
type letterRow struct {
	Letter
	Title    string
	Status   status
	MayRetry bool
}

// letterStates lists the states of an email, and how pages show them.
var letterStates = []struct {
	state  string
	status status
}{
	{"pending", status{Kind: "warn", Word: "Pending"}}, {"sent", status{Kind: "good", Word: "Sent"}},
	{"kept", status{Word: "Kept here"}}, {"dead", status{Kind: "bad", Word: "Given up"}},
}

// letterTitles maps the kinds of emails to the titles on the page.
var letterTitles = map[string]string{
	"reset_password":            "New password",
	"verify_address":            "Confirm the address",
	"invitation":                "Invitation",
	"change_address":            "Confirm the new address",
	"address_changed":           "Address changed",
	"address_taken":             "Address in use",
	"registration":              "Registration",
	"already_registered":        "Already registered",
	"password_changed":          "Password changed",
	"password_set":              "First password set",
	"factor_changed":            "Second factor changed",
	"new_device":                "New device",
	"test":                      "Test mail",
	"operator_new_device":       "New device of an operator",
	"operator_factor_changed":   "Second factor of an operator changed",
	"operator_password_changed": "Password of an operator changed",
	"operator_link":             "Password link for an operator",
	"operator_added":            "Operator added",
}

// letterRowOf returns the row of an email.
func letterRowOf(l Letter) letterRow {
	row := letterRow{
		Letter:   l,
		Title:    cmp.Or(letterTitles[l.Kind], l.Kind),
		MayRetry: l.State == "pending" || l.State == "dead",
	}
	for _, s := range letterStates {
		if s.state == l.State {
			row.Status = s.status
		}
	}
	return row
}

// A mailPage shows how emails are sent, and a page of recent emails.
type mailPage struct {
	list[letterRow]
	Finder  finder
	Mail    MailState
	To      string
	CanTest bool
	Faults  faults
}

// listMails serves GET /dashboard/mails.
func (a *mailPages) listMails(v *visit) error { return a.showMails(v, http.StatusOK, nil) }

// showMails shows the page of emails. wrong holds the errors in the form for a test email.
func (a *mailPages) showMails(v *visit, code int, wrong faults) error {
	m := a.Installation.Mailing
	if m == nil {
		return problem.NoSuch("page")
	}

	var states []choice
	state := ""
	for _, s := range letterStates {
		states = append(states, choice{Value: s.state, Title: s.status.Word})
		if v.r.URL.Query().Get("state") == s.state {
			state = s.state
		}
	}
	found, err := m.List(v.r.Context(), state, v.query())
	if err != nil {
		return err
	}

	mailState, err := m.State(v.r.Context())
	if err != nil {
		return err
	}

	p := mailPage{
		list:    listOf(v, found, letterRowOf),
		Finder:  v.finder("", "", "", v.choiceFilter("state", "State", "All states", states)),
		Mail:    mailState,
		To:      v.operator.Email,
		CanTest: m.Test != nil,
		Faults:  wrong,
	}
	if v.form.Has("to") {
		p.To = v.form.Get("to")
	}
	return a.page(v, code, "Mails", "mails", p)
}

// testMail serves POST /dashboard/mails/test. It sends a test email immediately.
func (a *mailPages) testMail(v *visit) error {
	m := a.Installation.Mailing
	if m == nil || m.Test == nil {
		return problem.NoSuch("page")
	}

	to := v.form.Get("to")
	if err := fabric.CheckEmail("to", to); err != nil {
		return a.showMails(v, http.StatusUnprocessableEntity, faultAt("to", "This is not an email address."))
	}

	if err := m.Test(v.r.Context(), fabric.NormalizeEmail(to)); err != nil {
		text := words.Sentences("The mail server did not accept the mail:", sentence(err.Error()))
		return a.showMails(v, http.StatusUnprocessableEntity, faultAt("to", text))
	}

	done := "mailed"
	if s, err := m.State(v.r.Context()); err == nil && s.Box != "" {
		done = "mailkept"
	}
	return v.redirect(Prefix + "/mails?done=" + done)
}

// retryMail serves POST /dashboard/mails/{id}/retry.
func (a *mailPages) retryMail(v *visit) error {
	m := a.Installation.Mailing
	if m == nil {
		return problem.NoSuch("page")
	}
	if err := m.Retry(v.r.Context(), v.r.PathValue("id")); err != nil {
		return err
	}
	return v.redirect(Prefix + "/mails?done=mailretried")
}

func (a *mailPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/mails", may: operator.KeepOperators, serve: a.listMails, nav: "Mails",
			group: installation},
		{pattern: "POST /dashboard/mails/test", may: operator.KeepOperators, serve: a.testMail,
			fresh: true, once: true},
		{pattern: "POST /dashboard/mails/{id}/retry", may: operator.KeepOperators, serve: a.retryMail, once: true},
	}
}
