package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// clientPages serves the pages that list, show, register and change OAuth clients.
type clientPages struct {
	*site
	Clients *idp.Provider
}

// typeTitles lists the client types with their titles and explanations.
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
	Origin           string // how the client registered itself, or ""
}

func (v *visit) clientRow(c idp.Client) clientRow {
	row := clientRow{
		Client: c,
		Title:  cmp.Or(c.Name, c.ID),
		URL:    v.base() + "/clients/" + c.ID,
		Kind:   findChoice(typeTitles, string(c.Type)).Title,
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

// clientFinder returns the search form of the list of clients, and the filter that it describes.
func (v *visit) clientFinder() (finder, idp.ClientFilter) {
	f := v.finder("Name or client id", "shop", "", v.choiceFilter("type", "Type", "Any type", typeTitles)).exportable(v)
	return f, idp.ClientFilter{Text: f.Query, Type: idp.ClientType(f.chosen("type"))}
}

// listClients serves GET /dashboard/projects/{project}/clients.
func (a *clientPages) listClients(v *visit) error {
	f, filter := v.clientFinder()
	found, err := a.Clients.Clients.Search(v.r.Context(), v.project.ID, filter, v.query())
	if err != nil {
		return err
	}
	return a.page(v, http.StatusOK, "OAuth clients", "clients", foundList[clientRow]{listOf(v, found, v.clientRow), f})
}

// exportClients serves GET /dashboard/projects/{project}/clients/export.
func (a *clientPages) exportClients(v *visit) error {
	_, filter := v.clientFinder()
	list := func(q page.Query) (page.Page[idp.Client], error) {
		return a.Clients.Clients.Search(v.r.Context(), v.project.ID, filter, q)
	}
	header := []string{"id", "name", "type", "first_party", "redirect_uris", "scopes", "created"}
	return writeCSV(a.site, v, "clients", header, list, func(c idp.Client) []string {
		return []string{c.ID, c.Name, string(c.Type), strconv.FormatBool(c.FirstParty),
			strings.Join(c.RedirectURIs, " "), strings.Join(c.Scopes, " "), csvTime(c.Created)}
	})
}

// bulkClients serves POST /dashboard/projects/{project}/clients/bulk, which deletes the selected
// clients.
func (a *clientPages) bulkClients(v *visit) error {
	return a.bulk(v, bulkPage{
		Title:  "Delete OAuth clients",
		Button: "Delete clients",
		Danger: true,
		Text: "Nobody can sign in to these apps, and their tokens stop working within a second. " +
			"This cannot be undone.",
		Action:  v.base() + "/clients/bulk",
		Back:    v.base() + "/clients",
		changed: "clientsdeleted",
		nameOf: func(id string) (string, error) {
			c, err := a.clientWithID(v, id)
			if err != nil {
				return "", err
			}
			return v.clientRow(c).Title, nil
		},
		change: func(id string) error {
			c, err := a.clientWithID(v, id)
			if err != nil {
				return err
			}
			return a.Clients.Clients.Delete(v.r.Context(), c.ID)
		},
	})
}

// client returns the client named in the path, if it belongs to the project.
func (a *clientPages) client(v *visit) (idp.Client, error) {
	return a.clientWithID(v, v.r.PathValue("id"))
}

// clientWithID returns the client with the given id, if it belongs to the project.
func (a *clientPages) clientWithID(v *visit, id string) (idp.Client, error) {
	c, err := a.Clients.Clients.Find(v.r.Context(), id)
	if err != nil {
		return idp.Client{}, err
	}
	if c.ProjectID != v.project.ID {
		return idp.Client{}, problem.NoSuch("client")
	}
	return c, nil
}

// showClient serves GET /dashboard/projects/{project}/clients/{id}.
func (a *clientPages) showClient(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	return a.showClientPage(v, c, "", nil)
}

// A clientPage shows one client.
type clientPage struct {
	Client    clientRow
	Base      string
	Secret    string // set only if it was just created, because it is shown only once
	Seen      string // digest of the current secret
	Issuer    string
	Try       string // URL of a login with the client
	HasSecret bool
	Old       idp.OldSecret
	MayChange bool
	Faults    faults
	Snippets  []snippet
}

// showClientPage shows the page of a client. If secret is not "", the page shows it.
func (a *clientPages) showClientPage(v *visit, c idp.Client, secret string, wrong faults) error {
	p := clientPage{
		Client:    v.clientRow(c),
		Base:      v.base(),
		Secret:    secret,
		Seen:      secretMark(c.SecretHash),
		Issuer:    a.AuthURL + "/",
		Try:       a.tryURL(c),
		HasSecret: c.SecretHash != "",
		Old:       c.ValidOldSecret(v.now),
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
	if !v.sawSecret(c.SecretHash) {
		return a.showClientPage(v, c, "", faultAt("", rotatedMeanwhile))
	}
	rotated, secret, err := a.Clients.Clients.RotateSeen(v.r.Context(), c, overlap, nil)
	if errors.Is(err, problem.Conflict) {
		return a.rotatedClient(v)
	}
	if err != nil {
		return err
	}
	v.notice = words.Textf("%s has a new secret. Give it to the app.", v.quote(v.clientRow(c).Title))
	return a.showClientPage(v, rotated, secret, nil)
}

// rotatedClient shows a client whose secret was replaced since its page was shown.
func (a *clientPages) rotatedClient(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	return a.showClientPage(v, c, "", faultAt("", rotatedMeanwhile))
}

// endOldSecret serves POST /dashboard/projects/{project}/clients/{id}/old-secret. If the form was
// on a page that showed the new secret, the response shows the new secret again.
func (a *clientPages) endOldSecret(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	if !v.sawSecret(c.SecretHash) {
		return a.showClientPage(v, c, "", faultAt("", rotatedMeanwhile))
	}
	ended, err := a.Clients.Clients.EndSeenSecret(v.r.Context(), c)
	if p := problem.First(err); p != nil && p.Kind == problem.Conflict {
		return a.showClientPage(v, c, v.keptSecret(c), faultAt("", sentence(p.Message)))
	}
	if err != nil {
		return err
	}
	secret := v.keptSecret(ended)
	if secret == "" {
		return v.redirect(v.clientRow(c).URL + "?done=clientended")
	}
	v.notice = strings.ReplaceAll(v.say(notices["clientended"]), "{this}", v.quote(v.clientRow(c).Title))
	return a.showClientPage(v, ended, secret, nil)
}

// keptSecret returns the secret that a form sent back, or "" if it is not the client's current
// secret.
func (v *visit) keptSecret(c idp.Client) string {
	c.Old = idp.OldSecret{}
	if secret := v.form.Get("secret"); c.HasSecret(secret, v.now) {
		return secret
	}
	return ""
}

// deleteClient serves POST /dashboard/projects/{project}/clients/{id}/delete.
func (a *clientPages) deleteClient(v *visit) error {
	c, err := a.client(v)
	if err != nil {
		return err
	}
	if v.form.Get("confirm") != v.clientRow(c).Title {
		return a.showClientPage(v, c, "", faultAt("confirm", wrongName))
	}
	if err := a.Clients.Clients.Delete(v.r.Context(), c.ID); err != nil {
		return err
	}
	a.rememberDeleted(v, v.clientRow(c).Title)
	return v.redirect(v.base() + "/clients?done=clientdeleted")
}
