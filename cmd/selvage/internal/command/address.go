package command

import (
	"context"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/spf13/cobra"
)

var addresses = cli.View[fabric.Address]{
	ID: func(a fabric.Address) string { return a.ID },
	JSON: func(a fabric.Address) any {
		return struct {
			ID          string   `json:"id"`
			ProjectID   string   `json:"project_id"`
			ResourceID  string   `json:"resource_id"`
			Type        string   `json:"type"`
			Address     string   `json:"address"`
			DisplayName string   `json:"display_name"`
			CreatedAt   cli.Time `json:"created_at"`
		}{a.ID, a.ProjectID, a.ResourceID, a.Type, a.Path(), a.DisplayName, cli.UTC(a.Created)}
	},
	Facts: []cli.Fact[fabric.Address]{
		{Name: "ID", Value: func(a fabric.Address) string { return a.ID }},
		{Name: "Project", Detail: true, Value: func(a fabric.Address) string { return a.ProjectID }},
		{Name: "Address", Value: fabric.Address.Path},
		{Name: "Type", Value: func(a fabric.Address) string { return a.Type }},
		{Name: "Resource", Detail: true, Value: func(a fabric.Address) string { return a.ResourceID }},
		{Name: "Name", Value: func(a fabric.Address) string { return a.DisplayName }},
		{Name: "Created", Minor: true, Value: func(a fabric.Address) string { return cli.FormatTime(a.Created) }},
	},
}

func (c *commands) addressCommand() *cobra.Command {
	ls := &cobra.Command{Use: "list", Short: "List the addresses of a project", Args: cli.NoArguments,
		RunE: c.with(c.listAddresses)}
	show := cli.Command("show ID", "Show an address", c.with(c.showAddress))
	addProject(ls)
	addProject(show)
	return cli.Noun("address", "Addresses: where resources are reached", ls, show)
}

// reachAll is a token that reaches every address of a project.
func reachAll(projectID string) fabric.Token {
	return fabric.Token{Kind: fabric.SAT, ProjectID: projectID}
}

func (c *commands) listAddresses(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Address], error) {
		return a.Fabric.Addresses.List(ctx, reachAll(p.ID), fabric.AddressFilter{}, q)
	})
	if err != nil {
		return err
	}
	return cli.List(c.Env, addresses, found)
}

func (c *commands) showAddress(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	found, err := among(ctx, a, cmd, func(projectID string) (fabric.Address, error) {
		return a.Fabric.Addresses.Find(ctx, reachAll(projectID), args[0])
	})
	if err != nil {
		return err
	}
	return cli.Show(c.Env, addresses, found)
}
