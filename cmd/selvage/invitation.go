package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

// madeBy names who made an invitation.
func madeBy(l operator.Link) string { return cmp.Or(l.MadeBy, "command line") }

var invitationView = view[operator.Link]{
	id: func(l operator.Link) string { return l.ID },
	json: func(l operator.Link) any {
		return struct {
			ID        string        `json:"id"`
			Email     string        `json:"email,omitempty"`
			Role      operator.Role `json:"role"`
			ProjectID string        `json:"project_id,omitempty"`
			By        string        `json:"by"`
			CreatedAt moment        `json:"created_at"`
			ExpiresAt moment        `json:"expires_at"`
		}{l.ID, l.Email, l.Role.Role, l.Role.ProjectID, madeBy(l), iso(l.Created), iso(l.Expires)}
	},
	facts: []fact[operator.Link]{
		{name: "ID", value: func(l operator.Link) string { return l.ID }},
		{name: "For", value: func(l operator.Link) string { return cmp.Or(l.Email, "whoever has the link") }},
		{name: "Role", value: func(l operator.Link) string {
			return rolesOf(operator.Operator{Roles: []operator.Membership{l.Role}})
		}},
		{name: "By", value: madeBy},
		{name: "Good until", value: func(l operator.Link) string { return stamp(l.Expires) }},
	},
}

func (c *cli) listInvitations(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	all, err := page.Every(ctx, a.Operators.Invitations)
	if err != nil {
		return err
	}
	return list(c, invitationView, all)
}

func (c *cli) renewInvitation(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	l, token, err := a.Operators.Renew(ctx, args[0], "")
	if err != nil {
		return err
	}
	return one(c, setupLinks, setupLink{l, a.SetupURL(token)})
}

func (c *cli) withdrawInvitation(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	l, err := a.Operators.Withdraw(ctx, args[0])
	if err != nil {
		return err
	}
	return one(c, invitationView, l)
}
