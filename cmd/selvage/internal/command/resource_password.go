package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
)

var passwordView = cli.View[fabric.SIPAccount]{
	ID:     func(a fabric.SIPAccount) string { return a.ID },
	Secret: func(a fabric.SIPAccount) string { return a.Password },
	JSON: func(a fabric.SIPAccount) any {
		return struct {
			ID       string `json:"id"`
			Username string `json:"username"`
			Password string `json:"password"`
		}{ID: a.ID, Username: a.Username(), Password: a.Password}
	},
	Facts: []cli.Fact[fabric.SIPAccount]{
		{Name: "ID", Value: func(a fabric.SIPAccount) string { return a.ID }},
		{Name: "Username", Value: func(a fabric.SIPAccount) string { return a.Username() }},
		{Name: "Password", Value: func(a fabric.SIPAccount) string { return a.Password + "\nshown once" }},
	},
}

// passwordCommand returns the command that generates the password of a SIP endpoint.
func (c *commands) passwordCommand() *cobra.Command {
	n := noun[fabric.SIPAccount]{commands: c, view: passwordView}
	return n.command("password ID",
		"Generate a password for the phones of a SIP endpoint; it replaces the previous one",
		func(ctx context.Context, a *app, cmd *cobra.Command, args []string) (fabric.SIPAccount, error) {
			return searchProjects(ctx, a, cmd, func(projectID string) (fabric.SIPAccount, error) {
				return a.Fabric.Endpoints.NewPassword(ctx, projectID, args[0])
			})
		})
}
