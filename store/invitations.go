package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// FindInvitationOf returns the pending invitation of a subscriber: its newest link and the newest
// letter, whichever exists. A letter that was sent counts only while its link exists. If there is
// neither a link nor such a letter, the error is problem.NotFound.
func (s *Subscribers) FindInvitationOf(ctx context.Context, subscriberID string) (fabric.Invitation, error) {
	const newest = ` ORDER BY created DESC LIMIT 1`
	var i fabric.Invitation
	link, err := linkTable.find(ctx, s.read(), `subscriber_id = $1 AND purpose = $2`+newest,
		subscriberID, string(mail.Invitation))
	if err == nil {
		i = fabric.Invitation{Inviter: link.Inviter, To: link.Email, Created: link.Created, Expires: link.Expires}
	}
	if problem.IgnoreNotFound(err) != nil {
		return i, err
	}

	letter, notFound := letterTable.find(ctx, s.read(), `subscriber_id = $1 AND kind = $2`+newest,
		subscriberID, string(mail.Invitation))
	if errors.Is(notFound, problem.NotFound) {
		return i, err
	}
	if notFound != nil {
		return i, notFound
	}
	unsent := letter.State == mail.Pending || letter.State == mail.Dead
	switch {
	case err != nil && !unsent:
		return i, err
	case err != nil:
		i = fabric.Invitation{Inviter: letter.Facts["inviter"], To: letter.To, Created: letter.Created}
	case i.To == "" && !unsent:
		return i, nil // the link was handed over after the letter was sent
	}
	i.Letter, i.Error = letter.State, letter.Error
	return i, nil
}

// WithdrawInvitationOf deletes the invitation links of a subscriber, and the letters that would
// create new ones. It locks the subscriber, so that a letter that is being written creates no link
// afterwards.
func (s *Subscribers) WithdrawInvitationOf(ctx context.Context, projectID, subscriberID string) error {
	e := audit.Of("invitation.withdrawn", projectID, "subscriber", subscriberID)
	return s.change(ctx, e, func(t tx) error {
		if _, err := lockSubscriber(ctx, t, projectID, subscriberID); err != nil {
			return err
		}
		var ended int64
		for _, statement := range []string{
			`DELETE FROM mail_links WHERE subscriber_id = $1 AND purpose = $2`,
			`DELETE FROM mails WHERE subscriber_id = $1 AND kind = $2 AND state IN ('pending', 'dead')`,
		} {
			res, err := t.Exec(ctx, statement, subscriberID, string(mail.Invitation))
			n, err := countChanged(res, err, "invitations")
			if err != nil {
				return fmt.Errorf("withdrawing: %w", err)
			}
			ended += n
		}
		if ended == 0 {
			return problem.New(problem.Conflict, fabric.CodeNoInvitation, "there is no pending invitation")
		}
		return nil
	})
}
