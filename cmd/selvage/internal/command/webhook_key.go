package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
)

var signingKeyView = cli.View[fabric.SigningKeys]{
	ID: func(k fabric.SigningKeys) string { return k.Current.ID },
	JSON: func(k fabric.SigningKeys) any {
		type next struct {
			ID       string   `json:"id"`
			Key      string   `json:"key"`
			StartsAt cli.Time `json:"starts_at"`
		}
		object := struct {
			ID        string   `json:"id"`
			ProjectID string   `json:"project_id"`
			Key       string   `json:"key"`
			CreatedAt cli.Time `json:"created_at"`
			Next      *next    `json:"next,omitempty"`
		}{ID: k.Current.ID, ProjectID: k.Current.ProjectID, Key: k.CurrentSecret, CreatedAt: cli.UTC(k.Current.Created)}
		if k.Next != nil {
			object.Next = &next{ID: k.Next.ID, Key: k.NextSecret, StartsAt: cli.UTC(k.Next.Starts)}
		}
		return object
	},
	Facts: []cli.Fact[fabric.SigningKeys]{
		{Name: "ID", Value: func(k fabric.SigningKeys) string { return k.Current.ID }},
		{Name: "Project", Value: func(k fabric.SigningKeys) string { return k.Current.ProjectID }},
		{Name: "Key", Value: func(k fabric.SigningKeys) string { return k.CurrentSecret }},
		{Name: "Next", Value: func(k fabric.SigningKeys) string { return k.NextSecret }},
		{
			Name: "From",
			Value: func(k fabric.SigningKeys) string {
				if k.Next == nil {
					return ""
				}
				return cli.FormatTime(k.Next.Starts)
			},
		},
	},
}

func (c webhookCommands) signingKeyCommand() *cobra.Command {
	n := noun[fabric.SigningKeys]{commands: c.commands, view: signingKeyView}
	show := n.projectCommand("show", "Show the signing key", nil,
		func(ctx context.Context, a *app, _ *cobra.Command, p fabric.Project) (fabric.SigningKeys, error) {
			return a.Fabric.Webhooks.SigningKeys(ctx, p.ID)
		})
	rotate := n.projectCommand("rotate", "Create the next signing key; the old one signs until the overlap ends", nil,
		func(ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project) (fabric.SigningKeys, error) {
			return a.Fabric.Webhooks.RotateSigningKey(ctx, p.ID, cli.Span(cmd, "overlap"))
		})
	addOverlap(rotate, "`time` that the old key keeps signing; 0 replaces it immediately")
	addProject(show, rotate)
	return cli.Noun("key", "The key that signs webhook deliveries", show, rotate)
}
