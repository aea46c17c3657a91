package idp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// A Link is the target of a link in a mail. Its token proves that its user reads mail at
// the address, and permits what the link is for, once. The link ends when it is used, and
// when the subscriber's password or email changes.
type Link struct {
	Hash         string // of its token, which is only in the mail
	Purpose      mail.Kind
	ProjectID    string
	SubscriberID string // "" before there is one
	Email        string // where it was sent
	Bound        string // the subscriber's email when the link is made
	Epoch        int64  // of ChangeAddress: the epoch of the password when it was asked for
	Alone        bool   // it ends the subscriber's earlier links of the same purpose
	Inviter      string // of an invitation: who invites; "" means the project
	Request      string // the authorization request that continues after it, or ""
	Created      time.Time
	Expires      time.Time
}

// pathOf maps the purpose of a link to the page that it leads to.
var pathOf = map[mail.Kind]string{
	mail.Reset: "reset", mail.Verify: "verify", mail.Invitation: "invite",
	mail.ChangeAddress: "change-address", mail.Registration: "welcome",
}

// newLink makes a link and returns its URL. The page is shown in the language of the
// mail, which may differ from the browser's. English is left out of the URL: it is also
// the default when the reader's language is unknown, and then the browser may know
// better.
func (ls *Letters) newLink(ctx context.Context, l Link, language string) (string, error) {
	token := randomToken()
	l.Hash, l.Created = session.Digest(token), ls.Now()
	l.Expires = l.Created.Add(ls.Lifetimes().link(l.Purpose))
	if l.Bound == "" && l.Purpose != mail.ChangeAddress {
		l.Bound = l.Email
	}
	l.Alone = l.Purpose != mail.Reset // anybody may ask for a reset
	if err := ls.store.CreateLink(ctx, l); err != nil {
		return "", err
	}
	to := ls.Issuer + pathOf[l.Purpose] + "?token=" + url.QueryEscape(token)
	if language != "" && !strings.HasPrefix(language, "en") {
		to += "&ui_locales=" + url.QueryEscape(language)
	}
	return to, nil
}

// FindLink returns the link with a token and purpose while it may be used. It changes
// nothing, since programs that scan mails follow links, too.
func (ls *Letters) FindLink(ctx context.Context, purpose mail.Kind, token string) (Link, error) {
	if len(token) != tokenLength {
		return Link{}, problem.NoSuch("link")
	}
	l, err := ls.store.FindLink(ctx, session.Digest(token))
	if err != nil {
		return Link{}, err
	}
	if l.Purpose != purpose || !ls.Now().Before(l.Expires) {
		return Link{}, problem.NoSuch("link")
	}
	return l, nil
}

// linkOwner returns the subscriber of a link, who must exist and not be disabled.
func (as *Accounts) linkOwner(ctx context.Context, l Link) (fabric.Subscriber, error) {
	s, err := as.Subscribers.FindSubscriber(ctx, l.ProjectID, l.SubscriberID)
	if err == nil && s.Disabled {
		err = problem.NoSuch("link")
	}
	return s, err
}

// used turns the error for a link that was used concurrently into that for an unknown
// link.
func used(err error) error {
	if errors.Is(err, problem.Conflict) && problem.First(err).Code == "link_over" {
		return problem.NoSuch("link")
	}
	return err
}

// useLink uses a link up in the transaction that makes its change to the subscriber. It
// also verifies the email, since the link was received there. A link of a disabled
// subscriber has ended. If the change is invalid, the link remains valid.
func (as *Accounts) useLink(ctx context.Context, purpose mail.Kind, token, done string,
	change func(Link) fabric.SubscriberInput) (Link, error) {
	l, err := as.letters.FindLink(ctx, purpose, token)
	if err != nil {
		return l, err
	}
	s, err := as.linkOwner(ctx, l)
	if err != nil {
		return l, err
	}

	in, verified := change(l), true
	in.Verified, in.Proof = &verified, &fabric.Proof{Hash: l.Hash, Purpose: string(purpose), Ends: in.Password != nil}
	_, err = as.Fabric.Subscribers.Update(ctx, l.ProjectID, s.ID, in)
	if err = used(err); err == nil {
		as.Observe(done)
	}
	return l, err
}

// ResetPassword sets the password of the account of a Reset or Invitation link, and ends
// all its logins.
func (as *Accounts) ResetPassword(ctx context.Context, purpose mail.Kind, token, password string) (Link, error) {
	return as.useLink(ctx, purpose, token, "password_reset", func(Link) fabric.SubscriberInput {
		return fabric.SubscriberInput{Password: &password}
	})
}

// VerifyAddress marks the email of a Verify link as verified.
func (as *Accounts) VerifyAddress(ctx context.Context, token string) (Link, error) {
	return as.useLink(ctx, mail.Verify, token, "address_verified", func(Link) fabric.SubscriberInput {
		return fabric.SubscriberInput{}
	})
}

// LinkProject returns the project of a link.
func (ls *Letters) LinkProject(ctx context.Context, l Link) (fabric.Project, error) {
	project, err := ls.Fabric.Projects.Find(ctx, l.ProjectID)
	if err != nil {
		return project, fmt.Errorf("finding project: %w", err)
	}
	return project, nil
}
