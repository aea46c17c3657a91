package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
)

// Logouts holds back-channel logouts and their delivery to clients.
type Logouts struct{ *core }

// Queue returns the queue of logouts for clients. The Subject of a job is the subscriber. The
// ID and the Body are both the id of the login.
func (s *Logouts) Queue() deliver.Queue { return s.queue() }

func (s *Logouts) queue() queue { return queue{s.core, logoutNames} }

// logoutNames replaces the placeholders in the statements of a queue. A login ends only once, so its id is
// also the id of its logout.
var logoutNames = strings.NewReplacer(
	"{receivers}", "logout_receivers",
	"{on}", "1 = 1",
	"{deliveries}", "logout_deliveries",
	"{receiver}", "client_id",
	"{job}", "session_id",
	"{event}", "'logout'",
	"{subject}", "subscriber_id",
	"{body}", "session_id",
	"{forget}", "",
)

// receiveLogouts stores the URL at which a client wants to be notified of logouts, or deletes it if
// the client has none.
func (t tx) receiveLogouts(ctx context.Context, c idp.Client) error {
	const doing = "writing receiver of logouts: %w"
	err := t.Later(ctx, `DELETE FROM logout_receivers WHERE id = $1 AND url <> $2`, c.ID, c.BackchannelLogoutURI)
	if err != nil {
		return fmt.Errorf(doing, err)
	}
	if c.BackchannelLogoutURI == "" {
		return nil
	}
	err = t.Later(ctx, `INSERT INTO logout_receivers (id, project_id, url) VALUES ($1, $2, $3)
		ON CONFLICT DO NOTHING`, c.ID, c.ProjectID, c.BackchannelLogoutURI)
	if err != nil {
		return fmt.Errorf(doing, err)
	}
	return nil
}

// queueLogouts queues the logouts for logins that a transaction has just ended. These are the
// logins that ended at the time ended and whose column has the value; the column is id or
// subscriber_id. A client is notified if it ever had a grant in the login, even a revoked one,
// because the client's own session may outlive the grant.
func (t tx) queueLogouts(ctx context.Context, column, value string, ended time.Time) error {
	err := t.Later(ctx, `INSERT INTO logout_deliveries
			(client_id, session_id, subscriber_id, state, created, queued, due)
		SELECT DISTINCT r.id, l.id, l.subscriber_id, 'pending', l.ended, l.ended, 0
			FROM login_sessions l JOIN grants g ON g.session_id = l.id JOIN logout_receivers r ON r.id = g.client_id
			WHERE l.`+column+` = $1 AND l.ended = $2 ON CONFLICT DO NOTHING`, value, micros(ended))
	if err != nil {
		return fmt.Errorf("queueing logouts: %w", err)
	}
	return nil
}

var logoutTable = table[fabric.Logout]{
	name:  "logout_deliveries",
	thing: "logout",
	columns: `session_id, client_id, subscriber_id, state, created, due, attempts, status,
	error, ended`,
	fields: func(l *fabric.Logout) []any {
		return []any{&l.LoginID, &l.ClientID, &l.SubscriberID, &l.State, &l.Created, &l.Due, &l.Attempts, &l.Status,
			&l.Error, &l.Ended}
	},
}

// ListLogouts returns a page of a client's logouts in a state; "" means any state. Logouts of the
// newest logins come first.
func (s *Logouts) ListLogouts(
	ctx context.Context, clientID string, state fabric.DeliveryState, q page.Query,
) (page.Page[fabric.Logout], error) {
	l := logoutTable.listing(q.From)
	l.key, l.desc = []string{"session_id"}, true
	l.where.and(`client_id = $%d`, clientID)
	if state != "" {
		l.where.and(`state = $%d`, string(state))
	}
	return l.page(ctx, s.read(), q)
}

// RedeliverLogout queues a logout again and wakes its client.
func (s *Logouts) RedeliverLogout(
	ctx context.Context, clientID, loginID string, now time.Time,
) (fabric.Logout, error) {
	q := s.queue()
	e := audit.Of("logout.redelivered", "", "client", clientID).With("session", loginID)
	return resultOf(ctx, s.change, e, func(t tx) (fabric.Logout, error) {
		l, err := logoutTable.scan(q.requeue(ctx, t, clientID, loginID, now, logoutTable.columns))
		if err != nil {
			return l, err
		}
		if err := t.placeReceiver(ctx, q, clientID); err != nil {
			return l, err
		}
		return l, q.wake(ctx, t, clientID)
	})
}

// RedeliverDeadLogouts queues all of a client's dead logouts again.
func (s *Logouts) RedeliverDeadLogouts(ctx context.Context, clientID string, now time.Time) (int, error) {
	return s.queue().requeueDead(ctx, clientID, now)
}

// ExpireLogouts marks pending logouts as dead if they were queued before the given time.
func (s *Logouts) ExpireLogouts(ctx context.Context, before, now time.Time) error {
	return s.queue().expire(ctx, before, now)
}

// ForgetLogouts deletes logouts that succeeded before the time delivered, and logouts that became
// dead before the time dead. It also deletes the logouts of clients that were deleted or no longer
// receive logouts.
func (s *Logouts) ForgetLogouts(ctx context.Context, delivered, dead time.Time) error {
	return s.queue().forget(ctx, delivered, dead)
}
