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

// A Link is what a mail leads to. Who has its token reads mail at the address, and may
// do what it is for, once. It ends with its use, and with the password or the e-mail of
// its subscriber.
type Link struct {
	Hash         string // of its token; the token itself is in the mail alone
	Purpose      mail.Kind
	ProjectID    string
	SubscriberID string // "" before there is one
	Email        string // where it was sent
	Bound        string // the subscriber's e-mail when it is made
	Epoch        int64  // of its password when ChangeAddress was asked for; others go to who is asked for a password at all
	Alone        bool   // it ends those of its purpose that its subscriber was sent before
	Inviter      string // of an invitation: who invites; "" for the project
	Request      string // the authorization request that goes on after it; "" for none
	Created      time.Time
	Expires      time.Time
}

// pathOf says which page a link leads to.
var pathOf = map[mail.Kind]string{
	mail.Reset: "reset", mail.Verify: "verify", mail.Invitation: "invite",
	mail.ChangeAddress: "change-address", mail.Registration: "welcome",
}

// newLink makes a link and gives its URL, whose pages are in the language of its mail: that
// of the browser may be another. English says nothing, since it is also what a mail is in
// where nobody has said what its reader speaks; the browser may know.
func (ls *Letters) newLink(ctx context.Context, l Link, language string) (string, error) {
	token := randomToken()
	l.Hash, l.Created = session.Digest(token), ls.Now()
	l.Expires = l.Created.Add(ls.Lifetimes().link(l.Purpose))
	if l.Bound == "" && l.Purpose != mail.ChangeAddress {
		l.Bound = l.Email
	}
	l.Alone = l.Purpose != mail.Reset // for which anybody may ask
	if err := ls.store.CreateLink(ctx, l); err != nil {
		return "", err
	}
	to := ls.Issuer + pathOf[l.Purpose] + "?token=" + url.QueryEscape(token)
	if language != "" && !strings.HasPrefix(language, "en") {
		to += "&ui_locales=" + url.QueryEscape(language)
	}
	return to, nil
}

// FindLink returns the link of a token, for a purpose, as long as it may be used. It
// changes nothing: programs that look through mails follow links too.
func (ls *Letters) FindLink(ctx context.Context, purpose mail.Kind, token string) (Link, error) {
	if len(token) != len(randomToken()) {
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

// linkOwner returns the subscriber of a link, who must be there and not disabled.
func (as *Accounts) linkOwner(ctx context.Context, l Link) (fabric.Subscriber, error) {
	s, err := as.Subscribers.FindSubscriber(ctx, l.ProjectID, l.SubscriberID)
	if err == nil && s.Disabled {
		err = problem.NoSuch("link")
	}
	return s, err
}

// used makes of a link that another was faster with one that is not there.
func used(err error) error {
	if errors.Is(err, problem.Conflict) && problem.First(err).Code == "link_over" {
		return problem.NoSuch("link")
	}
	return err
}

// useLink uses a link up, in the transaction of the change of its subscriber that it is for. The
// e-mail is verified by it: who has the link reads mail there. A link whose subscriber is
// disabled is over; what is wrong with the change is told, and leaves the link good.
func (as *Accounts) useLink(ctx context.Context, purpose mail.Kind, token, done string, change func(Link) fabric.SubscriberInput) (Link, error) {
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

// ResetPassword sets the password of the account that a link of Reset or Invitation is
// for, and ends all that is signed in.
func (as *Accounts) ResetPassword(ctx context.Context, purpose mail.Kind, token, password string) (Link, error) {
	return as.useLink(ctx, purpose, token, "password_reset", func(Link) fabric.SubscriberInput {
		return fabric.SubscriberInput{Password: &password}
	})
}

// VerifyAddress notes that an e-mail is its subscriber's, by a link of Verify.
func (as *Accounts) VerifyAddress(ctx context.Context, token string) (Link, error) {
	return as.useLink(ctx, mail.Verify, token, "address_verified", func(Link) fabric.SubscriberInput {
		return fabric.SubscriberInput{}
	})
}

// LinkProject returns the project that a link is about.
func (ls *Letters) LinkProject(ctx context.Context, l Link) (fabric.Project, error) {
	project, err := ls.Fabric.Projects.Find(ctx, l.ProjectID)
	if err != nil {
		return project, fmt.Errorf("finding project: %w", err)
	}
	return project, nil
}
