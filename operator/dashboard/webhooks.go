package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// webhookPages serves the pages that list, create, change, test and delete webhooks, and show their
// deliveries.
type webhookPages struct{ *site }

// A webhookRow is a row in the list of webhooks.
type webhookRow struct {
	fabric.Webhook
	Title, Host, About string
	Status             status
	Path               string // path of the webhook's page
}

func (v *visit) webhookRow(w fabric.Webhook) webhookRow {
	row := webhookRow{
		Webhook: w,
		Host:    w.URL,
		Status:  status{Kind: "good", Word: "Active"},
		Path:    v.base() + "/webhooks/" + w.ID,
	}
	if u, err := url.Parse(w.URL); err == nil {
		row.Host = u.Host
	}
	row.Title = cmp.Or(w.Name, row.Host)
	row.About = "All events"
	if !slices.Contains(w.Events, fabric.AnyEvent) {
		names := make([]string, len(w.Events))
		for i, e := range w.Events {
			names[i] = string(e)
		}
		row.About = strings.Join(names, ", ")
	}

	switch {
	case !w.Enabled:
		row.Status = status{Word: "Disabled"}
	case w.Rests.After(v.now):
		row.Status = status{Kind: "bad", Word: "Paused"}
	case w.Failures > 0:
		row.Status = status{Kind: "bad", Word: "Failing"}
	}
	return row
}

// listWebhooks serves GET /dashboard/projects/{project}/webhooks.
func (a *webhookPages) listWebhooks(v *visit) error {
	f := v.finder("Name, URL or id", "crm.example.com", "")
	found, err := a.Fabric.Webhooks.Search(v.r.Context(), v.project.ID, f.Query, v.query())
	if err != nil {
		return err
	}
	return a.page(v, http.StatusOK, "Webhooks", "webhooks", foundList[webhookRow]{listOf(v, found, v.webhookRow), f})
}

// A webhookForm is the form that creates or changes a webhook.
type webhookForm struct {
	Action, Title, Button string
	Back, BackTo          string
	Test                  string // path of the action that also sends a test event to the new webhook, or ""
	Form                  form
	Permit                string // the host to add to egress.allow before this URL is accepted, or ""
}

// webhookForm returns the form for a webhook. A new webhook has no ID.
func (v *visit) webhookForm(w fabric.Webhook) webhookForm {
	fields := form{Inputs: webhookInputs(w)}
	if w.ID == "" {
		return webhookForm{
			Action: v.base() + "/webhooks",
			Title:  "New webhook",
			Button: "Create webhook",
			Back:   v.base() + "/webhooks",
			Test:   v.base() + "/webhooks/test",
			Form:   fields,
		}
	}

	fields.mark()
	row := v.webhookRow(w)
	return webhookForm{
		Action: row.Path + "/edit",
		Title:  words.Textf("Edit %s", row.Title),
		Button: "Save changes",
		Back:   row.Path,
		BackTo: row.Title,
		Form:   fields,
	}
}

// webhookInputs returns the inputs of the form, with the values of a webhook.
func webhookInputs(w fabric.Webhook) []input {
	events := make([]choice, len(fabric.EventNames()))
	for i, name := range fabric.EventNames() {
		events[i] = choice{Value: string(name), Title: string(name), Chosen: slices.Contains(w.Events, name)}
	}

	inputs := []input{
		{Kind: kindText, Type: "url", Name: "url", Label: "URL", Value: w.URL, Required: true, Focus: true,
			Hint: "Receives each event by POST.", Example: "https://example.com/events"},
		{Kind: kindText, Type: "text", Name: "name", Label: "Name", Value: w.Name, Length: 255,
			Hint: "Shown in lists.", Example: "CRM"},
		{Kind: kindChoices, Name: "events", Label: "Events", Options: events, Hint: "None selected means all events."},
	}
	if w.ID != "" {
		inputs = append(inputs, input{Kind: kindCheck, Name: "enabled", Label: "Deliver events", Checked: w.Enabled})
	}
	return inputs
}

// webhookInput returns the fields of a webhook in a submitted form.
func webhookInput(posted url.Values, isNew bool) fabric.WebhookInput {
	to, name := strings.TrimSpace(posted.Get("url")), strings.TrimSpace(posted.Get("name"))
	events, enabled := posted["events"], isNew || posted.Get("enabled") != ""
	return fabric.WebhookInput{URL: &to, Name: &name, Events: &events, Enabled: &enabled}
}

// newWebhook serves GET /dashboard/projects/{project}/webhooks/new.
func (a *webhookPages) newWebhook(v *visit) error {
	return a.webhookFormPage(v, http.StatusOK, v.webhookForm(fabric.Webhook{}))
}

func (a *webhookPages) webhookFormPage(v *visit, code int, p webhookForm) error {
	return a.page(v, code, p.Title, "webhook_form", p)
}

// webhookFault shows the form again, with the errors next to their inputs.
func (a *webhookPages) webhookFault(v *visit, p webhookForm, err error) error {
	p.Form.retype(v.form)
	for _, e := range problem.All(err) {
		// Remove the instruction for permitting the host, because the page shows it separately.
		if reason, rest, ok := strings.Cut(e.Message, "; to permit it, add "); ok {
			e.Message = reason
			p.Permit, _, _ = strings.Cut(rest, " ")
		}
	}
	if !p.Form.blame(err) {
		return err
	}
	return a.webhookFormPage(v, http.StatusUnprocessableEntity, p)
}

// createWebhook serves POST /dashboard/projects/{project}/webhooks.
func (a *webhookPages) createWebhook(v *visit) error {
	w, err := a.Fabric.Webhooks.Create(v.r.Context(), v.project.ID, webhookInput(v.form, true))
	if err != nil {
		return a.webhookFault(v, v.webhookForm(fabric.Webhook{}), err)
	}
	return v.redirect(v.webhookRow(w).Path + "?done=webhookadded")
}

// createTested serves POST /dashboard/projects/{project}/webhooks/test. It creates a webhook, and sends
// a test event to it.
func (a *webhookPages) createTested(v *visit) error {
	ctx := v.r.Context()
	w, err := a.Fabric.Webhooks.Create(ctx, v.project.ID, webhookInput(v.form, true))
	if err != nil {
		return a.webhookFault(v, v.webhookForm(fabric.Webhook{}), err)
	}
	d, err := a.Fabric.Webhooks.Test(ctx, v.project.ID, w.ID)
	if err != nil {
		v.notice = "Webhook created."
		return a.showWebhookPage(v, http.StatusOK, w, a.halfDone(v, "The test event was not sent.", err))
	}
	return v.redirect(v.deliveryRow(d).Path + "?done=webhookaddedtested")
}

// find returns the webhook that the path names.
func (a *webhookPages) find(v *visit) (fabric.Webhook, error) {
	return a.Fabric.Webhooks.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
}

// editWebhook serves GET /dashboard/projects/{project}/webhooks/{id}/edit.
func (a *webhookPages) editWebhook(v *visit) error {
	w, err := a.find(v)
	if err != nil {
		return err
	}
	return a.webhookFormPage(v, http.StatusOK, v.webhookForm(w))
}

// changeWebhook serves POST /dashboard/projects/{project}/webhooks/{id}/edit. It writes only the
// fields that the operator changed.
func (a *webhookPages) changeWebhook(v *visit) error {
	w, err := a.find(v)
	if err != nil {
		return err
	}
	p := v.webhookForm(w)
	if err = v.merge(p.Form.Inputs); err == nil {
		_, err = a.Fabric.Webhooks.Update(v.r.Context(), v.project.ID, w.ID, webhookInput(v.form, false))
	}
	if err != nil {
		return a.webhookFault(v, p, err)
	}
	return v.redirect(v.webhookRow(w).Path + "?done=changed")
}

// deleteWebhook serves POST /dashboard/projects/{project}/webhooks/{id}/delete.
func (a *webhookPages) deleteWebhook(v *visit) error {
	w, err := a.find(v)
	if err != nil {
		return err
	}
	row := v.webhookRow(w)
	if v.form.Get("confirm") != row.Title {
		return a.showWebhookPage(v, http.StatusUnprocessableEntity, w, faultAt("confirm", wrongName))
	}
	if err := a.Fabric.Webhooks.Delete(v.r.Context(), v.project.ID, w.ID); err != nil {
		return err
	}
	a.rememberDeleted(v, row.Title)
	return v.redirect(v.base() + "/webhooks?done=webhookdeleted")
}

// testWebhook serves POST /dashboard/projects/{project}/webhooks/{id}/test.
func (a *webhookPages) testWebhook(v *visit) error {
	d, err := a.Fabric.Webhooks.Test(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.redirect(v.deliveryRow(d).Path + "?done=webhooktested")
}

// A signingKeyPage shows the keys that sign a project's deliveries.
type signingKeyPage struct {
	fabric.SigningKeys
	Base   string
	Faults faults
}

// showSigningKey serves POST /dashboard/projects/{project}/signing-key.
func (a *webhookPages) showSigningKey(v *visit) error {
	keys, err := a.Fabric.Webhooks.SigningKeys(v.r.Context(), v.project.ID)
	if err != nil {
		return err
	}
	return a.page(v, http.StatusOK, "Signing key", "signing_key", signingKeyPage{
		SigningKeys: keys,
		Base:        v.base(),
		Faults:      nil,
	})
}

// rotateSigningKey serves POST /dashboard/projects/{project}/signing-key/rotate.
func (a *webhookPages) rotateSigningKey(v *visit) error {
	p, code := signingKeyPage{Base: v.base()}, http.StatusOK
	overlap, ok := overlaps[v.form.Get("overlap")]
	if !ok {
		p.Faults = faultAt("overlap", "Choose when the old key stops signing.")
	}

	var err error
	if ok {
		p.SigningKeys, err = a.Fabric.Webhooks.RotateSigningKey(v.r.Context(), v.project.ID, overlap)
		p.Faults, ok = describeFaults(err)
		ok = !ok && err == nil
	}
	switch {
	case ok:
		v.notice = "There is a new signing key. Give it to every receiver before it starts signing."
	case p.Faults == nil:
		return err
	default:
		code = http.StatusUnprocessableEntity
		if p.SigningKeys, err = a.Fabric.Webhooks.SigningKeys(v.r.Context(), v.project.ID); err != nil {
			return err
		}
	}
	return a.page(v, code, "Signing key", "signing_key", p)
}

// webhookAttention returns the project's failing webhooks.
func (a *site) webhookAttention(v *visit) (matters []attention, err error) {
	hooks, err := a.Fabric.Webhooks.List(v.r.Context(), v.project.ID, page.Query{Size: page.DefaultSize})
	if err != nil {
		return nil, err
	}
	for _, w := range hooks.Items {
		if !w.Enabled || w.Failures == 0 {
			continue
		}
		row := v.webhookRow(w)
		matters = append(matters, attention{
			Status: status{Kind: "bad", Word: "Webhook fails"},
			Text:   row.Title,
			URL:    row.Path,
		})
	}
	return matters, nil
}

func (a *webhookPages) routes() []route {
	const webhooks, key = "/dashboard/projects/{project}/webhooks", "/dashboard/projects/{project}/signing-key"
	return []route{
		{pattern: "GET " + webhooks, may: operator.Read, serve: a.listWebhooks, nav: "Webhooks", group: project},
		{pattern: "POST " + webhooks, may: operator.Write, serve: a.createWebhook, once: true},
		{pattern: "POST " + webhooks + "/test", may: operator.Write, serve: a.createTested, once: true},
		{pattern: "GET " + webhooks + "/new", may: operator.Write, serve: a.newWebhook},
		{pattern: "GET " + webhooks + "/{id}", may: operator.Read, serve: a.showWebhook},
		{pattern: "GET " + webhooks + "/{id}/edit", may: operator.Write, serve: a.editWebhook},
		{pattern: "POST " + webhooks + "/{id}/edit", may: operator.Write, serve: a.changeWebhook},
		{pattern: "POST " + webhooks + "/{id}/test", may: operator.Write, serve: a.testWebhook, once: true},
		{pattern: "POST " + webhooks + "/{id}/redeliver", may: operator.Write, serve: a.redeliverDead, once: true},
		{pattern: "POST " + webhooks + "/{id}/delete", may: operator.Write, serve: a.deleteWebhook, ends: true},
		{pattern: "GET " + webhooks + "/{id}/deliveries/{delivery}", may: operator.Read, serve: a.showDelivery},
		{pattern: "GET " + webhooks + "/{id}/deliveries/{delivery}/live", may: operator.Read,
			serve: a.followDelivery},
		{pattern: "POST " + webhooks + "/{id}/deliveries/{delivery}/redeliver", may: operator.Write,
			serve: a.redeliver, once: true},
		{pattern: "POST " + key, may: operator.Write, serve: a.showSigningKey, fresh: true},
		{pattern: "POST " + key + "/rotate", may: operator.Write, serve: a.rotateSigningKey, fresh: true, once: true},
	}
}
