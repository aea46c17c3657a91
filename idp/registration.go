package idp

import (
	"context"
	"errors"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// A Pending is the account that somebody asks for. It lies in the authorization request
// and so belongs to the browser where its password was typed. If the link of its mail is
// opened elsewhere, another password must be chosen: otherwise a stranger could prepare
// an account for somebody and know its password.
type Pending struct {
	Email     string `json:"email"`
	Password  string `json:"password"` // its hash, sealed
	FirstName string `json:"first_name,omitempty"`
	LastName  string `json:"last_name,omitempty"`
}

// A Registrant is what somebody types to ask for an account.
type Registrant struct {
	Email, Password, FirstName, LastName string
}

func (in Registrant) input() fabric.SubscriberInput {
	return fabric.SubscriberInput{Email: &in.Email, Password: &in.Password,
		Profile: fabric.Profile{FirstName: &in.FirstName, LastName: &in.LastName}}
}

// Register keeps what somebody typed in the request and queues a mail to the address:
// with a link that creates the account or, if there is one, with a note that says so. It
// does the same, and takes as long, for every address.
func (as *Accounts) Register(ctx context.Context, c Client, req AuthRequest, in Registrant, network string) error {
	if err := as.checkRegistrationOpen(ctx, c.ProjectID); err != nil {
		return err
	}
	if err := as.Limits.TakeNetwork(ctx, limit.RegisterPerNetwork, network); err != nil {
		return err
	}

	made, err := as.Fabric.Subscribers.Draft(ctx, c.ProjectID, in.input())
	if err != nil {
		return err
	}
	sealed, err := as.Ring.SealSecret(pendingName(req.ID), []byte(made.PasswordHash))
	if err != nil {
		return fmt.Errorf("encrypting password: %w", err)
	}

	// The password waits in the request, so that only this browser can use it.
	req.Pending = &Pending{Email: made.Email, Password: sealed, FirstName: made.FirstName, LastName: made.LastName}
	req.LoginHint = made.Email
	if err := as.requests.Suspend(ctx, req); err != nil {
		return err
	}
	return as.letters.Ask(ctx, mail.Registration, c.ProjectID, made.Email, req.ID, network)
}

// pendingName binds a sealed hash to its request.
func pendingName(requestID string) string { return "registration " + requestID }

// Waits reports whether the request holds the pending account, with its password, that a link
// confirms.
func (a AuthRequest) Waits(l Link) bool {
	return a.ID != "" && a.ID == l.Request && a.Pending != nil && a.Pending.Email == l.Email
}

// CompleteRegistration creates the account of a Registration link, with its email
// verified. It uses what is pending in the request, or otherwise the given password. If
// the account exists by now, it returns problem.Conflict.
func (as *Accounts) CompleteRegistration(ctx context.Context, token string, req AuthRequest,
	password string) (Link, fabric.Subscriber, error) {
	l, err := as.letters.FindLink(ctx, mail.Registration, token)
	if err != nil {
		return l, fabric.Subscriber{}, err
	}
	if err := as.checkRegistrationOpen(ctx, l.ProjectID); err != nil {
		return l, fabric.Subscriber{}, err
	}

	verified := true
	in := fabric.SubscriberInput{Email: &l.Email, Verified: &verified, Password: &password,
		Proof: &fabric.Proof{Hash: l.Hash, Purpose: string(mail.Registration)}}
	if req.Waits(l) {
		hash, err := as.Ring.OpenSecret(pendingName(req.ID), req.Pending.Password)
		if err != nil {
			return l, fabric.Subscriber{}, fmt.Errorf("decrypting password: %w", err)
		}
		text := string(hash)
		in.Password, in.PasswordHash = nil, &text
		in.Profile = fabric.Profile{FirstName: &req.Pending.FirstName, LastName: &req.Pending.LastName}
	}

	s, err := as.Fabric.Subscribers.Create(ctx, l.ProjectID, in)
	if err = used(err); err == nil {
		as.Observe("registered")
	}
	return l, s, err
}

// LogInRegistered makes the login of a subscriber whose account was just created, in the
// browser where the password was typed.
func (ls *Logins) LogInRegistered(ctx context.Context, sub fabric.Subscriber, from Visitor) (Login, error) {
	from.known = true
	return ls.enter(ctx, sub, ls.Now(), []string{"pwd"}, from)
}

// writeRegistration fills in the mail that Register queued.
func (ls *Letters) writeRegistration(ctx context.Context, l mail.Letter, d mail.Draft, link Link) (mail.Draft, error) {
	if err := ls.checkRegistrationOpen(ctx, l.ProjectID); err != nil {
		return d, err
	}

	s, err := ls.Subscribers.FindSubscriberByEmail(ctx, l.ProjectID, l.To)
	switch {
	case err == nil && s.Disabled:
		return d, problem.NoSuch("recipient")
	case err == nil:
		d.Kind = mail.Registered
		return d, nil
	case !errors.Is(err, problem.NotFound):
		return d, err
	}

	d.Facts = ls.addLifetimes(l.Facts)
	d.Link, err = ls.newLink(ctx, link, d.Language)
	return d, err
}
