package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// heldRoutes lists the routes for what a subscriber holds: logins, consents, devices,
// factors and tokens. It also has the route that revokes any token by its value.
func (a *API) heldRoutes() []route {
	const of = "/api/fabric/resources/subscribers/{subscriber}"
	return []route{
		{"GET", of + "/consents", a.project(a.listConsents)},
		{"DELETE", of + "/consents/{id}", a.project(a.revokeConsent)},
		{"GET", of + "/devices", a.project(a.listDevices)},
		{"DELETE", of + "/devices/{id}", a.project(a.deleteDeviceOf)},
		{"POST", of + "/erase", a.keeper(a.eraseSubscriber)},
		{"GET", of + "/export", a.keeper(a.exportSubscriber)},
		{"GET", of + "/factors", a.project(a.listFactors)},
		{"DELETE", of + "/factors/{id}", a.keeper(a.removeFactor)},
		{"POST", of + "/invitation", a.keeper(a.inviteSubscriber)},
		{"GET", of + "/presence", a.project(a.getPresence)},
		{"GET", of + "/sessions", a.project(a.listLogins)},
		{"DELETE", of + "/sessions/{id}", a.project(a.endLogin)},
		{"DELETE", of + "/tokens", a.project(a.revokeSubscriber)},
		{"GET", of + "/tokens", a.project(a.listFamilies)},
		{"DELETE", of + "/tokens/{id}", a.project(a.revokeFamily)},
		{"POST", of + "/verification", a.keeper(a.verifySubscriber)},
		{"POST", "/api/fabric/tokens/revoke", a.project(a.revokeToken)},
	}
}

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

type grantResponse struct {
	ClientID   string   `json:"client_id"`
	ClientName string   `json:"client_name"`
	Scope      []string `json:"scope"`
	CreatedAt  string   `json:"created_at"`
	ExpiresAt  string   `json:"expires_at"`
	RevokedAt  *string  `json:"revoked_at"`
}

func showLogin(l fabric.Login) loginResponse {
	body := loginResponse{
		ID: l.ID, CreatedAt: iso(l.Began), ExpiresAt: iso(l.Expires), EndedAt: isoOrNull(l.Ended),
		AMR:       append([]string{}, l.AMR...),
		IPAddress: l.Address, UserAgent: l.UserAgent, Grants: make([]grantResponse, len(l.Grants)),
	}
	for i, g := range l.Grants {
		body.Grants[i] = grantResponse{g.ClientID, g.ClientName, append([]string{}, g.Scope...),
			iso(g.Created), iso(g.Expires), isoOrNull(g.Revoked)}
	}
	return body
}

// listLogins serves GET /api/fabric/resources/subscribers/{id}/sessions.
func (a *API) listLogins(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.Login], error) {
		return a.fabric.Logins.List(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
	}, showLogin)
}

// endLogin serves DELETE /api/fabric/resources/subscribers/{id}/sessions/{sid}.
func (a *API) endLogin(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return gone(w, a.fabric.Logins.End(r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id")))
}

// gone answers a DELETE request: 204 if err is nil.
func gone(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

type consentResponse struct {
	ClientID   string   `json:"client_id"`
	ClientName string   `json:"client_name"`
	Scope      []string `json:"scope"`
	UpdatedAt  string   `json:"updated_at"`
}

func showConsent(c fabric.Consent) consentResponse {
	return consentResponse{c.ClientID, c.ClientName, append([]string{}, c.Scope...), iso(c.Updated)}
}

// listConsents serves GET /api/fabric/resources/subscribers/{id}/consents.
func (a *API) listConsents(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.Consent], error) {
		return a.fabric.Logins.ListConsents(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
	}, showConsent)
}

// revokeConsent serves DELETE /api/fabric/resources/subscribers/{id}/consents/{client}.
func (a *API) revokeConsent(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return gone(w, a.fabric.Logins.RevokeConsent(
		r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id")))
}

type familyResponse struct {
	ID          string  `json:"id"`
	Type        string  `json:"type"`
	ClientID    *string `json:"client_id"`
	CreatedAt   *string `json:"created_at"`
	RefreshedAt *string `json:"refreshed_at"`
	Refreshes   int64   `json:"refreshes"`
	ExpiresAt   string  `json:"expires_at"`
	Revoked     bool    `json:"revoked"`
}

func showFamily(f fabric.Family) familyResponse {
	body := familyResponse{
		ID: f.ID, Type: "refresh", CreatedAt: isoOrNull(f.Created), RefreshedAt: isoOrNull(f.Used),
		Refreshes: f.Refreshes,
		ExpiresAt: iso(f.Expires), Revoked: f.Revoked,
	}
	if f.ClientID != "" {
		body.ClientID = &f.ClientID
	}
	return body
}

// listFamilies serves GET /api/fabric/resources/subscribers/{id}/tokens.
func (a *API) listFamilies(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.Family], error) {
		return a.fabric.Tokens.ListFamilies(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
	}, showFamily)
}

// revokeFamily serves DELETE /api/fabric/resources/subscribers/{id}/tokens/{token}.
func (a *API) revokeFamily(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return gone(w, a.fabric.Tokens.RevokeFamily(
		r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id")))
}

// revokeSubscriber serves DELETE /api/fabric/resources/subscribers/{id}/tokens.
func (a *API) revokeSubscriber(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return gone(w, a.fabric.Subscribers.Revoke(r.Context(), by.ProjectID, r.PathValue("subscriber")))
}

// revokeToken serves POST /api/fabric/tokens/revoke.
func (a *API) revokeToken(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	in, err := web.Decode[struct {
		Token string `json:"token"`
	}](r)
	if err != nil {
		return err
	}
	return gone(w, a.fabric.Tokens.RevokeRaw(r.Context(), by.ProjectID, in.Token))
}

type heldDevice struct {
	ID         string `json:"id"`
	Type       string `json:"device_type"`
	Name       string `json:"device_name"`
	Registered string `json:"date_registered"`
}

func showDevice(d fabric.Device) heldDevice { return heldDevice{d.ID, d.Type, d.Name, iso(d.Created)} }

// listDevices serves GET /api/fabric/resources/subscribers/{id}/devices. It leaves out the
// push tokens and keys, which belong to the devices alone.
func (a *API) listDevices(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.Device], error) {
		return a.fabric.Devices.List(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
	}, showDevice)
}

// deleteDeviceOf serves DELETE /api/fabric/resources/subscribers/{id}/devices/{device}.
func (a *API) deleteDeviceOf(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return gone(w, a.fabric.Devices.DeleteOf(r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id")))
}

type presenceResponse struct {
	Online  bool    `json:"online"`
	Since   *string `json:"since"`
	Sockets int     `json:"sockets"`
}

// getPresence serves GET /api/fabric/resources/subscribers/{id}/presence.
func (a *API) getPresence(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	s, err := a.fabric.Subscribers.Find(r.Context(), by.ProjectID, r.PathValue("subscriber"))
	if err != nil {
		return err
	}
	p, err := a.fabric.Presence.Find(r.Context(), s.ProjectID, s.ID)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, presenceResponse{p.Online(), isoOrNull(p.Since), p.Sockets})
}
