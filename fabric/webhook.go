package fabric

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Webhooks manages the webhooks of projects and the keys that sign their deliveries.
type Webhooks struct {
	*core
	store WebhookStore
}

// A WebhookStore keeps webhooks and signing keys; see [Stores].
type WebhookStore interface {
	// CreateWebhook returns problem.Invalid if the project already has this many webhooks.
	CreateWebhook(ctx context.Context, w Webhook, most int) error
	FindWebhook(ctx context.Context, projectID, id string) (Webhook, error)
	ListWebhooks(ctx context.Context, projectID string, q page.Query) (page.Page[Webhook], error)
	// UpdateWebhook writes a webhook whose last change was at old, and returns
	// problem.Conflict if it was changed since.
	UpdateWebhook(ctx context.Context, w Webhook, old time.Time) error
	// DeleteWebhook also deletes the webhook's deliveries.
	DeleteWebhook(ctx context.Context, projectID, id string) error
	// QueueDelivery queues an event for this webhook alone.
	QueueDelivery(ctx context.Context, webhookID string, e Event) (Delivery, error)

	// CreateSigningKey returns problem.Conflict if the project has a key with the same
	// start. Of any number of concurrent callers one succeeds.
	CreateSigningKey(ctx context.Context, k SigningKey) error
	// ListSigningKeys returns all signing keys of a project, ordered by their start.
	ListSigningKeys(ctx context.Context, projectID string) ([]SigningKey, error)
	// RotateSigningKey adds a key and deletes those that started before current. If alone
	// is set, it deletes all others.
	RotateSigningKey(ctx context.Context, k SigningKey, current time.Time, alone bool) error
}

// A Webhook is a URL that receives a project's events.
type Webhook struct {
	ID        string
	ProjectID string
	URL       string
	Name      string // "" if unnamed
	Events    []EventName
	Enabled   bool // if false, nothing is queued or sent
	Created   time.Time
	Updated   time.Time

	Failures int       // consecutive failed attempts
	Rests    time.Time // nothing is sent before this time
}

// A WebhookInput holds the fields of a webhook to create or update; nil fields are left
// unchanged. A new webhook has no name, receives all events and is enabled by default.
type WebhookInput struct {
	URL     *string
	Name    *string
	Events  *[]string // event names; none or "*" means all
	Enabled *bool
}

// maxURL bounds the URL of a webhook.
const maxURL = 2048

// maxWebhooks is the most webhooks of a project: each makes a row of every event.
const maxWebhooks = 50

// Check returns everything that is wrong with the input of an update or, if isNew, of a
// new webhook, which needs a URL.
func (ws *Webhooks) Check(in WebhookInput, isNew bool) error {
	var errs []error
	switch {
	case in.URL == nil && isNew:
		errs = append(errs, problem.Missing("url"))
	case in.URL == nil:
	case *in.URL == "":
		errs = append(errs, problem.Missing("url"))
	case len(*in.URL) > maxURL:
		errs = append(errs, problem.BadParam("url", "url is too long (maximum is %d characters)", maxURL))
	default:
		errs = append(errs, ws.c.CheckURL("url", *in.URL))
	}

	if in.Name != nil {
		errs = append(errs, checkText("name", *in.Name))
	}
	if in.Events != nil {
		_, err := checkEvents(*in.Events)
		errs = append(errs, err)
	}

	return errors.Join(errs...)
}

// apply writes the fields of a checked input into w.
func (in WebhookInput) apply(w *Webhook) {
	if in.URL != nil {
		w.URL = *in.URL
	}
	if in.Name != nil {
		w.Name = *in.Name
	}
	if in.Events != nil {
		w.Events, _ = checkEvents(*in.Events)
	}
	if in.Enabled != nil {
		w.Enabled = *in.Enabled
	}
}

// Create creates a webhook, and the project's signing key with its first one.
func (ws *Webhooks) Create(ctx context.Context, projectID string, in WebhookInput) (Webhook, error) {
	if err := ws.Check(in, true); err != nil {
		return Webhook{}, err
	}
	if _, err := ws.SigningKeys(ctx, projectID); err != nil {
		return Webhook{}, err
	}
	w := Webhook{ID: newID(), ProjectID: projectID, Events: []EventName{AnyEvent}, Enabled: true, Created: ws.now()}
	w.Updated = w.Created
	in.apply(&w)
	defer ws.caches.wants.Clear()
	return w, ws.store.CreateWebhook(ctx, w, maxWebhooks)
}

// Find returns a webhook of a project.
func (ws *Webhooks) Find(ctx context.Context, projectID, id string) (Webhook, error) {
	id, ok := canonical(id)
	if !ok {
		return Webhook{}, problem.NoSuch("webhook")
	}
	return ws.store.FindWebhook(ctx, projectID, id)
}

// List returns a page of a project's webhooks.
func (ws *Webhooks) List(ctx context.Context, projectID string, q page.Query) (page.Page[Webhook], error) {
	return ws.store.ListWebhooks(ctx, projectID, q)
}

// Update changes the fields that are set. Waiting deliveries go to the new URL. A webhook
// that is enabled or gets a new URL no longer rests.
func (ws *Webhooks) Update(
	ctx context.Context, projectID, id string, in WebhookInput,
) (w Webhook, err error) {
	defer ws.caches.wants.Clear()
	err = again(func() error {
		if w, err = ws.Find(ctx, projectID, id); err != nil {
			return err
		}
		if err := ws.Check(in, false); err != nil {
			return err
		}
		old := w
		in.apply(&w)
		if w.URL != old.URL || w.Enabled != old.Enabled {
			w.Failures, w.Rests = 0, time.Time{}
		}
		w.Updated = later(ws.now(), old.Updated.Add(time.Microsecond))
		return ws.store.UpdateWebhook(ctx, w, old.Updated)
	})
	return w, err
}

// Delete deletes a webhook and its waiting deliveries.
func (ws *Webhooks) Delete(ctx context.Context, projectID, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("webhook")
	}
	return ws.store.DeleteWebhook(ctx, projectID, id)
}
