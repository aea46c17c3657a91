package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// Links holds the links that are mailed to subscribers.
type Links struct{ *core }

const mailLinkColumns = `hash, purpose, project_id, COALESCE(subscriber_id, ''), email, inviter, request, created, expires`

func scanMailLink(row scanner) (l idp.Link, err error) {
	var created, expires int64
	err = row.Scan(&l.Hash, &l.Purpose, &l.ProjectID, &l.SubscriberID, &l.Email, &l.Inviter, &l.Request,
		&created, &expires)
	l.Created, l.Expires = moment(created), moment(expires)
	return l, found(err, "link")
}

// CreateLink inserts a link, bound to its subscriber as that is now.
func (s *Links) CreateLink(ctx context.Context, l idp.Link) error {
	return s.change(ctx, audit.Of("link.created", l.ProjectID, "subscriber", l.SubscriberID).With(
		"purpose", string(l.Purpose)), func(t tx) error {
		if l.SubscriberID != "" {
			// Who changes the subscriber waits here for us, and then finds the link; or we
			// for them, and then see what has changed.
			res, err := t.Exec(ctx, `UPDATE subscribers SET updated = updated WHERE project_id = $1 AND id = $2 AND COALESCE(email, '') = $3 AND disabled = 0
					AND (epoch = $4 OR $5 = 0)`, l.ProjectID, l.SubscriberID, l.Bound, l.Epoch, flag(
				l.Purpose == mail.ChangeAddress))
			if err := oneRow(res, err, "subscriber"); err != nil {
				return err
			}
			if l.Alone {
				if err := t.Later(ctx, `DELETE FROM mail_links WHERE subscriber_id = $1 AND purpose = $2`, l.SubscriberID, string(l.Purpose)); err != nil {
					return fmt.Errorf("ending links: %w", err)
				}
			}
		}
		err := t.Later(ctx, `INSERT INTO mail_links (hash, purpose, project_id, subscriber_id, email, inviter, request, created, expires) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			l.Hash, string(l.Purpose), l.ProjectID, null(l.SubscriberID), l.Email, l.Inviter, l.Request,
			micros(l.Created), micros(l.Expires))
		if err != nil {
			return fmt.Errorf("inserting link: %w", err)
		}
		return nil
	})
}

// FindLink finds a link that was not used yet.
func (s *Links) FindLink(ctx context.Context, hash string) (idp.Link, error) {
	return scanMailLink(s.read().Row(ctx, `SELECT `+mailLinkColumns+` FROM mail_links WHERE hash = $1`, hash))
}

// useLink uses a link up for a change: of many callers one can.
func (t tx) useLink(ctx context.Context, subscriberID string, p fabric.Proof, now time.Time) error {
	var hash string
	err := t.Row(ctx, `DELETE FROM mail_links WHERE hash = $1 AND purpose = $2 AND COALESCE(subscriber_id, '') = $3 AND expires > $4 RETURNING hash`,
		p.Hash, p.Purpose, subscriberID, micros(now)).Scan(&hash)
	if err := found(err, "link"); errors.Is(err, problem.NotFound) {
		return problem.New(problem.Conflict, "link_over", "the link was used before, or is over")
	} else if err != nil {
		return err
	}
	return nil
}

// endLinks ends what was sent to a subscriber before its password or e-mail changed.
func (t tx) endLinks(ctx context.Context, subscriberID string) error {
	if err := t.Later(ctx, `DELETE FROM mail_links WHERE subscriber_id = $1`, subscriberID); err != nil {
		return fmt.Errorf("ending links: %w", err)
	}
	return nil
}
