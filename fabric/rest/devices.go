package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// A deviceRequest is the body of a request that registers a device.
type deviceRequest struct {
	Type  string `json:"device_type"`
	Token string `json:"device_token"`
	Name  string `json:"device_name"`
}

// A deviceResponse describes a device to its subscriber.
type deviceResponse struct {
	ID         string `json:"id"`
	Type       string `json:"device_type"`
	Token      string `json:"device_token"`
	Name       string `json:"device_name,omitempty"`
	Registered string `json:"date_registered"`
	PushKey    string `json:"push_notification_key"`
}

// A deviceSummary describes a device to its project. It omits the push token and the key, which
// only the device may see.
type deviceSummary struct {
	ID         string `json:"id"`
	Type       string `json:"device_type"`
	Name       string `json:"device_name"`
	Registered string `json:"date_registered"`
}

// showDevice converts a device for a response to its subscriber.
func showDevice(d fabric.Device) deviceResponse {
	return deviceResponse{
		ID:         d.ID,
		Type:       d.Type,
		Token:      d.Token,
		Name:       d.Name,
		Registered: iso(d.Created),
		PushKey:    d.PushKey,
	}
}

// summarizeDevice converts a device for a response to its project.
func summarizeDevice(d fabric.Device) deviceSummary {
	return deviceSummary{ID: d.ID, Type: d.Type, Name: d.Name, Registered: iso(d.Created)}
}

// deviceAPI serves the devices of subscribers to the subscribers themselves, and to their project.
type deviceAPI struct{ devices *fabric.Devices }

func (a deviceAPI) routes(by *credentials) []route {
	return []route{
		{"POST", "/subscriber/devices", by.bearer(created(a.register, showDevice), fabric.SAT)},
		{"DELETE", "/subscriber/devices/{id}", by.bearer(noContent(a.delete), fabric.SAT)},
		{"GET", ofSubscriber + "/devices", by.project(respondPage(a.listOf, summarizeDevice))},
		{"DELETE", ofSubscriber + "/devices/{id}", by.project(noContent(a.deleteOf))},
	}
}

// register serves POST /subscriber/devices.
func (a deviceAPI) register(r *http.Request, sat fabric.Token) (d fabric.Device, err error) {
	in, err := web.Decode[deviceRequest](r)
	if err != nil {
		return d, joinFaults(err, fabric.DeviceInput(in).Check())
	}
	return a.devices.Register(r.Context(), sat, fabric.DeviceInput(in))
}

// delete serves DELETE /subscriber/devices/{id}.
func (a deviceAPI) delete(r *http.Request, sat fabric.Token) error {
	return a.devices.Delete(r.Context(), sat, r.PathValue("id"))
}

// listOf serves GET /api/fabric/resources/subscribers/{subscriber}/devices.
func (a deviceAPI) listOf(r *http.Request, by fabric.Issuer, q page.Query) (page.Page[fabric.Device], error) {
	return a.devices.List(r.Context(), by.ProjectID, r.PathValue("subscriber"), q)
}

// deleteOf serves DELETE /api/fabric/resources/subscribers/{subscriber}/devices/{id}.
func (a deviceAPI) deleteOf(r *http.Request, by fabric.Issuer) error {
	return a.devices.DeleteOf(r.Context(), by.ProjectID, r.PathValue("subscriber"), r.PathValue("id"))
}
