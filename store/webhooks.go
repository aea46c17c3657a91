package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// Webhooks holds webhooks and their deliveries.
type Webhooks struct{ *core }

const webhookColumns = `id, project_id, url, name, events, enabled, created, updated, failures, rests`

func scanWebhook(row scanner) (w fabric.Webhook, err error) {
	var events string
	var created, updated, rests int64
	err = row.Scan(&w.ID, &w.ProjectID, &w.URL, &w.Name, &events, &w.Enabled, &created, &updated, &w.Failures, &rests)
	w.Created, w.Updated, w.Rests = moment(created), moment(updated), moment(max(rests,
		0)) // a negative one was woken
	for _, name := range strings.Fields(events) {
		w.Events = append(w.Events, fabric.EventName(name))
	}
	return w, found(err, "webhook")
}

// spaced writes names between spaces, so that each can be looked for.
func spaced(events []fabric.EventName) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(" " + string(e))
	}
	return b.String() + " "
}

// CreateWebhook inserts a webhook, of which a project has at most so many.
func (s *Webhooks) CreateWebhook(ctx context.Context, w fabric.Webhook, most int) error {
	return s.change(ctx, webhookEvent("webhook.created", w), func(t tx) error {
		// Who makes one waits for who does so for the same project: that is how they are
		// counted.
		res, err := t.Exec(ctx, `UPDATE projects SET updated = updated WHERE id = $1`, w.ProjectID)
		if err := oneRow(res, err, "project"); err != nil {
			return err
		}
		var n int
		if err := t.Row(ctx, `SELECT count(*) FROM webhooks WHERE project_id = $1`, w.ProjectID).Scan(&n); err != nil {
			return fmt.Errorf("counting webhooks: %w", err)
		}
		if n >= most {
			return problem.BadParam("url", "there are %d webhooks already; delete one", most)
		}
		err = t.Later(ctx, `INSERT INTO webhooks (`+
			webhookColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			w.ID, w.ProjectID, w.URL, w.Name, spaced(w.Events), flag(w.Enabled), micros(w.Created),
			micros(w.Updated), w.Failures, micros(w.Rests))
		if err != nil {
			return fmt.Errorf("inserting webhook: %w", err)
		}
		return nil
	})
}

// FindWebhook finds a webhook of a project.
func (s *Webhooks) FindWebhook(ctx context.Context, projectID, id string) (fabric.Webhook, error) {
	return scanWebhook(s.read().Row(ctx,
		`SELECT `+webhookColumns+` FROM webhooks WHERE id = $2 AND project_id = $1`, projectID, id))
}

// ListWebhooks returns a page of a project's webhooks.
func (s *Webhooks) ListWebhooks(ctx context.Context, projectID string, q page.Query) (page.Page[fabric.Webhook], error) {
	l := listing[fabric.Webhook]{
		thing: "webhooks", columns: webhookColumns, from: "webhooks", key: []string{"id"}, start: startAt(q.From),
		scan: scanWebhook, id: func(w fabric.Webhook) string { return w.ID },
	}
	l.where.and(`project_id = $%d`, projectID)
	return l.page(ctx, s.read(), q)
}

// UpdateWebhook writes a webhook whose row is still as it was.
func (s *Webhooks) UpdateWebhook(ctx context.Context, w fabric.Webhook, old time.Time) error {
	return s.once(ctx, webhookEvent("webhook.updated", w), func(t tx) error {
		res, err := t.Exec(ctx, `UPDATE webhooks SET url = $3, name = $4, events = $5, enabled = $6, updated = $7, failures = $8, rests = $9
			WHERE id = $1 AND updated = $2`, w.ID, micros(old), w.URL, w.Name, spaced(w.Events), flag(w.Enabled), micros(w.Updated), w.Failures, micros(w.Rests))
		return unchanged(res, err, "webhook")
	})
}

// DeleteWebhook deletes a webhook and its deliveries.
func (s *Webhooks) DeleteWebhook(ctx context.Context, projectID, id string) error {
	return s.change(ctx, audit.Of("webhook.deleted", projectID, "webhook", id), func(t tx) error {
		res, err := t.Exec(ctx, `DELETE FROM webhooks WHERE id = $2 AND project_id = $1`, projectID, id)
		if err := oneRow(res, err, "webhook"); err != nil {
			return err
		}
		if err := t.Later(ctx, `DELETE FROM webhook_deliveries WHERE webhook_id = $1`, id); err != nil {
			return fmt.Errorf("deleting deliveries: %w", err)
		}
		return nil
	})
}

// webhooksOf counts the webhooks of the project whose row a statement writes: it tells
// so by RETURNING, and a project that has none costs nothing more.
func webhooksOf(table string) string {
	return `(SELECT count(*) FROM webhooks w WHERE w.project_id = ` + table + `.project_id AND w.enabled = 1)`
}

// told explains the error of an INSERT that tells how many webhooks there are, but
// where ON CONFLICT DO NOTHING did nothing.
func told(err error, thing string, conflict error) error {
	switch {
	case err == nil:
		return nil
	case isForeignKey(err):
		return problem.NoSuch("project")
	case errors.Is(err, sql.ErrNoRows):
		return conflict
	}
	return fmt.Errorf("inserting %s: %w", thing, err)
}

// tell queues an event for each webhook that wants it, in the transaction of what it
// tells of. It goes along with the next statement or the commit.
func (t tx) tell(ctx context.Context, e fabric.Event) error {
	err := t.Later(ctx, `INSERT INTO webhook_deliveries (webhook_id, id, event, subject, body, state, created, queued, due)
		SELECT id, $2, $3, $4, $5, 'pending', $6, $6, 0 FROM webhooks WHERE project_id = $1 AND enabled = 1 AND (events = ' * ' OR events LIKE $7)`,
		e.ProjectID, e.ID, string(e.Name), e.Subject, string(e.Body), micros(e.Created), "% "+string(e.Name)+" %")
	if err != nil {
		return fmt.Errorf("queueing event: %w", err)
	}
	return nil
}

// tellAny makes an event of something and queues it, where there are webhooks.
func tellAny[T any](ctx context.Context, t tx, webhooks int, of T, tell func(T) (fabric.Event, error)) error {
	if webhooks == 0 {
		return nil
	}
	e, err := tell(of)
	if err != nil {
		return fmt.Errorf("writing event: %w", err)
	}
	return t.tell(ctx, e)
}
