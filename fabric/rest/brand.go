package rest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/logo"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// projectRoutes lists the routes of the project itself. They need the Management scope.
func (a *API) projectRoutes() []route {
	return []route{
		{"GET", "/api/project", a.keeper(a.getProject)},
		{"PATCH", "/api/project", a.keeper(a.brandProject)},
	}
}

// A brandRequest is how a project or a client appears to people. Members that are not sent
// are left unchanged.
type brandRequest struct {
	Name       *string         `json:"name"`
	Color      *string         `json:"color"`
	BrandColor *string         `json:"brand_color"`
	TermsURI   *string         `json:"tos_uri"`
	PolicyURI  *string         `json:"policy_uri"`
	Logo       json.RawMessage `json:"logo"` // a picture in base64; null removes the logo
}

// logo decodes the picture of the request. given reports whether the request sets or
// removes the logo.
func (in brandRequest) logo() (l logo.Logo, given bool, err error) {
	var text *string
	var raw []byte
	switch {
	case in.Logo == nil:
		return l, false, nil
	case json.Unmarshal(in.Logo, &text) != nil:
		err = errors.New("no string")
	case text == nil || *text == "":
		return l, true, nil
	default:
		raw, err = base64.StdEncoding.DecodeString(*text)
	}

	if err != nil {
		return l, false, problem.BadParam("logo", "logo must be a picture in base64, or null")
	}

	l, err = logo.Make("logo", raw)
	return l, err == nil, err
}

// logoURL returns the URL of the picture called name, or nil if there is none.
func (a *API) logoURL(name string) *string {
	if name == "" {
		return nil
	}
	url := a.clients.Issuer + "brand/logo/" + name + ".png"
	return &url
}

type projectResponse struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Color     string  `json:"color"`
	LogoURL   *string `json:"logo_url"`
	TermsURI  string  `json:"tos_uri"`
	PolicyURI string  `json:"policy_uri"`
	CreatedAt string  `json:"created_at"`
	UpdatedAt string  `json:"updated_at"`
}

func (a *API) showProject(p fabric.Project) projectResponse {
	return projectResponse{p.ID, p.Name, p.Color, a.logoURL(p.Logo), p.Terms, p.Privacy, iso(p.Created),
		iso(p.Updated)}
}

// getProject serves GET /api/project.
func (a *API) getProject(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	p, err := a.fabric.Projects.Find(r.Context(), by.ProjectID)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, a.showProject(p))
}

// brandProject serves PATCH /api/project.
func (a *API) brandProject(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	sent, err := web.Decode[brandRequest](r)
	made, given, wrong := sent.logo()
	change := fabric.ProjectChange{Name: sent.Name, Color: sent.Color, Terms: sent.TermsURI, Privacy: sent.PolicyURI}
	if err := faults(err, change.Check(), wrong); err != nil {
		return err
	}
	p, err := a.fabric.Projects.Update(r.Context(), by.ProjectID, change)
	if err == nil && given {
		p, err = a.fabric.Projects.SetLogo(r.Context(), p.ID, made)
	}
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, a.showProject(p))
}

// brandClient serves PATCH /api/fabric/clients/{id}.
func (a *API) brandClient(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	c, err := a.client(r, by)
	if err != nil {
		return err
	}

	sent, err := web.Decode[brandRequest](r)
	made, given, wrong := sent.logo()
	rebrand := func(c *idp.Client) {
		for to, said := range map[*string]*string{&c.Name: sent.Name, &c.BrandColor: sent.BrandColor,
			&c.TermsURI: sent.TermsURI, &c.PolicyURI: sent.PolicyURI} {
			if said != nil {
				*to = *said
			}
		}
	}

	rebrand(&c)
	if err := faults(err, a.clients.Clients.Check(r.Context(), c, false), wrong); err != nil {
		return err
	}
	if err := a.clients.Clients.Change(r.Context(), c.ID, rebrand); err != nil {
		return err
	}
	if given {
		_, err = a.clients.Clients.SetLogo(r.Context(), c.ID, made)
	}
	if err == nil {
		c, err = a.clients.Clients.Find(r.Context(), c.ID)
	}
	if err != nil {
		return err
	}

	return web.JSON(w, http.StatusOK, a.showClient(c))
}
