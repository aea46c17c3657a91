package fabric

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A DeliveryState is how far a delivery has come.
type DeliveryState string

// The states.
const (
	Pending   DeliveryState = "pending"   // it waits, or is being sent
	Delivered DeliveryState = "delivered" // the receiver has taken it
	Dead      DeliveryState = "dead"      // it was given up: a dead letter
)

// A Delivery is an event on its way to a webhook.
type Delivery struct {
	ID        string // of the event
	WebhookID string
	Event     EventName
	Subject   string
	Body      []byte
	Queued    time.Time // when it began to wait, last
	Progress
}

// Progress is how far it has come with telling somebody something.
type Progress struct {
	State    DeliveryState
	Created  time.Time // when it happened
	Due      time.Time // of the next attempt, at the earliest; zero is at once
	Attempts int       // since it was queued
	Status   int       // of the last answer; 0 where there was none
	Error    string    // why not
	Ended    time.Time // zero while it is pending
}

// ParseDeliveryState reads the name of a state; "" is none.
func ParseDeliveryState(name string) (DeliveryState, error) {
	switch s := DeliveryState(name); s {
	case "", Pending, Delivered, Dead:
		return s, nil
	}
	return "", problem.BadParam("state", "state must be pending, delivered or dead")
}

// ListDeliveries returns a page of a webhook's deliveries in a state, "" for any:
// the newest first.
func (f *Fabric) ListDeliveries(ctx context.Context, projectID, webhookID string, state DeliveryState, q page.Query) (page.Page[Delivery], error) {
	w, err := f.FindWebhook(ctx, projectID, webhookID)
	if err != nil {
		return page.Page[Delivery]{}, err
	}
	return f.c.Store.ListDeliveries(ctx, w.ID, state, q)
}

// FindDelivery returns a delivery of a webhook of a project.
func (f *Fabric) FindDelivery(ctx context.Context, projectID, webhookID, id string) (Delivery, error) {
	w, err := f.FindWebhook(ctx, projectID, webhookID)
	if err != nil {
		return Delivery{}, err
	}
	id, ok := canonical(id)
	if !ok {
		return Delivery{}, problem.NoSuch("delivery")
	}
	return f.c.Store.FindDelivery(ctx, w.ID, id)
}

// TestWebhook queues an event that tells of nothing, for who wants to see whether a
// webhook is told.
func (f *Fabric) TestWebhook(ctx context.Context, projectID, id string) (Delivery, error) {
	w, err := f.FindWebhook(ctx, projectID, id)
	if err != nil {
		return Delivery{}, err
	}
	data := struct {
		ID   string `json:"id"`
		Type string `json:"type"`
		URL  string `json:"url"`
	}{w.ID, "webhook", w.URL}
	e, err := newEvent(WebhookTest, w.ProjectID, w.ID, f.now(), data)
	if err != nil {
		return Delivery{}, err
	}
	return f.c.Store.QueueDelivery(ctx, w.ID, e)
}

// Redeliver queues a delivery anew, whatever became of it: the same body, under
// the same id.
func (f *Fabric) Redeliver(ctx context.Context, projectID, webhookID, id string) (Delivery, error) {
	d, err := f.FindDelivery(ctx, projectID, webhookID, id)
	if err != nil {
		return Delivery{}, err
	}
	return f.c.Store.Redeliver(ctx, d.WebhookID, d.ID, f.now())
}

// RedeliverDead queues all dead letters of a webhook anew, and gives how many.
func (f *Fabric) RedeliverDead(ctx context.Context, projectID, webhookID string) (int, error) {
	w, err := f.FindWebhook(ctx, projectID, webhookID)
	if err != nil {
		return 0, err
	}
	return f.c.Store.RedeliverDead(ctx, w.ID, f.now())
}

// How long deliveries are kept, once they are over and while they wait.
const (
	keepDelivered = 24 * time.Hour
	keepDead      = 30 * 24 * time.Hour
	waitAtMost    = 48 * time.Hour // for a receiver that is down so often that few attempts are made
)

// SweepDeliveries returns up what has waited for too long, and forgets what is over
// or belongs to no webhook, or client, any more.
func (f *Fabric) SweepDeliveries(ctx context.Context) error {
	now := f.now()
	return errors.Join(
		f.c.Store.ExpireDeliveries(ctx, now.Add(-waitAtMost), now),
		f.c.Store.ForgetDeliveries(ctx, now.Add(-keepDelivered), now.Add(-keepDead)),
		f.c.Store.ExpireLogouts(ctx, now.Add(-waitAtMost), now),
		f.c.Store.ForgetLogouts(ctx, now.Add(-keepDelivered), now.Add(-keepDead)))
}
