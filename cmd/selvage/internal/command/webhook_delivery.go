package command

import (
	"context"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/spf13/cobra"
	"strconv"
)

var deliveries = cli.View[fabric.Delivery]{
	ID: func(d fabric.Delivery) string { return d.ID },
	JSON: func(d fabric.Delivery) any {
		return struct {
			ID         string           `json:"id"`
			WebhookID  string           `json:"webhook_id"`
			Event      fabric.EventName `json:"event"`
			ResourceID string           `json:"resource_id"`
			printedProgress
		}{d.ID, d.WebhookID, d.Event, d.Subject, printProgress(d.Progress)}
	},
	Facts: []cli.Fact[fabric.Delivery]{
		{Name: "ID", Value: func(d fabric.Delivery) string { return d.ID }},
		{Name: "Event", Value: func(d fabric.Delivery) string { return string(d.Event) }},
		{Name: "State", Value: func(d fabric.Delivery) string { return string(d.State) }},
		{Name: "Attempts", Value: func(d fabric.Delivery) string { return cli.Count(d.Attempts) }},
		{Name: "Answer", Value: func(d fabric.Delivery) string { return answerOf(d.Status, d.Error) }},
		{Name: "Next", Value: func(d fabric.Delivery) string { return cli.FormatTime(d.Due) }},
		{Name: "Created", Minor: true, Value: func(d fabric.Delivery) string { return cli.FormatTime(d.Created) }},
		{Name: "About", Minor: true, Value: func(d fabric.Delivery) string { return d.Subject }},
	},
}

// printedProgress is how far it has come with a delivery, or a logout, for programs.
type printedProgress struct {
	State         fabric.DeliveryState `json:"state"`
	Attempts      int                  `json:"attempts"`
	Status        int                  `json:"status,omitempty"`
	Error         string               `json:"error,omitempty"`
	CreatedAt     cli.Time             `json:"created_at"`
	NextAttemptAt cli.Time             `json:"next_attempt_at,omitempty"`
	EndedAt       cli.Time             `json:"ended_at,omitempty"`
}

func printProgress(p fabric.Progress) printedProgress {
	return printedProgress{p.State, p.Attempts, p.Status, p.Error, cli.UTC(p.Created), cli.UTC(p.Due), cli.UTC(p.Ended)}
}

// answerOf says what the receiver said last.
func answerOf(status int, err string) string {
	if status != 0 {
		return strconv.Itoa(status)
	}
	return err
}

func (c *commands) listDeliveries(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	name, _ := cmd.Flags().GetString("state")
	state, err := fabric.ParseDeliveryState(name)
	if err != nil {
		return err
	}
	w, err := a.webhook(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	all, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Delivery], error) {
		return a.Fabric.Deliveries.List(ctx, w.ProjectID, w.ID, state, q)
	})
	if err != nil {
		return err
	}
	return cli.List(c.Env, deliveries, all)
}

func (c *commands) testWebhook(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	w, err := a.webhook(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	d, err := a.Fabric.Webhooks.Test(ctx, w.ProjectID, w.ID)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, deliveries, d)
}

func (c *commands) redeliver(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	w, err := a.webhook(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		d, err := a.Fabric.Deliveries.Redeliver(ctx, w.ProjectID, w.ID, args[1])
		if err != nil {
			return err
		}
		return cli.Show(c.Env, deliveries, d)
	}
	n, err := a.Fabric.Deliveries.RedeliverDead(ctx, w.ProjectID, w.ID)
	if err != nil {
		return err
	}
	return c.waitAgain(n)
}

// waitAgain says how many dead letters do.
func (c *commands) waitAgain(n int) error {
	_, err := fmt.Fprintf(c.Stderr, "%d dead letters wait again\n", n)
	return err
}
