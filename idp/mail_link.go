package idp

import (
	"cmp"
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

// A Link is a link in an email. Its token proves that the user reads email at the address, and
// permits one use for the link's purpose. The link becomes invalid when it is used. It also becomes
// invalid when the subscriber's password or email address changes, when the subscriber is disabled,
// and when all of the subscriber's logins end. An operator can also hand over an invitation's link, which
// then proves nothing about the address.
type Link struct {
	Hash         string // hash of its token; the token itself is not stored
	Purpose      mail.Kind
	ProjectID    string
	SubscriberID string // "" before the subscriber exists
	Email        string // address to which the link was sent; "" if an operator handed it over
	Letter       string // id of the letter that contains the link; "" if an operator handed it over
	Bound        string // subscriber's address when the link was created
	Epoch        int64  // for ChangeAddress: the subscriber's epoch when the link was requested
	Alone        bool   // whether the link invalidates the subscriber's earlier links with the same purpose
	Inviter      string // for an invitation: name of the inviter; "" means the project
	Request      string // authorization request that continues afterwards; may be ""
	Created      time.Time
	Expires      time.Time
}

// pathOf maps the purpose of a link to the page to which it leads.
var pathOf = map[mail.Kind]string{
	mail.Reset: "reset", mail.Verify: "verify", mail.Invitation: "invite",
	mail.ChangeAddress: "change-address", mail.Registration: "welcome",
}

// newLink creates a link and returns its URL. The URL contains the language of the email, which may
// differ from the browser's language. It omits English, because accounts without a language also get
// English emails, and their browsers may prefer another language.
func (ls *Letters) newLink(ctx context.Context, l Link, language string) (string, error) {
	token := randomToken()
	l.Hash, l.Created = session.Digest(token), ls.Now()
	l.Expires = l.Created.Add(ls.Lifetimes().link(l.Purpose))
	if l.Bound == "" && l.Purpose != mail.ChangeAddress {
		l.Bound = l.Email
	}

	l.Alone = l.Purpose != mail.Reset // anyone can ask for a reset, so it must not invalidate earlier links
	if err := ls.store.CreateLink(ctx, l); err != nil {
		return "", err
	}

	to := ls.Issuer + pathOf[l.Purpose] + "?token=" + url.QueryEscape(token)
	if language != "" && !strings.HasPrefix(language, "en") {
		to += "&ui_locales=" + url.QueryEscape(language)
	}
	return to, nil
}

// FindLink returns the valid link with this token and purpose. It does not use the link up, because
// programs that scan email also follow links. If the subscriber of the link cannot be read, FindLink
// returns the link together with the error, so that the error page can show the project's branding.
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
	if l.Email != "" {
		return l, nil
	}
	sub, err := ls.Subscribers.FindSubscriber(ctx, l.ProjectID, l.SubscriberID)
	if err != nil {
		return l, err
	}
	l.Bound = sub.Email
	return l, nil
}

// Account returns the email address of the account to which an invitation leads.
func (l Link) Account() string { return cmp.Or(l.Email, l.Bound) }

// HandOver creates an invitation link for a subscriber, which an operator passes on without an email.
// It replaces earlier invitations. The errors are those of [fabric.Subscribers.Invite].
func (ls *Letters) HandOver(ctx context.Context, projectID, subscriberID, inviter string) (string, error) {
	s, err := ls.Fabric.Subscribers.FindInvitable(ctx, projectID, subscriberID, inviter)
	if err != nil {
		return "", err
	}
	return ls.newLink(ctx, Link{
		Purpose:      mail.Invitation,
		ProjectID:    projectID,
		SubscriberID: s.ID,
		Bound:        s.Email,
		Inviter:      inviter,
	}, s.Claims.Locale)
}

// linkOwner returns the subscriber of a link. If the subscriber is missing or disabled, it returns
// problem.NotFound.
func (as *Accounts) linkOwner(ctx context.Context, l Link) (fabric.Subscriber, error) {
	sub, err := as.Subscribers.FindSubscriber(ctx, l.ProjectID, l.SubscriberID)
	if err != nil {
		return fabric.Subscriber{}, err
	}
	if sub.Disabled {
		return fabric.Subscriber{}, problem.NoSuch("link")
	}
	return sub, nil
}

// used converts the error for a link that another request has just used into the error for an unknown
// link.
func used(err error) error {
	if errors.Is(err, problem.Conflict) && problem.First(err).Code == "link_over" {
		return problem.NoSuch("link")
	}
	return err
}

// useLink applies a link's change to the subscriber and invalidates the link, in one transaction.
// It also marks the address as verified if the link was sent to it. The link of a disabled subscriber
// is invalid. If the change is invalid, the link remains valid.
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

	in, received := change(l), true
	if l.Email != "" {
		in.Verified = &received
	}
	in.Proof = &fabric.Proof{Hash: l.Hash, Purpose: string(purpose), Ends: in.Password != nil}
	_, err = as.Fabric.Subscribers.Update(ctx, l.ProjectID, s.ID, in)
	if err = used(err); err == nil {
		as.Observe(done)
	}
	return l, err
}

// ResetPassword sets the password of the subscriber who got a Reset or Invitation link, and ends
// all of the subscriber's logins.
func (as *Accounts) ResetPassword(ctx context.Context, purpose mail.Kind, token, password string) (Link, error) {
	return as.useLink(ctx, purpose, token, "password_reset", func(Link) fabric.SubscriberInput {
		return fabric.SubscriberInput{Password: &password}
	})
}

// VerifyAddress marks the address of a Verify link as verified.
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
