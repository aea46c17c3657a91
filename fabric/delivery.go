package fabric

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Deliveries lists and retries deliveries to webhooks, and logout notifications to OAuth clients.
type Deliveries struct {
	*core
	store        DeliveryStore
	webhooks     *Webhooks
	applications *applications
}

// A DeliveryStore stores the deliveries to webhooks and the logout notifications to OAuth clients;
// see [Stores]. In lists, the state "" means all states.
type DeliveryStore interface {
	FindDelivery(ctx context.Context, webhookID, id string) (Delivery, error)
	// ListDeliveries returns a page of a webhook's deliveries, newest first.
	ListDeliveries(ctx context.Context, webhookID string, state DeliveryState, q page.Query) (
		page.Page[Delivery], error)
	// Redeliver queues a delivery again for immediate sending, and ends its webhook's pause.
	Redeliver(ctx context.Context, webhookID, id string, now time.Time) (Delivery, error)
	// RedeliverDead queues all dead letters of a webhook again, and returns their number.
	RedeliverDead(ctx context.Context, webhookID string, now time.Time) (int, error)
	// ExpireDeliveries turns pending deliveries that were queued before the given time into dead
	// letters.
	ExpireDeliveries(ctx context.Context, before, now time.Time) error
	// ForgetDeliveries deletes deliveries that succeeded before the first of the given times, and
	// dead letters that ended before the second. It also deletes deliveries whose webhook no longer
	// exists.
	ForgetDeliveries(ctx context.Context, delivered, dead time.Time) error

	// ListLogouts returns a page of an OAuth client's logouts. Logouts of the newest logins come
	// first.
	ListLogouts(ctx context.Context, clientID string, state DeliveryState, q page.Query) (page.Page[Logout], error)
	// RedeliverLogout queues a logout again for immediate sending, and ends its client's pause.
	RedeliverLogout(ctx context.Context, clientID, loginID string, now time.Time) (Logout, error)
	// RedeliverDeadLogouts queues all of a client's dead letters again and returns their number.
	RedeliverDeadLogouts(ctx context.Context, clientID string, now time.Time) (int, error)
	// ExpireLogouts turns pending logouts that were queued before the given time into dead letters.
	ExpireLogouts(ctx context.Context, before, now time.Time) error
	// ForgetLogouts deletes logouts that succeeded before the first of the given times, and dead
	// letters that ended before the second. It also deletes logouts whose client no longer receives
	// logouts.
	ForgetLogouts(ctx context.Context, delivered, dead time.Time) error
}

// A DeliveryState is the state of a delivery.
type DeliveryState = deliver.State

// The states of a delivery.
const (
	Pending   = deliver.Pending
	Delivered = deliver.Delivered
	Dead      = deliver.Dead
)

// Progress describes the attempts to send a delivery or logout.
type Progress = deliver.Progress

// A Delivery is an event on its way to a webhook.
type Delivery struct {
	ID        string // the id of the event
	WebhookID string
	Event     EventName
	Subject   string
	Body      []byte
	Queued    time.Time // when the delivery was last queued
	Progress

	// The last attempt:
	Took     time.Duration // how long it took; 0 before the first attempt
	Response string        // the beginning of the response's body, as plain text
	Refused  string        // address that the HTTP client refused, or ""; only operators of the installation may see it
}

// List returns a page of a webhook's deliveries in the given state, newest first. The state ""
// means all states.
func (ds *Deliveries) List(
	ctx context.Context, projectID, webhookID string, state DeliveryState, q page.Query,
) (page.Page[Delivery], error) {
	w, err := ds.webhooks.Find(ctx, projectID, webhookID)
	if err != nil {
		return page.Page[Delivery]{}, err
	}
	return ds.store.ListDeliveries(ctx, w.ID, state, q)
}

// Find returns a delivery to a webhook of a project.
func (ds *Deliveries) Find(ctx context.Context, projectID, webhookID, id string) (Delivery, error) {
	w, err := ds.webhooks.Find(ctx, projectID, webhookID)
	if err != nil {
		return Delivery{}, err
	}
	id, ok := canonical(id)
	if !ok {
		return Delivery{}, problem.NoSuch("delivery")
	}
	return ds.store.FindDelivery(ctx, w.ID, id)
}

// Test queues a test event for a webhook, to check that it is received.
func (ws *Webhooks) Test(ctx context.Context, projectID, id string) (Delivery, error) {
	w, err := ws.Find(ctx, projectID, id)
	if err != nil {
		return Delivery{}, err
	}
	data := struct {
		ID   string `json:"id"`
		Type string `json:"type"`
		URL  string `json:"url"`
	}{ID: w.ID, Type: "webhook", URL: w.URL}
	e, err := NewEvent(WebhookTest, w.ProjectID, w.ID, ws.now(), data)
	if err != nil {
		return Delivery{}, err
	}
	return ws.store.QueueDelivery(ctx, w.ID, e)
}

// Redeliver queues a delivery again, whatever its state, with the same body and id.
func (ds *Deliveries) Redeliver(ctx context.Context, projectID, webhookID, id string) (Delivery, error) {
	d, err := ds.Find(ctx, projectID, webhookID, id)
	if err != nil {
		return Delivery{}, err
	}
	return ds.store.Redeliver(ctx, d.WebhookID, d.ID, ds.now())
}

// RedeliverDead queues all dead letters of a webhook again and returns their number.
func (ds *Deliveries) RedeliverDead(ctx context.Context, projectID, webhookID string) (int, error) {
	w, err := ds.webhooks.Find(ctx, projectID, webhookID)
	if err != nil {
		return 0, err
	}
	return ds.store.RedeliverDead(ctx, w.ID, ds.now())
}

// Sweep turns deliveries that have waited too long into dead letters. It also deletes old deliveries,
// the deliveries of deleted webhooks, and the logouts of clients that no longer receive logouts.
func (ds *Deliveries) Sweep(ctx context.Context) error {
	now := ds.now()
	return errors.Join(
		ds.store.ExpireDeliveries(ctx, now.Add(-deliver.WaitAtMost), now),
		ds.store.ForgetDeliveries(ctx, now.Add(-deliver.KeepDelivered), now.Add(-deliver.KeepDead)),
		ds.store.ExpireLogouts(ctx, now.Add(-deliver.WaitAtMost), now),
		ds.store.ForgetLogouts(ctx, now.Add(-deliver.KeepDelivered), now.Add(-deliver.KeepDead)))
}

// A Logout is an OpenID Connect back-channel logout. It notifies an OAuth client of the end of a
// login from which the client holds tokens. It contains only what the project may see.
type Logout struct {
	ClientID     string
	LoginID      string // the sid in the client's tokens
	SubscriberID string
	Progress
}

// ListLogouts returns a page of a client's logouts in the given state. Logouts of the newest logins
// come first. The state "" means all states.
func (ds *Deliveries) ListLogouts(
	ctx context.Context, projectID, clientID string, state DeliveryState, q page.Query,
) (page.Page[Logout], error) {
	c, err := ds.applications.find(ctx, projectID, clientID)
	if err != nil {
		return page.Page[Logout]{}, err
	}
	return ds.store.ListLogouts(ctx, c.ID, state, q)
}

// RedeliverLogout queues a logout again, whatever its state. The client receives a new logout token
// with the same claims.
func (ds *Deliveries) RedeliverLogout(
	ctx context.Context, projectID, clientID, loginID string,
) (Logout, error) {
	c, err := ds.applications.find(ctx, projectID, clientID)
	if err != nil {
		return Logout{}, err
	}
	loginID, ok := canonical(loginID)
	if !ok {
		return Logout{}, problem.NoSuch("logout")
	}
	return ds.store.RedeliverLogout(ctx, c.ID, loginID, ds.now())
}

// RedeliverDeadLogouts queues all of a client's dead letters again and returns their number.
func (ds *Deliveries) RedeliverDeadLogouts(ctx context.Context, projectID, clientID string) (int, error) {
	c, err := ds.applications.find(ctx, projectID, clientID)
	if err != nil {
		return 0, err
	}
	return ds.store.RedeliverDeadLogouts(ctx, c.ID, ds.now())
}
