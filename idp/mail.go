package idp

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// A LetterStore stores emails, and the links in them.
type LetterStore interface {
	// QueueLetter writes a letter to send.
	QueueLetter(ctx context.Context, l mail.Letter) error
	// ForgetLetters deletes letters that were sent before the time sentBefore or failed for good
	// before the time deadBefore, and links that expired before the time expiredBefore.
	ForgetLetters(ctx context.Context, sentBefore, deadBefore, expiredBefore time.Time) error
	// CreateLink writes a link. If the subscriber has been disabled, or no longer has the address
	// to which the link is bound, it returns problem.NotFound. If the link is Alone, CreateLink
	// deletes the subscriber's earlier links with the same purpose.
	CreateLink(ctx context.Context, l Link) error
	// FindLink returns a link that is unused and still valid.
	FindLink(ctx context.Context, hash string) (Link, error)
}

// Letters writes emails to people, and the links in them.
type Letters struct {
	*core
	store LetterStore
}

// AskIn queues an email that a person requested from a network. language is the language of the
// email, or "" for the language of the account. requestID is the authorization request in which the
// person asked, or "".
//
// AskIn takes the same steps and the same time for every address, because the account is looked up
// only when the letter is written. If the address is invalid, or too many emails were requested for
// it, AskIn drops the letter silently. If too many emails were requested from a network, AskIn returns
// an error.
func (ls *Letters) AskIn(ctx context.Context, language string, kind mail.Kind, projectID, email,
	requestID, network string) error {
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

	facts := map[string]string{"request": requestID, "language": language}
	l, err := ls.newLetter(kind, projectID, email, facts)
	if err != nil {
		return err
	}
	return ls.store.QueueLetter(ctx, l)
}

// Write drafts a letter and creates its link. If the letter's recipient or reason no longer exists,
// Write returns problem.NotFound.
func (ls *Letters) Write(ctx context.Context, l mail.Letter) (mail.Draft, error) {
	if l.ProjectID == "" { // a letter to an operator about the installation
		return mail.Draft{
			Kind:  l.Kind,
			To:    l.To,
			Brand: mail.Brand{Name: "selvage at " + hostOf(ls.Issuer)},
			Facts: l.Facts,
		}, nil
	}

	project, err := ls.Fabric.Projects.Find(ctx, l.ProjectID)
	if err != nil {
		return mail.Draft{}, err
	}

	draft := mail.Draft{
		Kind:     l.Kind,
		Language: ls.language(ctx, l),
		To:       l.To,
		Brand:    mail.Brand{Name: project.Name, Color: project.Color, Logo: ls.picture(ctx, project)},
		Facts:    l.Facts,
	}
	link := Link{
		Letter:       l.ID,
		Purpose:      l.Kind,
		ProjectID:    l.ProjectID,
		SubscriberID: l.SubscriberID,
		Email:        l.To,
		Inviter:      l.Facts["inviter"],
		Request:      l.Facts["request"],
	}

	switch l.Kind {
	case mail.Reset, mail.Verify, mail.Invitation:
		recipient, err := ls.findRecipient(ctx, l)
		if err != nil {
			return draft, err
		}
		link.SubscriberID = recipient.ID
	case mail.Registration:
		return ls.writeRegistration(ctx, l, draft, link)
	case mail.ChangeAddress:
		return ls.writeAddress(ctx, l, draft, link)
	default:
		return draft, nil // without a link
	}

	draft.Facts = ls.addLifetimes(l.Facts)
	if l.Kind == mail.Invitation && link.Inviter == "" {
		draft.Facts["inviter"] = project.Name
	}
	draft.Link, err = ls.newLink(ctx, link, draft.Language)
	return draft, err
}

// findRecipient returns the subscriber to whom a letter is addressed. It returns problem.NotFound if
// the letter is no longer needed, because much may have changed since it was requested.
func (ls *Letters) findRecipient(ctx context.Context, l mail.Letter) (fabric.Subscriber, error) {
	var recipient fabric.Subscriber
	var err error
	if l.Kind == mail.Invitation {
		recipient, err = ls.Subscribers.FindSubscriber(ctx, l.ProjectID, l.SubscriberID)
	} else {
		recipient, err = ls.Subscribers.FindSubscriberByEmail(ctx, l.ProjectID, l.To)
	}
	if err != nil {
		return fabric.Subscriber{}, err
	}

	hasPassword := recipient.PasswordHash != ""
	var needed bool
	switch l.Kind {
	case mail.Reset:
		needed = hasPassword
	case mail.Verify:
		needed = !recipient.Verified
	case mail.Invitation:
		needed = !hasPassword && recipient.Email == l.To
	}
	if recipient.Disabled || !needed {
		return fabric.Subscriber{}, problem.NoSuch("recipient")
	}
	return recipient, nil
}

// picture returns the logo of a project for emails. If the logo cannot be read, emails have none.
func (ls *Letters) picture(ctx context.Context, project fabric.Project) mail.Picture {
	name, _ := brand.Pair(project.Logo, project.DarkLogo)
	shown, ok := brand.ParseLogo(name)
	if !ok {
		return mail.Picture{}
	}
	body, err := ls.Fabric.Projects.FindLogo(ctx, shown.Name)
	if err != nil {
		return mail.Picture{}
	}
	return mail.Picture{PNG: body, Wide: shown.Wide, High: shown.High, Plate: shown.Plate}
}

// language returns the language of a letter. It is the language of the page where the letter was
// requested or, if there is none, the language of the account.
func (ls *Letters) language(ctx context.Context, l mail.Letter) string {
	if asked := l.Facts["language"]; asked != "" {
		return asked
	}
	s, err := ls.Subscribers.FindSubscriber(ctx, l.ProjectID, l.SubscriberID)
	if err != nil {
		s, err = ls.Subscribers.FindSubscriberByEmail(ctx, l.ProjectID, l.To)
	}
	if err != nil {
		return "" // a recipient without an account gets English
	}
	return s.Claims.Locale
}

// addLifetimes returns facts with the lifetimes of links.
func (ls *Letters) addLifetimes(facts map[string]string) map[string]string {
	lifetimes := ls.Lifetimes()
	extended := map[string]string{
		"minutes": strconv.Itoa(int(lifetimes.ResetLink.Minutes())),
		"hours":   strconv.Itoa(int(lifetimes.VerifyLink.Hours())),
		"days":    strconv.Itoa(int(lifetimes.InviteLink.Hours() / 24)),
	}
	maps.Copy(extended, facts)
	return extended
}

// These constants say how long finished letters are kept. Sent letters are kept as a record, and
// failed letters so that an operator can send them again.
const (
	keepSent = 7 * 24 * time.Hour
	keepDead = 30 * 24 * time.Hour
)

// Sweep deletes finished letters and expired links.
func (ls *Letters) Sweep(ctx context.Context) error {
	now := ls.Now()
	return ls.store.ForgetLetters(ctx, now.Add(-keepSent), now.Add(-keepDead), now)
}
