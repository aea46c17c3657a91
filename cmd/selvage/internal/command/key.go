package command

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/internal/suggest"
)

// An apiKey is an API key in the form that is printed. secret is set only if the key was just
// created or its secret was just rotated.
type apiKey struct {
	fabric.APIKey
	secret string
}

var keyView = cli.View[apiKey]{
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
			ID:         k.ID,
			ProjectID:  k.ProjectID,
			Key:        k.secret,
			Name:       k.Name,
			Prefix:     k.Prefix,
			Scopes:     k.Scopes,
			CreatedAt:  cli.UTC(k.Created),
			ExpiresAt:  cli.UTC(k.Expires),
			LastUsedAt: cli.UTC(k.LastUsed),
			RevokedAt:  cli.UTC(k.Revoked),
			RotatedAt:  cli.UTC(k.Rotated),
			OldUntil:   cli.UTC(k.OldUntil),
			OldUsedAt:  cli.UTC(k.OldUsed),
		}
	},
	Facts: []cli.Fact[apiKey]{
		{Name: "ID", Value: func(k apiKey) string { return k.ID }},
		{Name: "Project", Detail: true, Value: func(k apiKey) string { return k.ProjectID }},
		{Name: "Name", Value: func(k apiKey) string { return k.Name }},
		{Name: "Revoked", Value: func(k apiKey) string { return cli.FormatTime(k.Revoked) }},
		{Name: "Expires", Value: func(k apiKey) string { return formatExpiry(k.Expires) }},
		{Name: "Secret", Value: func(k apiKey) string { return k.Prefix + "…" }},
		{Name: "Scopes", Value: func(k apiKey) string { return cli.Join(k.Scopes) }},
		{Name: "Created", Minor: true, Value: func(k apiKey) string { return cli.FormatTime(k.Created) }},
		{Name: "Last used", Minor: true, Value: func(k apiKey) string { return cli.FormatTime(k.LastUsed) }},
		{Name: "Rotated", Detail: true, Value: func(k apiKey) string { return cli.FormatTime(k.Rotated) }},
		{Name: "Old secret", Detail: true, Value: formatOldKey},
		{Name: "Key", Detail: true, Value: func(k apiKey) string { return cli.Once(k.secret) }},
	},
}

// formatExpiry formats the time at which something expires or has expired.
func formatExpiry(at time.Time) string {
	if !at.IsZero() && !time.Now().Before(at) {
		return cli.FormatTime(at) + " (expired)"
	}
	return cli.FormatTime(at)
}

// formatOldKey describes the previous secret of a key, or returns "" if it is no longer accepted.
func formatOldKey(k apiKey) string {
	switch {
	case k.OldHash == "" || !time.Now().Before(k.OldUntil):
		return ""
	case k.OldUsed.IsZero():
		return "valid until " + cli.FormatTime(k.OldUntil)
	}
	return "valid until " + cli.FormatTime(k.OldUntil) + ", last used " + cli.FormatTime(k.OldUsed)
}

func (c *commands) keyCommand() *cobra.Command {
	n := noun[apiKey]{
		commands: c,
		view:     keyView,
		list:     listKeys,
		find: inAnyProject(func(a *app) finder[apiKey] {
			return func(ctx context.Context, projectID, id string) (apiKey, error) {
				k, err := a.Fabric.APIKeys.Find(ctx, projectID, id)
				if err != nil {
					return apiKey{}, err
				}
				return apiKey{APIKey: k}, nil
			}
		}),
	}
	create := n.projectCommand("create", "Create an API key of a project", []string{"scope"}, createKey)
	ls := n.listCommand("list", "List the API keys of a project")
	show := n.showCommand("show ID", "Show an API key")
	update := n.changeCommand("update ID", "Update an API key: only the given flags change it", updateKey)
	rotate := n.changeCommand("rotate ID", "Replace the secret of an API key; the old one stays valid for a while",
		rotateKey)
	end := n.changeCommand("end-old-secret ID", "Revoke the old secret of an API key immediately", endOldKey)
	revoke := cli.Command("revoke ID", "Revoke an API key and the tokens created with it", c.with(revokeKey))

	addKeyFlags(create.Flags())
	addKeyFlags(update.Flags())
	addOverlap(rotate, "`time` that the old secret stays valid; 0 revokes it immediately")
	addProject(create, ls, show, update, rotate, end, revoke)
	return cli.Noun("key", "API keys: how backends authenticate", create, ls, show, update, rotate, end, revoke)
}

// addKeyFlags adds the flags that set a key's fields.
func addKeyFlags(f *pflag.FlagSet) {
	f.StringSlice("scope", nil, "`scope` that the key allows; repeatable: "+cli.Join(fabric.Scopes()))
	f.String("name", "", "`name` shown in lists")
	f.Var(&span.Span{Most: 100 * 365 * span.Day}, "expires-in", "`time` until the key expires, such as 12h or 90d")
	f.Var(new(dayOrTime), "expires-at", "`day` or time at which the key expires, such as 2030-01-31, or never")
}

// addOverlap adds the flag --overlap to a command that rotates a secret.
func addOverlap(cmd *cobra.Command, usage string) {
	cmd.Flags().Var(&span.Span{Length: fabric.UsualOverlap, Most: fabric.MaxOverlap}, "overlap", usage)
}

func listKeys(ctx context.Context, a *app, cmd *cobra.Command) ([]apiKey, error) {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return nil, err
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.APIKey], error) {
		return a.Fabric.APIKeys.List(ctx, p.ID, q)
	})
	if err != nil {
		return nil, err
	}
	keys := make([]apiKey, len(found))
	for i, k := range found {
		keys[i] = apiKey{APIKey: k}
	}
	return keys, nil
}

func createKey(ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project) (apiKey, error) {
	in, err := keyInput(cmd)
	if err != nil {
		return apiKey{}, err
	}
	k, secret, err := a.Fabric.APIKeys.Create(ctx, p.ID, in, nil)
	if err != nil {
		return apiKey{}, err
	}
	return apiKey{k, secret}, nil
}

func updateKey(ctx context.Context, a *app, cmd *cobra.Command, k apiKey) (apiKey, error) {
	in, err := keyInput(cmd)
	if err != nil {
		return apiKey{}, err
	}
	updated, err := a.Fabric.APIKeys.Update(ctx, k.ProjectID, k.ID, in, nil)
	if err != nil {
		return apiKey{}, err
	}
	return apiKey{APIKey: updated}, nil
}

func rotateKey(ctx context.Context, a *app, cmd *cobra.Command, k apiKey) (apiKey, error) {
	rotated, secret, err := a.Fabric.APIKeys.Rotate(ctx, k.ProjectID, k.ID, cli.Span(cmd, "overlap"), nil)
	if err != nil {
		return apiKey{}, err
	}
	return apiKey{rotated, secret}, nil
}

func endOldKey(ctx context.Context, a *app, _ *cobra.Command, k apiKey) (apiKey, error) {
	changed, err := a.Fabric.APIKeys.EndOldSecret(ctx, k.APIKey)
	if err != nil {
		return apiKey{}, err
	}
	return apiKey{APIKey: changed}, nil
}

func revokeKey(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	return tryProjects(ctx, a, cmd, func(projectID string) error {
		return a.Fabric.APIKeys.Revoke(ctx, projectID, args[0])
	})
}

// keyInput returns the fields of a key that the flags set.
func keyInput(cmd *cobra.Command) (in fabric.APIKeyInput, err error) {
	in.Name = cli.Text(cmd, "name")
	if names := cli.Texts(cmd, "scope"); names != nil {
		in.Scopes, err = parseScopes(*names)
		if err != nil {
			return in, err
		}
	}

	lifetime, end := cmd.Flags().Lookup("expires-in"), cmd.Flags().Lookup("expires-at")
	switch {
	case lifetime.Changed && end.Changed:
		return in, cli.Usagef("--expires-in and --expires-at exclude each other")
	case lifetime.Changed:
		expires := time.Now().Add(cli.Span(cmd, "expires-in"))
		in.Expires = &expires
	case end.Changed:
		expires := time.Time(*end.Value.(*dayOrTime))
		in.Expires = &expires
	}
	return in, nil
}

// parseScopes parses the values of --scope.
func parseScopes(names []string) ([]fabric.Scope, error) {
	var scopes []fabric.Scope
	for _, name := range names {
		s, ok := fabric.ParseScope(strings.TrimSpace(name))
		if !ok {
			known := cli.Strings(fabric.Scopes())
			return nil, cli.Usagef("--scope: unknown scope %q%s", name,
				suggest.MeantOr(name, known, "use "+strings.Join(known, ", ")))
		}
		scopes = append(scopes, s)
	}
	return scopes, nil
}

// A dayOrTime is the value of --expires-at. The zero time means never.
type dayOrTime time.Time

var _ pflag.Value = (*dayOrTime)(nil)

// Set parses a value. A day begins at midnight UTC.
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
		return errors.New("needs a future day or time, such as 2030-01-31 or 2030-01-31T12:00:00Z, or never")
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

// Type returns the name of the type for the help.
func (d *dayOrTime) Type() string { return "day" }
