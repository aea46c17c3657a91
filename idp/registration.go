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

// A Pending is an account that a person has requested. It is stored in the authorization request,
// and therefore belongs to the browser in which the password was typed. If the link in the email is
// opened in another browser, a new password must be chosen. Otherwise, a stranger could request an
// account with somebody else's address, and would know the account's password.
type Pending struct {
	Email     string `json:"email"`
	Password  string `json:"password"` // hash of the password, sealed
	FirstName string `json:"first_name,omitempty"`
	LastName  string `json:"last_name,omitempty"`
}

// A Registrant holds the form fields of a request for an account, and the language of the form's page.
type Registrant struct {
	Email, Password, FirstName, LastName string
	Language                             string // language of the email
}

func (in Registrant) input() fabric.SubscriberInput {
	return fabric.SubscriberInput{
		Email:    &in.Email,
		Password: &in.Password,
		Profile:  fabric.Profile{FirstName: &in.FirstName, LastName: &in.LastName},
	}
}

// Register stores the pending account in the request and queues an email to its address. The email
// contains a link that creates the account, or says that the account already exists. Register takes
// the same steps and the same time for every address.
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

	// Store the password in the request, so that only this browser can use it.
	req.Pending = &Pending{Email: made.Email, Password: sealed, FirstName: made.FirstName, LastName: made.LastName}
	req.LoginHint = made.Email
	if err := as.requests.Suspend(ctx, req); err != nil {
		return err
	}
	return as.letters.AskIn(ctx, in.Language, mail.Registration, c.ProjectID, made.Email, req.ID, network)
}

// pendingName returns the name that binds a sealed hash to its request.
func pendingName(requestID string) string { return "registration " + requestID }

// Waits reports whether the request contains the pending account that a link confirms.
func (a AuthRequest) Waits(l Link) bool {
	return a.ID != "" && a.ID == l.Request && a.Pending != nil && a.Pending.Email == l.Email
}

// CompleteRegistration creates the account for which a Registration link was sent. The email
// address counts as verified. If req contains the pending account that the link confirms, the
// account gets the password of the pending account. Otherwise, it gets the given password. If the
// account already exists, CompleteRegistration returns problem.Conflict.
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
	in := fabric.SubscriberInput{
		Email:    &l.Email,
		Verified: &verified,
		Password: &password,
		Proof:    &fabric.Proof{Hash: l.Hash, Purpose: string(mail.Registration)},
	}
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

// LogInRegistered makes a login for a subscriber whose account was just created in the same
// browser.
func (ls *Logins) LogInRegistered(ctx context.Context, sub fabric.Subscriber, from Visitor) (Login, error) {
	from.known = true
	return ls.enter(ctx, sub, ls.Now(), []string{"pwd"}, from)
}

// writeRegistration drafts the email that Register queued.
func (ls *Letters) writeRegistration(ctx context.Context, l mail.Letter, d mail.Draft, link Link) (mail.Draft, error) {
	if err := ls.checkRegistrationOpen(ctx, l.ProjectID); err != nil {
		return d, err
	}

	existing, err := ls.Subscribers.FindSubscriberByEmail(ctx, l.ProjectID, l.To)
	if err != nil && !errors.Is(err, problem.NotFound) {
		return d, err
	}
	if err == nil {
		if existing.Disabled {
			return d, problem.NoSuch("recipient")
		}
		d.Kind = mail.Registered
		return d, nil
	}

	d.Facts = ls.addLifetimes(l.Facts)
	d.Link, err = ls.newLink(ctx, link, d.Language)
	return d, err
}
