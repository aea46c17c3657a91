package command

import (
	"context"
	"errors"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/span"
	"github.com/spf13/cobra"
	"time"
)

// A client is an OAuth client as it is printed: with its secret where it was
// just made.
type client struct {
	idp.Client
	secret string
}

var clients = cli.View[client]{
	ID:     func(c client) string { return c.ID },
	Secret: func(c client) string { return c.secret },
	JSON: func(c client) any {
		return struct {
			ClientID     string          `json:"client_id"`
			ClientSecret string          `json:"client_secret,omitempty"`
			Type         idp.ClientType  `json:"type"`
			ProjectID    string          `json:"project_id"`
			Name         string          `json:"name,omitempty"`
			Profile      idp.Profile     `json:"profile"`
			AuthMethod   idp.AuthMethod  `json:"auth_method"`
			FirstParty   bool            `json:"first_party"`
			PKCE         string          `json:"pkce"`
			RedirectURIs []string        `json:"redirect_uris,omitempty"`
			LogoutURIs   []string        `json:"post_logout_redirect_uris,omitempty"`
			Grants       []string        `json:"grants"`
			Scopes       []string        `json:"scopes"`
			AccessToken  idp.TokenFormat `json:"access_token"`
			IDTokenAlg   string          `json:"id_token_alg"`
			idp.Metadata
			Logo       string   `json:"logo,omitempty"`
			CreatedAt  cli.Time `json:"created_at"`
			UpdatedAt  cli.Time `json:"updated_at"`
			SecretMade cli.Time `json:"secret_rotated_at,omitempty"`
			OldUntil   cli.Time `json:"old_secret_until,omitempty"`
			OldUsedAt  cli.Time `json:"old_secret_used_at,omitempty"`
		}{
			c.ID, c.secret, c.Type, c.ProjectID, c.Name, c.Profile, c.AuthMethod, c.FirstParty, pkce(c),
			c.RedirectURIs, c.LogoutURIs,
			append([]string{}, c.Grants...), append([]string{}, c.Scopes...), c.AccessToken, string(c.IDTokenAlg),
			c.Metadata, c.Logo, cli.UTC(c.Created), cli.UTC(c.Updated), cli.UTC(c.SecretMade), cli.UTC(c.Old.Until), cli.UTC(c.Old.Used),
		}
	},
	Facts: []cli.Fact[client]{
		{Name: "Client ID", Value: func(c client) string { return c.ID }},
		{Name: "Project", Detail: true, Value: func(c client) string { return c.ProjectID }},
		{Name: "Name", Value: func(c client) string { return c.Name }},
		{Name: "Type", Value: func(c client) string { return string(c.Type) }},
		{Name: "Profile", Detail: true, Value: func(c client) string { return string(c.Profile) }},
		{Name: "Authentication", Detail: true, Value: func(c client) string { return string(c.AuthMethod) }},
		{Name: "Keys", Detail: true, Value: keysOf},
		{Name: "PKCE", Detail: true, Value: onLogin(pkce)},
		{Name: "First party", Detail: true, Value: func(c client) string { return cli.YesNo(c.FirstParty) }},
		{Name: "Grants", Value: func(c client) string { return cli.Join(shortGrants(c.Grants)) }},
		{Name: "Answers", Detail: true, Value: func(c client) string { return cli.Join(c.ResponseTypes) }},
		{Name: "Scopes", Detail: true, Value: func(c client) string { return cli.Join(c.Scopes) }},
		{Name: "Redirects to", Detail: true, Value: func(c client) string { return cli.Lines(c.RedirectURIs) }},
		{Name: "After logout", Detail: true, Value: func(c client) string { return cli.Lines(c.LogoutURIs) }},
		{Name: "Color", Detail: true, Value: func(c client) string { return c.BrandColor }},
		{Name: "Logo", Detail: true, Value: func(c client) string { return c.Logo }},
		{Name: "Terms", Detail: true, Value: func(c client) string { return c.TermsURI }},
		{Name: "Privacy", Detail: true, Value: func(c client) string { return c.PolicyURI }},
		{Name: "Told of logouts", Detail: true, Value: func(c client) string { return c.BackchannelLogoutURI }},
		{Name: "Access tokens", Detail: true, Value: func(c client) string { return string(c.AccessToken) }},
		{Name: "ID tokens", Detail: true, Value: onLogin(func(c client) string { return string(c.IDTokenAlg) })},
		{Name: "Resources", Detail: true, Value: func(c client) string { return cli.Lines(c.Resources) }},
		{Name: "Userinfo", Detail: true, Value: func(c client) string { return string(c.UserinfoAlg) }},
		{Name: "Logins of class", Detail: true, Value: func(c client) string { return c.RequireACR }},
		{Name: "Subjects", Detail: true, Value: func(c client) string { return string(c.SubjectType) }},
		{Name: "Sector", Detail: true, Value: func(c client) string { return c.SectorURI }},
		{Name: "Created", Minor: true, Value: func(c client) string { return cli.FormatTime(c.Created) }},
		{Name: "Updated", Detail: true, Value: func(c client) string { return cli.FormatTime(c.Updated) }},
		{Name: "Secret made", Detail: true, Value: func(c client) string { return cli.FormatTime(c.SecretMade) }},
		{Name: "Old secret", Detail: true, Value: oldClientSecret},
		{Name: "Client secret", Detail: true, Value: func(c client) string { return cli.Once(c.secret) }},
	},
}

// onLogin returns a fact that is none of a service, which signs nobody in.
func onLogin(value func(client) string) func(client) string {
	return func(c client) string {
		if c.Type == idp.Service {
			return ""
		}
		return value(c)
	}
}

func pkce(c client) string {
	if c.PKCEOptional {
		return "optional"
	}
	return "required"
}

func (c *commands) clientCommand() *cobra.Command {
	create := &cobra.Command{Use: "create", Short: "Register an OAuth client", Args: cli.NoArguments,
		RunE: c.with(c.createClient)}
	create.Flags().String("type", "", "the `kind` of application: spa, native, web or service")
	addClientFlags(create)
	ls := &cobra.Command{Use: "list", Short: "List the clients of a project", Args: cli.NoArguments,
		RunE: c.with(c.listClients)}
	show := cli.Command("show ID", "Show a client", c.with(c.showClient))
	update := cli.Command("update ID", "Change a client; what is not given stays", c.with(c.updateClient))
	addClientFlags(update)
	rotate := cli.Command("rotate-secret ID", "Give a client a new secret; the old one is good for a while", c.with(c.rotateSecret))
	rotate.Flags().Var(&span.Span{Length: fabric.UsualOverlap, Most: fabric.MaxOverlap}, "overlap",
		"the `time` that the old secret is good for; 0 ends it at once")
	end := cli.Command("end-old-secret ID", "End the secret before its present one at once", c.with(c.endOldSecret))
	remove := cli.Command("delete ID", "Delete a client and end its tokens", c.with(c.deleteClient))
	cli.AddYes(remove)
	addProject(create)
	addProject(ls)
	told, redeliver := c.logoutCommands()
	return cli.Noun("client", "OAuth clients: applications that ask for tokens", create, ls, show, update, rotate,
		end, remove, told, redeliver)
}

func (c *commands) createClient(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "type"); err != nil {
		return err
	}
	kind, _ := cmd.Flags().GetString("type")
	settings := idp.Client{Type: idp.ClientType(kind)}
	if err := clientSettings(cmd, &settings); err != nil {
		return err
	}
	picture, given, err := typedLogo(cmd)
	if err != nil {
		return err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	settings.ProjectID = p.ID
	made, secret, err := a.IDP.Clients.Create(ctx, settings)
	if err != nil {
		return err
	}
	if given {
		shown, err := a.IDP.Clients.SetLogo(ctx, made.ID, picture)
		if err != nil {
			return errors.Join(err, a.IDP.Clients.Delete(ctx, made.ID))
		}
		made = shown
	}
	if made.Type == idp.Service && len(made.Scopes) == 0 {
		fmt.Fprintf(c.Stderr, "this client may ask for no scope yet; give it some with `selvage client update %s --scope …`\n", made.ID)
	}
	return cli.Show(c.Env, clients, client{made, secret})
}

func (c *commands) listClients(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[idp.Client], error) {
		return a.IDP.Clients.List(ctx, p.ID, q)
	})
	if err != nil {
		return err
	}
	all := make([]client, len(found))
	for i, cl := range found {
		all[i] = client{Client: cl}
	}
	return cli.List(c.Env, clients, all)
}

func (c *commands) showClient(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	found, err := a.IDP.Clients.Find(ctx, args[0])
	if err != nil {
		return err
	}
	return cli.Show(c.Env, clients, client{Client: found})
}

func (c *commands) updateClient(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	found, err := a.IDP.Clients.Find(ctx, args[0])
	if err != nil {
		return err
	}
	asked := found
	if err := clientSettings(cmd, &asked); err != nil {
		return err
	}
	picture, given, err := typedLogo(cmd)
	if err != nil {
		return err
	}
	if err := a.IDP.Clients.Update(ctx, found, asked); err != nil {
		return err
	}
	if given {
		if _, err := a.IDP.Clients.SetLogo(ctx, found.ID, picture); err != nil {
			return err
		}
	}
	return c.showClient(ctx, a, cmd, args)
}

func (c *commands) rotateSecret(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	changed, secret, err := a.IDP.Clients.RotateSecret(ctx, args[0], cli.Span(cmd, "overlap"), nil)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, clients, client{changed, secret})
}

func (c *commands) endOldSecret(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	changed, err := a.IDP.Clients.EndOldSecret(ctx, args[0])
	if err != nil {
		return err
	}
	return cli.Show(c.Env, clients, client{Client: changed})
}

// oldClientSecret says how the secret before stands.
func oldClientSecret(c client) string {
	if c.Old.Hash == "" {
		return ""
	}
	if !time.Now().Before(c.Old.Until) {
		return "ended " + cli.FormatTime(c.Old.Until)
	}
	used := "not used since"
	if !c.Old.Used.IsZero() {
		used = "last used " + cli.FormatTime(c.Old.Used)
	}
	return "good until " + cli.FormatTime(c.Old.Until) + "; " + used
}

func (c *commands) deleteClient(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	found, err := a.IDP.Clients.Find(ctx, args[0])
	if err != nil {
		return err
	}
	name := found.Name
	if name == "" {
		name = found.ID
	}
	if err := c.Confirm(cmd, "This deletes the client "+name+"; nobody can sign in through it any more.", name); err != nil {
		return err
	}
	return a.IDP.Clients.Delete(ctx, found.ID)
}
