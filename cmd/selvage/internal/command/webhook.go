package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
)

var webhookView = cli.View[fabric.Webhook]{
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
		}{
			ID:           w.ID,
			ProjectID:    w.ProjectID,
			URL:          w.URL,
			Name:         w.Name,
			Events:       w.Events,
			Enabled:      w.Enabled,
			Failures:     w.Failures,
			RestingUntil: cli.UTC(w.Rests),
			CreatedAt:    cli.UTC(w.Created),
			UpdatedAt:    cli.UTC(w.Updated),
		}
	},
	Facts: []cli.Fact[fabric.Webhook]{
		{Name: "ID", Value: func(w fabric.Webhook) string { return w.ID }},
		{Name: "Project", Detail: true, Value: func(w fabric.Webhook) string { return w.ProjectID }},
		{Name: "Name", Value: func(w fabric.Webhook) string { return w.Name }},
		{Name: "URL", Value: func(w fabric.Webhook) string { return w.URL }},
		{Name: "Enabled", Value: func(w fabric.Webhook) string { return cli.YesNo(w.Enabled) }},
		{Name: "Events", Value: func(w fabric.Webhook) string { return cli.Join(w.Events) }},
		{Name: "Failures", Value: func(w fabric.Webhook) string { return cli.Count(w.Failures) }},
		{Name: "Paused until", Detail: true, Value: func(w fabric.Webhook) string { return cli.FormatTime(w.Rests) }},
		{Name: "Created", Minor: true, Value: func(w fabric.Webhook) string { return cli.FormatTime(w.Created) }},
		{Name: "Updated", Detail: true, Value: func(w fabric.Webhook) string { return cli.FormatTime(w.Updated) }},
	},
}

var findWebhook = inAnyProject(func(a *app) finder[fabric.Webhook] { return a.Fabric.Webhooks.Find })

// webhookCommands builds the commands for webhooks, their deliveries and signing keys.
type webhookCommands struct{ *commands }

func (c webhookCommands) command() *cobra.Command {
	n := noun[fabric.Webhook]{
		commands: c.commands,
		view:     webhookView,
		find:     findWebhook,
		list:     inProject(func(a *app) lister[fabric.Webhook] { return a.Fabric.Webhooks.List }),
	}

	create := n.projectCommand("create", "Send events about subscribers and resources to a URL", []string{"url"},
		createWebhook)
	ls := n.listCommand("list", "List the webhooks of a project")
	show := n.showCommand("show ID", "Show a webhook")
	update := n.changeCommand("update ID", "Update a webhook: only the given flags change it",
		updateWebhook)
	remove := n.deleteCommand("delete ID", "Delete a webhook and its pending deliveries",
		func(w fabric.Webhook) (what, name string) {
			return "This deletes the webhook to " + w.URL + " and its pending deliveries.", w.URL
		},
		func(ctx context.Context, a *app, w fabric.Webhook) error {
			return a.Fabric.Webhooks.Delete(ctx, w.ProjectID, w.ID)
		})

	update.Flags().Bool("enabled", true, "deliver events; =false stops all deliveries")
	for _, cmd := range []*cobra.Command{create, update} {
		cmd.Flags().String("url", "", "`URL` that receives events by POST")
		cmd.Flags().StringSlice("event", nil,
			"`event` to send; repeatable (default all): "+cli.Join(fabric.EventNames()))
		cmd.Flags().String("name", "", "`name` shown in lists")
	}
	addProject(create, ls, show, update, remove)

	cmd := cli.Noun("webhook", "Webhooks: URLs that receive events", create, ls, show, update, remove)
	cmd.AddCommand(c.deliveryCommands()...)
	cmd.AddCommand(c.signingKeyCommand())
	return cmd
}

// webhookInput returns the fields of a webhook that the flags set.
func webhookInput(cmd *cobra.Command) fabric.WebhookInput {
	return fabric.WebhookInput{
		URL:     cli.Text(cmd, "url"),
		Name:    cli.Text(cmd, "name"),
		Events:  cli.Texts(cmd, "event"),
		Enabled: cli.Bool(cmd, "enabled"),
	}
}

func createWebhook(ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project) (fabric.Webhook, error) {
	return a.Fabric.Webhooks.Create(ctx, p.ID, webhookInput(cmd))
}

func updateWebhook(ctx context.Context, a *app, cmd *cobra.Command, w fabric.Webhook) (fabric.Webhook, error) {
	return a.Fabric.Webhooks.Update(ctx, w.ProjectID, w.ID, webhookInput(cmd))
}
