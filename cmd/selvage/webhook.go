package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

var webhooks = view[fabric.Webhook]{
	id: func(w fabric.Webhook) string { return w.ID },
	json: func(w fabric.Webhook) any {
		return struct {
			ID           string             `json:"id"`
			ProjectID    string             `json:"project_id"`
			URL          string             `json:"url"`
			Name         string             `json:"name,omitempty"`
			Events       []fabric.EventName `json:"events"`
			Enabled      bool               `json:"enabled"`
			Failures     int                `json:"failures"`
			RestingUntil moment             `json:"resting_until,omitempty"`
			CreatedAt    moment             `json:"created_at"`
			UpdatedAt    moment             `json:"updated_at"`
		}{w.ID, w.ProjectID, w.URL, w.Name, w.Events, w.Enabled, w.Failures, iso(w.Rests), iso(w.Created),
			iso(w.Updated)}
	},
	facts: []fact[fabric.Webhook]{
		{name: "ID", value: func(w fabric.Webhook) string { return w.ID }},
		{name: "Project", detail: true, value: func(w fabric.Webhook) string { return w.ProjectID }},
		{name: "Name", value: func(w fabric.Webhook) string { return w.Name }},
		{name: "URL", value: func(w fabric.Webhook) string { return w.URL }},
		{name: "Enabled", value: func(w fabric.Webhook) string { return yesNo(w.Enabled) }},
		{name: "Events", value: func(w fabric.Webhook) string { return joined(w.Events) }},
		{name: "Failures", value: func(w fabric.Webhook) string { return countOf(w.Failures) }},
		{name: "Resting until", detail: true, value: func(w fabric.Webhook) string { return stamp(w.Rests) }},
		{name: "Created", aside: true, value: func(w fabric.Webhook) string { return stamp(w.Created) }},
		{name: "Updated", detail: true, value: func(w fabric.Webhook) string { return stamp(w.Updated) }},
	},
}

// countOf writes a number, "" for none.
func countOf(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (c *cli) webhookCommand() *cobra.Command {
	create := &cobra.Command{Use: "create",
		Short: "Have a URL told what happens to subscribers and resources", Args: positional(),
		RunE: c.with(c.createWebhook)}
	ls := &cobra.Command{Use: "list", Short: "List the webhooks of a project", Args: positional(),
		RunE: c.with(c.listWebhooks)}
	show := &cobra.Command{Use: "show ID", Short: "Show a webhook", Args: positional("ID"),
		RunE: c.with(c.showWebhook)}
	update := &cobra.Command{Use: "update ID", Short: "Change a webhook; what is not given stays",
		Args: positional("ID"), RunE: c.with(c.updateWebhook)}
	remove := &cobra.Command{Use: "delete ID", Short: "Delete a webhook with what waits for it",
		Args: positional("ID"), RunE: c.with(c.deleteWebhook)}
	test := &cobra.Command{Use: "test ID", Short: "Tell a webhook of nothing, to see whether it arrives",
		Args: positional("ID"), RunE: c.with(c.testWebhook)}
	deliveries := &cobra.Command{Use: "deliveries ID",
		Short: "List what a webhook was told, or will be: the newest first", Args: positional("ID"),
		RunE: c.with(c.listDeliveries)}
	deliveries.Flags().String("state", "", "only those in a `state`: pending, delivered or dead")
	redeliver := &cobra.Command{
		Use: "redeliver ID [DELIVERY]", Short: "Queue a delivery anew, or all dead letters",
		Args: oneOrTwo("ID", "DELIVERY"), RunE: c.with(c.redeliver),
	}
	addYes(remove)
	update.Flags().Bool("enabled", true, "tell it again, or with =false nothing more")
	for _, cmd := range []*cobra.Command{create, update} {
		cmd.Flags().String("url", "", "the `URL` that is told, by POST")
		cmd.Flags().StringSlice("event", nil,
			"an `event` it is told of; any number, all without: "+joined(fabric.EventNames()))
		cmd.Flags().String("name", "", "the `name` it has in lists")
	}
	for _, cmd := range []*cobra.Command{create, ls, show, update, remove, test, deliveries, redeliver} {
		addProject(cmd)
	}
	return noun("webhook", "Webhooks: URLs that are told what happens", create, ls, show, update, remove,
		test, deliveries, redeliver, c.signingKeyCommand())
}

// oneOrTwo checks that a command has the first argument, and perhaps the second.
func oneOrTwo(first, second string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 {
			return positional(first)(cmd, args)
		}
		return positional(first, second)(cmd, args)
	}
}

// webhookInput returns what the flags say of a webhook.
func webhookInput(cmd *cobra.Command) (in fabric.WebhookInput, err error) {
	in.URL, in.Name = text(cmd, "url"), text(cmd, "name")
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

func (c *cli) createWebhook(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := need(cmd, "url"); err != nil {
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
	w, err := a.Fabric.CreateWebhook(ctx, p.ID, in)
	if err != nil {
		return err
	}
	return one(c, webhooks, w)
}

func (c *cli) listWebhooks(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	all, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Webhook], error) {
		return a.Fabric.ListWebhooks(ctx, p.ID, q)
	})
	if err != nil {
		return err
	}
	return list(c, webhooks, all)
}

func (a *app) webhook(ctx context.Context, cmd *cobra.Command, id string) (fabric.Webhook, error) {
	return among(ctx, a, cmd, func(projectID string) (fabric.Webhook, error) {
		return a.Fabric.FindWebhook(ctx, projectID, id)
	})
}

func (c *cli) showWebhook(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	w, err := a.webhook(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	return one(c, webhooks, w)
}

func (c *cli) updateWebhook(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	w, err := a.webhook(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	in, err := webhookInput(cmd)
	if err != nil {
		return err
	}
	if w, err = a.Fabric.UpdateWebhook(ctx, w.ProjectID, w.ID, in); err != nil {
		return err
	}
	return one(c, webhooks, w)
}

func (c *cli) deleteWebhook(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	w, err := a.webhook(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if err := c.confirm(cmd, "This deletes the webhook to "+w.URL+" and what waits for it.", w.URL); err != nil {
		return err
	}
	return a.Fabric.DeleteWebhook(ctx, w.ProjectID, w.ID)
}
