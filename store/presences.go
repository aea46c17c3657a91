package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// Presence holds the presence of subscribers as last delivered to webhooks.
type Presence struct{ *core }

const toldColumns = `subscriber_id, project_id, online, version`

func scanTold(row scanner) (t fabric.Told, err error) {
	err = row.Scan(&t.SubscriberID, &t.ProjectID, &t.Online, &t.Version)
	return t, err
}

// WantsPresence looks for a webhook that wants to know who is online.
func (s *Presence) WantsPresence(ctx context.Context, projectID string) (wants bool, err error) {
	var n int
	err = s.read().Row(ctx, `SELECT count(*) FROM webhooks WHERE project_id = $1 AND enabled = 1
		AND (events = ' * ' OR events LIKE '% subscriber.online %' OR events LIKE '% subscriber.offline %')`, projectID).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("looking for webhooks: %w", err)
	}
	return n > 0, nil
}

// FindTold returns what was told of a subscriber.
func (s *Presence) FindTold(ctx context.Context, subscriberID string) (fabric.Told, error) {
	t, err := scanTold(s.read().Row(ctx, `SELECT `+toldColumns+` FROM presences WHERE subscriber_id = $1`,
		subscriberID))
	if errors.Is(err, sql.ErrNoRows) {
		return fabric.Told{}, nil
	}
	if err != nil {
		return t, fmt.Errorf("reading presence: %w", err)
	}
	return t, nil
}

// TellPresence writes what is told, if nobody has since the version before.
func (s *Presence) TellPresence(ctx context.Context, told fabric.Told, due time.Time, e *fabric.Event) error {
	return s.change(ctx, audit.None("who is online"), func(t tx) error {
		res, err := t.Exec(ctx, `INSERT INTO presences (`+toldColumns+`, due) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (subscriber_id) DO UPDATE SET online = excluded.online, version = excluded.version, due = excluded.due
			WHERE presences.version = excluded.version - 1`,
			told.SubscriberID, told.ProjectID, flag(told.Online), told.Version, micros(due))
		if isForeignKey(err) {
			return problem.NoSuch("subscriber")
		}
		if err := unchanged(res, err, "presence"); err != nil || e == nil {
			return err
		}
		return t.tell(ctx, *e)
	})
}

// DuePresences returns some that are due to be looked at. Nodes take them in turns.
func (s *Presence) DuePresences(ctx context.Context, now, next time.Time, most int) (due []fabric.Told, err error) {
	if _, err := scanID(s.read().Row(ctx, `SELECT subscriber_id FROM presences WHERE online = 1 AND due <= $1 LIMIT 1`, micros(now))); errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("looking for presences: %w", err)
	}
	err = s.change(ctx, audit.None("a lease"), func(t tx) error {
		if err := t.Later(ctx, `UPDATE sequences SET value = value WHERE name = 'presences'`); err != nil {
			return fmt.Errorf("taking turns: %w", err)
		}
		due, err = gather(ctx, t, "reading presences", scanTold, `UPDATE presences SET due = $2 WHERE subscriber_id IN
			(SELECT subscriber_id FROM presences WHERE online = 1 AND due <= $1 ORDER BY due LIMIT $3) RETURNING `+toldColumns, micros(now), micros(next), most)
		return err
	})
	return due, err
}

// ForgetPresences deletes what was told of a project's subscribers.
func (s *Presence) ForgetPresences(ctx context.Context, projectID string) error {
	return s.once(ctx, audit.None("who is online"), func(t tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM presences WHERE project_id = $1`, projectID); err != nil {
			return fmt.Errorf("forgetting presences: %w", err)
		}
		return nil
	})
}
