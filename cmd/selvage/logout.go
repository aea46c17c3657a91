package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

var logouts = view[fabric.Logout]{
	id: func(l fabric.Logout) string { return l.LoginID },
	json: func(l fabric.Logout) any {
		return struct {
			SID          string `json:"sid"`
			ClientID     string `json:"client_id"`
			SubscriberID string `json:"subscriber_id"`
			printedProgress
		}{l.LoginID, l.ClientID, l.SubscriberID, printProgress(l.Progress)}
	},
	facts: []fact[fabric.Logout]{
		{name: "Session", value: func(l fabric.Logout) string { return l.LoginID }},
		{name: "State", value: func(l fabric.Logout) string { return string(l.State) }},
		{name: "Attempts", value: func(l fabric.Logout) string { return countOf(l.Attempts) }},
		{name: "Answer", value: func(l fabric.Logout) string { return answerOf(l.Status, l.Error) }},
		{name: "Next", value: func(l fabric.Logout) string { return stamp(l.Due) }},
		{name: "Logout", aside: true, value: func(l fabric.Logout) string { return stamp(l.Created) }},
		{name: "Subscriber", aside: true, value: func(l fabric.Logout) string { return l.SubscriberID }},
	},
}

func (c *cli) logoutCommands() (told, redeliver *cobra.Command) {
	told = &cobra.Command{Use: "logouts ID", Short: "List the logouts that a client was told of, or will be",
		Args: positional("ID"), RunE: c.with(c.listLogouts)}
	told.Flags().String("state", "", "only those in a `state`: pending, delivered or dead")
	redeliver = &cobra.Command{
		Use: "redeliver ID [SESSION]", Short: "Tell a client of a logout anew, or of all that were given up",
		Args: oneOrTwo("ID", "SESSION"), RunE: c.with(c.redeliverLogout),
	}
	return told, redeliver
}

func (c *cli) listLogouts(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	name, _ := cmd.Flags().GetString("state")
	state, err := fabric.ParseDeliveryState(name)
	if err != nil {
		return err
	}
	cl, err := a.IDP.FindClient(ctx, args[0])
	if err != nil {
		return err
	}
	all, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Logout], error) {
		return a.Fabric.ListLogouts(ctx, cl.ProjectID, cl.ID, state, q)
	})
	if err != nil {
		return err
	}
	return list(c, logouts, all)
}

func (c *cli) redeliverLogout(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	cl, err := a.IDP.FindClient(ctx, args[0])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		l, err := a.Fabric.RedeliverLogout(ctx, cl.ProjectID, cl.ID, args[1])
		if err != nil {
			return err
		}
		return one(c, logouts, l)
	}
	n, err := a.Fabric.RedeliverDeadLogouts(ctx, cl.ProjectID, cl.ID)
	if err != nil {
		return err
	}
	return c.waitAgain(n)
}
