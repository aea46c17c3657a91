package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/span"
)

// An apiKey is a key as it is printed: with its secret where it was just made.
type apiKey struct {
	fabric.APIKey
	secret string
}

var apiKeys = view[apiKey]{
	id:     func(k apiKey) string { return k.ID },
	secret: func(k apiKey) string { return k.secret },
	json: func(k apiKey) any {
		return struct {
			ID         string         `json:"id"`
			ProjectID  string         `json:"project_id"`
			Key        string         `json:"key,omitempty"`
			Name       string         `json:"name,omitempty"`
			Prefix     string         `json:"prefix"`
			Scopes     []fabric.Scope `json:"scopes"`
			CreatedAt  moment         `json:"created_at"`
			ExpiresAt  moment         `json:"expires_at,omitempty"`
			LastUsedAt moment         `json:"last_used_at,omitempty"`
			RevokedAt  moment         `json:"revoked_at,omitempty"`
			RotatedAt  moment         `json:"rotated_at,omitempty"`
			OldUntil   moment         `json:"old_until,omitempty"`
			OldUsedAt  moment         `json:"old_used_at,omitempty"`
		}{
			k.ID, k.ProjectID, k.secret, k.Name, k.Prefix, k.Scopes, iso(k.Created), iso(k.Expires),
			iso(k.LastUsed), iso(k.Revoked),
			iso(k.Rotated), iso(k.OldUntil), iso(k.OldUsed),
		}
	},
	facts: []fact[apiKey]{
		{name: "ID", value: func(k apiKey) string { return k.ID }},
		{name: "Project", detail: true, value: func(k apiKey) string { return k.ProjectID }},
		{name: "Name", value: func(k apiKey) string { return k.Name }},
		{name: "Revoked", value: func(k apiKey) string { return stamp(k.Revoked) }},
		{name: "Expires", value: func(k apiKey) string { return expiry(k.Expires) }},
		{name: "Secret", value: func(k apiKey) string { return k.Prefix + "…" }},
		{name: "Scopes", value: func(k apiKey) string { return joined(k.Scopes) }},
		{name: "Created", aside: true, value: func(k apiKey) string { return stamp(k.Created) }},
		{name: "Last used", aside: true, value: func(k apiKey) string { return stamp(k.LastUsed) }},
		{name: "Rotated", detail: true, value: func(k apiKey) string { return stamp(k.Rotated) }},
		{name: "Old secret", detail: true, value: oldSecret},
		{name: "Key", detail: true, value: func(k apiKey) string { return once(k.secret) }},
	},
}

// expiry writes when something ends by itself, and whether it has.
func expiry(at time.Time) string {
	if !at.IsZero() && !time.Now().Before(at) {
		return stamp(at) + " (over)"
	}
	return stamp(at)
}

// oldSecret tells of the secret before, while it may still be used.
func oldSecret(k apiKey) string {
	switch {
	case k.OldHash == "" || !time.Now().Before(k.OldUntil):
		return ""
	case k.OldUsed.IsZero():
		return "good until " + stamp(k.OldUntil)
	}
	return "good until " + stamp(k.OldUntil) + ", last used " + stamp(k.OldUsed)
}

const shownOnce = "shown this once; only its hash is kept"

// once marks a secret that is not kept and cannot be shown again.
func once(secret string) string {
	if secret == "" {
		return ""
	}
	return secret + "\n" + shownOnce
}

func joined[T ~string](items []T) string {
	texts := make([]string, len(items))
	for i, it := range items {
		texts[i] = string(it)
	}
	return strings.Join(texts, " ")
}

func (c *cli) keyCommand() *cobra.Command {
	create := &cobra.Command{Use: "create", Short: "Make an API key of a project", Args: positional(),
		RunE: c.with(c.createKey)}
	ls := &cobra.Command{Use: "list", Short: "List the API keys of a project", Args: positional(),
		RunE: c.with(c.listKeys)}
	show := &cobra.Command{Use: "show ID", Short: "Show an API key", Args: positional("ID"), RunE: c.with(c.showKey)}
	update := &cobra.Command{Use: "update ID", Short: "Change an API key; what is not given stays",
		Args: positional("ID"), RunE: c.with(c.updateKey)}
	rotate := &cobra.Command{
		Use: "rotate ID", Short: "Give an API key a new secret; the old one is good for a while",
		Args: positional("ID"), RunE: c.with(c.rotateKey),
	}
	revoke := &cobra.Command{Use: "revoke ID", Short: "End an API key and the tokens made with it",
		Args: positional("ID"), RunE: c.with(c.revokeKey)}
	for _, cmd := range []*cobra.Command{create, update} {
		cmd.Flags().StringSlice("scope", nil, "a `scope` it may be used for; any number: "+joined(fabric.Scopes()))
		cmd.Flags().String("name", "", "the `name` it has in lists")
		cmd.Flags().Var(&span.Span{Most: 100 * 365 * span.Day}, "expires-in",
			"the `time` it is good for, such as 12h or 90d")
		cmd.Flags().Var(new(dayOrTime), "expires-at",
			"the `day` or time at which it ends, such as 2030-01-31, or never")
	}
	rotate.Flags().Var(&span.Span{Length: fabric.UsualOverlap, Most: fabric.MaxOverlap}, "overlap",
		"the `time` that the old secret is good for; 0 ends it at once")
	for _, cmd := range []*cobra.Command{create, ls, show, update, rotate, revoke} {
		addProject(cmd)
	}
	return noun("key", "API keys: the passwords of backends", create, ls, show, update, rotate, revoke)
}

func (c *cli) createKey(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := need(cmd, "scope"); err != nil {
		return err
	}
	in, err := keyInput(cmd)
	if err != nil {
		return err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	k, secret, err := a.Fabric.CreateAPIKey(ctx, p.ID, in, nil)
	if err != nil {
		return err
	}
	return one(c, apiKeys, apiKey{k, secret})
}

func (c *cli) listKeys(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.APIKey], error) {
		return a.Fabric.ListAPIKeys(ctx, p.ID, q)
	})
	if err != nil {
		return err
	}
	keys := make([]apiKey, len(found))
	for i, k := range found {
		keys[i] = apiKey{APIKey: k}
	}
	return list(c, apiKeys, keys)
}

func (c *cli) revokeKey(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	_, err := among(ctx, a, cmd, func(projectID string) (problem.Kind, error) {
		return "", a.Fabric.RevokeAPIKey(ctx, projectID, args[0])
	})
	return err
}
