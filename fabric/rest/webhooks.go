package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// webhookAPI serves webhooks, their signing keys and their deliveries. Its routes need the scope
// Management.
type webhookAPI struct {
	webhooks   *fabric.Webhooks
	deliveries *fabric.Deliveries
}

func (a webhookAPI) routes(by *credentials) []route {
	const webhooks, deliveries = "/api/fabric/webhooks", "/api/fabric/webhooks/{id}/deliveries"
	return []route{
		{"GET", webhooks, by.manager(respondPage(a.list, showWebhook))},
		{"POST", webhooks, by.manager(created(a.create, showWebhook))},
		{"DELETE", webhooks + "/{id}", by.manager(noContent(a.delete))},
		{"GET", webhooks + "/{id}", by.manager(respondOK(a.find, showWebhook))},
		{"PATCH", webhooks + "/{id}", by.manager(respondOK(a.update, showWebhook))},
		{"PUT", webhooks + "/{id}", by.manager(respondOK(a.update, showWebhook))},
		{"POST", webhooks + "/{id}/test", by.manager(accepted(a.test, showDelivery))},
		{"GET", deliveries, by.manager(a.listDeliveries)},
		{"GET", deliveries + "/{delivery}", by.manager(respondOK(a.findDelivery, showDeliveryBody))},
		{"POST", deliveries + "/{delivery}/redeliver", by.manager(accepted(a.redeliver, showDelivery))},
		{"POST", deliveries + "/redeliver", by.manager(accepted(a.redeliverDead, showRedelivered))},
		{"GET", webhooks + "/signing_key", by.manager(respondOK(a.signingKeys, showSigningKeys))},
		{"POST", webhooks + "/signing_key/rotate", by.manager(respondOK(a.rotateSigningKey, showSigningKeys))},
	}
}

// A webhookRequest is the body of a request that creates or updates a webhook.
type webhookRequest struct {
	URL     *string   `json:"url"`
	Name    *string   `json:"name"`
	Events  *[]string `json:"events"`
	Enabled *bool     `json:"enabled"`
}

func (in webhookRequest) input() fabric.WebhookInput {
	return fabric.WebhookInput{URL: in.URL, Name: in.Name, Events: in.Events, Enabled: in.Enabled}
}

// A webhookResponse is a webhook in responses.
type webhookResponse struct {
	ID           string             `json:"id"`
	ProjectID    string             `json:"project_id"`
	URL          string             `json:"url"`
	Name         string             `json:"name"`
	Events       []fabric.EventName `json:"events"`
	Enabled      bool               `json:"enabled"`
	Failures     int                `json:"failures"`
	RestingUntil *string            `json:"resting_until"`
	CreatedAt    string             `json:"created_at"`
	UpdatedAt    string             `json:"updated_at"`
}

// showWebhook converts a webhook for a response.
func showWebhook(w fabric.Webhook) webhookResponse {
	return webhookResponse{
		ID:           w.ID,
		ProjectID:    w.ProjectID,
		URL:          w.URL,
		Name:         w.Name,
		Events:       w.Events,
		Enabled:      w.Enabled,
		Failures:     w.Failures,
		RestingUntil: isoOrNull(w.Rests),
		CreatedAt:    iso(w.Created),
		UpdatedAt:    iso(w.Updated),
	}
}

// list serves GET /api/fabric/webhooks.
func (a webhookAPI) list(r *http.Request, by fabric.Issuer, q page.Query) (page.Page[fabric.Webhook], error) {
	return a.webhooks.List(r.Context(), by.ProjectID, q)
}

// create serves POST /api/fabric/webhooks.
func (a webhookAPI) create(r *http.Request, by fabric.Issuer) (fabric.Webhook, error) {
	in, err := web.Decode[webhookRequest](r)
	if err != nil {
		return fabric.Webhook{}, joinFaults(err, a.webhooks.Check(in.input(), true))
	}
	return a.webhooks.Create(r.Context(), by.ProjectID, in.input())
}

// find serves GET /api/fabric/webhooks/{id}.
func (a webhookAPI) find(r *http.Request, by fabric.Issuer) (fabric.Webhook, error) {
	return a.webhooks.Find(r.Context(), by.ProjectID, r.PathValue("id"))
}

// update serves PUT and PATCH /api/fabric/webhooks/{id}. Members that are not sent remain
// unchanged.
func (a webhookAPI) update(r *http.Request, by fabric.Issuer) (fabric.Webhook, error) {
	if found, err := a.find(r, by); err != nil {
		return found, err
	}
	in, err := web.Decode[webhookRequest](r)
	if err != nil {
		return fabric.Webhook{}, joinFaults(err, a.webhooks.Check(in.input(), false))
	}
	return a.webhooks.Update(r.Context(), by.ProjectID, r.PathValue("id"), in.input())
}

// delete serves DELETE /api/fabric/webhooks/{id}.
func (a webhookAPI) delete(r *http.Request, by fabric.Issuer) error {
	return a.webhooks.Delete(r.Context(), by.ProjectID, r.PathValue("id"))
}

// test serves POST /api/fabric/webhooks/{id}/test.
func (a webhookAPI) test(r *http.Request, by fabric.Issuer) (fabric.Delivery, error) {
	return a.webhooks.Test(r.Context(), by.ProjectID, r.PathValue("id"))
}

type signingKeyResponse struct {
	ID        string          `json:"id"`
	Key       string          `json:"key"`
	CreatedAt string          `json:"created_at"`
	Next      *nextSigningKey `json:"next"`
}

// A nextSigningKey is a key that will start signing later.
type nextSigningKey struct {
	ID       string `json:"id"`
	Key      string `json:"key"`
	StartsAt string `json:"starts_at"`
}

func showSigningKeys(k fabric.SigningKeys) signingKeyResponse {
	body := signingKeyResponse{ID: k.Current.ID, Key: k.CurrentSecret, CreatedAt: iso(k.Current.Created)}
	if k.Next != nil {
		body.Next = &nextSigningKey{ID: k.Next.ID, Key: k.NextSecret, StartsAt: iso(k.Next.Starts)}
	}
	return body
}

// signingKeys serves GET /api/fabric/webhooks/signing_key.
func (a webhookAPI) signingKeys(r *http.Request, by fabric.Issuer) (fabric.SigningKeys, error) {
	return a.webhooks.SigningKeys(r.Context(), by.ProjectID)
}

// rotateSigningKey serves POST /api/fabric/webhooks/signing_key/rotate. The body is optional.
func (a webhookAPI) rotateSigningKey(r *http.Request, by fabric.Issuer) (fabric.SigningKeys, error) {
	overlap, err := readOverlap(r)
	if err != nil {
		return fabric.SigningKeys{}, err
	}
	return a.webhooks.RotateSigningKey(r.Context(), by.ProjectID, overlap)
}
