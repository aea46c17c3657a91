package store

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// Links holds the links in emails to subscribers.
type Links struct{ *core }

var linkTable = table[idp.Link]{
	name:    "mail_links",
	thing:   "link",
	columns: `hash, purpose, project_id, subscriber_id, email, inviter, request, created, expires`,
	fields: func(l *idp.Link) []any {
		return []any{
			&l.Hash, &l.Purpose, &l.ProjectID, nullableOf(&l.SubscriberID), &l.Email, &l.Inviter, &l.Request,
			&l.Created, &l.Expires,
		}
	},
}

// CreateLink inserts a link. A link for a subscriber is inserted only if the subscriber still has
// the email address and epoch to which the link is bound; see bindLink.
func (s *Links) CreateLink(ctx context.Context, l idp.Link) error {
	e := audit.Of("link.created", l.ProjectID, "subscriber", l.SubscriberID).With("purpose", string(l.Purpose))
	return s.change(ctx, e, func(t tx) error {
		if l.SubscriberID != "" {
			if err := t.bindLink(ctx, l); err != nil {
				return err
			}
		}
		return linkTable.insertLater(ctx, t, &l)
	})
}

// bindLink locks the subscriber of a link, if the subscriber still has the properties to which the
// link is bound, and the letter with the link has not been withdrawn. Otherwise the error is
// problem.NotFound. If the link must be the only one for its purpose, bindLink also deletes the
// subscriber's other links for this purpose. If the subscriber is changed concurrently, one of the
// two changes waits for the other. The other change then finds the link, or this change finds that
// the subscriber or the letter has changed.
func (t tx) bindLink(ctx context.Context, l idp.Link) error {
	res, err := t.Exec(ctx, `UPDATE subscribers SET updated = updated WHERE project_id = $1 AND id = $2
			AND COALESCE(email, '') = $3 AND disabled = 0 AND (epoch = $4 OR $5 = 0)`,
		l.ProjectID, l.SubscriberID, l.Bound, l.Epoch, flag(l.Purpose == mail.ChangeAddress))
	if err = requireRow(res, err, "subscriber"); err != nil {
		return err
	}

	if l.Letter != "" {
		var id string
		err = t.Row(ctx, `SELECT id FROM mails WHERE id = $1 AND state = 'pending'`, l.Letter).Scan(&id)
		if err = checkRow(err, "letter"); err != nil {
			return err
		}
	}
	if !l.Alone {
		return nil
	}

	err = t.Later(ctx, `DELETE FROM mail_links WHERE subscriber_id = $1 AND purpose = $2`,
		l.SubscriberID, string(l.Purpose))
	if err != nil {
		return fmt.Errorf("ending links: %w", err)
	}
	if l.Letter != "" {
		return nil
	}
	// A link that is handed over also replaces the letters that would create another link.
	err = t.Later(ctx, `DELETE FROM mails WHERE subscriber_id = $1 AND kind = $2 AND state IN ('pending', 'dead')`,
		l.SubscriberID, string(l.Purpose))
	if err != nil {
		return fmt.Errorf("ending letters: %w", err)
	}
	return nil
}

// FindLink finds a link that has not been used.
func (s *Links) FindLink(ctx context.Context, hash string) (idp.Link, error) {
	return linkTable.find(ctx, s.read(), `hash = $1`, hash)
}

// useLink deletes the link that authorizes a change. If several callers use the same link, only one
// succeeds.
func (t tx) useLink(ctx context.Context, subscriberID string, p fabric.Proof, now time.Time) error {
	var hash string
	err := t.Row(ctx, `DELETE FROM mail_links WHERE hash = $1 AND purpose = $2
			AND COALESCE(subscriber_id, '') = $3 AND expires > $4 RETURNING hash`,
		p.Hash, p.Purpose, subscriberID, micros(now)).Scan(&hash)
	used := problem.New(problem.Conflict, "link_over", "the link was used before or has expired")
	return conflictIfMissing(used, checkRow(err, "link"))
}

// endLinks deletes the links of a subscriber, and the pending and dead letters that would create
// new links. It is called if the subscriber's password or email address has changed, or if all of the
// subscriber's logins end.
func (t tx) endLinks(ctx context.Context, sub fabric.Subscriber) error {
	if err := t.Later(ctx, `DELETE FROM mail_links WHERE subscriber_id = $1`, sub.ID); err != nil {
		return fmt.Errorf("ending links: %w", err)
	}
	err := t.Later(ctx, `DELETE FROM mails WHERE (subscriber_id = $1 OR recipient = $2 AND project_id = $3)
			AND state IN ('pending', 'dead') AND kind IN ($4, $5, $6, $7)`, sub.ID, sub.Email, sub.ProjectID,
		string(mail.Reset), string(mail.Verify), string(mail.Invitation), string(mail.ChangeAddress))
	if err != nil {
		return fmt.Errorf("ending letters: %w", err)
	}
	return nil
}
