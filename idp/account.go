package idp

import (
	"context"
	"errors"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
)

// Accounts lets people manage their own accounts. They can create an account, and change its
// password and email address.
type Accounts struct {
	*core
	letters  *Letters
	logins   *Logins
	requests *Requests
}

// ForAccount returns an authorization request for the account page of a project's subscribers. A
// login answers this request in the same way as the request of a client.
func (rs *Requests) ForAccount(ctx context.Context, projectID string) (AuthRequest, Client, error) {
	project, err := rs.Fabric.Projects.Find(ctx, projectID)
	if err != nil {
		return AuthRequest{}, Client{}, err
	}
	return AuthRequest{ID: randomToken(), Account: project.ID, Created: rs.Now()}, ownClient(project.ID), nil
}

// ownClient returns the client of requests for the account page. This client needs no consent and
// gets no tokens.
func ownClient(projectID string) Client {
	return Client{ProjectID: projectID, Name: "your account", FirstParty: true}
}

// ChangePassword sets a new password. If the subscriber already has a password, current must be
// that password. ChangePassword ends all of the subscriber's logins and tokens. A new login with
// the same AMR replaces s. If another request changes the password at the same time, ChangePassword
// returns problem.Unauthenticated, because that change has ended s.
func (as *Accounts) ChangePassword(ctx context.Context, s Login, current, fresh string, from Visitor) (Login, error) {
	sub, err := as.Subscribers.FindSubscriber(ctx, s.ProjectID, s.SubscriberID)
	if err != nil {
		return Login{}, fmt.Errorf("finding subscriber: %w", err)
	}
	if sub.PasswordHash != "" {
		if err := as.checkCurrent(ctx, sub, current); err != nil {
			return Login{}, err
		}
	}

	change := fabric.SubscriberInput{Password: &fresh, Epoch: &sub.Epoch}
	sub, err = as.Fabric.Subscribers.Update(ctx, s.ProjectID, s.SubscriberID, change)
	if errors.Is(err, problem.Conflict) { // the password that was checked is no longer valid
		return Login{}, problem.NoCredentials()
	}
	if err != nil {
		return Login{}, err
	}

	// The update has ended s, unless the password is the old one or the subscriber's first one.
	err = as.logins.Live(ctx, s.ID)
	if err == nil {
		err = as.Fabric.Subscribers.Revoke(ctx, s.ProjectID, s.SubscriberID)
	}
	if err != nil && !errors.Is(err, problem.Unauthenticated) {
		return Login{}, err
	}

	from.known = true // the browser has just set the password
	next, err := as.logins.create(ctx, sub, as.Now(), s.AMR, from)
	if errors.Is(err, problem.Conflict) { // the password was changed again, or the subscriber was disabled
		return Login{}, problem.NoCredentials()
	}
	return next, err
}

// errCurrent is the error for a wrong current password.
var errCurrent = &problem.Error{
	Kind:    problem.Invalid,
	Code:    "wrong_password",
	Param:   "current",
	Message: "The current password is wrong.",
}

// checkCurrent checks the password of a signed-in subscriber. The limit for wrong passwords is separate
// from that of the sign-in page, where strangers may enter wrong passwords.
func (as *Accounts) checkCurrent(ctx context.Context, sub fabric.Subscriber, current string) error {
	who := "signed in " + sub.ID
	if err := as.Limits.Take(ctx, limit.LoginPerDevice, who); err != nil {
		return err
	}

	ok, err := as.Passwords.Verify(ctx, sub.PasswordHash, current)
	if ok || err != nil {
		as.Limits.Return(ctx, limit.LoginPerDevice, who)
	}
	if err != nil {
		return fmt.Errorf("checking password: %w", err)
	}
	if !ok {
		return errCurrent
	}
	return nil
}
