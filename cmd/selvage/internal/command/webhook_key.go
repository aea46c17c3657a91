package command

import (
	"context"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/span"
	"github.com/spf13/cobra"
)

var signingKeys = cli.View[fabric.SigningKeys]{
	ID: func(k fabric.SigningKeys) string { return k.Current.ID },
	JSON: func(k fabric.SigningKeys) any {
		type next struct {
			ID       string   `json:"id"`
			Key      string   `json:"key"`
			StartsAt cli.Time `json:"starts_at"`
		}
		shown := struct {
			ID        string   `json:"id"`
			ProjectID string   `json:"project_id"`
			Key       string   `json:"key"`
			CreatedAt cli.Time `json:"created_at"`
			Next      *next    `json:"next,omitempty"`
		}{ID: k.Current.ID, ProjectID: k.Current.ProjectID, Key: k.CurrentSecret, CreatedAt: cli.UTC(k.Current.Created)}
		if k.Next != nil {
			shown.Next = &next{k.Next.ID, k.NextSecret, cli.UTC(k.Next.Starts)}
		}
		return shown
	},
	Facts: []cli.Fact[fabric.SigningKeys]{
		{Name: "ID", Value: func(k fabric.SigningKeys) string { return k.Current.ID }},
		{Name: "Project", Value: func(k fabric.SigningKeys) string { return k.Current.ProjectID }},
		{Name: "Key", Value: func(k fabric.SigningKeys) string { return k.CurrentSecret }},
		{Name: "Next", Value: func(k fabric.SigningKeys) string { return k.NextSecret }},
		{Name: "From", Value: func(k fabric.SigningKeys) string {
			if k.Next == nil {
				return ""
			}
			return cli.FormatTime(k.Next.Starts)
		}},
	},
}

func (c *commands) signingKeyCommand() *cobra.Command {
	show := &cobra.Command{Use: "show", Short: "Show the key that signs", Args: cli.NoArguments,
		RunE: c.with(c.showSigningKey)}
	rotate := &cobra.Command{Use: "rotate",
		Short: "Make the next key; the old one signs until the overlap ends", Args: cli.NoArguments,
		RunE: c.with(c.rotateSigningKey)}
	rotate.Flags().Var(&span.Span{Length: fabric.UsualOverlap, Most: fabric.MaxOverlap}, "overlap",
		"the `time` that the old key goes on to sign; 0 ends it at once")
	addProject(show)
	addProject(rotate)
	return cli.Noun("key", "The key that what webhooks are told is signed with", show, rotate)
}

func (c *commands) showSigningKey(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	k, err := a.Fabric.Webhooks.SigningKeys(ctx, p.ID)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, signingKeys, k)
}

func (c *commands) rotateSigningKey(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	k, err := a.Fabric.Webhooks.RotateSigningKey(ctx, p.ID, cli.Span(cmd, "overlap"))
	if err != nil {
		return err
	}
	return cli.Show(c.Env, signingKeys, k)
}
