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

// AskVerification has a subscriber who is signed in sent a link by which it shows that
// its e-mail is its own.
func (p *Provider) AskVerification(ctx context.Context, sub fabric.Subscriber, network string) error {
	return p.AskMail(ctx, mail.Verify, sub.ProjectID, sub.Email, "", network)
}

// AskAddress has a link sent to another e-mail that a subscriber wants to have in place
// of its own, which stays until the link is used; with another password, be it set while
// the letter waits, there is no link. Whether somebody else has it is found
// out where the letter is written, and told there alone.
func (p *Provider) AskAddress(ctx context.Context, sub fabric.Subscriber, email, network string) error {
	if err := fabric.CheckEmail("email", email); err != nil {
		return err
	}
	if err := p.Limits.TakeNetwork(ctx, limit.MailPerNetwork, network); err != nil {
		return err
	}
	email = fabric.NormalizeEmail(email)
	if err := p.Limits.Take(ctx, limit.MailPerAddress, sub.ProjectID+" "+email); err != nil {
		return err
	}
	l, err := p.newLetter(mail.ChangeAddress, sub.ProjectID, email,
		map[string]string{"old": sub.Email, "epoch": strconv.FormatInt(sub.Epoch, 10)})
	if err != nil {
		return err
	}
	l.SubscriberID = sub.ID
	return p.Store.QueueLetter(ctx, l)
}

// writeAddress says what the mail says that AskAddress sends: to an address that another
// account has, that it has it.
func (p *Provider) writeAddress(ctx context.Context, l mail.Letter, d mail.Draft, link Link) (mail.Draft, error) {
	s, err := p.Subscribers.FindSubscriber(ctx, l.ProjectID, l.SubscriberID)
	if err != nil {
		return d, err
	}
	if s.Disabled || s.Email != l.Facts["old"] || strconv.FormatInt(s.Epoch, 10) != l.Facts["epoch"] ||
		s.Email == l.To {
		return d, problem.NoSuch("recipient")
	}
	_, err = p.Subscribers.FindSubscriberByEmail(ctx, l.ProjectID, l.To)
	if err == nil {
		d.Kind = mail.AddressTaken
		return d, nil
	}
	if !errors.Is(err, problem.NotFound) {
		return d, err
	}
	d.Facts = p.spans(l.Facts)
	link.Bound, link.Epoch = s.Email, s.Epoch
	d.Link, err = p.newLink(ctx, link, d.Language)
	return d, err
}

// ChangeAddress returns a subscriber the e-mail that a link of ChangeAddress was sent to.
// Where another has it by now it is problem.Conflict.
func (p *Provider) ChangeAddress(ctx context.Context, token string) (Link, error) {
	return p.use(ctx, mail.ChangeAddress, token, "address_changed", func(l Link) fabric.SubscriberInput {
		return fabric.SubscriberInput{Email: &l.Email}
	})
}
