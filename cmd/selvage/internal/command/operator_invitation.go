package command

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

// A setupLink is a link with which a person becomes an operator, or sets an operator's password.
type setupLink struct {
	operator.Link
	url string
}

var setupLinkView = cli.View[setupLink]{
	ID: func(l setupLink) string { return l.url },
	JSON: func(l setupLink) any {
		return struct {
			URL       string    `json:"url"`
			Email     string    `json:"email,omitempty"`
			ExpiresAt time.Time `json:"expires_at"`
		}{URL: l.url, Email: l.Email, ExpiresAt: l.Expires}
	},
	Facts: []cli.Fact[setupLink]{
		{Name: "Link", Value: func(l setupLink) string { return l.url }},
		{Name: "For", Value: func(l setupLink) string { return l.Email }},
		{Name: "Valid until", Value: func(l setupLink) string { return cli.FormatTime(l.Expires) + ", once" }},
	},
}

// setupLinkCommand returns the command that prints a link for a new operator.
func (c operatorCommands) setupLinkCommand() *cobra.Command {
	n := noun[setupLink]{commands: c.commands, view: setupLinkView}
	setup := n.command("setup-link",
		"Print a link that creates an operator; it can be used once and expires in a day", createSetupLink)
	addOperatorEmail(setup)
	addOperatorRoles(setup)
	return setup
}

// byCommandLine is stored as the creator of a link that a command creates. For other links, the creator
// is an operator.
const byCommandLine = ""

func createSetupLink(ctx context.Context, a *app, cmd *cobra.Command, _ []string) (setupLink, error) {
	roles, err := flagRoles(cmd)
	if err != nil {
		return setupLink{}, err
	}
	switch len(roles) {
	case 0:
		roles = []operator.Membership{{Role: operator.Owner}}
	case 1:
	default:
		return setupLink{}, cli.Usagef("%s takes one --role; add others with `selvage operator update`", cli.Name(cmd))
	}

	email, _ := cmd.Flags().GetString("email")
	l, token, err := a.Operators.Invite(ctx, email, roles[0], byCommandLine)
	if err != nil {
		return setupLink{}, err
	}
	return setupLink{Link: l, url: a.SetupURL(token)}, nil
}

// invitedBy names the creator of an invitation.
func invitedBy(l operator.Link) string { return cmp.Or(l.MadeBy, "command line") }

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
		}{
			ID:        l.ID,
			Email:     l.Email,
			Role:      l.Role.Role,
			ProjectID: l.Role.ProjectID,
			By:        invitedBy(l),
			CreatedAt: cli.UTC(l.Created),
			ExpiresAt: cli.UTC(l.Expires),
		}
	},
	Facts: []cli.Fact[operator.Link]{
		{Name: "ID", Value: func(l operator.Link) string { return l.ID }},
		{Name: "For", Value: func(l operator.Link) string { return cmp.Or(l.Email, "anyone with the link") }},
		{
			Name: "Role",
			Value: func(l operator.Link) string {
				return formatRoles(operator.Operator{Roles: []operator.Membership{l.Role}})
			},
		},
		{Name: "By", Value: invitedBy},
		{Name: "Valid until", Value: func(l operator.Link) string { return cli.FormatTime(l.Expires) }},
	},
}

func (c operatorCommands) invitationCommands() []*cobra.Command {
	n := noun[operator.Link]{
		commands: c.commands,
		view:     invitationView,
		list: func(ctx context.Context, a *app, _ *cobra.Command) ([]operator.Link, error) {
			return page.Every(ctx, a.Operators.Invitations)
		},
	}
	links := noun[setupLink]{commands: c.commands, view: setupLinkView}
	return []*cobra.Command{
		n.listCommand("invitations", "List pending invitations"),
		links.command("renew ID", "Replace the link of an invitation; the old link stops working",
			func(ctx context.Context, a *app, _ *cobra.Command, args []string) (setupLink, error) {
				l, token, err := a.Operators.Renew(ctx, args[0], byCommandLine)
				if err != nil {
					return setupLink{}, err
				}
				return setupLink{Link: l, url: a.SetupURL(token)}, nil
			}),
		n.command("withdraw ID", "Withdraw an invitation; its link stops working",
			func(ctx context.Context, a *app, _ *cobra.Command, args []string) (operator.Link, error) {
				return a.Operators.Withdraw(ctx, args[0])
			}),
	}
}
