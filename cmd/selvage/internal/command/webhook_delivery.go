package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

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
			Duration     float64 `json:"duration,omitempty"` // seconds
			ResponseBody string  `json:"response_body,omitempty"`
			Refused      string  `json:"refused_address,omitempty"`
		}{
			ID:           d.ID,
			WebhookID:    d.WebhookID,
			Event:        d.Event,
			ResourceID:   d.Subject,
			deliveryJSON: newDeliveryJSON(d.Progress),
			Duration:     d.Took.Round(time.Millisecond).Seconds(),
			ResponseBody: d.Response,
			Refused:      d.Refused,
		}
	},
	Facts: []cli.Fact[fabric.Delivery]{
		{Name: "ID", Value: func(d fabric.Delivery) string { return d.ID }},
		{Name: "Event", Value: func(d fabric.Delivery) string { return string(d.Event) }},
		{Name: "State", Value: func(d fabric.Delivery) string { return string(d.State) }},
		{Name: "Attempts", Value: func(d fabric.Delivery) string { return cli.Count(d.Attempts) }},
		{Name: "Answer", Value: func(d fabric.Delivery) string { return answerOf(d) }},
		{Name: "Took", Minor: true, Value: func(d fabric.Delivery) string { return tookOf(d) }},
		{Name: "Next", Value: func(d fabric.Delivery) string { return cli.FormatTime(d.Due) }},
		{Name: "Created", Minor: true, Value: func(d fabric.Delivery) string { return cli.FormatTime(d.Created) }},
		{Name: "About", Minor: true, Value: func(d fabric.Delivery) string { return d.Subject }},
		{Name: "Response", Minor: true, Value: func(d fabric.Delivery) string { return responseOf(d) }},
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

// answerOf is like lastAnswer, but also names the address to which selvage refused to connect.
func answerOf(d fabric.Delivery) string {
	if d.Refused == "" {
		return lastAnswer(d.Progress)
	}
	return lastAnswer(d.Progress) + " (" + d.Refused + ")"
}

// tookOf returns how long the last attempt took, rounded to milliseconds.
func tookOf(d fabric.Delivery) string {
	if d.Took == 0 {
		return ""
	}
	return d.Took.Round(time.Millisecond).String()
}

// maxResponse is the maximum number of characters of a response in a list.
const maxResponse = 80

// responseOf returns the beginning of the last response, on one line.
func responseOf(d fabric.Delivery) string {
	line := []rune(strings.Join(strings.Fields(d.Response), " "))
	if len(line) > maxResponse {
		return string(line[:maxResponse]) + "…"
	}
	return string(line)
}

func (c webhookCommands) deliveryCommands() []*cobra.Command {
	n := noun[fabric.Delivery]{commands: c.commands, view: deliveryView}
	test := n.command("test ID", "Send a test event to a webhook", testWebhook)
	deliveries := cli.Command("deliveries ID", "List the deliveries of a webhook, the newest first",
		c.with(c.listDeliveries))
	addState(deliveries)
	redeliver := cli.Command("redeliver ID [DELIVERY]",
		"Queue an event again, or all events that could not be delivered",
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
