package dashboard

import (
	"cmp"
	"net/http"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// clientPages list, show, register and change OAuth clients.
type clientPages struct {
	*site
	Clients *idp.Provider
}

// typeTitles are the titles of the client types.
var typeTitles = []choice{
	{Value: string(idp.SPA), Title: "Browser app", Why: "JavaScript on a page. No secret; uses PKCE."},
	{Value: string(idp.Native), Title: "Phone or desktop app",
		Why: "Redirects to the app itself. No secret; uses PKCE."},
	{Value: string(idp.Web), Title: "Web app with a server", Why: "The server keeps a secret."},
	{Value: string(idp.Service), Title: "Service", Why: "A backend that acts for itself. Nobody signs in."},
}

// A clientRow is a row in the list of OAuth clients.
type clientRow struct {
	idp.Client
	Title, URL, Kind string
	Origin           string // how it registered itself, or ""
}

func (v *visit) clientRow(c idp.Client) clientRow {
	row := clientRow{
		Client: c,
		Title:  cmp.Or(c.Name, c.ID),
		URL:    v.base() + "/clients/" + c.ID,
		Kind:   findChoice(typeTitles, string(c.Type)).Title,
		Origin: "",
	}
	switch c.RegisteredBy {
	case "":
	case idp.RegisteredOpenly:
		row.Origin = "Registered itself"
	default:
		row.Origin = "Registered itself with an initial access token"
	}
	return row
}

// listClients serves GET /dashboard/projects/{project}/clients.
func (a *clientPages) listClients(v *visit) error {
	found, err := a.Clients.Clients.List(v.r.Context(), v.project.ID, v.query())
	if err != nil {
		return err
	}
	return a.page(v, http.StatusOK, "OAuth clients", "clients", listOf(v, found, v.clientRow))
}

// client returns the client named in the path, if it belongs to the project.
func (a *clientPages) client(v *visit) (idp.Client, error) {
	c, err := a.Clients.Clients.Find(v.r.Context(), v.r.PathValue("id"))
	if err == nil && c.ProjectID != v.project.ID {
		err = problem.NoSuch("client")
	}
	return c, err
}

// showClient serves GET /dashboard/projects/{project}/clients/{id}.
func (a *clientPages) showClient(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	return a.clientPage(v, c, "", nil)
}

func (a *clientPages) clientPage(v *visit, c idp.Client, secret string, wrong []string) error {
	p := struct {
		Client       clientRow
		Base, Secret string
		Issuer, Try  string
		HasSecret    bool
		Old          idp.OldSecret
		MayChange    bool
		Faults       []string
		Snippets     []snippet
	}{
		Client:    v.clientRow(c),
		Base:      v.base(),
		Secret:    secret,
		Issuer:    a.AuthURL + "/",
		Try:       a.tryURL(c),
		HasSecret: c.SecretHash != "",
		Old:       c.OldAt(v.now),
		MayChange: v.mayIn(operator.Write),
		Faults:    wrong,
		Snippets:  a.clientSnippets(c),
	}

	code := http.StatusOK
	if wrong != nil {
		code = http.StatusUnprocessableEntity
	}
	return a.page(v, code, p.Client.Title, "client", p)
}

// rotateClient serves POST /dashboard/projects/{project}/clients/{id}/rotate.
func (a *clientPages) rotateClient(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	overlap, ok := overlaps[v.form.Get("overlap")]
	if !ok {
		return problem.BadParam("overlap", "unknown overlap")
	}
	c, secret, err := a.Clients.Clients.RotateSecret(v.r.Context(), c.ID, overlap, nil)
	if err != nil {
		return err
	}
	v.notice = words.Textf("%s has a new secret. Copy it now and give it to the app.", v.quote(v.clientRow(c).Title))
	return a.clientPage(v, c, secret, nil)
}

// endOldSecret serves POST /dashboard/projects/{project}/clients/{id}/old-secret.
func (a *clientPages) endOldSecret(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	if _, err := a.Clients.Clients.EndOldSecret(v.r.Context(), c.ID); err != nil {
		if p := problem.First(err); p != nil && p.Kind == problem.Conflict {
			return a.clientPage(v, c, "", []string{sentence(p.Message)})
		}
		return err
	}
	return v.redirect(v.clientRow(c).URL + "?done=clientended")
}

// deleteClient serves POST /dashboard/projects/{project}/clients/{id}/delete.
func (a *clientPages) deleteClient(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	if v.form.Get("confirm") != v.clientRow(c).Title {
		return a.clientPage(v, c, "", []string{wrongName})
	}
	if err := a.Clients.Clients.Delete(v.r.Context(), c.ID); err != nil {
		return err
	}
	a.rememberDeleted(v, v.clientRow(c).Title)
	return v.redirect(v.base() + "/clients?done=clientdeleted")
}
