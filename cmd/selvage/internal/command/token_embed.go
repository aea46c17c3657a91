package command

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// An embedKey is an embed key in the form that is printed. secret is set if the key was just
// created.
//
// A web page uses an embed key to let its visitors call one address. The key can be public, because
// it permits only guest tokens for this address. Revoking the key also revokes its guest tokens.
type embedKey struct {
	fabric.EmbedKey
	secret string
}

var embedView = cli.View[embedKey]{
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
		}{
			ID:        k.ID,
			ProjectID: k.ProjectID,
			AddressID: k.AddressID,
			Token:     k.secret,
			Name:      k.Name,
			Prefix:    k.Prefix,
			CreatedAt: cli.UTC(k.Created),
			RevokedAt: cli.UTC(k.Revoked),
		}
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

// embedCommand builds `selvage token embed` and its subcommands.
func (c tokenCommands) embedCommand() *cobra.Command {
	n := noun[embedKey]{
		commands: c.commands,
		view:     embedView,
		list: func(ctx context.Context, a *app, cmd *cobra.Command) ([]embedKey, error) {
			p, err := a.project(ctx, cmd)
			if err != nil {
				return nil, err
			}
			return a.embedKeys(ctx, p.ID)
		},
	}
	embed := n.command("embed", "Create a key for public web pages: it issues guest tokens for one address",
		createEmbed)
	embed.Flags().String("address", "", "`id` of the address that guests reach")
	embed.Flags().String("name", "", "`name` shown in lists")
	ls := n.listCommand("list", "List the embed keys of a project")
	revoke := cli.Command("revoke ID", "Revoke an embed key and the tokens it issued", c.with(revokeEmbed))
	addProject(embed, ls, revoke)
	embed.AddCommand(ls, revoke)
	return embed
}

// createEmbed creates an embed key for the address that --address names.
func createEmbed(ctx context.Context, a *app, cmd *cobra.Command, _ []string) (embedKey, error) {
	address, err := flagAddress(ctx, a, cmd)
	if err != nil {
		return embedKey{}, err
	}

	name, _ := cmd.Flags().GetString("name")
	k, secret, err := a.Fabric.EmbedKeys.Create(ctx, address.ProjectID, address.ID, name)
	return embedKey{k, secret}, err
}

// embedKeys returns the embed keys of a project.
func (a *app) embedKeys(ctx context.Context, projectID string) ([]embedKey, error) {
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.EmbedKey], error) {
		return a.Fabric.EmbedKeys.List(ctx, projectID, q)
	})
	if err != nil {
		return nil, err
	}

	keys := make([]embedKey, len(found))
	for i, k := range found {
		keys[i] = embedKey{EmbedKey: k}
	}
	return keys, nil
}

// findEmbed returns the embed key with this id. Without --project it searches all projects.
func findEmbed(ctx context.Context, a *app, cmd *cobra.Command, id string) (embedKey, error) {
	return searchProjects(ctx, a, cmd, func(projectID string) (embedKey, error) {
		keys, err := a.embedKeys(ctx, projectID)
		if err != nil {
			return embedKey{}, err
		}
		i := slices.IndexFunc(keys, func(k embedKey) bool { return k.ID == id })
		if i < 0 {
			return embedKey{}, cli.NotFoundf("no embed key %s; `selvage token embed list` shows existing ones", id)
		}
		return keys[i], nil
	})
}

// revokeEmbed revokes the embed key that the argument names.
func revokeEmbed(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	k, err := findEmbed(ctx, a, cmd, args[0])
	if err != nil {
		return err
	}
	return a.Fabric.EmbedKeys.Revoke(ctx, k.EmbedKey)
}
