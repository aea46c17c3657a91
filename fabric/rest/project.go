package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// projectAPI serves the project itself. Its routes need the scope Management.
type projectAPI struct {
	projects *fabric.Projects
	issuer   string
}

func (p projectAPI) routes(by *credentials) []route {
	return []route{
		{"GET", "/api/project", by.manager(respondOK(p.find, p.show))},
		{"PATCH", "/api/project", by.manager(respondOK(p.update, p.show))},
	}
}

// A brandRequest sets the appearance of a project or a client on pages and in emails. Members that
// are not sent remain unchanged.
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
func (in brandRequest) logo(ctx context.Context) (l brand.Logo, given bool, err error) {
	var text *string
	var raw []byte
	switch {
	case in.Logo == nil:
		return l, false, nil
	case json.Unmarshal(in.Logo, &text) != nil:
		err = errors.New("not a string")
	case text == nil || *text == "":
		return l, true, nil
	default:
		raw, err = base64.StdEncoding.DecodeString(*text)
	}

	if err != nil {
		return l, false, problem.BadParam("logo", "logo must be an image in base64, or null")
	}

	l, err = brand.MakeLogo(ctx, "logo", raw)
	return l, err == nil, err
}

// logoURL returns the URL at which the issuer serves the logo with this name, or nil if name is "".
func logoURL(issuer, name string) *string {
	if name == "" {
		return nil
	}
	url := issuer + "brand/logo/" + name + ".png"
	return &url
}

type projectResponse struct {
	ID          string                    `json:"id"`
	Name        string                    `json:"name"`
	Color       string                    `json:"color"`
	LogoURL     *string                   `json:"logo_url"`
	TermsURI    string                    `json:"tos_uri"`
	PolicyURI   string                    `json:"policy_uri"`
	RecordCalls fabric.RecordCalls        `json:"record_calls"`
	Clients     fabric.ClientRegistration `json:"client_registration"`
	Outbound    fabric.OutboundCalls      `json:"outbound_calls"`
	Prefixes    []string                  `json:"outbound_prefixes"`
	CreatedAt   string                    `json:"created_at"`
	UpdatedAt   string                    `json:"updated_at"`
}

func (p projectAPI) show(of fabric.Project) projectResponse {
	return projectResponse{
		ID:          of.ID,
		Name:        of.Name,
		Color:       of.Color,
		LogoURL:     logoURL(p.issuer, of.Logo),
		TermsURI:    of.Terms,
		PolicyURI:   of.Privacy,
		RecordCalls: of.RecordCalls,
		Clients:     of.ClientRegistration,
		Outbound:    of.OutboundCalls,
		Prefixes:    append([]string{}, of.OutboundPrefixes.List()...),
		CreatedAt:   iso(of.Created),
		UpdatedAt:   iso(of.Updated),
	}
}

// find serves GET /api/project.
func (p projectAPI) find(r *http.Request, by fabric.Issuer) (fabric.Project, error) {
	return p.projects.Find(r.Context(), by.ProjectID)
}

// update serves PATCH /api/project. Members that are not sent remain unchanged.
func (p projectAPI) update(r *http.Request, by fabric.Issuer) (fabric.Project, error) {
	members, err := web.Members(r)
	if err != nil {
		return fabric.Project{}, err
	}
	sent, err := web.FromMembers[brandRequest](members)
	rules, bad := web.FromMembers[struct {
		RecordCalls *fabric.RecordCalls        `json:"record_calls"`
		Clients     *fabric.ClientRegistration `json:"client_registration"`
		Outbound    *fabric.OutboundCalls      `json:"outbound_calls"`
		Prefixes    *[]string                  `json:"outbound_prefixes"`
	}](members)

	made, given, wrong := sent.logo(r.Context())
	change := fabric.ProjectChange{Name: sent.Name, Color: sent.Color, Terms: sent.TermsURI,
		Privacy: sent.PolicyURI, RecordCalls: rules.RecordCalls,
		ClientRegistration: rules.Clients, OutboundCalls: rules.Outbound}
	if rules.Prefixes != nil {
		all := fabric.JoinPrefixes(*rules.Prefixes)
		change.OutboundPrefixes = &all
	}
	if err := faults(err, bad, change.Check(), wrong); err != nil {
		return fabric.Project{}, err
	}

	changed, err := p.projects.Update(r.Context(), by.ProjectID, change)
	if err != nil || !given {
		return changed, err
	}
	return p.projects.SetLogo(r.Context(), changed.ID, made)
}
