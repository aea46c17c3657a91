package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

var logoutView = cli.View[fabric.Logout]{
	ID: func(l fabric.Logout) string { return l.LoginID },
	JSON: func(l fabric.Logout) any {
		return struct {
			SID          string `json:"sid"`
			ClientID     string `json:"client_id"`
			SubscriberID string `json:"subscriber_id"`
			deliveryJSON
		}{
			SID:          l.LoginID,
			ClientID:     l.ClientID,
			SubscriberID: l.SubscriberID,
			deliveryJSON: newDeliveryJSON(l.Progress),
		}
	},
	Facts: []cli.Fact[fabric.Logout]{
		{Name: "Session", Value: func(l fabric.Logout) string { return l.LoginID }},
		{Name: "State", Value: func(l fabric.Logout) string { return string(l.State) }},
		{Name: "Attempts", Value: func(l fabric.Logout) string { return cli.Count(l.Attempts) }},
		{Name: "Answer", Value: func(l fabric.Logout) string { return lastAnswer(l.Progress) }},
		{Name: "Next", Value: func(l fabric.Logout) string { return cli.FormatTime(l.Due) }},
		{Name: "Logout", Minor: true, Value: func(l fabric.Logout) string { return cli.FormatTime(l.Created) }},
		{Name: "Subscriber", Minor: true, Value: func(l fabric.Logout) string { return l.SubscriberID }},
	},
}

func (c clientCommands) logoutCommands() (logouts, redeliver *cobra.Command) {
	logouts = cli.Command("logouts ID", "List the back-channel logouts of a client", c.with(c.listLogouts))
	addState(logouts)
	redeliver = cli.Command("redeliver ID [SESSION]",
		"Queue a back-channel logout again, or all logouts that could not be delivered",
		c.with(c.redeliverLogout))
	return logouts, redeliver
}

func (c clientCommands) listLogouts(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	state, err := flagState(cmd)
	if err != nil {
		return err
	}

	cl, err := a.IDP.Clients.Find(ctx, args[0])
	if err != nil {
		return err
	}

	all, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Logout], error) {
		return a.Fabric.Deliveries.ListLogouts(ctx, cl.ProjectID, cl.ID, state, q)
	})
	if err != nil {
		return err
	}
	return cli.List(c.Env, logoutView, all)
}

func (c clientCommands) redeliverLogout(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	cl, err := a.IDP.Clients.Find(ctx, args[0])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		l, err := a.Fabric.Deliveries.RedeliverLogout(ctx, cl.ProjectID, cl.ID, args[1])
		if err != nil {
			return err
		}
		return cli.Show(c.Env, logoutView, l)
	}

	n, err := a.Fabric.Deliveries.RedeliverDeadLogouts(ctx, cl.ProjectID, cl.ID)
	if err != nil {
		return err
	}
	return c.printRequeued(n)
}
