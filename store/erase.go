package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// EraseSubscriber deletes the subscriber with the id by.ID, along with all data about it, and
// removes this data from the rows that remain. If the subscriber does not exist, and there is no
// data about it, the error is problem.NotFound. If it exists, but by.OnlyDeleted is set, the error is
// problem.Conflict.
func (s *Subscribers) EraseSubscriber(
	ctx context.Context, projectID string, by fabric.Eraser, now time.Time,
) (e fabric.Erasure, err error) {
	err = s.change(ctx, audit.Of("subscriber.erased", projectID, "subscriber", by.ID), func(t tx) error {
		e = fabric.Erasure{Deleted: make(map[string]int64), Anonymised: make(map[string]int64)}
		sub, err := lockSubscriber(ctx, t, projectID, by.ID)
		if err != nil && !errors.Is(err, problem.NotFound) {
			return err
		}
		e.Found = err == nil
		if e.Found && by.OnlyDeleted {
			return problem.New(problem.Conflict, "subscriber_exists", "the subscriber is not deleted")
		}
		if !e.Found {
			if sub, err = keptSubscriber(ctx, t, projectID, by.ID); err != nil {
				return err
			}
		}

		// Read the addresses before they are deleted, since they are needed to find the data.
		addresses, err := addressTable.gather(ctx, t, `WHERE resource_id = $1 AND project_id = $2`, by.ID, projectID)
		if err != nil {
			return err
		}

		e.Sessions, err = gather(ctx, t, "finding sessions", scanID,
			`SELECT id FROM login_sessions WHERE subscriber_id = $1 AND project_id = $2`, by.ID, projectID)
		if err != nil {
			return err
		}

		names := by.Names(sub, addresses)
		if err := eraseRecordings(ctx, t, projectID, by.ID, names, now, &e); err != nil {
			return err
		}

		if err := eraseCalls(ctx, t, projectID, by.ID, names, &e); err != nil {
			return err
		}
		if err := eraseFilters(ctx, t, projectID, by.ID, names, &e); err != nil {
			return err
		}

		if err := eraseMessages(ctx, t, projectID, by.ID, &e); err != nil {
			return err
		}
		if err := eraseMails(ctx, t, projectID, by.ID, sub.Email); err != nil {
			return err
		}
		if err := eraseNames(ctx, t, projectID, by.ID, sub.Email, &e); err != nil {
			return err
		}

		if err := eraseDeliveries(ctx, t, projectID, by.ID, &e); err != nil {
			return err
		}
		if err := anonymizeDeliveries(ctx, t, projectID, by.ID, &e); err != nil {
			return err
		}

		if !e.Found {
			return requireErased(e)
		}
		if err := countErased(ctx, t, by.ID, &e); err != nil {
			return err
		}
		return s.deleteSubscriber(ctx, t, projectID, by.Revocation, true)
	})
	return e, err
}

// requireErased returns problem.NotFound if nothing was erased. It is called if the subscriber
// itself had already been deleted.
func requireErased(e fabric.Erasure) error {
	for _, counts := range []map[string]int64{e.Deleted, e.Anonymised} {
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

// erasedTables lists the tables whose rows are deleted with a subscriber. name is the table's name
// in a fabric.Erasure.
var erasedTables = []struct{ name, table, column string }{
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

// countErased counts the rows that will be deleted with a subscriber.
func countErased(ctx context.Context, t tx, id string, e *fabric.Erasure) error {
	e.Deleted["subscribers"] = 1
	for _, of := range erasedTables {
		var n int64
		err := t.Row(ctx, `SELECT COUNT(*) FROM `+of.table+` WHERE `+of.column+` = $1`, id).Scan(&n)
		if err != nil {
			return fmt.Errorf("counting %s: %w", of.name, err)
		}
		e.Deleted[of.name] = n
	}
	return nil
}

// eraseMails deletes emails to a subscriber, and the links in them. It finds them by the
// subscriber's id and by its email address.
func eraseMails(ctx context.Context, t tx, projectID, id, email string) error {
	for table, to := range map[string]string{"mails": "recipient", "mail_links": "email"} {
		err := t.Later(ctx, `DELETE FROM `+table+`
			WHERE project_id = $1 AND (subscriber_id = $2 OR $3 <> '' AND LOWER(`+to+`) = $3)`, projectID, id, email)
		if err != nil {
			return fmt.Errorf("deleting from %s: %w", table, err)
		}
	}
	return nil
}

// eraseDeliveries deletes the webhook deliveries about a subscriber or one of its calls, including
// delivered ones. Pending deliveries about the deletion of the subscriber remain, see
// anonymizeDeliveries.
func eraseDeliveries(ctx context.Context, t tx, projectID, id string, e *fabric.Erasure) error {
	res, err := t.Exec(ctx, `DELETE FROM webhook_deliveries WHERE subject = $1 AND (event <> $3 OR state <> 'pending')
			AND NOT EXISTS (SELECT 1 FROM webhooks w
				WHERE w.id = webhook_deliveries.webhook_id AND w.project_id <> $2)`,
		id, projectID, string(fabric.SubscriberDeleted))
	n, err := countChanged(res, err, "webhook deliveries")
	if err != nil {
		return err
	}
	e.Deleted["webhook_deliveries"] += n
	return nil
}

// anonymizeDeliveries anonymizes the deliveries about a subscriber that remain. If the subscriber
// was deleted before, it removes the profile from them. It also removes the responses of receivers,
// which may contain anything.
func anonymizeDeliveries(ctx context.Context, t tx, projectID, id string, e *fabric.Erasure) error {
	const remaining = ` WHERE subject = $1 AND NOT EXISTS (SELECT 1 FROM webhooks w
		WHERE w.id = webhook_deliveries.webhook_id AND w.project_id <> $2)`
	bodies, err := gather(ctx, t, "reading deliveries", scanID,
		`SELECT DISTINCT body FROM webhook_deliveries`+remaining, id, projectID)
	if err != nil {
		return err
	}

	for _, body := range bodies {
		nameless, err := fabric.Nameless([]byte(body))
		if err != nil {
			return err
		}
		res, err := t.Exec(ctx, `UPDATE webhook_deliveries SET body = $4, response = ''`+remaining+`
			AND body = $3 AND (body <> $4 OR response <> '')`, id, projectID, body, string(nameless))
		n, err := countChanged(res, err, "webhook deliveries")
		if err != nil {
			return err
		}
		e.Anonymised["webhook_deliveries"] += n
	}
	return nil
}

// An erasedRecording is a recording that is tied to a subscriber, or that contains one of the
// subscriber's names.
type erasedRecording struct {
	id, key, from, to string
	tied, others      bool // whether it is tied to the subscriber, and whether it is tied to other subscribers
	live, held        bool
}

// eraseRecordings deletes the recordings that are tied only to the subscriber. It removes the
// subscriber's names from other recordings. Recordings on hold remain unchanged, with their ties,
// so that another erasure can find them after the hold has ended.
func eraseRecordings(
	ctx context.Context, t tx, projectID, id string, names []string, now time.Time, e *fabric.Erasure,
) error {
	found, err := recordingsToErase(ctx, t, projectID, id, names)
	if err != nil {
		return err
	}

	for _, r := range found {
		if r.held {
			continue
		}
		from, to := without(names, r.from), without(names, r.to)
		deleted := int64(0)
		switch {
		case r.tied && !r.others:
			from, to, deleted = "", "", micros(now)
			err := t.Later(ctx, `DELETE FROM callback_deliveries
				WHERE sid = (SELECT sid FROM recordings WHERE id = $1)`, r.id)
			if err != nil {
				return fmt.Errorf("erasing callbacks: %w", err)
			}
			if r.live {
				e.Media = append(e.Media, r.key)
				e.Deleted["recordings"]++
			}
		case from != r.from || to != r.to || r.tied:
			e.Anonymised["recordings"]++
		}

		err := t.Later(ctx, `UPDATE recordings SET deleted = CASE WHEN deleted = 0 THEN $2 ELSE deleted END,
				updated = $3, waits = CASE WHEN $2 = 0 THEN waits ELSE 0 END,
				callback_url = CASE WHEN $2 = 0 THEN callback_url ELSE '' END,
				from_address = $4, to_address = $5, from_tail = $6, to_tail = $7, name = '', words = NULL
			WHERE id = $1`,
			r.id, deleted, micros(now), from, to, recordings.Tail(from), recordings.Tail(to))
		if err != nil {
			return fmt.Errorf("erasing recording: %w", err)
		}

		// IndexRecordings adds the words that remain.
		if err := t.Later(ctx, `DELETE FROM recording_words WHERE recording_id = $1`, r.id); err != nil {
			return fmt.Errorf("erasing words: %w", err)
		}
	}

	err = t.Later(ctx, `DELETE FROM recording_subscribers WHERE subscriber_id = $1
		AND recording_id IN (SELECT id FROM recordings WHERE project_id = $2 AND (hold = '' OR deleted <> 0))`,
		id, projectID)
	if err != nil {
		return fmt.Errorf("untying recordings: %w", err)
	}
	return nil
}

// recordingsToErase finds the recordings that are tied to a subscriber or contain one of its names.
func recordingsToErase(ctx context.Context, t tx, projectID, id string, names []string) ([]erasedRecording, error) {
	scan := func(row scanner) (r erasedRecording, err error) {
		var deleted int64
		var hold string
		err = row.Scan(&r.id, &r.key, &r.from, &r.to, &deleted, &hold, &r.tied, &r.others)
		r.live = deleted == 0
		r.held = r.live && hold != ""
		return r, err
	}

	args := []any{projectID, id}
	named := ""
	if len(names) > 0 {
		in := ` IN (` + params(len(args), len(names)) + `)`
		named = ` OR LOWER(from_address)` + in + ` OR LOWER(to_address)` + in
		for _, name := range names {
			args = append(args, name)
		}
	}

	const tie = `EXISTS (SELECT 1 FROM recording_subscribers s WHERE s.recording_id = recordings.id AND s.subscriber_id`
	return gather(ctx, t, "finding recordings", scan, `SELECT id, COALESCE(media_key, id), from_address, to_address,
			deleted, hold, `+tie+` = $2), `+tie+` <> $2)
		FROM recordings WHERE project_id = $1
			AND (id IN (SELECT recording_id FROM recording_subscribers WHERE subscriber_id = $2)`+named+`)`, args...)
}

// without returns the name of a call's party, or "" if names contains it. It ignores the case and a
// query in the name, because clients may append a query.
func without(names []string, party string) string {
	name, _, _ := strings.Cut(strings.ToLower(party), "?")
	if slices.Contains(names, name) {
		return ""
	}
	return party
}
