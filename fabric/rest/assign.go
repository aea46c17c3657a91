package rest

import (
	"encoding/json"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

type assignRequest struct {
	PhoneRouteID  string `json:"phone_route_id"`
	Handler       string `json:"handler"`
	ApplicationID string `json:"domain_application_id"`
	EndpointID    string `json:"sip_endpoint_id"`
}

// assign serves POST /api/fabric/resources/{id}/phone_routes,
// …/domain_applications and …/sip_endpoints.
func (a *API) assign(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	ctx, id := r.Context(), r.PathValue("id")
	if _, err := a.fabric.Resources.FindThing(ctx, by.ProjectID, id); err != nil {
		return err
	}

	what := r.PathValue("what")
	if what != "phone_routes" && what != "domain_applications" && what != "sip_endpoints" {
		return problem.NoSuch("path")
	}

	in, err := web.Decode[assignRequest](r)
	if err != nil {
		return err
	}

	switch what {
	case "phone_routes":
		found, err := a.fabric.Routes.AssignPhone(ctx, by.ProjectID, id, in.PhoneRouteID, in.Handler)
		return answer(w, showAddress(found), err)
	case "domain_applications":
		found, err := a.fabric.Routes.AssignSIPAddress(ctx, by.ProjectID, id, in.ApplicationID)
		return answer(w, a.showApplication(found), err)
	}

	found, err := a.fabric.Routes.AssignSIPEndpoint(ctx, by.ProjectID, id, in.EndpointID)
	return answer(w, showAddress(found), err)
}

// answer sends document as JSON, or returns err if it is not nil.
func answer(w http.ResponseWriter, document any, err error) error {
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, document)
}

// showApplication formats a SIP address as the domain application that clients know.
// Members that the original API sets elsewhere are null here.
func (a *API) showApplication(s fabric.SIPAddress) json.RawMessage {
	null := json.RawMessage("null")
	member := func(name string) kinds.Member { return kinds.Member{Name: name, Value: s.Fields[name]} }
	all := []kinds.Member{
		text("id", s.ID), text("type", "domain_application"), text("domain", s.Name()),
		text("name", s.Name()), text("identifier", s.Name()),
		text("user", s.User()), member("ip_auth_enabled"), member("ip_auth"), text("call_handler", "resource"),
		text("calling_handler_resource_id", s.ResourceID), member("encryption"), member("codecs"), member("ciphers"),
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
