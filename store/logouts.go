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

// A login is ended once, so that it is the name of its logout.
var logoutQueue = strings.NewReplacer("{receivers}", "logout_receivers", "{on}", "1 = 1", "{deliveries}",
	"logout_deliveries",
	"{receiver}", "client_id", "{job}", "session_id", "{event}", "'logout'", "{subject}", "subscriber_id",
	"{body}", "session_id")

// Queue returns the queue of logouts that clients are told of. A job's Subject is the
// subscriber, its ID and Body are the login.
func (s *Logouts) Queue() deliver.Queue { return s.queue() }

func (s *Logouts) queue() queue { return queue{s.core, logoutQueue} }

// receiveLogouts has a client told of logouts where it wants to be, or no more.
func (t tx) receiveLogouts(ctx context.Context, c idp.Client) error {
	err := t.Later(ctx, `DELETE FROM logout_receivers WHERE id = $1 AND url <> $2`, c.ID, c.BackchannelLogoutURI)
	if err == nil && c.BackchannelLogoutURI != "" {
		err = t.Later(ctx, `INSERT INTO logout_receivers (id, project_id, url) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			c.ID, c.ProjectID, c.BackchannelLogoutURI)
	}
	if err != nil {
		return fmt.Errorf("writing receiver of logouts: %w", err)
	}
	return nil
}

// tellLogouts queues the logouts of logins that a transaction has ended at a moment:
// those whose id, or whose subscriber_id, is of. A client is told if it ever had a
// grant of the login, revoked or not: what it made of that lives by itself.
func (t tx) tellLogouts(ctx context.Context, column, of string, ended time.Time) error {
	err := t.Later(ctx, `INSERT INTO logout_deliveries (client_id, session_id, subscriber_id, state, created, queued, due)
		SELECT DISTINCT r.id, l.id, l.subscriber_id, 'pending', l.ended, l.ended, 0
			FROM login_sessions l JOIN grants g ON g.session_id = l.id JOIN logout_receivers r ON r.id = g.client_id
			WHERE l.`+column+` = $1 AND l.ended = $2 ON CONFLICT DO NOTHING`, of, micros(ended))
	if err != nil {
		return fmt.Errorf("queueing logouts: %w", err)
	}
	return nil
}

const logoutColumns = `client_id, session_id, subscriber_id, state, created, due, attempts, status, error, ended`

func scanLogout(row scanner) (l fabric.Logout, err error) {
	var created, due, ended int64
	err = row.Scan(&l.ClientID, &l.LoginID, &l.SubscriberID, &l.State, &created, &due, &l.Attempts, &l.Status,
		&l.Error, &ended)
	l.Created, l.Due, l.Ended = moment(created), moment(due), moment(ended)
	return l, found(err, "logout")
}

// ListLogouts returns a page of the logouts that a client is told of, those of the
// newest logins first.
func (s *Logouts) ListLogouts(ctx context.Context, clientID string, state fabric.DeliveryState, q page.Query) (page.Page[fabric.Logout], error) {
	l := listing[fabric.Logout]{
		thing: "logouts", columns: logoutColumns, from: "logout_deliveries", key: []string{"session_id"},
		start: startAt(q.From), desc: true,
		scan: scanLogout, id: func(l fabric.Logout) string { return l.LoginID },
	}
	l.where.and(`client_id = $%d`, clientID)
	if state != "" {
		l.where.and(`state = $%d`, string(state))
	}
	return l.page(ctx, s.read(), q)
}

// RedeliverLogout makes a logout wait again, and its client rest no more.
func (s *Logouts) RedeliverLogout(ctx context.Context, clientID, loginID string, now time.Time) (l fabric.Logout, err error) {
	q := s.queue()
	err = s.change(ctx, audit.Of("logout.redelivered", "", "client", clientID).With("session", loginID),
		func(t tx) error {
			if l, err = scanLogout(q.requeue(ctx, t, clientID, loginID, now, logoutColumns)); err != nil {
				return err
			}
			if err := t.placeReceiver(ctx, q, clientID); err != nil {
				return err
			}
			return q.wake(ctx, t, clientID)
		})
	return l, err
}

// RedeliverDeadLogouts makes all logouts wait again that were given up.
func (s *Logouts) RedeliverDeadLogouts(ctx context.Context, clientID string, now time.Time) (int, error) {
	return s.queue().requeueDead(ctx, clientID, now)
}

// ExpireLogouts returns up what waits since before a moment.
func (s *Logouts) ExpireLogouts(ctx context.Context, before, now time.Time) error {
	return s.queue().expire(ctx, before, now)
}

// ForgetLogouts deletes what is over for long enough, and what no client is told of.
func (s *Logouts) ForgetLogouts(ctx context.Context, delivered, dead time.Time) error {
	return s.queue().forget(ctx, delivered, dead)
}
