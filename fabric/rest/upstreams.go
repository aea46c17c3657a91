package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// upstreamAPI serves the upstream providers of a project. Its routes need the scope Management.
type upstreamAPI struct{ upstreams *idp.Upstreams }

func (a upstreamAPI) routes(by *credentials) []route {
	const upstreams = "/api/project/upstreams"
	return []route{
		{"GET", upstreams, by.manager(respondPage(a.list, showUpstream))},
		{"POST", upstreams, by.manager(created(a.create, showUpstream))},
		{"DELETE", upstreams + "/{id}", by.manager(noContent(a.delete))},
		{"GET", upstreams + "/{id}", by.manager(respondOK(a.find, showUpstream))},
		{"PATCH", upstreams + "/{id}", by.manager(respondOK(a.update, showUpstream))},
	}
}

// An upstreamRequest is the body of a request that creates or updates an upstream identity provider.
type upstreamRequest struct {
	Name     *string            `json:"name"`
	Issuer   *string            `json:"issuer"`
	ClientID *string            `json:"client_id"`
	Secret   *string            `json:"client_secret"`
	Enabled  *bool              `json:"enabled"`
	Scopes   *[]string          `json:"scopes"`
	Claims   *map[string]string `json:"claims"`
	SignUp   *bool              `json:"sign_up"`
	Logout   *bool              `json:"logout"`
}

// An upstreamResponse is an upstream identity provider in responses.
type upstreamResponse struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Issuer    string            `json:"issuer"`
	ClientID  string            `json:"client_id"`
	HasSecret bool              `json:"has_secret"`
	Enabled   bool              `json:"enabled"`
	Scopes    []string          `json:"scopes"`
	Claims    map[string]string `json:"claims"`
	SignUp    bool              `json:"sign_up"`
	Logout    bool              `json:"logout"`
	CreatedAt string            `json:"created_at"`
	UpdatedAt string            `json:"updated_at"`
}

// showUpstream converts an upstream for a response.
func showUpstream(u idp.Upstream) upstreamResponse {
	body := upstreamResponse{
		ID:        u.ID,
		Name:      u.Name,
		Issuer:    u.Issuer,
		ClientID:  u.ClientID,
		HasSecret: u.Secret != "",
		Enabled:   u.Enabled,
		Scopes:    u.AllScopes(),
		Claims:    u.Claims,
		SignUp:    u.SignUp,
		Logout:    u.Logout,
		CreatedAt: iso(u.Created),
		UpdatedAt: iso(u.Updated),
	}
	if body.Claims == nil {
		body.Claims = map[string]string{}
	}
	return body
}

// list serves GET /api/project/upstreams.
func (a upstreamAPI) list(r *http.Request, by fabric.Issuer, q page.Query) (page.Page[idp.Upstream], error) {
	return a.upstreams.List(r.Context(), by.ProjectID, q)
}

// create serves POST /api/project/upstreams.
func (a upstreamAPI) create(r *http.Request, by fabric.Issuer) (idp.Upstream, error) {
	in, err := web.Decode[upstreamRequest](r)
	if err != nil {
		return idp.Upstream{}, err
	}
	return a.upstreams.Create(r.Context(), by.ProjectID, idp.UpstreamInput(in))
}

// find serves GET /api/project/upstreams/{id}.
func (a upstreamAPI) find(r *http.Request, by fabric.Issuer) (idp.Upstream, error) {
	return a.upstreams.Find(r.Context(), by.ProjectID, r.PathValue("id"))
}

// update serves PATCH /api/project/upstreams/{id}. Members that are not sent remain unchanged.
func (a upstreamAPI) update(r *http.Request, by fabric.Issuer) (idp.Upstream, error) {
	if found, err := a.find(r, by); err != nil {
		return found, err
	}
	in, err := web.Decode[upstreamRequest](r)
	if err != nil {
		return idp.Upstream{}, err
	}
	return a.upstreams.Update(r.Context(), by.ProjectID, r.PathValue("id"), idp.UpstreamInput(in))
}

// delete serves DELETE /api/project/upstreams/{id}.
func (a upstreamAPI) delete(r *http.Request, by fabric.Issuer) error {
	return a.upstreams.Delete(r.Context(), by.ProjectID, r.PathValue("id"))
}
