package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
)

type deliveryResponse struct {
	ID         string           `json:"id"`
	WebhookID  string           `json:"webhook_id"`
	Event      fabric.EventName `json:"event"`
	ResourceID string           `json:"resource_id"`
	progressResponse
	Duration *float64 `json:"duration"` // of the last attempt, in seconds

	// Only if one delivery is requested:
	Body         json.RawMessage `json:"body,omitempty"`
	ResponseBody *string         `json:"response_body,omitempty"`
}

func showDelivery(d fabric.Delivery) deliveryResponse {
	shown := deliveryResponse{
		ID:               d.ID,
		WebhookID:        d.WebhookID,
		Event:            d.Event,
		ResourceID:       d.Subject,
		progressResponse: showProgress(d.Progress),
	}
	if d.Took > 0 {
		seconds := d.Took.Round(time.Millisecond).Seconds()
		shown.Duration = &seconds
	}
	return shown
}

// showDeliveryBody is like showDelivery, but includes the body that was sent and the beginning of the
// response. It does not include the address that was refused, which only operators of the
// installation may see.
func showDeliveryBody(d fabric.Delivery) deliveryResponse {
	shown := showDelivery(d)
	shown.Body, shown.ResponseBody = d.Body, &d.Response
	return shown
}

func showRedelivered(n int) map[string]int { return map[string]int{"redelivered": n} }

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
	body := progressResponse{
		State:     p.State,
		Attempts:  p.Attempts,
		CreatedAt: iso(p.Created),
		NextAt:    isoOrNull(p.Due),
		EndedAt:   isoOrNull(p.Ended),
	}
	if p.Status != 0 {
		body.Status = &p.Status
	}
	if p.Error != "" {
		body.Error = &p.Error
	}
	return body
}

// listDeliveries serves GET /api/fabric/webhooks/{id}/deliveries, newest first.
func (a webhookAPI) listDeliveries(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	state, err := deliver.ParseState(r.URL.Query().Get("state"))
	if err != nil {
		return err
	}
	return paged(w, r, func(q page.Query) (page.Page[fabric.Delivery], error) {
		return a.deliveries.List(r.Context(), by.ProjectID, r.PathValue("id"), state, q)
	}, showDelivery)
}

// findDelivery serves GET /api/fabric/webhooks/{id}/deliveries/{delivery}.
func (a webhookAPI) findDelivery(r *http.Request, by fabric.Issuer) (fabric.Delivery, error) {
	return a.deliveries.Find(r.Context(), by.ProjectID, r.PathValue("id"), r.PathValue("delivery"))
}

// redeliver serves POST /api/fabric/webhooks/{id}/deliveries/{delivery}/redeliver.
func (a webhookAPI) redeliver(r *http.Request, by fabric.Issuer) (fabric.Delivery, error) {
	return a.deliveries.Redeliver(r.Context(), by.ProjectID, r.PathValue("id"), r.PathValue("delivery"))
}

// redeliverDead serves POST /api/fabric/webhooks/{id}/deliveries/redeliver. It queues all dead
// letters of the webhook again.
func (a webhookAPI) redeliverDead(r *http.Request, by fabric.Issuer) (int, error) {
	return a.deliveries.RedeliverDead(r.Context(), by.ProjectID, r.PathValue("id"))
}
