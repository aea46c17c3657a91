package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// subscriberMailCommands returns the commands that send an email to a subscriber.
func (c subscriberCommands) subscriberMailCommands() []*cobra.Command {
	n := noun[fabric.Subscriber]{commands: c.commands, view: subscriberView, find: findSubscriber}
	invite := n.projectCommand("invite", "Invite somebody by mail to choose a password", []string{"email"},
		c.inviteSubscriber)
	invite.Long = `Send a link with which somebody chooses the first password of an account. If no subscriber
has the email, one is created. The link can be used once and expires in seven days. It stops working
when a new invitation is sent.`
	invite.Flags().String("email", "", "email `address`")
	invite.Flags().String("inviter", "", "`who` invites, as shown in the mail and on the page (default: the project)")

	verify := n.changeCommand("verify ID", "Ask a subscriber by mail to confirm their email address",
		c.verifySubscriber)
	verify.Long = `Send a link that can be used once and expires in a day. Using it sets email_verified to true.`

	withdraw := n.changeCommand("withdraw ID", "Withdraw the invitation of a subscriber; its link stops working",
		func(ctx context.Context, a *app, _ *cobra.Command, s fabric.Subscriber) (fabric.Subscriber, error) {
			return s, a.Fabric.Subscribers.WithdrawInvitation(ctx, s.ProjectID, s.ID)
		})
	return []*cobra.Command{invite, verify, withdraw}
}

func (c subscriberCommands) verifySubscriber(
	ctx context.Context, a *app, _ *cobra.Command, s fabric.Subscriber,
) (fabric.Subscriber, error) {
	s, err := a.Fabric.Subscribers.Verify(ctx, s.ProjectID, s.ID)
	if err != nil {
		return s, err
	}
	c.printMailbox(a)
	return s, nil
}

func (c subscriberCommands) inviteSubscriber(
	ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project,
) (fabric.Subscriber, error) {
	email, _ := cmd.Flags().GetString("email")
	inviter, _ := cmd.Flags().GetString("inviter")
	if err := fabric.CheckPersonName("inviter", inviter); err != nil {
		return fabric.Subscriber{}, err // before a subscriber is created
	}
	s, err := a.Store.FindSubscriberByEmail(ctx, p.ID, fabric.NormalizeEmail(email))
	if errors.Is(err, problem.NotFound) {
		s, err = a.Fabric.Subscribers.Create(ctx, p.ID, fabric.SubscriberInput{Email: &email})
	}
	if err != nil {
		return s, err
	}

	s, err = a.Fabric.Subscribers.Invite(ctx, p.ID, s.ID, inviter)
	if p := problem.First(err); p != nil && p.Kind == problem.Invalid && p.Param != "inviter" {
		return s, cli.Usagef("%s cannot be invited: %s", email, p.Message)
	}
	if err != nil {
		return s, err
	}
	c.printMailbox(a)
	return s, nil
}

// printMailbox prints where to read emails, if no mail server is configured.
func (c subscriberCommands) printMailbox(a *app) {
	if a.Box != nil {
		fmt.Fprintln(c.Stderr, "the mail is not sent, because mail.url is log:; the server keeps it: see "+
			a.Where.Public+"/dev/mail")
	}
}
