package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// clientAPI serves OAuth clients, and the logout notifications sent to them. Its routes need
// the Management scope.
type clientAPI struct {
	provider   *idp.Provider
	deliveries *fabric.Deliveries
}

func (a clientAPI) routes(by *credentials) []route {
	const clients = "/api/fabric/clients"
	const logouts = clients + "/{id}/logouts"
	return []route{
		{"GET", clients, by.manager(respondPage(a.list, a.show))},
		{"GET", clients + "/{id}", by.manager(respondOK(a.find, a.show))},
		{"PATCH", clients + "/{id}", by.manager(respondOK(a.brand, a.show))},
		{"POST", clients + "/{id}/secret/rotate", by.manager(respondOK(a.rotateSecret, same))},
		{"DELETE", clients + "/{id}/secret/previous", by.manager(noContent(a.endOldSecret))},
		{"GET", logouts, by.manager(a.listLogouts)},
		{"POST", logouts + "/redeliver", by.manager(accepted(a.redeliverDeadLogouts, showRedelivered))},
		{"POST", logouts + "/{session}/redeliver", by.manager(accepted(a.redeliverLogout, showLogout))},
	}
}

// A clientResponse is an OAuth client in responses.
type clientResponse struct {
	ID           string     `json:"id"`
	Name         string     `json:"name"`
	Type         string     `json:"type"`
	AuthMethod   string     `json:"auth_method"`
	Grants       []string   `json:"grants"`
	Scopes       []string   `json:"scopes"`
	RedirectURIs []string   `json:"redirect_uris"`
	ClientSecret string     `json:"client_secret,omitempty"` // only in the response to a rotation
	BrandColor   string     `json:"brand_color"`
	LogoURL      *string    `json:"logo_url"`
	DarkLogoURL  *string    `json:"dark_logo_url"`
	TermsURI     string     `json:"tos_uri"`
	PolicyURI    string     `json:"policy_uri"`
	RegisteredBy *string    `json:"registered_by"` // null for a client that did not register itself
	CreatedAt    string     `json:"created_at"`
	UpdatedAt    string     `json:"updated_at"`
	RotatedAt    *string    `json:"rotated_at"`
	Previous     *oldSecret `json:"previous"`
}

// show converts an OAuth client for a response.
func (a clientAPI) show(c idp.Client) clientResponse {
	body := clientResponse{
		ID:           c.ID,
		Name:         c.Name,
		Type:         string(c.Type),
		AuthMethod:   string(c.AuthMethod),
		Grants:       notNull(c.Grants),
		Scopes:       notNull(c.Scopes),
		RedirectURIs: notNull(c.RedirectURIs),
		BrandColor:   c.BrandColor,
		LogoURL:      logoURL(a.provider.Issuer, c.Logo),
		DarkLogoURL:  logoURL(a.provider.Issuer, c.DarkLogo),
		TermsURI:     c.TermsURI,
		PolicyURI:    c.PolicyURI,
		CreatedAt:    iso(c.Created),
		UpdatedAt:    iso(c.Updated),
		RotatedAt:    isoOrNull(c.SecretMade),
	}
	if c.RegisteredBy != "" {
		body.RegisteredBy = &c.RegisteredBy
	}

	if old := c.ValidOldSecret(a.provider.Now()); old.Hash != "" {
		body.Previous = &oldSecret{ExpiresAt: iso(old.Until), LastUsedAt: isoOrNull(old.Used)}
	}
	return body
}

// find serves GET /api/fabric/clients/{id}. Clients of other projects are not found.
func (a clientAPI) find(r *http.Request, by fabric.Issuer) (idp.Client, error) {
	c, err := a.provider.Clients.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return idp.Client{}, err
	}
	if c.ProjectID != by.ProjectID {
		return idp.Client{}, problem.NoSuch("client")
	}
	return c, nil
}

// list serves GET /api/fabric/clients.
func (a clientAPI) list(r *http.Request, by fabric.Issuer, q page.Query) (page.Page[idp.Client], error) {
	return a.provider.Clients.List(r.Context(), by.ProjectID, q)
}

// brand serves PATCH /api/fabric/clients/{id}.
func (a clientAPI) brand(r *http.Request, by fabric.Issuer) (idp.Client, error) {
	c, err := a.find(r, by)
	if err != nil {
		return c, err
	}

	sent, err := web.Decode[brandRequest](r)
	logos, wrong := sent.logos(r.Context())
	rebrand := func(c *idp.Client) {
		for to, said := range map[*string]*string{
			&c.Name:       sent.Name,
			&c.BrandColor: sent.BrandColor,
			&c.TermsURI:   sent.TermsURI,
			&c.PolicyURI:  sent.PolicyURI,
		} {
			if said != nil {
				*to = *said
			}
		}
	}

	rebrand(&c)
	if err := faults(err, a.provider.Clients.Check(r.Context(), c, false), wrong); err != nil {
		return c, err
	}
	if err := a.provider.Clients.Rebrand(r.Context(), c.ID, logos, rebrand); err != nil {
		return c, err
	}
	return a.provider.Clients.Find(r.Context(), c.ID)
}

// rotateSecret serves POST /api/fabric/clients/{id}/secret/rotate. The body is optional.
func (a clientAPI) rotateSecret(r *http.Request, by fabric.Issuer) (body clientResponse, err error) {
	c, err := a.find(r, by)
	if err != nil {
		return body, err
	}
	overlap, err := readOverlap(r)
	if err != nil {
		return body, err
	}

	c, secret, err := a.provider.Clients.RotateSecret(r.Context(), c.ID, overlap, by.Rights)
	body = a.show(c)
	body.ClientSecret = secret
	return body, err
}

// endOldSecret serves DELETE /api/fabric/clients/{id}/secret/previous.
func (a clientAPI) endOldSecret(r *http.Request, by fabric.Issuer) error {
	c, err := a.find(r, by)
	if err != nil {
		return err
	}
	_, err = a.provider.Clients.EndOldSecret(r.Context(), c.ID)
	return err
}

// A logoutResponse is a logout notification to an OAuth client in responses.
type logoutResponse struct {
	SessionID    string `json:"session_id"`
	ClientID     string `json:"client_id"`
	SubscriberID string `json:"subscriber_id"`
	progressResponse
}

// showLogout converts a logout notification for a response.
func showLogout(l fabric.Logout) logoutResponse {
	return logoutResponse{
		SessionID:        l.LoginID,
		ClientID:         l.ClientID,
		SubscriberID:     l.SubscriberID,
		progressResponse: showProgress(l.Progress),
	}
}

// listLogouts serves GET /api/fabric/clients/{id}/logouts.
func (a clientAPI) listLogouts(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	state, err := deliver.ParseState(r.URL.Query().Get("state"))
	if err != nil {
		return err
	}
	return paged(w, r, func(q page.Query) (page.Page[fabric.Logout], error) {
		return a.deliveries.ListLogouts(r.Context(), by.ProjectID, r.PathValue("id"), state, q)
	}, showLogout)
}

// redeliverLogout serves POST /api/fabric/clients/{id}/logouts/{session}/redeliver.
func (a clientAPI) redeliverLogout(r *http.Request, by fabric.Issuer) (fabric.Logout, error) {
	return a.deliveries.RedeliverLogout(r.Context(), by.ProjectID, r.PathValue("id"), r.PathValue("session"))
}

// redeliverDeadLogouts serves POST /api/fabric/clients/{id}/logouts/redeliver. It queues all dead
// logout notifications to the client again.
func (a clientAPI) redeliverDeadLogouts(r *http.Request, by fabric.Issuer) (int, error) {
	return a.deliveries.RedeliverDeadLogouts(r.Context(), by.ProjectID, r.PathValue("id"))
}
