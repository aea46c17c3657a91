package command

import (
	"context"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/spf13/cobra"
)

// An embedKey is a key as it is printed: with itself where it was just made.
type embedKey struct {
	fabric.EmbedKey
	secret string
}

var embedKeys = cli.View[embedKey]{
	ID:     func(k embedKey) string { return k.ID },
	Secret: func(k embedKey) string { return k.secret },
	JSON: func(k embedKey) any {
		return struct {
			ID        string   `json:"id"`
			ProjectID string   `json:"project_id"`
			AddressID string   `json:"address_id"`
			Token     string   `json:"token,omitempty"`
			Name      string   `json:"name,omitempty"`
			Prefix    string   `json:"prefix"`
			CreatedAt cli.Time `json:"created_at"`
			RevokedAt cli.Time `json:"revoked_at,omitempty"`
		}{k.ID, k.ProjectID, k.AddressID, k.secret, k.Name, k.Prefix, cli.UTC(k.Created), cli.UTC(k.Revoked)}
	},
	Facts: []cli.Fact[embedKey]{
		{Name: "ID", Value: func(k embedKey) string { return k.ID }},
		{Name: "Project", Detail: true, Value: func(k embedKey) string { return k.ProjectID }},
		{Name: "Name", Value: func(k embedKey) string { return k.Name }},
		{Name: "Revoked", Value: func(k embedKey) string { return cli.FormatTime(k.Revoked) }},
		{Name: "Secret", Value: func(k embedKey) string { return k.Prefix + "…" }},
		{Name: "Address", Value: func(k embedKey) string { return k.AddressID }},
		{Name: "Created", Minor: true, Value: func(k embedKey) string { return cli.FormatTime(k.Created) }},
		{Name: "Key", Detail: true, Value: func(k embedKey) string { return cli.Once(k.secret) }},
	},
}

func (c *commands) embedCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "embed", Short: "Make a key that pages may show: it gives guest tokens to one address", Args: cli.NoArguments, RunE: c.with(c.createEmbed)}
	cmd.Flags().String("address", "", "`id` of the address that it reaches")
	cmd.Flags().String("name", "", "the `name` it has in lists")
	ls := &cobra.Command{Use: "list", Short: "List the embed keys of a project", Args: cli.NoArguments,
		RunE: c.with(c.listEmbeds)}
	revoke := cli.Command("revoke ID", "End an embed key and the tokens that it gave", c.with(c.revokeEmbed))
	addProject(cmd)
	addProject(ls)
	addProject(revoke)
	cmd.AddCommand(ls, revoke)
	return cmd
}

func (c *commands) createEmbed(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	address, err := a.address(ctx, cmd)
	if err != nil {
		return err
	}
	name, _ := cmd.Flags().GetString("name")
	k, secret, err := a.Fabric.EmbedKeys.Create(ctx, address.ProjectID, address.ID, name)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, embedKeys, embedKey{k, secret})
}

func (a *app) embedsOf(ctx context.Context, projectID string) ([]embedKey, error) {
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.EmbedKey], error) {
		return a.Fabric.EmbedKeys.List(ctx, projectID, q)
	})
	keys := make([]embedKey, len(found))
	for i, k := range found {
		keys[i] = embedKey{EmbedKey: k}
	}
	return keys, err
}

func (c *commands) listEmbeds(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	keys, err := a.embedsOf(ctx, p.ID)
	if err != nil {
		return err
	}
	return cli.List(c.Env, embedKeys, keys)
}

func (c *commands) revokeEmbed(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
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
		return fabric.EmbedKey{}, cli.NotFoundf(
			"there is no embed key %s; `selvage token embed list` shows those there are", args[0])
	})
	if err != nil {
		return err
	}
	return a.Fabric.EmbedKeys.Revoke(ctx, k)
}
