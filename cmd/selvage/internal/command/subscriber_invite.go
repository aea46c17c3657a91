package command

import (
	"context"
	"errors"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/spf13/cobra"
)

func (c *commands) inviteCommand() *cobra.Command {
	invite := &cobra.Command{
		Use: "invite", Short: "Invite somebody by mail to choose a password", Args: cli.NoArguments,
		RunE: c.with(c.inviteSubscriber),
		Long: "Sends a link by which somebody chooses the first password of an account. Where there is no subscriber with the e-mail,\n" +
			"one is made. The link is good for seven days, once; another invitation is another link.",
	}
	invite.Flags().String("email", "", "its e-mail `address`")
	invite.Flags().String("inviter", "", "`who` invites, as the mail and the page say it (default: the project)")
	addProject(invite)
	return invite
}

func (c *commands) verifyCommand() *cobra.Command {
	verify := &cobra.Command{
		Use: "verify ID", Short: "Have a subscriber show by mail that its e-mail is its own",
		Args: cli.Arguments("ID"), RunE: c.with(c.verifySubscriber),
		Long: "Sends a link, good once, for a day. Once it is used email_verified is true.",
	}
	addProject(verify)
	return verify
}

func (c *commands) verifySubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err == nil {
		s, err = a.Fabric.Subscribers.Verify(ctx, s.ProjectID, s.ID)
	}
	if err != nil {
		return err
	}
	c.sayKept(a)
	return cli.Show(c.Env, subscribers, s)
}

// sayKept says where a mail is that nobody sends.
func (c *commands) sayKept(a *app) {
	if a.Box != nil {
		fmt.Fprintln(c.Stderr, "mail.url is log:, so the mail is not sent, but kept by the server: see "+
			a.Where.Public+"/dev/mail")
	}
}

func (c *commands) inviteSubscriber(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "email"); err != nil {
		return err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	email, _ := cmd.Flags().GetString("email")
	inviter, _ := cmd.Flags().GetString("inviter")
	s, err := a.Store.FindSubscriberByEmail(ctx, p.ID, fabric.NormalizeEmail(email))
	if errors.Is(err, problem.NotFound) {
		s, err = a.Fabric.Subscribers.Create(ctx, p.ID, fabric.SubscriberInput{Email: &email})
	}
	if err != nil {
		return err
	}
	if s, err = a.Fabric.Subscribers.Invite(ctx, p.ID, s.ID, inviter); err != nil {
		return err
	}
	c.sayKept(a)
	return cli.Show(c.Env, subscribers, s)
}
