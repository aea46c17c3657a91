package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/internal/factor"
)

var factors = view[factor.Factor]{
	id: func(f factor.Factor) string { return f.ID },
	json: func(f factor.Factor) any {
		return struct {
			ID        string `json:"id"`
			Type      string `json:"type"`
			Name      string `json:"name,omitempty"`
			BackedUp  bool   `json:"backed_up"`
			Left      int    `json:"left"`
			CreatedAt moment `json:"created_at"`
			UsedAt    moment `json:"used_at,omitempty"`
		}{f.ID, f.Type, f.Name, f.BackedUp, f.Left, iso(f.Created), iso(f.Used)}
	},
	facts: []fact[factor.Factor]{
		{name: "ID", value: func(f factor.Factor) string { return f.ID }},
		{name: "Type", value: func(f factor.Factor) string { return f.Type }},
		{name: "Name", value: func(f factor.Factor) string { return f.Name }},
		{name: "Left", value: left},
		{name: "Created", aside: true, value: func(f factor.Factor) string { return stamp(f.Created) }},
		{name: "Used", aside: true, value: func(f factor.Factor) string { return stamp(f.Used) }},
	},
}

// left tells how many recovery codes are.
func left(f factor.Factor) string {
	if f.Type != factor.TypeRecovery {
		return ""
	}
	return strconv.Itoa(f.Left)
}

func (c *cli) listFactors(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	return listHeld(ctx, c, a, cmd, args[0], factors, a.Fabric.SubscriberFactors)
}

func (c *cli) removeFactor(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	return a.Fabric.RemoveFactor(ctx, s.ProjectID, s.ID, args[1])
}
