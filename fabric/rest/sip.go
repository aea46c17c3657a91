package rest

import (
	"encoding/json"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// sipAPI serves SIP addresses, the SIP credentials of subscribers, and the passwords of SIP
// endpoints.
type sipAPI struct{ fabric *fabric.Fabric }

func (a sipAPI) routes(by *credentials) []route {
	const addresses, credentials = "/api/fabric/sip_addresses", ofSubscriber + "/sip_endpoints"
	return []route{
		{"GET", credentials, by.project(respondPage(a.listCredentials, a.showCredential))},
		{"POST", credentials, by.project(created(a.createCredential, a.showCredential))},
		{"DELETE", credentials + "/{id}", by.project(noContent(a.deleteCredential))},
		{"GET", credentials + "/{id}", by.project(respondOK(a.findCredential, a.showCredential))},
		{"PATCH", credentials + "/{id}", by.project(respondOK(a.updateCredential, a.showCredential))},
		{"PUT", credentials + "/{id}", by.project(respondOK(a.updateCredential, a.showCredential))},
		{"POST", resources + "sip_endpoints/{id}/password", by.project(respondOK(a.makePassword, same))},
		{"GET", addresses, by.project(respondPage(a.listAddresses, a.showAddress))},
		{"POST", addresses, by.project(created(a.createAddress, a.showAddress))},
		{"DELETE", addresses + "/{id}", by.project(noContent(a.deleteAddress))},
		{"GET", addresses + "/{id}", by.project(respondOK(a.findAddress, a.showAddress))},
		{"PATCH", addresses + "/{id}", by.project(respondOK(a.updateAddress, a.showAddress))},
		{"PUT", addresses + "/{id}", by.project(respondOK(a.updateAddress, a.showAddress))},
	}
}

func (a sipAPI) showCredential(c fabric.SIPCredential) json.RawMessage {
	part := a.fabric.Resources.Kinds().Part("sip_credential")
	return part.Document([]kinds.Member{kinds.Text("id", c.ID)}, c.Fields)
}

func (a sipAPI) showAddress(s fabric.SIPAddress) json.RawMessage {
	k := a.fabric.Resources.Kinds().Part("sip_address")
	return k.Document([]kinds.Member{
		kinds.Text("id", s.ID), kinds.Text("type", k.Type), kinds.Text("resource_id", s.ResourceID),
		kinds.Text("display_name", s.Name()), kinds.Text("context", fabric.Public),
		kinds.Text("uri", a.fabric.SIP.URI(s)), kinds.Text("created_at", iso(s.Created)),
		kinds.Text("updated_at", iso(s.Updated)),
	}, s.Fields)
}

// showApplication formats a SIP address as a domain application, which clients know. Members that
// the original API sets for other applications are null.
func showApplication(s fabric.SIPAddress) json.RawMessage {
	null := json.RawMessage("null")
	member := func(name string) kinds.Member { return kinds.Member{Name: name, Value: s.Fields[name]} }
	all := []kinds.Member{
		kinds.Text("id", s.ID), kinds.Text("type", "domain_application"), kinds.Text("domain", s.Name()),
		kinds.Text("name", s.Name()), kinds.Text("identifier", s.Name()),
		kinds.Text("user", s.User()), member("ip_auth_enabled"), member("ip_auth"),
		kinds.Text("call_handler", "resource"), kinds.Text("calling_handler_resource_id", s.ResourceID),
		member("encryption"), member("codecs"), member("ciphers"),
	}

	for _, name := range []string{
		"call_relay_topic", "call_relay_topic_status_callback_url", "call_relay_context",
		"call_relay_context_status_callback_url",
		"call_request_url", "call_request_method", "call_fallback_url", "call_fallback_method",
		"call_status_callback_url",
		"call_status_callback_method", "call_laml_application_id", "call_video_room_id", "call_relay_script_url",
	} {
		all = append(all, kinds.Member{Name: name, Value: null})
	}

	return kinds.Object(all)
}

// listCredentials serves GET /api/fabric/resources/subscribers/{id}/sip_endpoints.
func (a sipAPI) listCredentials(
	r *http.Request, by fabric.Issuer, q page.Query,
) (page.Page[fabric.SIPCredential], error) {
	return a.fabric.SIP.ListCredentials(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
}

// createCredential serves POST /api/fabric/resources/subscribers/{id}/sip_endpoints.
func (a sipAPI) createCredential(r *http.Request, by fabric.Issuer) (c fabric.SIPCredential, err error) {
	if _, err := a.fabric.Subscribers.Find(r.Context(), by.ProjectID, r.PathValue("subscriber")); err != nil {
		return c, err
	}
	sent, err := web.Members(r)
	if err != nil {
		return c, err
	}
	return a.fabric.SIP.CreateCredential(r.Context(), by.ProjectID, r.PathValue("subscriber"), sent)
}

// findCredential serves GET …/sip_endpoints/{id}.
func (a sipAPI) findCredential(r *http.Request, by fabric.Issuer) (fabric.SIPCredential, error) {
	return a.fabric.SIP.FindCredential(r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id"))
}

// updateCredential serves PUT and PATCH …/sip_endpoints/{id}.
func (a sipAPI) updateCredential(r *http.Request, by fabric.Issuer) (fabric.SIPCredential, error) {
	if c, err := a.findCredential(r, by); err != nil {
		return c, err
	}
	sent, err := web.Members(r)
	if err != nil {
		return fabric.SIPCredential{}, err
	}
	return a.fabric.SIP.UpdateCredential(
		r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id"), sent)
}

// deleteCredential serves DELETE …/sip_endpoints/{id}.
func (a sipAPI) deleteCredential(r *http.Request, by fabric.Issuer) error {
	return a.fabric.SIP.DeleteCredential(r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id"))
}

// A passwordResponse contains the credentials of the phones of a SIP endpoint.
type passwordResponse struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// makePassword serves POST /api/fabric/resources/sip_endpoints/{id}/password.
func (a sipAPI) makePassword(r *http.Request, by fabric.Issuer) (passwordResponse, error) {
	made, err := a.fabric.Endpoints.NewPassword(r.Context(), by.ProjectID, r.PathValue("id"))
	return passwordResponse{made.Username(), made.Password}, err
}

// listAddresses serves GET /api/fabric/sip_addresses.
func (a sipAPI) listAddresses(
	r *http.Request, by fabric.Issuer, q page.Query,
) (page.Page[fabric.SIPAddress], error) {
	return a.fabric.SIP.ListAddresses(r.Context(), by.ProjectID, q)
}

// createAddress serves POST /api/fabric/sip_addresses.
func (a sipAPI) createAddress(r *http.Request, by fabric.Issuer) (fabric.SIPAddress, error) {
	sent, err := web.Members(r)
	if err != nil {
		return fabric.SIPAddress{}, err
	}
	return a.fabric.SIP.CreateAddress(r.Context(), by.ProjectID, sent)
}

// findAddress serves GET /api/fabric/sip_addresses/{id}.
func (a sipAPI) findAddress(r *http.Request, by fabric.Issuer) (fabric.SIPAddress, error) {
	return a.fabric.SIP.FindAddress(r.Context(), by.ProjectID, r.PathValue("id"))
}

// updateAddress serves PUT and PATCH /api/fabric/sip_addresses/{id}.
func (a sipAPI) updateAddress(r *http.Request, by fabric.Issuer) (fabric.SIPAddress, error) {
	if s, err := a.findAddress(r, by); err != nil {
		return s, err
	}
	sent, err := web.Members(r)
	if err != nil {
		return fabric.SIPAddress{}, err
	}
	return a.fabric.SIP.UpdateAddress(r.Context(), by.ProjectID, r.PathValue("id"), sent)
}

// deleteAddress serves DELETE /api/fabric/sip_addresses/{id}.
func (a sipAPI) deleteAddress(r *http.Request, by fabric.Issuer) error {
	return a.fabric.SIP.DeleteAddress(r.Context(), by.ProjectID, r.PathValue("id"))
}
