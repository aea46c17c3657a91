package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

var deliveries = view[fabric.Delivery]{
	id: func(d fabric.Delivery) string { return d.ID },
	json: func(d fabric.Delivery) any {
		return struct {
			ID         string           `json:"id"`
			WebhookID  string           `json:"webhook_id"`
			Event      fabric.EventName `json:"event"`
			ResourceID string           `json:"resource_id"`
			printedProgress
		}{d.ID, d.WebhookID, d.Event, d.Subject, printProgress(d.Progress)}
	},
	facts: []fact[fabric.Delivery]{
		{name: "ID", value: func(d fabric.Delivery) string { return d.ID }},
		{name: "Event", value: func(d fabric.Delivery) string { return string(d.Event) }},
		{name: "State", value: func(d fabric.Delivery) string { return string(d.State) }},
		{name: "Attempts", value: func(d fabric.Delivery) string { return countOf(d.Attempts) }},
		{name: "Answer", value: func(d fabric.Delivery) string { return answerOf(d.Status, d.Error) }},
		{name: "Next", value: func(d fabric.Delivery) string { return stamp(d.Due) }},
		{name: "Created", aside: true, value: func(d fabric.Delivery) string { return stamp(d.Created) }},
		{name: "About", aside: true, value: func(d fabric.Delivery) string { return d.Subject }},
	},
}

// printedProgress is how far it has come with a delivery, or a logout, for programs.
type printedProgress struct {
	State         fabric.DeliveryState `json:"state"`
	Attempts      int                  `json:"attempts"`
	Status        int                  `json:"status,omitempty"`
	Error         string               `json:"error,omitempty"`
	CreatedAt     moment               `json:"created_at"`
	NextAttemptAt moment               `json:"next_attempt_at,omitempty"`
	EndedAt       moment               `json:"ended_at,omitempty"`
}

func printProgress(p fabric.Progress) printedProgress {
	return printedProgress{p.State, p.Attempts, p.Status, p.Error, iso(p.Created), iso(p.Due), iso(p.Ended)}
}

// answerOf says what the receiver said last.
func answerOf(status int, err string) string {
	if status != 0 {
		return strconv.Itoa(status)
	}
	return err
}

func (c *cli) listDeliveries(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
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
		return a.Fabric.ListDeliveries(ctx, w.ProjectID, w.ID, state, q)
	})
	if err != nil {
		return err
	}
	return list(c, deliveries, all)
}

func (c *cli) testWebhook(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	w, err := a.webhook(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	d, err := a.Fabric.TestWebhook(ctx, w.ProjectID, w.ID)
	if err != nil {
		return err
	}
	return one(c, deliveries, d)
}

func (c *cli) redeliver(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	w, err := a.webhook(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		d, err := a.Fabric.Redeliver(ctx, w.ProjectID, w.ID, args[1])
		if err != nil {
			return err
		}
		return one(c, deliveries, d)
	}
	n, err := a.Fabric.RedeliverDead(ctx, w.ProjectID, w.ID)
	if err != nil {
		return err
	}
	return c.waitAgain(n)
}

// waitAgain says how many dead letters do.
func (c *cli) waitAgain(n int) error {
	_, err := fmt.Fprintf(c.stderr, "%d dead letters wait again\n", n)
	return err
}
