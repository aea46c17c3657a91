package declared

import (
	"context"
	"slices"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// webhooks describes webhooks. They are identified by URL, because their names need not be unique.
func (d *Declarer) webhooks() noun[fabric.Webhook] {
	return noun[fabric.Webhook]{
		kind: "webhook",
		by:   "url",
		fields: func(w *fabric.Webhook) []field {
			return []field{
				{"url", &w.URL},
				{"name", &w.Name},
				{"events", &w.Events},
				{"enabled", &w.Enabled},
			}
		},

		id:   func(w fabric.Webhook) string { return w.ID },
		name: func(w fabric.Webhook) string { return w.URL },
		fresh: func() fabric.Webhook {
			return fabric.Webhook{Events: []fabric.EventName{fabric.AnyEvent}, Enabled: true}
		},

		list: func(ctx context.Context, projectID string) ([]fabric.Webhook, error) {
			return page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Webhook], error) {
				return d.c.Fabric.Webhooks.List(ctx, projectID, q)
			})
		},

		settle: func(w *fabric.Webhook) error {
			// An empty list means all events.
			if len(w.Events) == 0 || slices.Contains(w.Events, fabric.AnyEvent) {
				w.Events = []fabric.EventName{fabric.AnyEvent}
			}
			var events []fabric.EventName // without duplicates, as they are stored
			for _, e := range w.Events {
				if !slices.Contains(events, e) {
					events = append(events, e)
				}
			}
			w.Events = events
			return nil
		},

		check: func(_ context.Context, w fabric.Webhook, isNew bool) error {
			return d.c.Fabric.Webhooks.Check(webhookInput(fabric.Webhook{}, w), isNew)
		},

		create: func(ctx context.Context, projectID string, w fabric.Webhook) (made, error) {
			created, err := d.c.Fabric.Webhooks.Create(ctx, projectID, webhookInput(fabric.Webhook{}, w))
			if err != nil {
				return made{}, err
			}
			return made{id: created.ID}, nil
		},

		update: func(ctx context.Context, projectID string, old, w fabric.Webhook) error {
			_, err := d.c.Fabric.Webhooks.Update(ctx, projectID, w.ID, webhookInput(old, w))
			return err
		},

		remove: func(ctx context.Context, projectID string, w fabric.Webhook) error {
			return d.c.Fabric.Webhooks.Delete(ctx, projectID, w.ID)
		},
	}
}

// webhookInput returns the changes from old to w.
func webhookInput(old, w fabric.Webhook) fabric.WebhookInput {
	in := fabric.WebhookInput{
		URL:     changed(old.URL, w.URL),
		Name:    changed(old.Name, w.Name),
		Enabled: changed(old.Enabled, w.Enabled),
	}
	if !slices.Equal(old.Events, w.Events) {
		names := []string{}
		for _, e := range w.Events {
			names = append(names, string(e))
		}
		in.Events = &names
	}
	return in
}
