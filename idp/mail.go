package idp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/logo"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// newLetter makes a letter of now.
func (p *Provider) newLetter(kind mail.Kind, projectID, to string, facts map[string]string) (mail.Letter, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return mail.Letter{}, fmt.Errorf("making mail id: %w", err)
	}
	return mail.Letter{ID: id.String(), ProjectID: projectID, Kind: kind, To: to, Facts: facts, Created: p.Now()}, nil
}

// AskMail is AskMailIn the language that the account has.
func (p *Provider) AskMail(ctx context.Context, kind mail.Kind, projectID, email, requestID, network string) error {
	return p.AskMailIn(ctx, "", kind, projectID, email, requestID, network)
}

// AskMailIn notes that somebody wants a mail of a kind sent to an address, from a network,
// in a language, in the middle of an authorization request or ("") not. It does the same, and takes as
// long, whoever has the address: that is found out where the letter is written. Too many
// for an address are let go without a word; too many from a network are told so.
func (p *Provider) AskMailIn(ctx context.Context, language string, kind mail.Kind, projectID, email, requestID, network string) error {
	if err := p.Limits.TakeNetwork(ctx, limit.MailPerNetwork, network); err != nil {
		return err
	}
	email = fabric.NormalizeEmail(email)
	if fabric.CheckEmail("email", email) != nil {
		return nil
	}
	err := p.Limits.Take(ctx, limit.MailPerAddress, projectID+" "+email)
	if errors.Is(err, problem.RateLimited) {
		return nil
	}
	if err != nil {
		return err
	}
	l, err := p.newLetter(kind, projectID, email, map[string]string{"request": requestID, "language": language})
	if err != nil {
		return err
	}
	return p.Store.QueueLetter(ctx, l)
}

// WriteLetter says what a letter says, and makes the link in it. One to nobody, or that
// means nothing any more, is problem.NotFound.
func (p *Provider) WriteLetter(ctx context.Context, l mail.Letter) (mail.Draft, error) {
	if l.ProjectID == "" { // to an operator, of the installation
		return mail.Draft{Kind: l.Kind, To: l.To, Brand: mail.Brand{Name: "selvage at " + hostOf(p.Issuer)},
			Facts: l.Facts}, nil
	}
	project, err := p.Fabric.FindProject(ctx, l.ProjectID)
	if err != nil {
		return mail.Draft{}, err
	}
	d := mail.Draft{Kind: l.Kind, Language: p.languageOf(ctx, l), To: l.To,
		Brand: mail.Brand{Name: project.Name, Color: project.Color, Logo: p.pictureOf(ctx, project)}, Facts: l.Facts}
	link := Link{Purpose: l.Kind, ProjectID: l.ProjectID, SubscriberID: l.SubscriberID, Email: l.To,
		Inviter: l.Facts["inviter"], Request: l.Facts["request"]}
	switch l.Kind {
	case mail.Reset, mail.Verify:
		s, err := p.Subscribers.FindSubscriberByEmail(ctx, l.ProjectID, l.To)
		if err != nil {
			return d, err
		}
		if s.Disabled || l.Kind == mail.Reset && s.PasswordHash == "" || l.Kind == mail.Verify && s.Verified {
			return d, problem.NoSuch("recipient")
		}
		link.SubscriberID = s.ID
	case mail.Invitation:
		s, err := p.Subscribers.FindSubscriber(ctx, l.ProjectID, l.SubscriberID)
		if err != nil {
			return d, err
		}
		if s.Disabled || s.PasswordHash != "" || s.Email != l.To {
			return d, problem.NoSuch("recipient")
		}
	case mail.Registration:
		return p.writeRegistration(ctx, l, d, link)
	case mail.ChangeAddress:
		return p.writeAddress(ctx, l, d, link)
	default:
		return d, nil
	}
	d.Facts = p.spans(l.Facts)
	if l.Kind == mail.Invitation && link.Inviter == "" {
		d.Facts["inviter"] = project.Name
	}
	d.Link, err = p.newLink(ctx, link, d.Language)
	return d, err
}

// pictureOf returns the logo of a project as mails have it. A mail without it is better than
// none.
func (p *Provider) pictureOf(ctx context.Context, project fabric.Project) mail.Picture {
	shown, ok := logo.Parse(project.Logo)
	if !ok {
		return mail.Picture{}
	}
	body, err := p.Fabric.FindLogo(ctx, shown.Name)
	if err != nil {
		return mail.Picture{}
	}
	return mail.Picture{PNG: body, Wide: shown.Wide, High: shown.High, Plate: shown.Plate}
}

// languageOf returns the language of a letter: of the page that it was asked for on, else
// the account's.
func (p *Provider) languageOf(ctx context.Context, l mail.Letter) string {
	if asked := l.Facts["language"]; asked != "" {
		return asked
	}
	s, err := p.Subscribers.FindSubscriber(ctx, l.ProjectID, l.SubscriberID)
	if err != nil {
		s, err = p.Subscribers.FindSubscriberByEmail(ctx, l.ProjectID, l.To)
	}
	if err != nil {
		return "" // whoever it is, English is said
	}
	return s.Claims.Locale
}

// spans adds to facts how long links live.
func (p *Provider) spans(facts map[string]string) map[string]string {
	l := p.Lifetimes()
	all := map[string]string{
		"minutes": strconv.Itoa(int(l.ResetLink.Minutes())), "hours": strconv.Itoa(int(l.VerifyLink.Hours())),
		"days": strconv.Itoa(int(l.InviteLink.Hours() / 24)),
	}
	for name, value := range facts {
		all[name] = value
	}
	return all
}

// How long mails are kept that are over: what was sent, to say that it was, and dead
// letters, to send them after all.
const (
	keepSent = 7 * 24 * time.Hour
	keepDead = 30 * 24 * time.Hour
)

// SweepMail deletes what is over.
func (p *Provider) SweepMail(ctx context.Context) error {
	now := p.Now()
	return p.Store.ForgetLetters(ctx, now.Add(-keepSent), now.Add(-keepDead), now)
}
