package fabric

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A Webhook is where a project wants to be told of events.
type Webhook struct {
	ID        string
	ProjectID string
	URL       string
	Name      string // "" where nobody gave it one
	Events    []EventName
	Enabled   bool // else nothing is queued for it, and nothing sent to it
	Created   time.Time
	Updated   time.Time

	Failures int       // attempts in a row that failed
	Rests    time.Time // nothing is sent before, since they did
}

// A WebhookInput is a webhook to create, or what of one to change; nil fields
// stay, and of a new one are "", all events, and enabled.
type WebhookInput struct {
	URL     *string
	Name    *string
	Events  *[]string // names; none, or *, are all
	Enabled *bool
}

// maxURL bounds the URL of a webhook.
const maxURL = 2048

// maxWebhooks is how many webhooks a project may have: each makes a row of every
// event.
const maxWebhooks = 50

// CheckWebhook reports everything that is wrong with the input of a change, or of
// a new webhook, which needs a URL.
func (f *Fabric) CheckWebhook(in WebhookInput, isNew bool) error {
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
		errs = append(errs, f.c.CheckURL("url", *in.URL))
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

// apply writes what an input says, which was checked.
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

// CreateWebhook makes a webhook, and the project's signing key if this is its
// first.
func (f *Fabric) CreateWebhook(ctx context.Context, projectID string, in WebhookInput) (Webhook, error) {
	if err := f.CheckWebhook(in, true); err != nil {
		return Webhook{}, err
	}
	if _, err := f.SigningKeys(ctx, projectID); err != nil {
		return Webhook{}, err
	}
	w := Webhook{ID: newID(), ProjectID: projectID, Events: []EventName{AnyEvent}, Enabled: true, Created: f.now()}
	w.Updated = w.Created
	in.apply(&w)
	defer f.lately.wants.Clear()
	return w, f.c.Store.CreateWebhook(ctx, w, maxWebhooks)
}

// FindWebhook returns a webhook of a project.
func (f *Fabric) FindWebhook(ctx context.Context, projectID, id string) (Webhook, error) {
	id, ok := canonical(id)
	if !ok {
		return Webhook{}, problem.NoSuch("webhook")
	}
	return f.c.Store.FindWebhook(ctx, projectID, id)
}

// ListWebhooks returns a page of a project's webhooks.
func (f *Fabric) ListWebhooks(ctx context.Context, projectID string, q page.Query) (page.Page[Webhook], error) {
	return f.c.Store.ListWebhooks(ctx, projectID, q)
}

// UpdateWebhook changes the fields that are said. What waits goes to the new URL;
// one that is enabled, or has a new URL, rests no more.
func (f *Fabric) UpdateWebhook(ctx context.Context, projectID, id string, in WebhookInput) (w Webhook, err error) {
	defer f.lately.wants.Clear()
	err = again(func() error {
		if w, err = f.FindWebhook(ctx, projectID, id); err != nil {
			return err
		}
		if err := f.CheckWebhook(in, false); err != nil {
			return err
		}
		old := w
		in.apply(&w)
		if w.URL != old.URL || w.Enabled != old.Enabled {
			w.Failures, w.Rests = 0, time.Time{}
		}
		w.Updated = later(f.now(), old.Updated.Add(time.Microsecond))
		return f.c.Store.UpdateWebhook(ctx, w, old.Updated)
	})
	return w, err
}

// DeleteWebhook deletes a webhook with what waits for it.
func (f *Fabric) DeleteWebhook(ctx context.Context, projectID, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("webhook")
	}
	return f.c.Store.DeleteWebhook(ctx, projectID, id)
}
