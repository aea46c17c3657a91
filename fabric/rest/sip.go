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
// endpoints. Its handlers find only objects of the caller's project.
type sipAPI struct{ fabric *fabric.Fabric }

const (
	sipAddresses   = "/api/fabric/sip_addresses"
	sipAddress     = sipAddresses + "/{id}"
	sipCredentials = ofSubscriber + "/sip_endpoints"
	sipCredential  = sipCredentials + "/{id}"
	sipPassword    = resources + "sip_endpoints/{id}/password"
)

func (a sipAPI) routes(auth *credentials) []route {
	return []route{
		{"GET", sipCredentials, auth.project(respondPage(a.listCredentials, a.showCredential))},
		{"POST", sipCredentials, auth.project(created(a.createCredential, a.showCredential))},
		{"DELETE", sipCredential, auth.project(noContent(a.deleteCredential))},
		{"GET", sipCredential, auth.project(respondOK(a.findCredential, a.showCredential))},
		{"PATCH", sipCredential, auth.project(respondOK(a.updateCredential, a.showCredential))},
		{"PUT", sipCredential, auth.project(respondOK(a.updateCredential, a.showCredential))},

		{"POST", sipPassword, auth.project(respondOK(a.makePassword, same))},

		{"GET", sipAddresses, auth.project(respondPage(a.listAddresses, a.showAddress))},
		{"POST", sipAddresses, auth.project(created(a.createAddress, a.showAddress))},
		{"DELETE", sipAddress, auth.project(noContent(a.deleteAddress))},
		{"GET", sipAddress, auth.project(respondOK(a.findAddress, a.showAddress))},
		{"PATCH", sipAddress, auth.project(respondOK(a.updateAddress, a.showAddress))},
		{"PUT", sipAddress, auth.project(respondOK(a.updateAddress, a.showAddress))},
	}
}

// showCredential formats a credential. The result never contains the password.
func (a sipAPI) showCredential(c fabric.SIPCredential) json.RawMessage {
	kind := a.fabric.Resources.Kinds().Part("sip_credential")
	return kind.Document([]kinds.Member{kinds.Text("id", c.ID)}, c.Fields)
}

// showAddress formats a SIP address.
func (a sipAPI) showAddress(s fabric.SIPAddress) json.RawMessage {
	kind := a.fabric.Resources.Kinds().Part("sip_address")
	return kind.Document([]kinds.Member{
		kinds.Text("id", s.ID),
		kinds.Text("type", kind.Type),
		kinds.Text("resource_id", s.ResourceID),
		kinds.Text("display_name", s.Name()),
		kinds.Text("context", fabric.Public),
		kinds.Text("uri", a.fabric.SIP.URI(s)),
		kinds.Text("created_at", iso(s.Created)),
		kinds.Text("updated_at", iso(s.Updated)),
	}, s.Fields)
}

// unusedMembers are the members that the original API sets only for domain applications whose calls
// are not handled by a resource.
var unusedMembers = []string{
	"call_relay_topic",
	"call_relay_topic_status_callback_url",
	"call_relay_context",
	"call_relay_context_status_callback_url",
	"call_request_url",
	"call_request_method",
	"call_fallback_url",
	"call_fallback_method",
	"call_status_callback_url",
	"call_status_callback_method",
	"call_laml_application_id",
	"call_video_room_id",
	"call_relay_script_url",
}

// showApplication formats a SIP address as a domain application, which existing clients know. The
// unused members are present but null.
func showApplication(s fabric.SIPAddress) json.RawMessage {
	field := func(name string) kinds.Member {
		return kinds.Member{Name: name, Value: s.Fields[name]}
	}
	all := []kinds.Member{
		kinds.Text("id", s.ID),
		kinds.Text("type", "domain_application"),
		kinds.Text("domain", s.Name()),
		kinds.Text("name", s.Name()),
		kinds.Text("identifier", s.Name()),
		kinds.Text("user", s.User()),
		field("ip_auth_enabled"),
		field("ip_auth"),
		kinds.Text("call_handler", "resource"),
		kinds.Text("calling_handler_resource_id", s.ResourceID),
		field("encryption"),
		field("codecs"),
		field("ciphers"),
	}
	for _, name := range unusedMembers {
		all = append(all, kinds.Member{Name: name, Value: json.RawMessage("null")})
	}
	return kinds.Object(all)
}

// listCredentials returns a page of the subscriber's credentials.
func (a sipAPI) listCredentials(
	r *http.Request, by fabric.Issuer, q page.Query,
) (page.Page[fabric.SIPCredential], error) {
	return a.fabric.SIP.ListCredentials(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
}

// createCredential adds a credential to the subscriber. It looks for the subscriber before it reads
// the body, so that the response for an unknown subscriber is always 404, even if the body is
// invalid.
func (a sipAPI) createCredential(
	r *http.Request, by fabric.Issuer,
) (fabric.SIPCredential, error) {
	subscriber := r.PathValue("subscriber")
	_, err := a.fabric.Subscribers.Find(r.Context(), by.ProjectID, subscriber)
	if err != nil {
		return fabric.SIPCredential{}, err
	}
	members, err := web.Members(r)
	if err != nil {
		return fabric.SIPCredential{}, err
	}
	return a.fabric.SIP.CreateCredential(r.Context(), by.ProjectID, subscriber, members)
}

func (a sipAPI) findCredential(r *http.Request, by fabric.Issuer) (fabric.SIPCredential, error) {
	subscriber, id := r.PathValue("subscriber"), r.PathValue("id")
	return a.fabric.SIP.FindCredential(r.Context(), by.ProjectID, subscriber, id)
}

// updateCredential changes the fields that the body contains, for both PUT and PATCH. It first looks for
// the credential, for the same reason for which createCredential first looks for the subscriber.
func (a sipAPI) updateCredential(
	r *http.Request, by fabric.Issuer,
) (fabric.SIPCredential, error) {
	_, err := a.findCredential(r, by)
	if err != nil {
		return fabric.SIPCredential{}, err
	}
	members, err := web.Members(r)
	if err != nil {
		return fabric.SIPCredential{}, err
	}
	subscriber, id := r.PathValue("subscriber"), r.PathValue("id")
	return a.fabric.SIP.UpdateCredential(r.Context(), by.ProjectID, subscriber, id, members)
}

func (a sipAPI) deleteCredential(r *http.Request, by fabric.Issuer) error {
	subscriber, id := r.PathValue("subscriber"), r.PathValue("id")
	return a.fabric.SIP.DeleteCredential(r.Context(), by.ProjectID, subscriber, id)
}

// A passwordResponse contains what phones need to register as a SIP endpoint.
type passwordResponse struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// makePassword replaces the password of a SIP endpoint. Only this response contains the new password.
func (a sipAPI) makePassword(r *http.Request, by fabric.Issuer) (passwordResponse, error) {
	made, err := a.fabric.Endpoints.NewPassword(r.Context(), by.ProjectID, r.PathValue("id"))
	if err != nil {
		return passwordResponse{}, err
	}
	return passwordResponse{Username: made.Username(), Password: made.Password}, nil
}

// listAddresses returns a page of the project's SIP addresses.
func (a sipAPI) listAddresses(
	r *http.Request, by fabric.Issuer, q page.Query,
) (page.Page[fabric.SIPAddress], error) {
	return a.fabric.SIP.ListAddresses(r.Context(), by.ProjectID, q)
}

// createAddress creates a SIP address for the resource that the body names.
func (a sipAPI) createAddress(r *http.Request, by fabric.Issuer) (fabric.SIPAddress, error) {
	members, err := web.Members(r)
	if err != nil {
		return fabric.SIPAddress{}, err
	}
	return a.fabric.SIP.CreateAddress(r.Context(), by.ProjectID, members)
}

func (a sipAPI) findAddress(r *http.Request, by fabric.Issuer) (fabric.SIPAddress, error) {
	return a.fabric.SIP.FindAddress(r.Context(), by.ProjectID, r.PathValue("id"))
}

// updateAddress changes the fields that the body contains, for both PUT and PATCH. It finds the
// address first, so that the response for an unknown address is always 404, even if the body is
// invalid.
func (a sipAPI) updateAddress(r *http.Request, by fabric.Issuer) (fabric.SIPAddress, error) {
	_, err := a.findAddress(r, by)
	if err != nil {
		return fabric.SIPAddress{}, err
	}
	members, err := web.Members(r)
	if err != nil {
		return fabric.SIPAddress{}, err
	}
	return a.fabric.SIP.UpdateAddress(r.Context(), by.ProjectID, r.PathValue("id"), members)
}

func (a sipAPI) deleteAddress(r *http.Request, by fabric.Issuer) error {
	return a.fabric.SIP.DeleteAddress(r.Context(), by.ProjectID, r.PathValue("id"))
}
