package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

var addressView = cli.View[fabric.Address]{
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
		}{
			ID:          a.ID,
			ProjectID:   a.ProjectID,
			ResourceID:  a.ResourceID,
			Type:        a.Type,
			Address:     a.Path(),
			DisplayName: a.DisplayName,
			CreatedAt:   cli.UTC(a.Created),
		}
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
	n := noun[fabric.Address]{
		commands: c,
		view:     addressView,
		find:     findAddress,
		list: inProject(func(a *app) lister[fabric.Address] {
			return func(ctx context.Context, projectID string, q page.Query) (page.Page[fabric.Address], error) {
				return a.Fabric.Addresses.List(ctx, reachAll(projectID), fabric.AddressFilter{}, q)
			}
		}),
	}
	ls := n.listCommand("list", "List the addresses of a project")
	show := n.showCommand("show ID", "Show an address")
	addProject(ls, show)
	return cli.Noun("address", "Addresses: where resources are reached", ls, show)
}

// reachAll returns a token that may reach every address in a project.
func reachAll(projectID string) fabric.Token {
	return fabric.Token{Kind: fabric.SAT, ProjectID: projectID}
}

var findAddress = inAnyProject(func(a *app) finder[fabric.Address] {
	return func(ctx context.Context, projectID, id string) (fabric.Address, error) {
		return a.Fabric.Addresses.Find(ctx, reachAll(projectID), id)
	}
})

// flagAddress returns the address that --address names.
func flagAddress(ctx context.Context, a *app, cmd *cobra.Command) (fabric.Address, error) {
	if err := cli.Need(cmd, "address"); err != nil {
		return fabric.Address{}, err
	}
	id, _ := cmd.Flags().GetString("address")
	return findAddress(ctx, a, cmd, id)
}
