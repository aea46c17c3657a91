package rest

import (
	"encoding/json"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

type deliveryResponse struct {
	ID         string           `json:"id"`
	WebhookID  string           `json:"webhook_id"`
	Event      fabric.EventName `json:"event"`
	ResourceID string           `json:"resource_id"`
	progressResponse
	Body json.RawMessage `json:"body,omitempty"` // only when a single delivery is requested
}

func showDelivery(d fabric.Delivery) deliveryResponse {
	return deliveryResponse{ID: d.ID, WebhookID: d.WebhookID, Event: d.Event, ResourceID: d.Subject,
		progressResponse: showProgress(d.Progress)}
}

// progressResponse is the progress of a delivery or of a logout.
type progressResponse struct {
	State     fabric.DeliveryState `json:"state"`
	Attempts  int                  `json:"attempts"`
	Status    *int                 `json:"status"`
	Error     *string              `json:"error"`
	CreatedAt string               `json:"created_at"`
	NextAt    *string              `json:"next_attempt_at"`
	EndedAt   *string              `json:"ended_at"`
}

func showProgress(p fabric.Progress) progressResponse {
	body := progressResponse{State: p.State, Attempts: p.Attempts, CreatedAt: iso(p.Created),
		NextAt: isoOrNull(p.Due), EndedAt: isoOrNull(p.Ended)}
	if p.Status != 0 {
		body.Status = &p.Status
	}
	if p.Error != "" {
		body.Error = &p.Error
	}
	return body
}

// listDeliveries serves GET /api/fabric/webhooks/{id}/deliveries, newest first.
func (a *API) listDeliveries(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	state, err := fabric.ParseDeliveryState(r.URL.Query().Get("state"))
	if err != nil {
		return err
	}
	return paged(w, r, func(q page.Query) (page.Page[fabric.Delivery], error) {
		return a.fabric.Deliveries.List(r.Context(), by.ProjectID, r.PathValue("id"), state, q)
	}, showDelivery)
}

// getDelivery serves GET /api/fabric/webhooks/{id}/deliveries/{delivery}.
func (a *API) getDelivery(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	d, err := a.fabric.Deliveries.Find(r.Context(), by.ProjectID, r.PathValue("id"), r.PathValue("delivery"))
	if err != nil {
		return err
	}
	shown := showDelivery(d)
	shown.Body = d.Body
	return web.JSON(w, http.StatusOK, shown)
}

// testWebhook serves POST /api/fabric/webhooks/{id}/test.
func (a *API) testWebhook(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	d, err := a.fabric.Webhooks.Test(r.Context(), by.ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusAccepted, showDelivery(d))
}

// redeliver serves POST /api/fabric/webhooks/{id}/deliveries/{delivery}/redeliver.
func (a *API) redeliver(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	d, err := a.fabric.Deliveries.Redeliver(r.Context(), by.ProjectID, r.PathValue("id"), r.PathValue("delivery"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusAccepted, showDelivery(d))
}

// redeliverDead serves POST /api/fabric/webhooks/{id}/deliveries/redeliver. It queues every
// dead letter of the webhook again.
func (a *API) redeliverDead(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	n, err := a.fabric.Deliveries.RedeliverDead(r.Context(), by.ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusAccepted, map[string]int{"redelivered": n})
}
