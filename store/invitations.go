package store

import (
	"context"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// FindInvitationOf returns the pending invitation of a subscriber: the newest link, the newest letter, or
// both. A letter that was sent counts only while its link exists. If there is
// neither a link nor an unsent letter, the error is problem.NotFound.
func (s *Subscribers) FindInvitationOf(ctx context.Context, subscriberID string) (fabric.Invitation, error) {
	const newest = ` ORDER BY created DESC LIMIT 1`
	link, linkErr := linkTable.find(ctx, s.read(), `subscriber_id = $1 AND purpose = $2`+newest,
		subscriberID, string(mail.Invitation))
	if problem.IgnoreNotFound(linkErr) != nil {
		return fabric.Invitation{}, linkErr
	}
	letter, letterErr := letterTable.find(ctx, s.read(), `subscriber_id = $1 AND kind = $2`+newest,
		subscriberID, string(mail.Invitation))
	if problem.IgnoreNotFound(letterErr) != nil {
		return fabric.Invitation{}, letterErr
	}

	hasLink := linkErr == nil
	hasLetter := letterErr == nil
	isUnsent := hasLetter && (letter.State == mail.Pending || letter.State == mail.Dead)
	if !hasLink && !isUnsent {
		return fabric.Invitation{}, linkErr
	}

	var i fabric.Invitation
	if hasLink {
		i = fabric.Invitation{
			Inviter: link.Inviter,
			To:      link.Email,
			Created: link.Created,
			Expires: link.Expires,
		}
		if !hasLetter || link.Email == "" && !isUnsent {
			return i, nil // the link was handed over, possibly after a letter was sent
		}
	} else {
		i = fabric.Invitation{
			Inviter: letter.Facts["inviter"],
			To:      letter.To,
			Created: letter.Created,
		}
	}
	i.Letter = letter.State
	i.Error = letter.Error
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
