package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
)

// deliveryResponse is a delivery in responses. Its fields are in the order of the JSON object.
type deliveryResponse struct {
	ID         string           `json:"id"`
	WebhookID  string           `json:"webhook_id"`
	Event      fabric.EventName `json:"event"`
	ResourceID string           `json:"resource_id"`

	progressResponse

	Duration *float64 `json:"duration"` // of the last attempt, in seconds; null if there was none

	// The response for a single delivery adds these fields:
	RequestBody  json.RawMessage `json:"body,omitempty"`
	ResponseBody *string         `json:"response_body,omitempty"`
}

// showDelivery returns a delivery without the bodies of its request and response.
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

// showDeliveryBody is like showDelivery, but includes the body that is sent and the beginning of
// the receiver's response. It omits d.Refused, the network address to which the server refused to
// connect, because only operators of the installation may see it.
func showDeliveryBody(d fabric.Delivery) deliveryResponse {
	shown := showDelivery(d)
	shown.RequestBody = d.Body
	shown.ResponseBody = &d.Response
	return shown
}

// redeliveredResponse is the response after all dead letters of a webhook or client were queued
// again.
type redeliveredResponse struct {
	Redelivered int `json:"redelivered"` // the number of dead letters
}

// showRedelivered returns the response for n dead letters.
func showRedelivered(n int) redeliveredResponse { return redeliveredResponse{Redelivered: n} }

// progressResponse is the part of a response that a delivery and a logout have in common. A pointer
// is nil, and shown as null, if there is no value.
type progressResponse struct {
	State     fabric.DeliveryState `json:"state"`
	Attempts  int                  `json:"attempts"`
	Status    *int                 `json:"status"` // the HTTP status of the last response
	Error     *string              `json:"error"`  // why the last attempt failed
	CreatedAt string               `json:"created_at"`
	NextAt    *string              `json:"next_attempt_at"`
	EndedAt   *string              `json:"ended_at"`
}

// showProgress converts the progress of a delivery or of a logout for a response.
func showProgress(p fabric.Progress) progressResponse {
	shown := progressResponse{
		State:     p.State,
		Attempts:  p.Attempts,
		CreatedAt: iso(p.Created),
		NextAt:    isoOrNull(p.Due),
		EndedAt:   isoOrNull(p.Ended),
	}
	if p.Status != 0 {
		shown.Status = &p.Status
	}
	if p.Error != "" {
		shown.Error = &p.Error
	}
	return shown
}

// listDeliveries serves GET /api/fabric/webhooks/{id}/deliveries. It lists the deliveries in the state
// that the query names, newest first. If the query names no state, it lists all deliveries.
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
