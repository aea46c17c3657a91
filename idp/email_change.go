package idp

import (
	"context"
	"errors"
	"strconv"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// AskVerification queues an email to a signed-in subscriber, with a link that verifies the address. If
// too many emails were requested, it returns problem.RateLimited.
func (as *Accounts) AskVerification(ctx context.Context, sub fabric.Subscriber, language, network string) error {
	email := fabric.NormalizeEmail(sub.Email)
	if err := as.countMail(ctx, sub.ProjectID, email, network); err != nil {
		return err
	}
	l, err := as.newLetter(mail.Verify, sub.ProjectID, email, map[string]string{"language": language})
	if err != nil {
		return err
	}
	return as.letters.store.QueueLetter(ctx, l)
}

// countMail counts an email that a signed-in subscriber requests. Unlike [Letters.AskIn], it returns
// an error if too many emails were requested for the address, because the subscriber must not wait for an
// email that is not sent.
func (as *Accounts) countMail(ctx context.Context, projectID, email, network string) error {
	if err := as.Limits.TakeNetwork(ctx, limit.MailPerNetwork, network); err != nil {
		return err
	}
	return as.Limits.Take(ctx, limit.MailPerAddress, projectID+" "+email)
}

// AskAddress queues an email to a new address that a subscriber wants to use. The email contains a
// link that confirms the address. The current address remains until the link is used. If the
// password changes before that, the link becomes invalid. Whether another account has the address
// is checked only when the email is written, and only the email contains the result.
func (as *Accounts) AskAddress(ctx context.Context, sub fabric.Subscriber, email, language, network string) error {
	if err := fabric.CheckEmail("email", email); err != nil {
		return err
	}
	email = fabric.NormalizeEmail(email)
	if err := as.countMail(ctx, sub.ProjectID, email, network); err != nil {
		return err
	}
	l, err := as.newLetter(mail.ChangeAddress, sub.ProjectID, email,
		map[string]string{"old": sub.Email, "epoch": strconv.FormatInt(sub.Epoch, 10), "language": language})
	if err != nil {
		return err
	}
	l.SubscriberID = sub.ID
	return as.letters.store.QueueLetter(ctx, l)
}

// writeAddress drafts the email that AskAddress queued. If another account has the address, the
// email says so instead of containing a link.
func (ls *Letters) writeAddress(ctx context.Context, l mail.Letter, d mail.Draft, link Link) (mail.Draft, error) {
	s, err := ls.Subscribers.FindSubscriber(ctx, l.ProjectID, l.SubscriberID)
	if err != nil {
		return d, err
	}
	if s.Disabled || s.Email != l.Facts["old"] || strconv.FormatInt(s.Epoch, 10) != l.Facts["epoch"] ||
		s.Email == l.To {
		return d, problem.NoSuch("recipient")
	}

	_, err = ls.Subscribers.FindSubscriberByEmail(ctx, l.ProjectID, l.To)
	if err == nil {
		d.Kind = mail.AddressTaken
		return d, nil
	}
	if !errors.Is(err, problem.NotFound) {
		return d, err
	}

	d.Facts = ls.addLifetimes(l.Facts)
	link.Bound, link.Epoch = s.Email, s.Epoch
	d.Link, err = ls.newLink(ctx, link, d.Language)
	return d, err
}

// ChangeAddress changes a subscriber's email address to the address to which the link with this
// token was sent. If another account has taken that address, it returns problem.Conflict.
func (as *Accounts) ChangeAddress(ctx context.Context, token string) (Link, error) {
	return as.useLink(ctx, mail.ChangeAddress, token, "address_changed", func(l Link) fabric.SubscriberInput {
		return fabric.SubscriberInput{Email: &l.Email}
	})
}
