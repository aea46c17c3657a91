package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// clientRoutes lists the routes of OAuth clients. They need the Management scope.
func (a *API) clientRoutes() []route {
	const clients = "/api/fabric/clients"
	return []route{
		{"GET", clients, a.keeper(a.listClients)},
		{"GET", clients + "/{id}", a.keeper(a.getClient)},
		{"PATCH", clients + "/{id}", a.keeper(a.brandClient)},
		{"POST", clients + "/{id}/secret/rotate", a.keeper(a.rotateClientSecret)},
		{"DELETE", clients + "/{id}/secret/previous", a.keeper(a.endOldSecret)},
	}
}

type clientResponse struct {
	ID           string     `json:"id"`
	Name         string     `json:"name"`
	Type         string     `json:"type"`
	AuthMethod   string     `json:"auth_method"`
	Grants       []string   `json:"grants"`
	Scopes       []string   `json:"scopes"`
	RedirectURIs []string   `json:"redirect_uris"`
	ClientSecret string     `json:"client_secret,omitempty"` // only in the response that creates it
	BrandColor   string     `json:"brand_color"`
	LogoURL      *string    `json:"logo_url"`
	TermsURI     string     `json:"tos_uri"`
	PolicyURI    string     `json:"policy_uri"`
	CreatedAt    string     `json:"created_at"`
	UpdatedAt    string     `json:"updated_at"`
	RotatedAt    *string    `json:"rotated_at"`
	Previous     *oldSecret `json:"previous"`
}

func (a *API) showClient(c idp.Client) clientResponse {
	body := clientResponse{
		ID: c.ID, Name: c.Name, Type: string(c.Type), AuthMethod: string(c.AuthMethod),
		Grants: append([]string{}, c.Grants...), Scopes: append([]string{}, c.Scopes...),
		RedirectURIs: append([]string{}, c.RedirectURIs...), BrandColor: c.BrandColor,
		LogoURL: a.logoURL(c.Logo), TermsURI: c.TermsURI, PolicyURI: c.PolicyURI,
		CreatedAt: iso(c.Created), UpdatedAt: iso(c.Updated), RotatedAt: isoOrNull(c.SecretMade),
	}
	if old := c.OldAt(a.clients.Now()); old.Hash != "" {
		body.Previous = &oldSecret{ExpiresAt: iso(old.Until), LastUsedAt: isoOrNull(old.Used)}
	}
	return body
}

// client returns the client named in the path, if it belongs to the project.
func (a *API) client(r *http.Request, by fabric.Issuer) (idp.Client, error) {
	c, err := a.clients.Clients.Find(r.Context(), r.PathValue("id"))
	if err == nil && c.ProjectID != by.ProjectID {
		err = problem.NoSuch("client")
	}
	return c, err
}

// listClients serves GET /api/fabric/clients.
func (a *API) listClients(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[idp.Client], error) {
		return a.clients.Clients.List(r.Context(), by.ProjectID, q)
	}, a.showClient)
}

// getClient serves GET /api/fabric/clients/{id}.
func (a *API) getClient(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	c, err := a.client(r, by)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, a.showClient(c))
}

// rotateClientSecret serves POST /api/fabric/clients/{id}/secret/rotate. The body is
// optional.
func (a *API) rotateClientSecret(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	c, err := a.client(r, by)
	if err != nil {
		return err
	}

	overlap, err := readOverlap(r)
	if err != nil {
		return err
	}

	c, secret, err := a.clients.Clients.RotateSecret(r.Context(), c.ID, overlap, by.Rights)
	if err != nil {
		return err
	}

	body := a.showClient(c)
	body.ClientSecret = secret
	return web.JSON(w, http.StatusOK, body)
}

// endOldSecret serves DELETE /api/fabric/clients/{id}/secret/previous.
func (a *API) endOldSecret(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	c, err := a.client(r, by)
	if err != nil {
		return err
	}
	if _, err := a.clients.Clients.EndOldSecret(r.Context(), c.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
