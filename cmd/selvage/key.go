package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
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
			LastUsedAt moment         `json:"last_used_at,omitempty"`
			RevokedAt  moment         `json:"revoked_at,omitempty"`
		}{k.ID, k.ProjectID, k.secret, k.Name, k.Prefix, k.Scopes, iso(k.Created), iso(k.LastUsed), iso(k.Revoked)}
	},
	facts: []fact[apiKey]{
		{name: "ID", value: func(k apiKey) string { return k.ID }},
		{name: "Project", detail: true, value: func(k apiKey) string { return k.ProjectID }},
		{name: "Name", value: func(k apiKey) string { return k.Name }},
		{name: "Revoked", value: func(k apiKey) string { return stamp(k.Revoked) }},
		{name: "Begins", value: func(k apiKey) string { return k.Prefix + "…" }},
		{name: "Scopes", value: func(k apiKey) string { return joined(k.Scopes) }},
		{name: "Created", aside: true, value: func(k apiKey) string { return stamp(k.Created) }},
		{name: "Last used", aside: true, value: func(k apiKey) string { return stamp(k.LastUsed) }},
		{name: "Key", detail: true, value: func(k apiKey) string { return once(k.secret) }},
	},
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
	create := &cobra.Command{Use: "create", Short: "Make an API key of a project", Args: positional(), RunE: c.with(c.createKey)}
	create.Flags().StringSlice("scope", nil, "a `scope` it may be used for; any number: "+joined(fabric.Scopes()))
	create.Flags().String("name", "", "the `name` it has in lists")
	ls := &cobra.Command{Use: "list", Short: "List the API keys of a project", Args: positional(), RunE: c.with(c.listKeys)}
	revoke := &cobra.Command{Use: "revoke ID", Short: "End an API key and the tokens made with it", Args: positional("ID"), RunE: c.with(c.revokeKey)}
	for _, cmd := range []*cobra.Command{create, ls, revoke} {
		addProject(cmd)
	}
	return noun("key", "API keys: the passwords of backends", create, ls, revoke)
}

func (c *cli) createKey(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := need(cmd, "scope"); err != nil {
		return err
	}
	names, err := cmd.Flags().GetStringSlice("scope")
	if err != nil {
		return err
	}
	scopes, err := parseScopes(names)
	if err != nil {
		return err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	name, _ := cmd.Flags().GetString("name")
	k, secret, err := a.fabric.CreateAPIKey(ctx, p.ID, name, scopes)
	if err != nil {
		return err
	}
	return one(c, apiKeys, apiKey{k, secret})
}

func parseScopes(names []string) ([]fabric.Scope, error) {
	var scopes []fabric.Scope
	for _, name := range names {
		s, ok := fabric.ParseScope(strings.TrimSpace(name))
		if !ok {
			var all []string
			for _, s := range fabric.Scopes() {
				all = append(all, string(s))
			}
			return nil, usagef("--scope: there is no scope %q%s", name, suggest(name, all, "there are "+strings.Join(all, ", ")))
		}
		scopes = append(scopes, s)
	}
	return scopes, nil
}

func (c *cli) listKeys(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	found, err := every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.APIKey], error) {
		return a.fabric.ListAPIKeys(ctx, p.ID, q)
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
		return "", a.fabric.RevokeAPIKey(ctx, projectID, args[0])
	})
	return err
}
