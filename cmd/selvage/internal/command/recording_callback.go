package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

var callbackView = cli.View[recordings.Delivery]{
	ID: func(d recordings.Delivery) string { return d.ID },
	JSON: func(d recordings.Delivery) any {
		return struct {
			ID          string            `json:"id"`
			RecordingID string            `json:"recording_id"`
			Event       recordings.Status `json:"event"`
			URL         string            `json:"url"`
			Method      string            `json:"method"`
			deliveryJSON
		}{
			ID:           d.ID,
			RecordingID:  d.Sid,
			Event:        d.Event,
			URL:          d.URL,
			Method:       d.Method,
			deliveryJSON: newDeliveryJSON(d.Progress),
		}
	},
	Facts: []cli.Fact[recordings.Delivery]{
		{Name: "ID", Value: func(d recordings.Delivery) string { return d.ID }},
		{Name: "Event", Value: func(d recordings.Delivery) string { return string(d.Event) }},
		{Name: "State", Value: func(d recordings.Delivery) string { return string(d.State) }},
		{Name: "Attempts", Value: func(d recordings.Delivery) string { return cli.Count(d.Attempts) }},
		{Name: "Answer", Value: func(d recordings.Delivery) string { return lastAnswer(d.Progress) }},
		{Name: "Next", Value: func(d recordings.Delivery) string { return cli.FormatTime(d.Due) }},
		{Name: "Recording", Minor: true, Value: func(d recordings.Delivery) string { return d.Sid }},
		{Name: "Created", Minor: true, Value: func(d recordings.Delivery) string { return cli.FormatTime(d.Created) }},
		{Name: "URL", Minor: true, Value: func(d recordings.Delivery) string { return d.URL }},
	},
}

// callbackCommands returns the commands for the status callbacks of recordings.
func (c recordingCommands) callbackCommands() []*cobra.Command {
	callbacks := cli.Command("callbacks", "List the status callbacks of a project, the newest first",
		c.withMedia(c.listCallbacks))
	addState(callbacks)
	redeliver := cli.Command("redeliver [CALLBACK]",
		"Queue a status callback again, or all callbacks that could not be delivered",
		c.withMedia(c.redeliverCallbacks))
	addProject(callbacks, redeliver)
	return []*cobra.Command{callbacks, redeliver}
}

func (c recordingCommands) listCallbacks(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}

	state, err := flagState(cmd)
	if err != nil {
		return err
	}

	all, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[recordings.Delivery], error) {
		return a.Recordings.Callbacks().List(ctx, p.ID, state, q)
	})
	if err != nil {
		return err
	}
	return cli.List(c.Env, callbackView, all)
}

func (c recordingCommands) redeliverCallbacks(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		d, err := a.Recordings.Callbacks().Redeliver(ctx, p.ID, args[0])
		if err != nil {
			return err
		}
		return cli.Show(c.Env, callbackView, d)
	}

	n, err := a.Recordings.Callbacks().RedeliverDead(ctx, p.ID)
	if err != nil {
		return err
	}
	return c.printRequeued(n)
}
