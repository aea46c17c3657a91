package command

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

var upstreamView = cli.View[idp.Upstream]{
	ID: func(u idp.Upstream) string { return u.ID },
	JSON: func(u idp.Upstream) any {
		return struct {
			ID        string            `json:"id"`
			ProjectID string            `json:"project_id"`
			Name      string            `json:"name"`
			Issuer    string            `json:"issuer"`
			ClientID  string            `json:"client_id"`
			HasSecret bool              `json:"has_secret"`
			Enabled   bool              `json:"enabled"`
			Scopes    []string          `json:"scopes"`
			Claims    map[string]string `json:"claims"`
			SignUp    bool              `json:"sign_up"`
			Logout    bool              `json:"logout"`
			CreatedAt cli.Time          `json:"created_at"`
			UpdatedAt cli.Time          `json:"updated_at"`
		}{
			ID:        u.ID,
			ProjectID: u.ProjectID,
			Name:      u.Name,
			Issuer:    u.Issuer,
			ClientID:  u.ClientID,
			HasSecret: u.Secret != "",
			Enabled:   u.Enabled,
			Scopes:    u.AllScopes(),
			Claims:    u.Claims,
			SignUp:    u.SignUp,
			Logout:    u.Logout,
			CreatedAt: cli.UTC(u.Created),
			UpdatedAt: cli.UTC(u.Updated),
		}
	},
	Facts: []cli.Fact[idp.Upstream]{
		{Name: "ID", Value: func(u idp.Upstream) string { return u.ID }},
		{Name: "Project", Detail: true, Value: func(u idp.Upstream) string { return u.ProjectID }},
		{Name: "Name", Value: func(u idp.Upstream) string { return u.Name }},
		{Name: "Issuer", Value: func(u idp.Upstream) string { return u.Issuer }},
		{Name: "Client ID", Detail: true, Value: func(u idp.Upstream) string { return u.ClientID }},
		{Name: "Secret", Detail: true, Value: func(u idp.Upstream) string { return cli.YesNo(u.Secret != "") }},
		{Name: "Enabled", Value: func(u idp.Upstream) string { return cli.YesNo(u.Enabled) }},
		{Name: "Signs up", Value: func(u idp.Upstream) string { return cli.YesNo(u.SignUp) }},
		{Name: "Signs out", Detail: true, Value: func(u idp.Upstream) string { return cli.YesNo(u.Logout) }},
		{Name: "Scopes", Detail: true, Value: func(u idp.Upstream) string { return cli.Join(u.AllScopes()) }},
		{Name: "Claims", Detail: true, Value: func(u idp.Upstream) string { return cli.Lines(formatClaimNames(u)) }},
		{Name: "Created", Minor: true, Value: func(u idp.Upstream) string { return cli.FormatTime(u.Created) }},
		{Name: "Updated", Detail: true, Value: func(u idp.Upstream) string { return cli.FormatTime(u.Updated) }},
	},
}

// formatClaimNames returns the claims of an upstream provider in the form that --claim accepts.
func formatClaimNames(u idp.Upstream) (pairs []string) {
	for _, field := range slices.Sorted(maps.Keys(u.Claims)) {
		pairs = append(pairs, field+"="+u.Claims[field])
	}
	return pairs
}

var findUpstream = inAnyProject(func(a *app) finder[idp.Upstream] { return a.IDP.Upstreams.Find })

// upstreamCommands builds the commands for upstream providers.
type upstreamCommands struct{ *commands }

func (c upstreamCommands) command() *cobra.Command {
	n := noun[idp.Upstream]{
		commands: c.commands,
		view:     upstreamView,
		find:     findUpstream,
		list:     inProject(func(a *app) lister[idp.Upstream] { return a.IDP.Upstreams.List }),
	}
	create := n.projectCommand("create", "Let people sign in with another OpenID provider",
		[]string{"name", "issuer", "client-id"}, c.createUpstream)
	ls := n.listCommand("list", "List the upstream providers of a project")
	show := n.showCommand("show ID", "Show an upstream provider")
	update := n.changeCommand("update ID", "Update an upstream provider: only the given flags change it",
		c.updateUpstream)
	remove := n.deleteCommand("delete ID", "Delete an upstream provider",
		warnUpstreamDeletion, deleteUpstream)
	addUpstreamFlags(create)
	addUpstreamFlags(update)
	addProject(create, ls, show, update, remove)
	return cli.Noun("upstream", "Upstream providers: other OpenID providers to sign in with", create, ls, show, update,
		remove)
}

func addUpstreamFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.String("name", "", "`name` on the button of the sign-in page")
	f.String("issuer", "", "`URL` of the provider, from which its endpoints are discovered")
	f.String("client-id", "", "`id` of this server at the provider")
	f.Bool("client-secret-stdin", false, "read the client secret from stdin")
	f.StringSlice("scope", nil, "`scope` to request; repeatable (default openid, email, profile)")
	f.StringSlice("claim", nil, "`field=claim` if the provider uses another claim for email, "+
		"email_verified, first_name or last_name; repeatable")
	f.Bool("sign-up", false, "create an account for people without one, if the project has open registration")
	f.Bool("logout", false, "signing out here also signs out at the provider")
	f.Bool("enabled", true, "show the button; =false hides it")
}

// readInput returns the fields that the flags set. It reads the client secret from stdin if the flags
// ask for it.
func (c upstreamCommands) readInput(cmd *cobra.Command) (idp.UpstreamInput, error) {
	in := idp.UpstreamInput{
		Name:     cli.Text(cmd, "name"),
		Issuer:   cli.Text(cmd, "issuer"),
		ClientID: cli.Text(cmd, "client-id"),
		Scopes:   cli.Texts(cmd, "scope"),
		SignUp:   cli.Bool(cmd, "sign-up"),
		Logout:   cli.Bool(cmd, "logout"),
		Enabled:  cli.Bool(cmd, "enabled"),
	}
	if pairs := cli.Texts(cmd, "claim"); pairs != nil {
		claims, err := parseClaimNames(*pairs)
		if err != nil {
			return in, err
		}
		in.Claims = &claims
	}
	if fromStdin, _ := cmd.Flags().GetBool("client-secret-stdin"); fromStdin {
		secret, err := c.Env.ReadSecret("client secret")
		if err != nil {
			return in, err
		}
		in.Secret = &secret
	}
	return in, nil
}

// parseClaimNames parses the values of --claim: pairs of a field and the provider's claim for it.
func parseClaimNames(pairs []string) (map[string]string, error) {
	claims := make(map[string]string)
	for _, pair := range pairs {
		field, claim, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, cli.Usagef("--claim: %q is not field=claim", pair)
		}
		claims[field] = claim
	}
	return claims, nil
}

func (c upstreamCommands) createUpstream(
	ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project,
) (idp.Upstream, error) {
	in, err := c.readInput(cmd)
	if err != nil {
		return idp.Upstream{}, err
	}
	return a.IDP.Upstreams.Create(ctx, p.ID, in)
}

func (c upstreamCommands) updateUpstream(
	ctx context.Context, a *app, cmd *cobra.Command, u idp.Upstream,
) (idp.Upstream, error) {
	in, err := c.readInput(cmd)
	if err != nil {
		return u, err
	}
	return a.IDP.Upstreams.Update(ctx, u.ProjectID, u.ID, in)
}

func warnUpstreamDeletion(u idp.Upstream) (what, name string) {
	what = "This deletes the upstream provider " + u.Name + ". Its accounts are no longer linked with subscribers."
	return what, u.Name
}

func deleteUpstream(ctx context.Context, a *app, u idp.Upstream) error {
	return a.IDP.Upstreams.Delete(ctx, u.ProjectID, u.ID)
}
