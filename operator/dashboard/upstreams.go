package dashboard

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// upstreamPages serves the pages that list, create, change and delete upstream providers.
type upstreamPages struct {
	*site
	Upstreams *idp.Upstreams
}

// An upstreamRow is a row in the list of upstream providers.
type upstreamRow struct {
	idp.Upstream
	URL    string
	Status status
}

func (v *visit) upstreamRow(u idp.Upstream) upstreamRow {
	row := upstreamRow{Upstream: u, URL: v.base() + "/upstreams/" + u.ID, Status: status{Kind: "good", Word: "Active"}}
	if !u.Enabled {
		row.Status = status{Word: "Hidden"}
	}
	return row
}

// listUpstreams serves GET /dashboard/projects/{project}/upstreams.
func (a *upstreamPages) listUpstreams(v *visit) error {
	f := v.finder("Name, issuer or id", "id.example.com", "")
	found, err := a.Upstreams.Search(v.r.Context(), v.project.ID, f.Query, v.query())
	if err != nil {
		return err
	}
	rows := foundList[upstreamRow]{listOf(v, found, v.upstreamRow), f}
	return a.page(v, http.StatusOK, "Upstream providers", "upstreams", rows)
}

// An upstreamForm is the form that creates or changes an upstream provider.
type upstreamForm struct {
	Action, Title, Button, Back string
	Callback, LoggedOut         string // URLs to register at the provider
	Name                        string
	Delete                      string // the URL of the form that deletes the provider, or ""
	Form                        form
	Faults                      faults
}

// upstreamForm returns the form for a provider. A new provider has no ID.
func (a *upstreamPages) upstreamForm(v *visit, u idp.Upstream) upstreamForm {
	p := upstreamForm{
		Action:    v.base() + "/upstreams",
		Title:     "New upstream provider",
		Button:    "Create provider",
		Back:      v.base() + "/upstreams",
		Callback:  a.AuthURL + u.Callback(),
		LoggedOut: a.AuthURL + "/logout/upstream",
		Form:      form{Inputs: upstreamInputs(u)},
	}
	if u.ID == "" {
		return p
	}

	row := v.upstreamRow(u)
	p.Action = row.URL
	p.Title = u.Name
	p.Button = "Save changes"
	p.Name = u.Name
	p.Delete = row.URL + "/delete"
	p.Form.mark()
	return p
}

// upstreamInputs returns the inputs of the form, with the values of a provider.
func upstreamInputs(u idp.Upstream) []input {
	secret := "It is not shown again. Empty for a public client."
	if u.Secret != "" {
		secret = "A secret is set. Empty keeps it."
	}

	inputs := []input{
		{Kind: kindText, Type: "text", Name: "name", Label: "Name", Hint: "On the button of the sign-in page.",
			Value: u.Name, Length: 60, Required: true},
		{Kind: kindText, Type: "url", Name: "issuer", Label: "Issuer", Value: u.Issuer, Length: 2000, Required: true,
			Hint: "The endpoints are discovered from it.", Example: "https://id.example.com/"},
		{Kind: kindText, Type: "text", Name: "client_id", Label: "Client id", Value: u.ClientID, Length: 500,
			Hint: "The id of this server at the provider.", Required: true},
		{Kind: kindText, Type: "password", Name: "client_secret", Label: "Client secret", Hint: secret, Length: 500},
		{Kind: kindText, Type: "text", Name: "scopes", Label: "Scopes", Value: strings.Join(u.AllScopes(), " ")},
		{Kind: kindCheck, Name: "enabled", Label: "The sign-in page has the button", Checked: u.Enabled || u.ID == ""},
		{Kind: kindCheck, Name: "sign_up", Checked: u.SignUp,
			Label: "People without an account get one, if the project has open registration"},
		{Kind: kindCheck, Name: "logout", Label: "Signing out here also signs out at the provider", Checked: u.Logout},
	}

	for _, field := range idp.UpstreamFields() {
		inputs = append(inputs, input{Kind: kindText, Type: "text", Name: "claim_" + field,
			Label: words.Sentences(claimTitles[field], "(claim)"),
			Value: u.Claims[field], Example: u.Claim(field), Length: 200})
	}
	return inputs
}

// claimTitles describes the fields of a subscriber that a claim can set.
var claimTitles = map[string]string{"email": "Email", "email_verified": "Email verified",
	"first_name": "First name", "last_name": "Last name"}

// upstreamInput returns the settings in a form. An empty secret leaves the secret unchanged.
func upstreamInput(posted url.Values) idp.UpstreamInput {
	text := func(name string) *string {
		value := strings.TrimSpace(posted.Get(name))
		return &value
	}
	check := func(name string) *bool {
		value := posted.Get(name) != ""
		return &value
	}
	scopes, claims := strings.Fields(posted.Get("scopes")), make(map[string]string)

	for _, field := range idp.UpstreamFields() {
		if claim := *text("claim_" + field); claim != "" {
			claims[field] = claim
		}
	}
	in := idp.UpstreamInput{Name: text("name"), Issuer: text("issuer"), ClientID: text("client_id"),
		Enabled: check("enabled"), Scopes: &scopes, Claims: &claims, SignUp: check("sign_up"), Logout: check("logout")}
	if secret := posted.Get("client_secret"); secret != "" {
		in.Secret = &secret
	}
	return in
}

// newUpstream serves GET /dashboard/projects/{project}/upstreams/new.
func (a *upstreamPages) newUpstream(v *visit) error {
	return a.upstreamPage(v, http.StatusOK, a.upstreamForm(v, idp.Upstream{}))
}

func (a *upstreamPages) upstreamPage(v *visit, code int, p upstreamForm) error {
	return a.page(v, code, p.Title, "upstream_form", p)
}

// upstreamFault shows the form again, with the errors next to their inputs. The secret must be typed
// again.
func (a *upstreamPages) upstreamFault(v *visit, p upstreamForm, err error) error {
	retype(p.Form.Inputs, v.form)
	if secret := p.Form.find("client_secret"); secret != nil {
		secret.Value = ""
	}
	if !p.Form.blame(err) {
		return err
	}
	return a.upstreamPage(v, http.StatusUnprocessableEntity, p)
}

// createUpstream serves POST /dashboard/projects/{project}/upstreams.
func (a *upstreamPages) createUpstream(v *visit) error {
	if _, err := a.Upstreams.Create(v.r.Context(), v.project.ID, upstreamInput(v.form)); err != nil {
		return a.upstreamFault(v, a.upstreamForm(v, idp.Upstream{}), err)
	}
	return v.redirect(v.base() + "/upstreams?done=upstreamadded")
}

// showUpstream serves GET /dashboard/projects/{project}/upstreams/{id}.
func (a *upstreamPages) showUpstream(v *visit) error {
	u, err := a.Upstreams.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return a.upstreamPage(v, http.StatusOK, a.upstreamForm(v, u))
}

// changeUpstream serves POST /dashboard/projects/{project}/upstreams/{id}. It writes only the fields
// that the operator changed.
func (a *upstreamPages) changeUpstream(v *visit) error {
	u, err := a.Upstreams.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	p := a.upstreamForm(v, u)
	if err = v.merge(p.Form.Inputs); err == nil {
		_, err = a.Upstreams.Update(v.r.Context(), v.project.ID, u.ID, upstreamInput(v.form))
	}
	if err != nil {
		return a.upstreamFault(v, p, err)
	}
	return v.redirect(v.base() + "/upstreams?done=changed")
}

// deleteUpstream serves POST /dashboard/projects/{project}/upstreams/{id}/delete.
func (a *upstreamPages) deleteUpstream(v *visit) error {
	u, err := a.Upstreams.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if v.form.Get("confirm") != u.Name {
		p := a.upstreamForm(v, u)
		p.Faults = faultAt("confirm", wrongName)
		return a.upstreamPage(v, http.StatusUnprocessableEntity, p)
	}
	if err := a.Upstreams.Delete(v.r.Context(), v.project.ID, u.ID); err != nil {
		return err
	}
	a.rememberDeleted(v, u.Name)
	return v.redirect(v.base() + "/upstreams?done=upstreamdeleted")
}

func (a *upstreamPages) routes() []route {
	const upstreams = "/dashboard/projects/{project}/upstreams"
	return []route{
		{pattern: "GET " + upstreams, may: operator.Read, serve: a.listUpstreams},
		{pattern: "POST " + upstreams, may: operator.Write, serve: a.createUpstream, fresh: true, once: true},
		{pattern: "GET " + upstreams + "/new", may: operator.Write, serve: a.newUpstream, fresh: true},
		{pattern: "GET " + upstreams + "/{id}", may: operator.Write, serve: a.showUpstream, fresh: true},
		{pattern: "POST " + upstreams + "/{id}", may: operator.Write, serve: a.changeUpstream, fresh: true},
		{pattern: "POST " + upstreams + "/{id}/delete", may: operator.Write,
			serve: a.deleteUpstream, fresh: true, ends: true},
	}
}
