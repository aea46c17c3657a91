package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// A loginResponse is a login of a subscriber in responses.
type loginResponse struct {
	ID        string          `json:"id"`
	CreatedAt string          `json:"created_at"`
	ExpiresAt string          `json:"expires_at"`
	EndedAt   *string         `json:"ended_at"`
	AMR       []string        `json:"amr"`
	IPAddress string          `json:"ip_address"`
	UserAgent string          `json:"user_agent"`
	Grants    []grantResponse `json:"grants"`
}

// A grantResponse is the access that an OAuth client got through a login.
type grantResponse struct {
	ClientID   string   `json:"client_id"`
	ClientName string   `json:"client_name"`
	Scope      []string `json:"scope"`
	CreatedAt  string   `json:"created_at"`
	ExpiresAt  string   `json:"expires_at"`
	RevokedAt  *string  `json:"revoked_at"`
}

// showLogin converts a login and its grants for a response.
func showLogin(l fabric.Login) loginResponse {
	body := loginResponse{
		ID:        l.ID,
		CreatedAt: iso(l.Began),
		ExpiresAt: iso(l.Expires),
		EndedAt:   isoOrNull(l.Ended),
		AMR:       notNull(l.AMR),
		IPAddress: l.Address,
		UserAgent: l.UserAgent,
		Grants:    make([]grantResponse, len(l.Grants)),
	}
	for i, g := range l.Grants {
		body.Grants[i] = grantResponse{
			ClientID:   g.ClientID,
			ClientName: g.ClientName,
			Scope:      notNull(g.Scope),
			CreatedAt:  iso(g.Created),
			ExpiresAt:  iso(g.Expires),
			RevokedAt:  isoOrNull(g.Revoked),
		}
	}
	return body
}

// A consentResponse is the consent of a subscriber to an OAuth client in responses.
type consentResponse struct {
	ClientID   string   `json:"client_id"`
	ClientName string   `json:"client_name"`
	Scope      []string `json:"scope"`
	UpdatedAt  string   `json:"updated_at"`
}

// showConsent converts a consent for a response.
func showConsent(c fabric.Consent) consentResponse {
	return consentResponse{
		ClientID:   c.ClientID,
		ClientName: c.ClientName,
		Scope:      notNull(c.Scope),
		UpdatedAt:  iso(c.Updated),
	}
}

// loginAPI serves a subscriber's logins and consents.
type loginAPI struct{ logins *fabric.Logins }

func (a loginAPI) routes(by *credentials) []route {
	return []route{
		{"GET", ofSubscriber + "/consents", by.project(respondPage(a.listConsents, showConsent))},
		{"DELETE", ofSubscriber + "/consents/{id}", by.project(noContent(a.revokeConsent))},
		{"GET", ofSubscriber + "/sessions", by.project(respondPage(a.list, showLogin))},
		{"DELETE", ofSubscriber + "/sessions/{id}", by.project(noContent(a.end))},
	}
}

// list serves GET /api/fabric/resources/subscribers/{subscriber}/sessions.
func (a loginAPI) list(r *http.Request, by fabric.Issuer, q page.Query) (page.Page[fabric.Login], error) {
	return a.logins.List(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
}

// end serves DELETE /api/fabric/resources/subscribers/{subscriber}/sessions/{id}.
func (a loginAPI) end(r *http.Request, by fabric.Issuer) error {
	return a.logins.End(r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id"))
}

// listConsents serves GET /api/fabric/resources/subscribers/{subscriber}/consents.
func (a loginAPI) listConsents(
	r *http.Request, by fabric.Issuer, q page.Query,
) (page.Page[fabric.Consent], error) {
	return a.logins.ListConsents(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
}

// revokeConsent serves DELETE /api/fabric/resources/subscribers/{subscriber}/consents/{id}. The id is
// that of the client.
func (a loginAPI) revokeConsent(r *http.Request, by fabric.Issuer) error {
	return a.logins.RevokeConsent(r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id"))
}
