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
	DarkLogo   json.RawMessage `json:"dark_logo"`
}

// logos decodes the pictures of the request.
func (in brandRequest) logos(ctx context.Context) (brand.Logos, error) {
	all := make(brand.Logos)
	var errs []error
	for _, theme := range brand.Themes {
		sent := in.Logo
		if theme == brand.Dark {
			sent = in.DarkLogo
		}
		if sent == nil {
			continue
		}
		l, err := decodeLogo(ctx, theme.Param(), sent)
		if err == nil {
			all[theme] = l
		}
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// decodeLogo decodes a picture in base64. null and the empty string remove the logo.
func decodeLogo(ctx context.Context, param string, sent json.RawMessage) (l brand.Logo, err error) {
	var text *string
	if json.Unmarshal(sent, &text) != nil {
		return l, problem.BadParam(param, "%s must be an image in base64, or null", param)
	}
	if text == nil || *text == "" {
		return l, nil
	}
	raw, err := base64.StdEncoding.DecodeString(*text)
	if err != nil {
		return l, problem.BadParam(param, "%s must be an image in base64, or null", param)
	}
	return brand.MakeLogo(ctx, param, raw)
}

// logoURL returns the URL at which the issuer serves the logo with this name, or nil if name is "".
func logoURL(issuer, name string) *string {
	if name == "" {
		return nil
	}
	url := issuer + "brand/logo/" + name + ".png"
	return &url
}

// A projectResponse is a project in responses.
type projectResponse struct {
	ID          string                    `json:"id"`
	Name        string                    `json:"name"`
	Color       string                    `json:"color"`
	LogoURL     *string                   `json:"logo_url"`
	DarkLogoURL *string                   `json:"dark_logo_url"`
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
		DarkLogoURL: logoURL(p.issuer, of.DarkLogo),
		TermsURI:    of.Terms,
		PolicyURI:   of.Privacy,
		RecordCalls: of.RecordCalls,
		Clients:     of.ClientRegistration,
		Outbound:    of.OutboundCalls,
		Prefixes:    notNull(of.OutboundPrefixes.List()),
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

	logos, wrong := sent.logos(r.Context())
	change := fabric.ProjectChange{
		Name:               sent.Name,
		Color:              sent.Color,
		Terms:              sent.TermsURI,
		Privacy:            sent.PolicyURI,
		RecordCalls:        rules.RecordCalls,
		ClientRegistration: rules.Clients,
		OutboundCalls:      rules.Outbound,
		Logos:              logos,
	}
	if rules.Prefixes != nil {
		all := fabric.JoinPrefixes(*rules.Prefixes)
		change.OutboundPrefixes = &all
	}

	if err := faults(err, bad, change.Check(), wrong); err != nil {
		return fabric.Project{}, err
	}

	return p.projects.Update(r.Context(), by.ProjectID, change)
}
