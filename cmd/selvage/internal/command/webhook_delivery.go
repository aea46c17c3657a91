package command

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
)

var deliveryView = cli.View[fabric.Delivery]{
	ID: func(d fabric.Delivery) string { return d.ID },
	JSON: func(d fabric.Delivery) any {
		return struct {
			ID         string           `json:"id"`
			WebhookID  string           `json:"webhook_id"`
			Event      fabric.EventName `json:"event"`
			ResourceID string           `json:"resource_id"`
			deliveryJSON
		}{
			ID:           d.ID,
			WebhookID:    d.WebhookID,
			Event:        d.Event,
			ResourceID:   d.Subject,
			deliveryJSON: newDeliveryJSON(d.Progress),
		}
	},
	Facts: []cli.Fact[fabric.Delivery]{
		{Name: "ID", Value: func(d fabric.Delivery) string { return d.ID }},
		{Name: "Event", Value: func(d fabric.Delivery) string { return string(d.Event) }},
		{Name: "State", Value: func(d fabric.Delivery) string { return string(d.State) }},
		{Name: "Attempts", Value: func(d fabric.Delivery) string { return cli.Count(d.Attempts) }},
		{Name: "Answer", Value: func(d fabric.Delivery) string { return lastAnswer(d.Progress) }},
		{Name: "Next", Value: func(d fabric.Delivery) string { return cli.FormatTime(d.Due) }},
		{Name: "Created", Minor: true, Value: func(d fabric.Delivery) string { return cli.FormatTime(d.Created) }},
		{Name: "About", Minor: true, Value: func(d fabric.Delivery) string { return d.Subject }},
	},
}

// deliveryJSON is the progress of a delivery to a webhook, or of a logout to a client.
type deliveryJSON struct {
	State         fabric.DeliveryState `json:"state"`
	Attempts      int                  `json:"attempts"`
	Status        int                  `json:"status,omitempty"`
	Error         string               `json:"error,omitempty"`
	CreatedAt     cli.Time             `json:"created_at"`
	NextAttemptAt cli.Time             `json:"next_attempt_at,omitempty"`
	EndedAt       cli.Time             `json:"ended_at,omitempty"`
}

func newDeliveryJSON(p fabric.Progress) deliveryJSON {
	return deliveryJSON{
		State:         p.State,
		Attempts:      p.Attempts,
		Status:        p.Status,
		Error:         p.Error,
		CreatedAt:     cli.UTC(p.Created),
		NextAttemptAt: cli.UTC(p.Due),
		EndedAt:       cli.UTC(p.Ended),
	}
}

// lastAnswer returns the status of the receiver's last response, or the error if there was none.
func lastAnswer(p fabric.Progress) string {
	if p.Status != 0 {
		return strconv.Itoa(p.Status)
	}
	return p.Error
}

func (c webhookCommands) deliveryCommands() []*cobra.Command {
	n := noun[fabric.Delivery]{commands: c.commands, view: deliveryView}
	test := n.command("test ID", "Send a test event to a webhook", testWebhook)
	deliveries := cli.Command("deliveries ID", "List the deliveries of a webhook, the newest first",
		c.with(c.listDeliveries))
	addState(deliveries)
	redeliver := cli.Command("redeliver ID [DELIVERY]",
		"Queue an event again, or all that could not be delivered",
		c.with(c.redeliver))
	addProject(test, deliveries, redeliver)
	return []*cobra.Command{test, deliveries, redeliver}
}

// addState adds the flag --state to a command that lists deliveries.
func addState(cmd *cobra.Command) {
	cmd.Flags().String("state", "", "only those in this `state`: pending, delivered or dead")
}

// flagState returns the value of --state.
func flagState(cmd *cobra.Command) (fabric.DeliveryState, error) {
	name, _ := cmd.Flags().GetString("state")
	return deliver.ParseState(name)
}

func (c webhookCommands) listDeliveries(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	state, err := flagState(cmd)
	if err != nil {
		return err
	}

	w, err := findWebhook(ctx, a, cmd, args[0])
	if err != nil {
		return err
	}

	all, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Delivery], error) {
		return a.Fabric.Deliveries.List(ctx, w.ProjectID, w.ID, state, q)
	})
	if err != nil {
		return err
	}
	return cli.List(c.Env, deliveryView, all)
}

func testWebhook(ctx context.Context, a *app, cmd *cobra.Command, args []string) (fabric.Delivery, error) {
	w, err := findWebhook(ctx, a, cmd, args[0])
	if err != nil {
		return fabric.Delivery{}, err
	}
	return a.Fabric.Webhooks.Test(ctx, w.ProjectID, w.ID)
}

func (c webhookCommands) redeliver(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	w, err := findWebhook(ctx, a, cmd, args[0])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		d, err := a.Fabric.Deliveries.Redeliver(ctx, w.ProjectID, w.ID, args[1])
		if err != nil {
			return err
		}
		return cli.Show(c.Env, deliveryView, d)
	}

	n, err := a.Fabric.Deliveries.RedeliverDead(ctx, w.ProjectID, w.ID)
	if err != nil {
		return err
	}
	return c.printRequeued(n)
}

// printRequeued reports how many failed deliveries were queued again.
func (c *commands) printRequeued(n int) error {
	_, err := fmt.Fprintln(c.Stderr, cli.Plural(n, "dead letter")+" queued again")
	return err
}
