package rest

import (
	"encoding/json"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// sipRoutes lists the routes of SIP addresses and of subscribers' credentials.
func (a *API) sipRoutes() []route {
	const addresses, credentials = "/api/fabric/sip_addresses",
		"/api/fabric/resources/subscribers/{subscriber}/sip_endpoints"
	return []route{
		{"GET", credentials, a.project(a.listCredentials)},
		{"POST", credentials, a.project(a.createCredential)},
		{"DELETE", credentials + "/{id}", a.project(a.deleteCredential)},
		{"GET", credentials + "/{id}", a.project(a.getCredential)},
		{"PATCH", credentials + "/{id}", a.project(a.updateCredential)},
		{"PUT", credentials + "/{id}", a.project(a.updateCredential)},
		{"GET", addresses, a.project(a.listSIPAddresses)},
		{"POST", addresses, a.project(a.createSIPAddress)},
		{"DELETE", addresses + "/{id}", a.project(a.deleteSIPAddress)},
		{"GET", addresses + "/{id}", a.project(a.getSIPAddress)},
		{"PATCH", addresses + "/{id}", a.project(a.updateSIPAddress)},
		{"PUT", addresses + "/{id}", a.project(a.updateSIPAddress)},
	}
}

func (a *API) showCredential(c fabric.SIPCredential) json.RawMessage {
	return a.fabric.Resources.Kinds().Part("sip_credential").Document([]kinds.Member{text("id", c.ID)}, c.Fields)
}

func (a *API) showSIPAddress(s fabric.SIPAddress) json.RawMessage {
	k := a.fabric.Resources.Kinds().Part("sip_address")
	return k.Document([]kinds.Member{
		text("id", s.ID), text("type", k.Type), text("resource_id", s.ResourceID),
		text("display_name", s.Name()), text("context", fabric.Public),
		text("uri", a.fabric.SIP.URI(s)), text("created_at", iso(s.Created)), text("updated_at", iso(s.Updated)),
	}, s.Fields)
}

// listCredentials serves GET /api/fabric/resources/subscribers/{id}/sip_endpoints.
func (a *API) listCredentials(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.SIPCredential], error) {
		return a.fabric.SIP.ListCredentials(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
	}, a.showCredential)
}

// createCredential serves POST /api/fabric/resources/subscribers/{id}/sip_endpoints.
func (a *API) createCredential(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if _, err := a.fabric.Subscribers.Find(r.Context(), by.ProjectID, r.PathValue("subscriber")); err != nil {
		return err
	}
	sent, err := web.Members(r)
	if err != nil {
		return err
	}
	c, err := a.fabric.SIP.CreateCredential(r.Context(), by.ProjectID, r.PathValue("subscriber"), sent)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, a.showCredential(c))
}

// getCredential serves GET …/sip_endpoints/{id}.
func (a *API) getCredential(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	c, err := a.fabric.SIP.FindCredential(r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, a.showCredential(c))
}

// updateCredential serves PATCH …/sip_endpoints/{id}.
func (a *API) updateCredential(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if _, err := a.fabric.SIP.FindCredential(
		r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id"),
	); err != nil {
		return err
	}
	sent, err := web.Members(r)
	if err != nil {
		return err
	}
	c, err := a.fabric.SIP.UpdateCredential(r.Context(), by.ProjectID, r.PathValue("subscriber"),
		r.PathValue("id"), sent)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, a.showCredential(c))
}

// deleteCredential serves DELETE …/sip_endpoints/{id}.
func (a *API) deleteCredential(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if err := a.fabric.SIP.DeleteCredential(
		r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id"),
	); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// listSIPAddresses serves GET /api/fabric/sip_addresses.
func (a *API) listSIPAddresses(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.SIPAddress], error) {
		return a.fabric.SIP.ListAddresses(r.Context(), by.ProjectID, q)
	}, a.showSIPAddress)
}

// createSIPAddress serves POST /api/fabric/sip_addresses.
func (a *API) createSIPAddress(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	sent, err := web.Members(r)
	if err != nil {
		return err
	}
	s, err := a.fabric.SIP.CreateAddress(r.Context(), by.ProjectID, sent)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, a.showSIPAddress(s))
}

// getSIPAddress serves GET /api/fabric/sip_addresses/{id}.
func (a *API) getSIPAddress(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	s, err := a.fabric.SIP.FindAddress(r.Context(), by.ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, a.showSIPAddress(s))
}

// updateSIPAddress serves PATCH /api/fabric/sip_addresses/{id}.
func (a *API) updateSIPAddress(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if _, err := a.fabric.SIP.FindAddress(r.Context(), by.ProjectID, r.PathValue("id")); err != nil {
		return err
	}
	sent, err := web.Members(r)
	if err != nil {
		return err
	}
	s, err := a.fabric.SIP.UpdateAddress(r.Context(), by.ProjectID, r.PathValue("id"), sent)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, a.showSIPAddress(s))
}

// deleteSIPAddress serves DELETE /api/fabric/sip_addresses/{id}.
func (a *API) deleteSIPAddress(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if err := a.fabric.SIP.DeleteAddress(r.Context(), by.ProjectID, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
