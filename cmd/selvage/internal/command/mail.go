package command

import (
	"context"
	"fmt"
	"github.com/google/uuid"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/spf13/cobra"
	"strconv"
)

var mails = cli.View[mail.Letter]{
	ID: func(l mail.Letter) string { return l.ID },
	JSON: func(l mail.Letter) any {
		return struct {
			ID           string     `json:"id"`
			ProjectID    string     `json:"project_id,omitempty"`
			SubscriberID string     `json:"subscriber_id,omitempty"`
			Kind         mail.Kind  `json:"kind"`
			To           string     `json:"to"`
			State        mail.State `json:"state"`
			Attempts     int        `json:"attempts"`
			Error        string     `json:"error,omitempty"`
			CreatedAt    cli.Time   `json:"created_at"`
			NextAt       cli.Time   `json:"next_attempt_at,omitempty"`
			EndedAt      cli.Time   `json:"ended_at,omitempty"`
		}{l.ID, l.ProjectID, l.SubscriberID, l.Kind, l.To, l.State, l.Attempts, l.Error, cli.UTC(l.Created),
			cli.UTC(l.Due), cli.UTC(l.Ended)}
	},
	Facts: []cli.Fact[mail.Letter]{
		{Name: "ID", Value: func(l mail.Letter) string { return l.ID }},
		{Name: "To", Value: func(l mail.Letter) string { return l.To }},
		{Name: "About", Value: func(l mail.Letter) string { return string(l.Kind) }},
		{Name: "State", Value: func(l mail.Letter) string { return string(l.State) }},
		{Name: "Attempts", Value: func(l mail.Letter) string { return strconv.Itoa(l.Attempts) }},
		{Name: "Error", Value: func(l mail.Letter) string { return l.Error }},
		{Name: "Created", Minor: true, Value: func(l mail.Letter) string { return cli.FormatTime(l.Created) }},
	},
}

func (c *commands) mailCommand() *cobra.Command {
	ls := &cobra.Command{Use: "list", Short: "List mails of the last days: the newest first",
		Args: cli.NoArguments, RunE: c.with(c.listMails)}
	ls.Flags().String("state", "", "only those in a `state`: pending, sent, kept or dead")
	retry := &cobra.Command{
		Use: "retry [ID]", Short: "Try a mail again at once, or all dead letters", Args: cli.Arguments("[ID]"),
		RunE: c.with(c.retryMail),
		Long: "Makes a mail that waits or was given up be sent at once, by a server that runs. Without an id these are all that were given up.\nThe links in them are made when they are sent, so they are good.",
	}
	test := &cobra.Command{
		Use: "test", Short: "Send a test mail, and say whether it was taken", Args: cli.NoArguments,
		RunE: c.with(c.testMail),
		Long: "Sends a mail at once, by the server of mail.url, and tells what that says. It does not go through the queue.",
	}
	test.Flags().String("to", "", "the `address` that it is sent to")
	return cli.Noun("mail", "Mails: what was sent, and what could not be", ls, retry, test)
}

func (c *commands) listMails(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	state, _ := cmd.Flags().GetString("state")
	switch mail.State(state) {
	case "", mail.Pending, mail.Sent, mail.Kept, mail.Dead:
	default:
		return cli.Usagef("--state needs pending, sent, kept or dead; it is %q", state)
	}
	all, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[mail.Letter], error) {
		return a.Store.ListLetters(ctx, mail.State(state), q)
	})
	if err != nil {
		return err
	}
	return cli.List(c.Env, mails, all)
}

func (c *commands) retryMail(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	if len(args) == 1 {
		l, err := a.Store.RetryLetter(ctx, args[0])
		if err != nil {
			return err
		}
		return cli.Show(c.Env, mails, l)
	}
	n, err := a.Store.RetryDeadLetters(ctx)
	if err != nil {
		return err
	}
	return c.waitAgain(n)
}

func (c *commands) testMail(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "to"); err != nil {
		return err
	}
	to, _ := cmd.Flags().GetString("to")
	if err := fabric.CheckEmail("to", to); err != nil {
		return cli.Usagef("--to needs an e-mail address; it is %q", to)
	}
	d := mail.Draft{Kind: mail.Test, To: fabric.NormalizeEmail(to), Brand: mail.Brand{Name: "selvage"}}
	if err := a.Post.Deliver(ctx, uuid.NewString(), d); err != nil {
		return fmt.Errorf("the mail was not taken: %w; see mail.url, mail.password and mail.from", err)
	}
	where := "taken by the server of mail.url"
	if a.Box != nil {
		where = "kept, since mail.url is log:; see " + a.Where.Public + "/dev/mail"
	}
	_, err := fmt.Fprintln(c.Stdout, "the mail to "+to+" is "+where)
	return err
}
