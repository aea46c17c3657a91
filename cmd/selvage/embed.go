package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// An embedKey is a key as it is printed: with itself where it was just made.
type embedKey struct {
	fabric.EmbedKey
	secret string
}

var embedKeys = view[embedKey]{
	id:     func(k embedKey) string { return k.ID },
	secret: func(k embedKey) string { return k.secret },
	json: func(k embedKey) any {
		return struct {
			ID        string `json:"id"`
			ProjectID string `json:"project_id"`
			AddressID string `json:"address_id"`
			Token     string `json:"token,omitempty"`
			Name      string `json:"name,omitempty"`
			Prefix    string `json:"prefix"`
			CreatedAt moment `json:"created_at"`
			RevokedAt moment `json:"revoked_at,omitempty"`
		}{k.ID, k.ProjectID, k.AddressID, k.secret, k.Name, k.Prefix, iso(k.Created), iso(k.Revoked)}
	},
	facts: []fact[embedKey]{
		{name: "ID", value: func(k embedKey) string { return k.ID }},
		{name: "Project", detail: true, value: func(k embedKey) string { return k.ProjectID }},
		{name: "Name", value: func(k embedKey) string { return k.Name }},
		{name: "Revoked", value: func(k embedKey) string { return stamp(k.Revoked) }},
		{name: "Secret", value: func(k embedKey) string { return k.Prefix + "…" }},
		{name: "Address", value: func(k embedKey) string { return k.AddressID }},
		{name: "Created", aside: true, value: func(k embedKey) string { return stamp(k.Created) }},
		{name: "Key", detail: true, value: func(k embedKey) string { return once(k.secret) }},
	},
}

func (c *cli) embedCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "embed", Short: "Make a key that pages may show: it gives guest tokens to one address", Args: positional(), RunE: c.with(c.createEmbed)}
	cmd.Flags().String("address", "", "`id` of the address that it reaches")
	cmd.Flags().String("name", "", "the `name` it has in lists")
	ls := &cobra.Command{Use: "list", Short: "List the embed keys of a project", Args: positional(),
		RunE: c.with(c.listEmbeds)}
	revoke := &cobra.Command{Use: "revoke ID", Short: "End an embed key and the tokens that it gave",
		Args: positional("ID"), RunE: c.with(c.revokeEmbed)}
	addProject(cmd)
	addProject(ls)
	addProject(revoke)
	cmd.AddCommand(ls, revoke)
	return cmd
}

func (c *cli) createEmbed(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	address, err := a.address(ctx, cmd)
	if err != nil {
		return err
	}
	name, _ := cmd.Flags().GetString("name")
	k, secret, err := a.Fabric.CreateEmbedKey(ctx, address.ProjectID, address.ID, name)
	if err != nil {
		return err
	}
	return one(c, embedKeys, embedKey{k, secret})
}

func (a *app) embedsOf(ctx context.Context, projectID string) ([]embedKey, error) {
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.EmbedKey], error) {
		return a.Fabric.ListEmbedKeys(ctx, projectID, q)
	})
	keys := make([]embedKey, len(found))
	for i, k := range found {
		keys[i] = embedKey{EmbedKey: k}
	}
	return keys, err
}

func (c *cli) listEmbeds(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	keys, err := a.embedsOf(ctx, p.ID)
	if err != nil {
		return err
	}
	return list(c, embedKeys, keys)
}

func (c *cli) revokeEmbed(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	k, err := among(ctx, a, cmd, func(projectID string) (fabric.EmbedKey, error) {
		keys, err := a.embedsOf(ctx, projectID)
		if err != nil {
			return fabric.EmbedKey{}, err
		}
		for _, k := range keys {
			if k.ID == args[0] {
				return k.EmbedKey, nil
			}
		}
		return fabric.EmbedKey{}, notFoundf(
			"there is no embed key %s; `selvage token embed list` shows those there are", args[0])
	})
	if err != nil {
		return err
	}
	return a.Fabric.RevokeEmbedKey(ctx, k)
}
