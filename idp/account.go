package idp

import (
	"context"
	"errors"
	"fmt"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// BeginAccount returns the request of a subscriber of a project who goes to its own
// page. It is answered by a login, as that of a client is.
func (p *Provider) BeginAccount(ctx context.Context, projectID string) (AuthRequest, Client, error) {
	project, err := p.Fabric.FindProject(ctx, projectID)
	if err != nil {
		return AuthRequest{}, Client{}, err
	}
	return AuthRequest{ID: randomToken(), Account: project.ID, Created: p.Now()}, ownClient(project.ID), nil
}

// ownClient stands for us where a client would be: it asks for no consent, and has no
// tokens.
func ownClient(projectID string) Client {
	return Client{ProjectID: projectID, Name: "your account", FirstParty: true}
}

// OnlyProject returns the id of the one project that there is; "" if there are several.
func (p *Provider) OnlyProject(ctx context.Context) (string, error) {
	some, err := p.Fabric.ListProjects(ctx, page.Query{Size: 2})
	if err != nil || len(some.Items) != 1 {
		return "", err
	}
	return some.Items[0].ID, nil
}

// ChangePassword returns a subscriber a new password, if it knows the one that it has.
// All its logins and tokens end; in place of the one that asked comes a new login, which
// is proven as that was.
func (p *Provider) ChangePassword(ctx context.Context, s Session, current, fresh string, from Visitor) (Session, error) {
	sub, err := p.Subscribers.FindSubscriber(ctx, s.ProjectID, s.SubscriberID)
	if err != nil {
		return Session{}, fmt.Errorf("finding subscriber: %w", err)
	}
	if sub.PasswordHash != "" {
		if err := p.checkCurrent(ctx, sub, current); err != nil {
			return Session{}, err
		}
	}
	sub, err = p.Fabric.UpdateSubscriber(ctx, sub.ProjectID, sub.ID, fabric.SubscriberInput{Password: &fresh})
	if err != nil {
		return Session{}, err
	}
	from.known = true // it has shown so
	next, err := p.newSession(ctx, sub, p.Now(), s.AMR, from)
	if errors.Is(err, problem.Conflict) { // changed once more, or disabled
		return Session{}, problem.NoCredentials()
	}
	return next, err
}

// errCurrent is the answer to a wrong current password.
var errCurrent = &problem.Error{Kind: problem.Invalid, Code: "wrong_password", Param: "current",
	Message: "The current password is wrong."}

// checkCurrent checks the password of a subscriber who is signed in already, a few
// times in a while.
func (p *Provider) checkCurrent(ctx context.Context, sub fabric.Subscriber, current string) error {
	who := "signed in " + sub.ID
	if err := p.Limits.Take(ctx, limit.LoginPerDevice, who); err != nil {
		return err
	}
	ok, err := p.Passwords.Verify(ctx, sub.PasswordHash, current)
	if ok || err != nil {
		p.Limits.Return(ctx, limit.LoginPerDevice, who)
	}
	if err != nil {
		return fmt.Errorf("checking password: %w", err)
	}
	if !ok {
		return errCurrent
	}
	return nil
}
