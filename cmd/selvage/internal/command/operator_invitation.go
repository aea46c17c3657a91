package command

import (
	"cmp"
	"context"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
	"github.com/spf13/cobra"
)

// madeBy names who made an invitation.
func madeBy(l operator.Link) string { return cmp.Or(l.MadeBy, "command line") }

var invitationView = cli.View[operator.Link]{
	ID: func(l operator.Link) string { return l.ID },
	JSON: func(l operator.Link) any {
		return struct {
			ID        string        `json:"id"`
			Email     string        `json:"email,omitempty"`
			Role      operator.Role `json:"role"`
			ProjectID string        `json:"project_id,omitempty"`
			By        string        `json:"by"`
			CreatedAt cli.Time      `json:"created_at"`
			ExpiresAt cli.Time      `json:"expires_at"`
		}{l.ID, l.Email, l.Role.Role, l.Role.ProjectID, madeBy(l), cli.UTC(l.Created), cli.UTC(l.Expires)}
	},
	Facts: []cli.Fact[operator.Link]{
		{Name: "ID", Value: func(l operator.Link) string { return l.ID }},
		{Name: "For", Value: func(l operator.Link) string { return cmp.Or(l.Email, "whoever has the link") }},
		{Name: "Role", Value: func(l operator.Link) string {
			return rolesOf(operator.Operator{Roles: []operator.Membership{l.Role}})
		}},
		{Name: "By", Value: madeBy},
		{Name: "Good until", Value: func(l operator.Link) string { return cli.FormatTime(l.Expires) }},
	},
}

func (c *commands) listInvitations(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	all, err := page.Every(ctx, a.Operators.Invitations)
	if err != nil {
		return err
	}
	return cli.List(c.Env, invitationView, all)
}

func (c *commands) renewInvitation(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	l, token, err := a.Operators.Renew(ctx, args[0], "")
	if err != nil {
		return err
	}
	return cli.Show(c.Env, setupLinks, setupLink{l, a.SetupURL(token)})
}

func (c *commands) withdrawInvitation(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	l, err := a.Operators.Withdraw(ctx, args[0])
	if err != nil {
		return err
	}
	return cli.Show(c.Env, invitationView, l)
}
