package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/web"
)

type deviceRequest struct {
	Type  string `json:"device_type"`
	Token string `json:"device_token"`
	Name  string `json:"device_name"`
}

type deviceResponse struct {
	ID         string `json:"id"`
	Type       string `json:"device_type"`
	Token      string `json:"device_token"`
	Name       string `json:"device_name,omitempty"`
	Registered string `json:"date_registered"`
	PushKey    string `json:"push_notification_key"`
}

// registerDevice serves POST /subscriber/devices.
func (a *API) registerDevice(w http.ResponseWriter, r *http.Request, sat fabric.Token) error {
	in, err := web.Decode[deviceRequest](r)
	if err != nil {
		return also(err, fabric.DeviceInput(in).Check())
	}
	d, err := a.fabric.Devices.Register(r.Context(), sat, fabric.DeviceInput(in))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, deviceResponse{d.ID, d.Type, d.Token, d.Name, iso(d.Created), d.PushKey})
}

// deleteDevice serves DELETE /subscriber/devices/{id}.
func (a *API) deleteDevice(w http.ResponseWriter, r *http.Request, sat fabric.Token) error {
	if err := a.fabric.Devices.Delete(r.Context(), sat, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
