package command

import (
	"context"
	"errors"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/internal/suggest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"strings"
	"time"
)

// An apiKey is a key as it is printed: with its secret where it was just made.
type apiKey struct {
	fabric.APIKey
	secret string
}

var apiKeys = cli.View[apiKey]{
	ID:     func(k apiKey) string { return k.ID },
	Secret: func(k apiKey) string { return k.secret },
	JSON: func(k apiKey) any {
		return struct {
			ID         string         `json:"id"`
			ProjectID  string         `json:"project_id"`
			Key        string         `json:"key,omitempty"`
			Name       string         `json:"name,omitempty"`
			Prefix     string         `json:"prefix"`
			Scopes     []fabric.Scope `json:"scopes"`
			CreatedAt  cli.Time       `json:"created_at"`
			ExpiresAt  cli.Time       `json:"expires_at,omitempty"`
			LastUsedAt cli.Time       `json:"last_used_at,omitempty"`
			RevokedAt  cli.Time       `json:"revoked_at,omitempty"`
			RotatedAt  cli.Time       `json:"rotated_at,omitempty"`
			OldUntil   cli.Time       `json:"old_until,omitempty"`
			OldUsedAt  cli.Time       `json:"old_used_at,omitempty"`
		}{
			k.ID, k.ProjectID, k.secret, k.Name, k.Prefix, k.Scopes, cli.UTC(k.Created), cli.UTC(k.Expires),
			cli.UTC(k.LastUsed), cli.UTC(k.Revoked),
			cli.UTC(k.Rotated), cli.UTC(k.OldUntil), cli.UTC(k.OldUsed),
		}
	},
	Facts: []cli.Fact[apiKey]{
		{Name: "ID", Value: func(k apiKey) string { return k.ID }},
		{Name: "Project", Detail: true, Value: func(k apiKey) string { return k.ProjectID }},
		{Name: "Name", Value: func(k apiKey) string { return k.Name }},
		{Name: "Revoked", Value: func(k apiKey) string { return cli.FormatTime(k.Revoked) }},
		{Name: "Expires", Value: func(k apiKey) string { return expiry(k.Expires) }},
		{Name: "Secret", Value: func(k apiKey) string { return k.Prefix + "…" }},
		{Name: "Scopes", Value: func(k apiKey) string { return cli.Join(k.Scopes) }},
		{Name: "Created", Minor: true, Value: func(k apiKey) string { return cli.FormatTime(k.Created) }},
		{Name: "Last used", Minor: true, Value: func(k apiKey) string { return cli.FormatTime(k.LastUsed) }},
		{Name: "Rotated", Detail: true, Value: func(k apiKey) string { return cli.FormatTime(k.Rotated) }},
		{Name: "Old secret", Detail: true, Value: oldSecret},
		{Name: "Key", Detail: true, Value: func(k apiKey) string { return cli.Once(k.secret) }},
	},
}

// expiry writes when something ends by itself, and whether it has.
func expiry(at time.Time) string {
	if !at.IsZero() && !time.Now().Before(at) {
		return cli.FormatTime(at) + " (over)"
	}
	return cli.FormatTime(at)
}

// oldSecret tells of the secret before, while it may still be used.
func oldSecret(k apiKey) string {
	switch {
	case k.OldHash == "" || !time.Now().Before(k.OldUntil):
		return ""
	case k.OldUsed.IsZero():
		return "good until " + cli.FormatTime(k.OldUntil)
	}
	return "good until " + cli.FormatTime(k.OldUntil) + ", last used " + cli.FormatTime(k.OldUsed)
}

func (c *commands) keyCommand() *cobra.Command {
	create := &cobra.Command{Use: "create", Short: "Make an API key of a project", Args: cli.NoArguments,
		RunE: c.with(c.createKey)}
	ls := &cobra.Command{Use: "list", Short: "List the API keys of a project", Args: cli.NoArguments,
		RunE: c.with(c.listKeys)}
	show := cli.Command("show ID", "Show an API key", c.with(c.showKey))
	update := cli.Command("update ID", "Change an API key; what is not given stays", c.with(c.updateKey))
	rotate := cli.Command("rotate ID", "Give an API key a new secret; the old one is good for a while", c.with(c.rotateKey))
	revoke := cli.Command("revoke ID", "End an API key and the tokens made with it", c.with(c.revokeKey))
	for _, cmd := range []*cobra.Command{create, update} {
		cmd.Flags().StringSlice("scope", nil, "a `scope` it may be used for; any number: "+cli.Join(fabric.Scopes()))
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
	return cli.Noun("key", "API keys: the passwords of backends", create, ls, show, update, rotate, revoke)
}

func (c *commands) createKey(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "scope"); err != nil {
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
	k, secret, err := a.Fabric.APIKeys.Create(ctx, p.ID, in, nil)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, apiKeys, apiKey{k, secret})
}

func (c *commands) listKeys(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.APIKey], error) {
		return a.Fabric.APIKeys.List(ctx, p.ID, q)
	})
	if err != nil {
		return err
	}
	keys := make([]apiKey, len(found))
	for i, k := range found {
		keys[i] = apiKey{APIKey: k}
	}
	return cli.List(c.Env, apiKeys, keys)
}

func (c *commands) revokeKey(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	_, err := among(ctx, a, cmd, func(projectID string) (problem.Kind, error) {
		return "", a.Fabric.APIKeys.Revoke(ctx, projectID, args[0])
	})
	return err
}

// A dayOrTime is a flag's value: when a key ends, zero for never.
type dayOrTime time.Time

var _ pflag.Value = (*dayOrTime)(nil)

// Set reads an end: a day begins in UTC.
func (d *dayOrTime) Set(text string) error {
	if text == "never" {
		*d = dayOrTime{}
		return nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil || !at.After(time.Now()) {
		return errors.New("needs a day or time to come, such as 2030-01-31 or 2030-01-31T12:00:00Z, or never")
	}
	*d = dayOrTime(at)
	return nil
}

func (d *dayOrTime) String() string {
	if at := time.Time(*d); !at.IsZero() {
		return at.Format(time.RFC3339)
	}
	return ""
}

// Type is the kind of value, for the help.
func (d *dayOrTime) Type() string { return "day" }

// keyInput returns what the flags say of a key.
func keyInput(cmd *cobra.Command) (in fabric.APIKeyInput, err error) {
	in.Name = cli.Text(cmd, "name")
	if cmd.Flags().Changed("scope") {
		names, err := cmd.Flags().GetStringSlice("scope")
		if err != nil {
			return in, err
		}
		if in.Scopes, err = parseScopes(names); err != nil {
			return in, err
		}
	}
	var at time.Time
	switch life, end := cmd.Flags().Lookup("expires-in"), cmd.Flags().Lookup("expires-at"); {
	case life.Changed && end.Changed:
		return in, cli.Usagef("--expires-in and --expires-at say the same: give one of them")
	case life.Changed:
		at = time.Now().Add(cli.Span(cmd, "expires-in"))
	case end.Changed:
		at = time.Time(*end.Value.(*dayOrTime))
	default:
		return in, nil
	}
	in.Expires = &at
	return in, nil
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
			return nil, cli.Usagef("--scope: there is no scope %q%s", name,
				suggest.MeantOr(name, all, "there are "+strings.Join(all, ", ")))
		}
		scopes = append(scopes, s)
	}
	return scopes, nil
}

func (a *app) key(ctx context.Context, cmd *cobra.Command, id string) (fabric.APIKey, error) {
	return among(ctx, a, cmd, func(projectID string) (fabric.APIKey, error) {
		return a.Fabric.APIKeys.Find(ctx, projectID, id)
	})
}

func (c *commands) showKey(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	k, err := a.key(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	return cli.Show(c.Env, apiKeys, apiKey{APIKey: k})
}

func (c *commands) updateKey(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	in, err := keyInput(cmd)
	if err != nil {
		return err
	}
	k, err := a.key(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if k, err = a.Fabric.APIKeys.Update(ctx, k.ProjectID, k.ID, in, nil); err != nil {
		return err
	}
	return cli.Show(c.Env, apiKeys, apiKey{APIKey: k})
}

func (c *commands) rotateKey(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	k, err := a.key(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	k, secret, err := a.Fabric.APIKeys.Rotate(ctx, k.ProjectID, k.ID, cli.Span(cmd, "overlap"), nil)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, apiKeys, apiKey{k, secret})
}
