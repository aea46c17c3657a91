package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/span"
)

var signingKeys = view[fabric.SigningKeys]{
	id: func(k fabric.SigningKeys) string { return k.Current.ID },
	json: func(k fabric.SigningKeys) any {
		type next struct {
			ID       string `json:"id"`
			Key      string `json:"key"`
			StartsAt moment `json:"starts_at"`
		}
		shown := struct {
			ID        string `json:"id"`
			ProjectID string `json:"project_id"`
			Key       string `json:"key"`
			CreatedAt moment `json:"created_at"`
			Next      *next  `json:"next,omitempty"`
		}{ID: k.Current.ID, ProjectID: k.Current.ProjectID, Key: k.CurrentSecret, CreatedAt: iso(k.Current.Created)}
		if k.Next != nil {
			shown.Next = &next{k.Next.ID, k.NextSecret, iso(k.Next.Starts)}
		}
		return shown
	},
	facts: []fact[fabric.SigningKeys]{
		{name: "ID", value: func(k fabric.SigningKeys) string { return k.Current.ID }},
		{name: "Project", value: func(k fabric.SigningKeys) string { return k.Current.ProjectID }},
		{name: "Key", value: func(k fabric.SigningKeys) string { return k.CurrentSecret }},
		{name: "Next", value: func(k fabric.SigningKeys) string { return k.NextSecret }},
		{name: "From", value: func(k fabric.SigningKeys) string {
			if k.Next == nil {
				return ""
			}
			return stamp(k.Next.Starts)
		}},
	},
}

func (c *cli) signingKeyCommand() *cobra.Command {
	show := &cobra.Command{Use: "show", Short: "Show the key that signs", Args: positional(),
		RunE: c.with(c.showSigningKey)}
	rotate := &cobra.Command{Use: "rotate",
		Short: "Make the next key; the old one signs until the overlap ends", Args: positional(),
		RunE: c.with(c.rotateSigningKey)}
	rotate.Flags().Var(&span.Span{Length: fabric.UsualOverlap, Most: fabric.MaxOverlap}, "overlap",
		"the `time` that the old key goes on to sign; 0 ends it at once")
	addProject(show)
	addProject(rotate)
	return noun("key", "The key that what webhooks are told is signed with", show, rotate)
}

func (c *cli) showSigningKey(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	k, err := a.Fabric.SigningKeys(ctx, p.ID)
	if err != nil {
		return err
	}
	return one(c, signingKeys, k)
}

func (c *cli) rotateSigningKey(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	k, err := a.Fabric.RotateSigningKey(ctx, p.ID, spanOf(cmd, "overlap"))
	if err != nil {
		return err
	}
	return one(c, signingKeys, k)
}
