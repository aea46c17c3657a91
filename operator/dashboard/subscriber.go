package dashboard

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// newSubscriber serves GET /dashboard/projects/{project}/subscribers/new.
func (a *subscriberPages) newSubscriber(v *visit) error {
	p := a.newSubscriberForm(v)
	return a.pageWith(v, templates.Options{Connect: []string{"'self'"}}, p.Title, "subscriber_form", p)
}

// createSubscriber serves POST /dashboard/projects/{project}/subscribers.
func (a *subscriberPages) createSubscriber(v *visit) error {
	in := newSubscriberInput(v)
	generated, err := a.generatePassword(v, &in)
	if err != nil {
		return a.subscriberFault(v, a.newSubscriberForm(v), err)
	}
	s, err := a.Fabric.Subscribers.Create(v.r.Context(), v.project.ID, in)
	if err != nil {
		return a.subscriberFault(v, a.newSubscriberForm(v), err)
	}

	if generated != "" {
		return a.showPassword(v, s, generated)
	}
	return v.redirect(v.base() + "/subscribers/" + s.ID + "?done=subscriberadded")
}

// subscriberFault shows a form again, with the errors next to their inputs.
func (a *subscriberPages) subscriberFault(v *visit, p subscriberForm, err error) error {
	p.Form.retype(v.form)
	if !p.Form.blame(err) {
		return err
	}
	options := templates.Options{Status: http.StatusUnprocessableEntity, Connect: []string{"'self'"}}
	return a.pageWith(v, options, p.Title, "subscriber_form", p)
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
	if err != nil {
		return a.subscriberFault(v, p, err)
	}
	if _, err := a.Fabric.Subscribers.Update(v.r.Context(), v.project.ID, s.ID, in); err != nil {
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

// factorRowOf returns the row of a second factor.
func factorRowOf(f factor.Factor) factorRow {
	row := factorRow{Factor: f, Title: words.Textf("Passkey %s", f.Name)}
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
	if err != nil {
		return err
	}
	p.Apps = apps.Items
	return nil
}

// subscriberSnippets returns code for a backend that acts on behalf of a subscriber, or calls the
// subscriber.
func (a *subscriberPages) subscriberSnippets(v *visit, s fabric.Subscriber, addresses []fabric.Address) []snippet {
	reference := cmp.Or(s.Reference, s.Email)
	body := quoteShell(string(marshal(map[string]string{"reference": reference})))
	curl := fmt.Sprintf("# KEY is an API key of the project. The token acts as the subscriber for "+
		"two hours.\ncurl -u %s:KEY -H 'Content-Type: application/json' \\\n  -d %s \\\n"+
		"  %s/api/fabric/subscribers/tokens", v.project.ID, body, a.PublicURL)
	snippets := []snippet{{Title: "curl", Text: curl}}
	if len(addresses) > 0 {
		snippets = append(snippets, a.addressSnippet(v, addresses[0]))
	}
	cli := "selvage subscriber show " + s.ID + "\nselvage token subscriber --reference=" + quoteShell(reference)
	return append(snippets, snippet{Title: "Command line", Text: cli})
}
