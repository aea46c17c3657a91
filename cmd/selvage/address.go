package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

var addresses = view[fabric.Address]{
	id: func(a fabric.Address) string { return a.ID },
	json: func(a fabric.Address) any {
		return struct {
			ID          string `json:"id"`
			ProjectID   string `json:"project_id"`
			ResourceID  string `json:"resource_id"`
			Type        string `json:"type"`
			Address     string `json:"address"`
			DisplayName string `json:"display_name"`
			CreatedAt   moment `json:"created_at"`
		}{a.ID, a.ProjectID, a.ResourceID, a.Type, a.Path(), a.DisplayName, iso(a.Created)}
	},
	facts: []fact[fabric.Address]{
		{name: "ID", value: func(a fabric.Address) string { return a.ID }},
		{name: "Project", detail: true, value: func(a fabric.Address) string { return a.ProjectID }},
		{name: "Address", value: fabric.Address.Path},
		{name: "Type", value: func(a fabric.Address) string { return a.Type }},
		{name: "Resource", detail: true, value: func(a fabric.Address) string { return a.ResourceID }},
		{name: "Name", value: func(a fabric.Address) string { return a.DisplayName }},
		{name: "Created", aside: true, value: func(a fabric.Address) string { return stamp(a.Created) }},
	},
}

func (c *cli) addressCommand() *cobra.Command {
	ls := &cobra.Command{Use: "list", Short: "List the addresses of a project", Args: positional(),
		RunE: c.with(c.listAddresses)}
	show := &cobra.Command{Use: "show ID", Short: "Show an address", Args: positional("ID"),
		RunE: c.with(c.showAddress)}
	addProject(ls)
	addProject(show)
	return noun("address", "Addresses: where resources are reached", ls, show)
}

// reachAll is a token that reaches every address of a project.
func reachAll(projectID string) fabric.Token {
	return fabric.Token{Kind: fabric.SAT, ProjectID: projectID}
}

func (c *cli) listAddresses(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Address], error) {
		return a.Fabric.ListAddresses(ctx, reachAll(p.ID), fabric.AddressFilter{}, q)
	})
	if err != nil {
		return err
	}
	return list(c, addresses, found)
}

func (c *cli) showAddress(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	found, err := among(ctx, a, cmd, func(projectID string) (fabric.Address, error) {
		return a.Fabric.FindAddress(ctx, reachAll(projectID), args[0])
	})
	if err != nil {
		return err
	}
	return one(c, addresses, found)
}
