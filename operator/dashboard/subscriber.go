package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// A subscriberForm is the form that creates or changes a subscriber.
type subscriberForm struct {
	Back, BackTo, Action, Title, Button string
	Link                                string // path that also creates a link for the new subscriber, or ""
	Form                                form
}

// newSubscriberForm returns the form for a new subscriber.
func (a *subscriberPages) newSubscriberForm(v *visit) subscriberForm {
	all := v.base() + "/subscribers"
	p := subscriberForm{
		Back: all, Action: all, Title: "New subscriber", Button: "Add subscriber", Link: all + "/link",
	}
	p.Form = a.subscriberInputs(fabric.Subscriber{}, "Leave empty for no password. They can choose "+
		"one with an invitation that you send next.")
	email := &p.Form.Inputs[0]
	email.Required, email.Focus = true, true
	email.Live = &liveHint{
		Text: "Their address is derived from the part before the @: ada@example.com is called at /private/ada.",
		Path: all + "/address", Names: "email",
	}
	return p
}

// editSubscriberForm returns the form that changes a subscriber.
func (a *subscriberPages) editSubscriberForm(v *visit, s fabric.Subscriber) subscriberForm {
	row := v.subscriberRow(s)
	p := subscriberForm{Back: row.URL, BackTo: row.Title, Action: row.URL + "/edit",
		Title:  words.Textf("Edit %s", row.Title),
		Button: "Save changes"}
	p.Form = a.subscriberInputs(s, "Leave empty to keep it. A new one ends their sessions and tokens.")
	p.Form.Inputs[0].Required = s.Email != ""
	p.Form.mark()
	return p
}

// subscriberInputs returns the inputs of the forms that create and change a subscriber. The email
// comes first.
func (a *subscriberPages) subscriberInputs(s fabric.Subscriber, passwordHint string) form {
	text := func(name, label, value, hint string) input {
		return input{Kind: "text", Type: "text", Name: name, Label: label, Value: value, Hint: hint, Length: 255}
	}
	email := text("email", "Email", s.Email, "They sign in with it.")
	email.Type, email.Length = "email", 254
	least, most := a.Fabric.Subscribers.PasswordLength()
	rule := words.Textf("%s to %s characters that are hard to guess, such as four unrelated words.", least, most)

	person := make([]input, len(fabric.PersonFields)) // the first two are the first and the last name
	for i, f := range fabric.PersonFields {
		person[i] = text(f.Name, f.Label, *f.Text(&s.Person), personHints[f.Name])
	}
	first := []input{
		email,
		person[0], person[1],
		{Kind: "secret", Name: "password", Label: "Password", Hint: words.Sentences(rule, passwordHint)},
		{Kind: "check", Name: "generate", Label: "Generate a password",
			Hint: "It is shown once, after you save."},
	}
	more := append(person[2:], input{Kind: "select", Name: "record_calls", Label: "Recording of calls",
		Options: selectChoices(recordSettings, string(s.RecordCalls)),
		Hint: words.Sentences("A call is recorded if recording is on for one of its subscribers.",
			recordConsent)})
	return form{Inputs: first, More: append(more, forwardingInputs(s.Forwarding)...),
		About: "Display name, company, calls"}
}

// personHints contains the hints of the inputs for fields of a [fabric.Person], by field.
var personHints = map[string]string{
	"display_name": "Shown to others instead of first and last name.",
	"time_zone":    "For example Europe/Berlin.",
}

// forwardingInputs returns the inputs for where a subscriber's calls are forwarded.
func forwardingInputs(f fabric.Forwarding) []input {
	forward := func(name, label, value, hint string) input {
		return input{Kind: "text", Type: "text", Name: name, Label: label, Value: value, Hint: hint, Length: 255,
			Example: "/private/bob"}
	}
	return []input{
		forward("forward_busy", "Forward when busy", f.Busy,
			"An address or a phone number, for calls that they reject or that come while others ring."),
		forward("forward_no_answer", "Forward when unanswered", f.NoAnswer,
			"Also if they are offline. Calls to phone numbers follow the project’s rules, and count as theirs."),
		{Kind: "text", Type: "number", Min: "0", Max: "60", Name: "ring_seconds",
			Label: "Seconds to ring before forwarding", Value: strconv.Itoa(f.RingSeconds),
			Hint: "5 to 60, or 0 for 20."},
	}
}

// recordSettings lists the options for a subscriber's record_calls. The default comes first.
var recordSettings = []choice{
	{Value: string(fabric.RecordInherit), Title: "As in the project’s rules"},
	{Value: string(fabric.RecordOff), Title: "Off"},
	{Value: string(fabric.RecordOn), Title: "On"},
}

// subscriberInput returns the fields that the form changes.
func (v *visit) subscriberInput(s fabric.Subscriber) (in fabric.SubscriberInput) {
	set := func(name, was string, into **string) {
		if text := v.form.Get(name); text != was {
			*into = &text
		}
	}

	set("email", s.Email, &in.Email)
	for _, f := range fabric.PersonFields {
		set(f.Name, *f.Text(&s.Person), f.Input(&in.Profile))
	}
	if secret := v.form.Get("password"); secret != "" {
		in.Password = &secret
	}
	set("forward_busy", s.Forwarding.Busy, &in.Forwarding.Busy)
	set("forward_no_answer", s.Forwarding.NoAnswer, &in.Forwarding.NoAnswer)

	if text := v.form.Get("ring_seconds"); text != "" && text != strconv.Itoa(s.Forwarding.RingSeconds) {
		n, err := strconv.Atoi(text)
		if err != nil {
			n = -1 // an invalid number, so that the error names the bounds
		}
		in.Forwarding.RingSeconds = &n
	}
	if text := v.form.Get("record_calls"); text != string(s.RecordCalls) && v.form.Has("record_calls") {
		in.RecordCalls = (*fabric.RecordCalls)(&text)
	}
	return in
}

// newSubscriberInput returns the fields of the form for a new subscriber.
func newSubscriberInput(v *visit) fabric.SubscriberInput {
	in := v.subscriberInput(fabric.Subscriber{})
	if in.Email == nil {
		in.Email = new(string) // an empty email is reported, because the email is required
	}
	return in
}

// newSubscriber serves GET /dashboard/projects/{project}/subscribers/new.
func (a *subscriberPages) newSubscriber(v *visit) error {
	p := a.newSubscriberForm(v)
	return a.pageWith(v, templates.Options{Connect: []string{"'self'"}}, p.Title, "subscriber_form", p)
}

// createSubscriber serves POST /dashboard/projects/{project}/subscribers.
func (a *subscriberPages) createSubscriber(v *visit) error {
	in := newSubscriberInput(v)
	generated, err := a.generatePassword(v, &in)
	var s fabric.Subscriber
	if err == nil {
		s, err = a.Fabric.Subscribers.Create(v.r.Context(), v.project.ID, in)
	}
	if err != nil {
		return a.subscriberFault(v, a.newSubscriberForm(v), err)
	}
	if generated != "" {
		return a.showPassword(v, s, generated)
	}
	return v.redirect(v.base() + "/subscribers/" + s.ID + "?done=subscriberadded")
}

func (a *subscriberPages) subscriberFault(v *visit, p subscriberForm, err error) error {
	p.Form.retype(v.form)
	if !p.Form.blame(err) {
		return err
	}
	return a.pageWith(v, templates.Options{Status: http.StatusUnprocessableEntity,
		Connect: []string{"'self'"}}, p.Title, "subscriber_form", p)
}

// editSubscriber serves GET /dashboard/projects/{project}/subscribers/{id}/edit.
func (a *subscriberPages) editSubscriber(v *visit) error {
	s, err := a.Fabric.Subscribers.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	p := a.editSubscriberForm(v, s)
	return a.page(v, http.StatusOK, p.Title, "subscriber_form", p)
}

// saveSubscriber serves POST /dashboard/projects/{project}/subscribers/{id}/edit. It writes only
// the fields that the operator changed, so that it does not overwrite changes by others.
func (a *subscriberPages) saveSubscriber(v *visit) error {
	s, err := a.Fabric.Subscribers.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	p := a.editSubscriberForm(v, s)
	if err := v.merge(p.Form.Inputs, p.Form.More); err != nil {
		return a.subscriberFault(v, p, err)
	}
	in := v.subscriberInput(s)
	generated, err := a.generatePassword(v, &in)
	if err == nil {
		_, err = a.Fabric.Subscribers.Update(v.r.Context(), v.project.ID, s.ID, in)
	}
	if err != nil {
		return a.subscriberFault(v, p, err)
	}
	if generated != "" {
		return a.showPassword(v, s, generated)
	}
	return v.backTo(s.ID, "changed")
}

// backTo redirects to a subscriber's page, with a notice about the change.
func (v *visit) backTo(id, done string) error {
	return v.redirect(v.base() + "/subscribers/" + id + "?done=" + done)
}

// unlockSubscriber serves POST /dashboard/projects/{project}/subscribers/{id}/unlock.
func (a *subscriberPages) unlockSubscriber(v *visit) error {
	s, err := a.Fabric.Subscribers.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := a.Clients.Attempts.Unlock(v.r.Context(), s); err != nil {
		return err
	}
	return v.backTo(s.ID, "unlocked")
}

// removeSubscriberFactor serves POST
// /dashboard/projects/{project}/subscribers/{id}/factors/remove.
func (a *subscriberPages) removeSubscriberFactor(v *visit) error {
	id := v.r.PathValue("id")
	if err := a.Fabric.Subscribers.RemoveFactor(v.r.Context(), v.project.ID, id, v.form.Get("factor")); err != nil {
		return err
	}
	return v.backTo(id, "factor")
}

// revokeApp serves POST /dashboard/projects/{project}/subscribers/{id}/apps/revoke.
func (a *subscriberPages) revokeApp(v *visit) error {
	id := v.r.PathValue("id")
	if err := a.Fabric.Logins.RevokeConsent(v.r.Context(), v.project.ID, id, v.form.Get("client")); err != nil {
		return err
	}
	return v.backTo(id, "apprevoked")
}

// exportSubscriber serves GET /dashboard/projects/{project}/subscribers/{id}/export.
func (a *subscriberPages) exportSubscriber(v *visit) error {
	e, err := a.Fabric.ExportSubscriber(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	web.NoStore(v.w)
	v.w.Header().Set("Content-Disposition", `attachment; filename="subscriber.json"`)
	return web.JSON(v.w, http.StatusOK, e)
}

// A factorRow is a row in a list of second factors.
type factorRow struct {
	factor.Factor
	Title string
}

func factorRowOf(f factor.Factor) factorRow {
	row := factorRow{f, words.Textf("Passkey %s", f.Name)}
	switch f.Type {
	case factor.TypeTOTP:
		row.Title = "Authenticator app"
	case factor.TypeRecovery:
		row.Title = words.Textf("Recovery codes (%s of 10 left)", f.Left)
	}
	return row
}

// addFactorsAndApps adds a subscriber's second factors, and the apps that the subscriber has
// authorized, to p.
func (a *subscriberPages) addFactorsAndApps(v *visit, s fabric.Subscriber, p *subscriberPage) error {
	ctx := v.r.Context()
	if a.Factors != nil {
		factors, err := a.Fabric.Subscribers.ListFactors(ctx, v.project.ID, s.ID, page.Query{Size: page.DefaultSize})
		if err != nil {
			return err
		}
		for _, f := range factors.Items {
			p.Factors = append(p.Factors, factorRowOf(f))
		}
	}
	apps, err := a.Fabric.Logins.ListConsents(ctx, v.project.ID, s.ID, page.Query{Size: page.DefaultSize})
	p.Apps = apps.Items
	return err
}

// subscriberSnippets returns code for a backend that acts on behalf of a subscriber, or calls the
// subscriber.
func (a *subscriberPages) subscriberSnippets(v *visit, s fabric.Subscriber, addresses []fabric.Address) []snippet {
	reference := cmp.Or(s.Reference, s.Email)
	body := quoteShell(string(marshal(map[string]string{"reference": reference})))
	all := []snippet{{"curl", fmt.Sprintf("# KEY is an API key of the project. The token acts as the subscriber for "+
		"two hours.\ncurl -u %s:KEY -H 'Content-Type: application/json' \\\n  -d %s \\\n"+
		"  %s/api/fabric/subscribers/tokens",
		v.project.ID, body, a.PublicURL)}}
	if len(addresses) > 0 {
		all = append(all, a.addressSnippet(v, addresses[0]))
	}
	return append(all, snippet{"Command line",
		"selvage subscriber show " + s.ID + "\nselvage token subscriber --reference=" + quoteShell(reference)})
}
