package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// An erasure erases one subscriber, in one transaction. result counts most of what its methods
// erase.
type erasure struct {
	tx        tx
	projectID string
	id        string   // id of the subscriber
	email     string   // email of the subscriber; may be empty
	names     []string // other values that identify the subscriber, see fabric.ErasureRequest
	now       time.Time
	result    fabric.Erasure
}

// EraseSubscriber deletes the subscriber with the id req.ID, along with all data about it, and
// removes this data from the rows that remain. If the subscriber does not exist, and there is no
// data about it, the error is problem.NotFound. If it exists, but req.OnlyDeleted is set, the error
// is problem.Conflict.
func (s *Subscribers) EraseSubscriber(
	ctx context.Context, projectID string, req fabric.ErasureRequest, now time.Time,
) (fabric.Erasure, error) {
	event := audit.Of("subscriber.erased", projectID, "subscriber", req.ID)
	return resultOf(ctx, s.change, event, func(t tx) (fabric.Erasure, error) {
		e, err := newErasure(ctx, t, projectID, req, now)
		if err != nil {
			return fabric.Erasure{}, err
		}
		if err = e.eraseData(ctx); err != nil {
			return fabric.Erasure{}, err
		}
		if !e.result.Found {
			return e.result, requireErased(e.result)
		}

		if err = e.countRows(ctx); err != nil {
			return fabric.Erasure{}, err
		}
		return e.result, s.deleteSubscriber(ctx, t, projectID, req.Revocation, true)
	})
}

// newErasure locks the subscriber and reads what is needed to find its data. If the subscriber was
// already deleted, only its id and its kept name are left to find the data.
func newErasure(
	ctx context.Context, t tx, projectID string, req fabric.ErasureRequest, now time.Time,
) (*erasure, error) {
	sub, err := lockSubscriber(ctx, t, projectID, req.ID)
	found := err == nil
	switch {
	case found && req.OnlyDeleted:
		return nil, problem.New(problem.Conflict, "subscriber_exists", "the subscriber is not deleted")
	case errors.Is(err, problem.NotFound):
		sub, err = keptSubscriber(ctx, t, projectID, req.ID)
	}
	if err != nil {
		return nil, err
	}

	addresses, err := addressTable.gather(ctx, t, `WHERE resource_id = $1 AND project_id = $2`, req.ID, projectID)
	if err != nil {
		return nil, err
	}
	sessions, err := gather(ctx, t, "finding sessions", scanID,
		`SELECT id FROM login_sessions WHERE subscriber_id = $1 AND project_id = $2`, req.ID, projectID)
	if err != nil {
		return nil, err
	}

	return &erasure{
		tx:        t,
		projectID: projectID,
		id:        req.ID,
		email:     sub.Email,
		names:     req.Names(sub, addresses),
		now:       now,
		result: fabric.Erasure{
			Found:      found,
			Deleted:    make(map[string]int64),
			Anonymized: make(map[string]int64),
			Sessions:   sessions,
		},
	}, nil
}

// eraseData erases the data that is not deleted together with the subscriber's own row.
func (e *erasure) eraseData(ctx context.Context) error {
	for _, erase := range []func(context.Context) error{
		e.eraseRecordings,
		e.eraseCalls,
		e.eraseFilters,
		e.eraseMessages,
		e.eraseMails,
		e.eraseNames,
		e.eraseDeliveries,
	} {
		if err := erase(ctx); err != nil {
			return err
		}
	}
	return nil
}

// requireErased returns problem.NotFound if nothing was erased. It is called if the subscriber
// itself had already been deleted.
func requireErased(result fabric.Erasure) error {
	for _, counts := range []map[string]int64{result.Deleted, result.Anonymized} {
		for _, n := range counts {
			if n > 0 {
				return nil
			}
		}
	}
	return problem.NoSuch("subscriber")
}

// lockSubscriber returns a subscriber and locks it, so that no other change writes it before the
// end of the transaction.
func lockSubscriber(ctx context.Context, t tx, projectID, id string) (fabric.Subscriber, error) {
	return subscriberTable.scan(t.Row(ctx, `UPDATE subscribers SET updated = updated WHERE id = $2 AND project_id = $1
		RETURNING `+subscriberTable.columns, projectID, id))
}

// erasedTables lists the tables whose rows are deleted together with a subscriber.
var erasedTables = []struct {
	kind   string // the key in fabric.Erasure.Deleted
	table  string
	column string // holds the subscriber's id
}{
	{"addresses", "addresses", "resource_id"},
	{"sessions", "login_sessions", "subscriber_id"},
	{"grants", "grants", "subscriber_id"},
	{"consents", "consents", "subscriber_id"},
	{"devices", "devices", "subscriber_id"},
	{"upstream_links", "upstream_links", "subscriber_id"},
	{"sip_credentials", "sip_credentials", "subscriber_id"},
	{"active_days", "active_days", "subscriber_id"},
	{"passkeys", "passkeys", "owner_id"},
	{"authenticator_apps", "totps", "owner_id"},
	{"recovery_codes", "recovery_codes", "owner_id"},
}

// countRows counts the rows that will be deleted together with the subscriber.
func (e *erasure) countRows(ctx context.Context) error {
	e.result.Deleted["subscribers"] = 1
	for _, erased := range erasedTables {
		var n int64
		query := `SELECT COUNT(*) FROM ` + erased.table + ` WHERE ` + erased.column + ` = $1`
		if err := e.tx.Row(ctx, query, e.id).Scan(&n); err != nil {
			return fmt.Errorf("counting %s: %w", erased.kind, err)
		}
		e.result.Deleted[erased.kind] = n
	}
	return nil
}

// eraseMails deletes emails to the subscriber, and the links in them. It finds them by the id and by the
// email address of the subscriber.
func (e *erasure) eraseMails(ctx context.Context) error {
	recipientColumns := map[string]string{"mails": "recipient", "mail_links": "email"}
	for table, recipient := range recipientColumns {
		err := e.tx.Later(ctx, `DELETE FROM `+table+`
			WHERE project_id = $1 AND (subscriber_id = $2 OR $3 <> '' AND LOWER(`+recipient+`) = $3)`,
			e.projectID, e.id, e.email)
		if err != nil {
			return fmt.Errorf("deleting from %s: %w", table, err)
		}
	}
	return nil
}

// eraseDeliveries deletes the webhook deliveries about the subscriber and anonymizes those that must
// remain.
func (e *erasure) eraseDeliveries(ctx context.Context) error {
	if err := e.deleteDeliveries(ctx, `= $2`, e.projectID, e.id); err != nil {
		return err
	}
	return e.anonymizeDeliveries(ctx)
}

// deleteDeliveries deletes the webhook deliveries about the subscriber or about its calls. It includes
// deliveries that have been delivered. Only pending deliveries about the deletion of a subscriber
// remain. subjects is the part of an SQL condition that follows the column subject. The first of its
// arguments is the project. No index contains the subjects, so one condition must cover all of them.
func (e *erasure) deleteDeliveries(ctx context.Context, subjects string, args ...any) error {
	args = append(args[:len(args):len(args)], string(fabric.SubscriberDeleted))
	res, err := e.tx.Exec(ctx, `DELETE FROM webhook_deliveries
		WHERE subject `+subjects+` AND (event <> `+params(len(args)-1, 1)+` OR state <> 'pending')
			AND NOT EXISTS (SELECT 1 FROM webhooks w
				WHERE w.id = webhook_deliveries.webhook_id AND w.project_id <> $1)`, args...)
	n, err := countChanged(res, err, "webhook deliveries")
	if err != nil {
		return err
	}
	e.result.Deleted["webhook_deliveries"] += n
	return nil
}

// anonymizeDeliveries removes the subscriber's profile from the remaining deliveries about it. These
// report an earlier deletion of the subscriber. It also removes the responses of receivers, which may
// contain anything.
func (e *erasure) anonymizeDeliveries(ctx context.Context) error {
	const remaining = ` WHERE subject = $1 AND NOT EXISTS (SELECT 1 FROM webhooks w
		WHERE w.id = webhook_deliveries.webhook_id AND w.project_id <> $2)`
	bodies, err := gather(ctx, e.tx, "reading deliveries", scanID,
		`SELECT DISTINCT body FROM webhook_deliveries`+remaining, e.id, e.projectID)
	if err != nil {
		return err
	}

	for _, body := range bodies {
		anonymized, err := fabric.Nameless([]byte(body))
		if err != nil {
			return err
		}
		res, err := e.tx.Exec(ctx, `UPDATE webhook_deliveries SET body = $4, response = ''`+remaining+`
			AND body = $3 AND (body <> $4 OR response <> '')`, e.id, e.projectID, body, string(anonymized))
		n, err := countChanged(res, err, "webhook deliveries")
		if err != nil {
			return err
		}
		e.result.Anonymized["webhook_deliveries"] += n
	}
	return nil
}
