package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// webhookRoutes lists the routes of webhooks. They need the Management scope.
func (a *API) webhookRoutes() []route {
	const webhooks, deliveries = "/api/fabric/webhooks", "/api/fabric/webhooks/{id}/deliveries"
	return []route{
		{"GET", webhooks, a.keeper(a.listWebhooks)},
		{"POST", webhooks, a.keeper(a.createWebhook)},
		{"DELETE", webhooks + "/{id}", a.keeper(a.deleteWebhook)},
		{"GET", webhooks + "/{id}", a.keeper(a.getWebhook)},
		{"PATCH", webhooks + "/{id}", a.keeper(a.updateWebhook)},
		{"PUT", webhooks + "/{id}", a.keeper(a.updateWebhook)},
		{"POST", webhooks + "/{id}/test", a.keeper(a.testWebhook)},
		{"GET", deliveries, a.keeper(a.listDeliveries)},
		{"GET", deliveries + "/{delivery}", a.keeper(a.getDelivery)},
		{"POST", deliveries + "/{delivery}/redeliver", a.keeper(a.redeliver)},
		{"POST", deliveries + "/redeliver", a.keeper(a.redeliverDead)},
		{"GET", webhooks + "/signing_key", a.keeper(a.getSigningKey)},
		{"POST", webhooks + "/signing_key/rotate", a.keeper(a.rotateSigningKey)},
	}
}

type webhookRequest struct {
	URL     *string   `json:"url"`
	Name    *string   `json:"name"`
	Events  *[]string `json:"events"`
	Enabled *bool     `json:"enabled"`
}

func (in webhookRequest) input() fabric.WebhookInput {
	return fabric.WebhookInput{URL: in.URL, Name: in.Name, Events: in.Events, Enabled: in.Enabled}
}

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

func showWebhook(w fabric.Webhook) webhookResponse {
	return webhookResponse{
		ID: w.ID, ProjectID: w.ProjectID, URL: w.URL, Name: w.Name, Events: w.Events, Enabled: w.Enabled,
		Failures: w.Failures, RestingUntil: isoOrNull(w.Rests), CreatedAt: iso(w.Created), UpdatedAt: iso(w.Updated),
	}
}

// listWebhooks serves GET /api/fabric/webhooks.
func (a *API) listWebhooks(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	return paged(w, r, func(q page.Query) (page.Page[fabric.Webhook], error) {
		return a.fabric.Webhooks.List(r.Context(), by.ProjectID, q)
	}, showWebhook)
}

// createWebhook serves POST /api/fabric/webhooks.
func (a *API) createWebhook(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	in, err := web.Decode[webhookRequest](r)
	if err != nil {
		return also(err, a.fabric.Webhooks.Check(in.input(), true))
	}
	made, err := a.fabric.Webhooks.Create(r.Context(), by.ProjectID, in.input())
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, showWebhook(made))
}

// getWebhook serves GET /api/fabric/webhooks/{id}.
func (a *API) getWebhook(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	found, err := a.fabric.Webhooks.Find(r.Context(), by.ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, showWebhook(found))
}

// updateWebhook serves PUT and PATCH /api/fabric/webhooks/{id}. Members that are not sent
// are left unchanged.
func (a *API) updateWebhook(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if _, err := a.fabric.Webhooks.Find(r.Context(), by.ProjectID, r.PathValue("id")); err != nil {
		return err
	}
	in, err := web.Decode[webhookRequest](r)
	if err != nil {
		return also(err, a.fabric.Webhooks.Check(in.input(), false))
	}
	changed, err := a.fabric.Webhooks.Update(r.Context(), by.ProjectID, r.PathValue("id"), in.input())
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, showWebhook(changed))
}

// deleteWebhook serves DELETE /api/fabric/webhooks/{id}.
func (a *API) deleteWebhook(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	if err := a.fabric.Webhooks.Delete(r.Context(), by.ProjectID, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
