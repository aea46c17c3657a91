package command

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
)

var mailView = cli.View[mail.Letter]{
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
		}{
			ID:           l.ID,
			ProjectID:    l.ProjectID,
			SubscriberID: l.SubscriberID,
			Kind:         l.Kind,
			To:           l.To,
			State:        l.State,
			Attempts:     l.Attempts,
			Error:        l.Error,
			CreatedAt:    cli.UTC(l.Created),
			NextAt:       cli.UTC(l.Due),
			EndedAt:      cli.UTC(l.Ended),
		}
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
	n := noun[mail.Letter]{commands: c, view: mailView, list: listMails}
	ls := n.listCommand("list", "List recent emails, the newest first")
	ls.Flags().String("state", "", "only emails in this `state`: pending, sent, kept or dead")
	retry := cli.Command("retry [ID]", "Send an email, or all dead emails, again immediately",
		c.with(c.retryMail))
	retry.Long = `Make a running server send a pending or dead mail immediately. Without an id, it sends all dead mails.
The links in a mail are created when it is sent, so they are still valid.`
	test := cli.Command("test", "Send a test email and report whether the server accepted it", c.with(c.testMail))
	test.Long = `Send a mail through the server of mail.url, and print the server's answer. The mail does not go
through the queue.`
	test.Flags().String("to", "", "`address` of the recipient")
	return cli.Noun("mail", "Emails: sent, pending and failed", ls, retry, test)
}

func listMails(ctx context.Context, a *app, cmd *cobra.Command) ([]mail.Letter, error) {
	state, _ := cmd.Flags().GetString("state")
	switch mail.State(state) {
	case "", mail.Pending, mail.Sent, mail.Kept, mail.Dead:
	default:
		return nil, cli.Usagef("--state must be pending, sent, kept or dead; it is %q", state)
	}
	return page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[mail.Letter], error) {
		return a.Store.ListLetters(ctx, mail.State(state), q)
	})
}

func (c *commands) retryMail(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	if len(args) == 1 {
		l, err := a.Store.RetryLetter(ctx, args[0])
		if err != nil {
			return err
		}
		return cli.Show(c.Env, mailView, l)
	}
	n, err := a.Store.RetryDeadLetters(ctx)
	if err != nil {
		return err
	}
	return c.printRequeued(n)
}

func (c *commands) testMail(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "to"); err != nil {
		return err
	}
	to, _ := cmd.Flags().GetString("to")
	if err := fabric.CheckEmail("to", to); err != nil {
		return cli.Usagef("--to must be an email address; it is %q", to)
	}
	d := mail.Draft{Kind: mail.Test, To: fabric.NormalizeEmail(to), Brand: mail.Brand{Name: "selvage"}}
	if err := a.Post.Deliver(ctx, uuid.NewString(), d); err != nil {
		return fmt.Errorf("the email was not accepted: %w; see mail.url, mail.password and mail.from", err)
	}

	outcome := "was accepted by the server of mail.url"
	if a.Box != nil {
		outcome = "is kept, because mail.url is log:; see " + a.Where.Public + "/dev/mail"
	}
	_, err := fmt.Fprintln(c.Stdout, "the email to "+to+" "+outcome)
	return err
}
