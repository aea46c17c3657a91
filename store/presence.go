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

// Presence holds, for each subscriber, the presence that was last reported to webhooks.
type Presence struct{ *core }

var presenceTable = table[fabric.ReportedPresence]{
	name:    "presences",
	thing:   "presence",
	columns: `subscriber_id, project_id, online, version`,
	fields: func(p *fabric.ReportedPresence) []any {
		return []any{&p.SubscriberID, &p.ProjectID, &p.Online, &p.Version}
	},
}

// WantsPresence reports whether a project has a webhook for presence events.
func (s *Presence) WantsPresence(ctx context.Context, projectID string) (wants bool, err error) {
	// The column has a space before and after each event.
	var n int
	err = s.read().Row(ctx, `SELECT count(*) FROM webhooks WHERE project_id = $1 AND enabled = 1
			AND (events = ' * ' OR events LIKE '% subscriber.online %' OR events LIKE '% subscriber.offline %')`,
		projectID).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("finding webhooks: %w", err)
	}
	return n > 0, nil
}

// FindReported returns the presence that was last reported to webhooks for a subscriber. It returns the
// zero value if none was reported.
func (s *Presence) FindReported(ctx context.Context, subscriberID string) (fabric.ReportedPresence, error) {
	reported, err := presenceTable.find(ctx, s.read(), `subscriber_id = $1`, subscriberID)
	if errors.Is(err, problem.NotFound) {
		return fabric.ReportedPresence{}, nil
	}
	return reported, err
}

// ReportPresence replaces the reported presence and queues the event, if there is one. If another node
// has replaced the presence since the version that the caller read, nothing is changed.
func (s *Presence) ReportPresence(
	ctx context.Context, reported fabric.ReportedPresence, due time.Time, event *fabric.Event,
) error {
	return s.change(ctx, audit.None("the presence of subscribers"), func(t tx) error {
		res, err := t.Exec(ctx, `INSERT INTO presences (`+presenceTable.columns+`, due) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (subscriber_id) DO UPDATE
			SET online = excluded.online, version = excluded.version, due = excluded.due
			WHERE presences.version = excluded.version - 1`,
			reported.SubscriberID, reported.ProjectID, flag(reported.Online), reported.Version, micros(due))
		if isForeignKey(err) {
			return problem.NoSuch("subscriber")
		}
		if err = requireUnchanged(res, err, "presence"); err != nil {
			return err
		}
		if event == nil {
			return nil
		}
		return t.queueEvent(ctx, *event)
	})
}

// DuePresences returns at most limit presences that are due for a check, and sets the time of their
// next check to next. Nodes that call it at the same time wait for one another.
func (s *Presence) DuePresences(
	ctx context.Context, now, next time.Time, limit int,
) ([]fabric.ReportedPresence, error) {
	// Usually no presence is due. This read finds out without taking a lock.
	_, err := scanID(s.read().Row(ctx, `SELECT subscriber_id FROM presences WHERE online = 1 AND due <= $1 LIMIT 1`,
		micros(now)))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding presences: %w", err)
	}

	return resultOf(ctx, s.change, audit.None("a lease"), func(t tx) ([]fabric.ReportedPresence, error) {
		// This changes nothing, but locks the row, so that other nodes wait until this change ends.
		if err := t.Later(ctx, `UPDATE sequences SET value = value WHERE name = 'presences'`); err != nil {
			return nil, fmt.Errorf("claiming presences: %w", err)
		}
		return gather(ctx, t, "reading presences", presenceTable.scan, `UPDATE presences SET due = $2
				WHERE subscriber_id IN (
					SELECT subscriber_id FROM presences WHERE online = 1 AND due <= $1 ORDER BY due LIMIT $3)
				RETURNING `+presenceTable.columns, micros(now), micros(next), limit)
	})
}

// ForgetPresences deletes the presences of a project's subscribers.
func (s *Presence) ForgetPresences(ctx context.Context, projectID string) error {
	return s.once(ctx, audit.None("the presence of subscribers"), func(t tx) error {
		if _, err := t.Exec(ctx, `DELETE FROM presences WHERE project_id = $1`, projectID); err != nil {
			return fmt.Errorf("deleting presences: %w", err)
		}
		return nil
	})
}
