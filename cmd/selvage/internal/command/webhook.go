package command

import (
	"context"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/spf13/cobra"
)

var webhooks = cli.View[fabric.Webhook]{
	ID: func(w fabric.Webhook) string { return w.ID },
	JSON: func(w fabric.Webhook) any {
		return struct {
			ID           string             `json:"id"`
			ProjectID    string             `json:"project_id"`
			URL          string             `json:"url"`
			Name         string             `json:"name,omitempty"`
			Events       []fabric.EventName `json:"events"`
			Enabled      bool               `json:"enabled"`
			Failures     int                `json:"failures"`
			RestingUntil cli.Time           `json:"resting_until,omitempty"`
			CreatedAt    cli.Time           `json:"created_at"`
			UpdatedAt    cli.Time           `json:"updated_at"`
		}{w.ID, w.ProjectID, w.URL, w.Name, w.Events, w.Enabled, w.Failures, cli.UTC(w.Rests), cli.UTC(w.Created),
			cli.UTC(w.Updated)}
	},
	Facts: []cli.Fact[fabric.Webhook]{
		{Name: "ID", Value: func(w fabric.Webhook) string { return w.ID }},
		{Name: "Project", Detail: true, Value: func(w fabric.Webhook) string { return w.ProjectID }},
		{Name: "Name", Value: func(w fabric.Webhook) string { return w.Name }},
		{Name: "URL", Value: func(w fabric.Webhook) string { return w.URL }},
		{Name: "Enabled", Value: func(w fabric.Webhook) string { return cli.YesNo(w.Enabled) }},
		{Name: "Events", Value: func(w fabric.Webhook) string { return cli.Join(w.Events) }},
		{Name: "Failures", Value: func(w fabric.Webhook) string { return cli.Count(w.Failures) }},
		{Name: "Resting until", Detail: true, Value: func(w fabric.Webhook) string { return cli.FormatTime(w.Rests) }},
		{Name: "Created", Minor: true, Value: func(w fabric.Webhook) string { return cli.FormatTime(w.Created) }},
		{Name: "Updated", Detail: true, Value: func(w fabric.Webhook) string { return cli.FormatTime(w.Updated) }},
	},
}

func (c *commands) webhookCommand() *cobra.Command {
	create := &cobra.Command{Use: "create",
		Short: "Have a URL told what happens to subscribers and resources", Args: cli.NoArguments,
		RunE: c.with(c.createWebhook)}
	ls := &cobra.Command{Use: "list", Short: "List the webhooks of a project", Args: cli.NoArguments,
		RunE: c.with(c.listWebhooks)}
	show := cli.Command("show ID", "Show a webhook", c.with(c.showWebhook))
	update := cli.Command("update ID", "Change a webhook; what is not given stays", c.with(c.updateWebhook))
	remove := cli.Command("delete ID", "Delete a webhook with what waits for it", c.with(c.deleteWebhook))
	test := cli.Command("test ID", "Tell a webhook of nothing, to see whether it arrives", c.with(c.testWebhook))
	deliveries := cli.Command("deliveries ID", "List what a webhook was told, or will be: the newest first", c.with(c.listDeliveries))
	deliveries.Flags().String("state", "", "only those in a `state`: pending, delivered or dead")
	redeliver := &cobra.Command{
		Use: "redeliver ID [DELIVERY]", Short: "Queue a delivery anew, or all dead letters",
		Args: cli.Arguments("ID", "[DELIVERY]"), RunE: c.with(c.redeliver),
	}
	cli.AddYes(remove)
	update.Flags().Bool("enabled", true, "tell it again, or with =false nothing more")
	for _, cmd := range []*cobra.Command{create, update} {
		cmd.Flags().String("url", "", "the `URL` that is told, by POST")
		cmd.Flags().StringSlice("event", nil,
			"an `event` it is told of; any number, all without: "+cli.Join(fabric.EventNames()))
		cmd.Flags().String("name", "", "the `name` it has in lists")
	}
	for _, cmd := range []*cobra.Command{create, ls, show, update, remove, test, deliveries, redeliver} {
		addProject(cmd)
	}
	return cli.Noun("webhook", "Webhooks: URLs that are told what happens", create, ls, show, update, remove,
		test, deliveries, redeliver, c.signingKeyCommand())
}

// webhookInput returns what the flags say of a webhook.
func webhookInput(cmd *cobra.Command) (in fabric.WebhookInput, err error) {
	in.URL, in.Name = cli.Text(cmd, "url"), cli.Text(cmd, "name")
	if cmd.Flags().Changed("event") {
		events, err := cmd.Flags().GetStringSlice("event")
		if err != nil {
			return in, err
		}
		in.Events = &events
	}
	if f := cmd.Flags().Lookup("enabled"); f != nil && f.Changed {
		enabled := f.Value.String() == "true"
		in.Enabled = &enabled
	}
	return in, nil
}

func (c *commands) createWebhook(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "url"); err != nil {
		return err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	in, err := webhookInput(cmd)
	if err != nil {
		return err
	}
	w, err := a.Fabric.Webhooks.Create(ctx, p.ID, in)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, webhooks, w)
}

func (c *commands) listWebhooks(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	all, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Webhook], error) {
		return a.Fabric.Webhooks.List(ctx, p.ID, q)
	})
	if err != nil {
		return err
	}
	return cli.List(c.Env, webhooks, all)
}

func (a *app) webhook(ctx context.Context, cmd *cobra.Command, id string) (fabric.Webhook, error) {
	return among(ctx, a, cmd, func(projectID string) (fabric.Webhook, error) {
		return a.Fabric.Webhooks.Find(ctx, projectID, id)
	})
}

func (c *commands) showWebhook(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	w, err := a.webhook(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	return cli.Show(c.Env, webhooks, w)
}

func (c *commands) updateWebhook(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	w, err := a.webhook(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	in, err := webhookInput(cmd)
	if err != nil {
		return err
	}
	if w, err = a.Fabric.Webhooks.Update(ctx, w.ProjectID, w.ID, in); err != nil {
		return err
	}
	return cli.Show(c.Env, webhooks, w)
}

func (c *commands) deleteWebhook(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	w, err := a.webhook(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if err := c.Confirm(cmd, "This deletes the webhook to "+w.URL+" and what waits for it.", w.URL); err != nil {
		return err
	}
	return a.Fabric.Webhooks.Delete(ctx, w.ProjectID, w.ID)
}
