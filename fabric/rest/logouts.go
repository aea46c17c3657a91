package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// logoutRoutes lists the routes of the logout notifications sent to OAuth clients. They
// need the Management scope.
func (a *API) logoutRoutes() []route {
	const logouts = "/api/fabric/clients/{id}/logouts"
	return []route{
		{"GET", logouts, a.keeper(a.listLogouts)},
		{"POST", logouts + "/redeliver", a.keeper(a.redeliverDeadLogouts)},
		{"POST", logouts + "/{session}/redeliver", a.keeper(a.redeliverLogout)},
	}
}

type logoutResponse struct {
	SessionID    string `json:"session_id"`
	ClientID     string `json:"client_id"`
	SubscriberID string `json:"subscriber_id"`
	progressResponse
}

func showLogout(l fabric.Logout) logoutResponse {
	return logoutResponse{SessionID: l.LoginID, ClientID: l.ClientID, SubscriberID: l.SubscriberID,
		progressResponse: showProgress(l.Progress)}
}

// listLogouts serves GET /api/fabric/clients/{id}/logouts.
func (a *API) listLogouts(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	state, err := fabric.ParseDeliveryState(r.URL.Query().Get("state"))
	if err != nil {
		return err
	}
	return paged(w, r, func(q page.Query) (page.Page[fabric.Logout], error) {
		return a.fabric.Deliveries.ListLogouts(r.Context(), by.ProjectID, r.PathValue("id"), state, q)
	}, showLogout)
}

// redeliverLogout serves POST /api/fabric/clients/{id}/logouts/{session}/redeliver.
func (a *API) redeliverLogout(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	l, err := a.fabric.Deliveries.RedeliverLogout(r.Context(), by.ProjectID, r.PathValue("id"), r.PathValue("session"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusAccepted, showLogout(l))
}

// redeliverDeadLogouts serves POST /api/fabric/clients/{id}/logouts/redeliver. It queues all
// notifications again that were given up.
func (a *API) redeliverDeadLogouts(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	n, err := a.fabric.Deliveries.RedeliverDeadLogouts(r.Context(), by.ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusAccepted, map[string]int{"redelivered": n})
}
