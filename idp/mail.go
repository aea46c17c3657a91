package idp

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/logo"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// A LetterStore keeps the rows of mails, and of the links in them.
type LetterStore interface {
	// QueueLetter writes a letter that is to be sent.
	QueueLetter(ctx context.Context, l mail.Letter) error
	// ForgetLetters deletes letters sent before one moment, letters given up before
	// another, and links that expired before a third.
	ForgetLetters(ctx context.Context, sent, dead, expired time.Time) error
	// CreateLink writes a link. If its subscriber is disabled by now, or has another
	// email than the link is bound to, it returns problem.NotFound. A link that is Alone
	// ends those before it.
	CreateLink(ctx context.Context, l Link) error
	// FindLink returns a link that was not used and has not ended.
	FindLink(ctx context.Context, hash string) (Link, error)
}

// Letters are the mails that people are sent, and the links in them.
type Letters struct {
	*core
	store LetterStore
}

// Ask is AskMailIn the language that the account has.
func (ls *Letters) Ask(ctx context.Context, kind mail.Kind, projectID, email, requestID, network string) error {
	return ls.AskIn(ctx, "", kind, projectID, email, requestID, network)
}

// AskIn notes that somebody wants a mail of a kind sent to an address, from a network,
// in a language, in the middle of an authorization request or ("") not. It does the same, and takes as
// long, whoever has the address: that is found out where the letter is written. Too many
// for an address are let go without a word; too many from a network are told so.
func (ls *Letters) AskIn(ctx context.Context, language string, kind mail.Kind, projectID, email, requestID, network string) error {
	if err := ls.Limits.TakeNetwork(ctx, limit.MailPerNetwork, network); err != nil {
		return err
	}
	email = fabric.NormalizeEmail(email)
	if fabric.CheckEmail("email", email) != nil {
		return nil
	}
	err := ls.Limits.Take(ctx, limit.MailPerAddress, projectID+" "+email)
	if errors.Is(err, problem.RateLimited) {
		return nil
	}
	if err != nil {
		return err
	}
	l, err := ls.newLetter(kind, projectID, email, map[string]string{"request": requestID, "language": language})
	if err != nil {
		return err
	}
	return ls.store.QueueLetter(ctx, l)
}

// Write says what a letter says, and makes the link in it. One to nobody, or that
// means nothing any more, is problem.NotFound.
func (ls *Letters) Write(ctx context.Context, l mail.Letter) (mail.Draft, error) {
	if l.ProjectID == "" { // to an operator, of the installation
		return mail.Draft{Kind: l.Kind, To: l.To, Brand: mail.Brand{Name: "selvage at " + hostOf(ls.Issuer)},
			Facts: l.Facts}, nil
	}
	project, err := ls.Fabric.Projects.Find(ctx, l.ProjectID)
	if err != nil {
		return mail.Draft{}, err
	}
	d := mail.Draft{Kind: l.Kind, Language: ls.language(ctx, l), To: l.To,
		Brand: mail.Brand{Name: project.Name, Color: project.Color, Logo: ls.picture(ctx, project)}, Facts: l.Facts}
	link := Link{Purpose: l.Kind, ProjectID: l.ProjectID, SubscriberID: l.SubscriberID, Email: l.To,
		Inviter: l.Facts["inviter"], Request: l.Facts["request"]}
	switch l.Kind {
	case mail.Reset, mail.Verify:
		s, err := ls.Subscribers.FindSubscriberByEmail(ctx, l.ProjectID, l.To)
		if err != nil {
			return d, err
		}
		if s.Disabled || l.Kind == mail.Reset && s.PasswordHash == "" || l.Kind == mail.Verify && s.Verified {
			return d, problem.NoSuch("recipient")
		}
		link.SubscriberID = s.ID
	case mail.Invitation:
		s, err := ls.Subscribers.FindSubscriber(ctx, l.ProjectID, l.SubscriberID)
		if err != nil {
			return d, err
		}
		if s.Disabled || s.PasswordHash != "" || s.Email != l.To {
			return d, problem.NoSuch("recipient")
		}
	case mail.Registration:
		return ls.writeRegistration(ctx, l, d, link)
	case mail.ChangeAddress:
		return ls.writeAddress(ctx, l, d, link)
	default:
		return d, nil
	}
	d.Facts = ls.addLifetimes(l.Facts)
	if l.Kind == mail.Invitation && link.Inviter == "" {
		d.Facts["inviter"] = project.Name
	}
	d.Link, err = ls.newLink(ctx, link, d.Language)
	return d, err
}

// picture returns the logo of a project as mails have it. A mail without it is better than
// none.
func (ls *Letters) picture(ctx context.Context, project fabric.Project) mail.Picture {
	shown, ok := logo.Parse(project.Logo)
	if !ok {
		return mail.Picture{}
	}
	body, err := ls.Fabric.Projects.FindLogo(ctx, shown.Name)
	if err != nil {
		return mail.Picture{}
	}
	return mail.Picture{PNG: body, Wide: shown.Wide, High: shown.High, Plate: shown.Plate}
}

// language returns the language of a letter: of the page that it was asked for on, else
// the account's.
func (ls *Letters) language(ctx context.Context, l mail.Letter) string {
	if asked := l.Facts["language"]; asked != "" {
		return asked
	}
	s, err := ls.Subscribers.FindSubscriber(ctx, l.ProjectID, l.SubscriberID)
	if err != nil {
		s, err = ls.Subscribers.FindSubscriberByEmail(ctx, l.ProjectID, l.To)
	}
	if err != nil {
		return "" // whoever it is, English is said
	}
	return s.Claims.Locale
}

// addLifetimes adds to facts how long links live.
func (ls *Letters) addLifetimes(facts map[string]string) map[string]string {
	l := ls.Lifetimes()
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

// Sweep deletes what is over.
func (ls *Letters) Sweep(ctx context.Context) error {
	now := ls.Now()
	return ls.store.ForgetLetters(ctx, now.Add(-keepSent), now.Add(-keepDead), now)
}
