package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/span"
)

// A client is an OAuth client as it is printed: with its secret where it was
// just made.
type client struct {
	idp.Client
	secret string
}

var clients = view[client]{
	id:     func(c client) string { return c.ID },
	secret: func(c client) string { return c.secret },
	json: func(c client) any {
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
			Logo       string `json:"logo,omitempty"`
			CreatedAt  moment `json:"created_at"`
			UpdatedAt  moment `json:"updated_at"`
			SecretMade moment `json:"secret_rotated_at,omitempty"`
			OldUntil   moment `json:"old_secret_until,omitempty"`
			OldUsedAt  moment `json:"old_secret_used_at,omitempty"`
		}{
			c.ID, c.secret, c.Type, c.ProjectID, c.Name, c.Profile, c.AuthMethod, c.FirstParty, pkce(c),
			c.RedirectURIs, c.LogoutURIs,
			append([]string{}, c.Grants...), append([]string{}, c.Scopes...), c.AccessToken, string(c.IDTokenAlg),
			c.Metadata, c.Logo, iso(c.Created), iso(c.Updated), iso(c.SecretMade), iso(c.Old.Until), iso(c.Old.Used),
		}
	},
	facts: []fact[client]{
		{name: "Client ID", value: func(c client) string { return c.ID }},
		{name: "Project", detail: true, value: func(c client) string { return c.ProjectID }},
		{name: "Name", value: func(c client) string { return c.Name }},
		{name: "Type", value: func(c client) string { return string(c.Type) }},
		{name: "Profile", detail: true, value: func(c client) string { return string(c.Profile) }},
		{name: "Authentication", detail: true, value: func(c client) string { return string(c.AuthMethod) }},
		{name: "Keys", detail: true, value: keysOf},
		{name: "PKCE", detail: true, value: onLogin(pkce)},
		{name: "First party", detail: true, value: func(c client) string { return yesNo(c.FirstParty) }},
		{name: "Grants", value: func(c client) string { return joined(shortGrants(c.Grants)) }},
		{name: "Answers", detail: true, value: func(c client) string { return joined(c.ResponseTypes) }},
		{name: "Scopes", detail: true, value: func(c client) string { return joined(c.Scopes) }},
		{name: "Redirects to", detail: true, value: func(c client) string { return lines(c.RedirectURIs) }},
		{name: "After logout", detail: true, value: func(c client) string { return lines(c.LogoutURIs) }},
		{name: "Color", detail: true, value: func(c client) string { return c.BrandColor }},
		{name: "Logo", detail: true, value: func(c client) string { return c.Logo }},
		{name: "Terms", detail: true, value: func(c client) string { return c.TermsURI }},
		{name: "Privacy", detail: true, value: func(c client) string { return c.PolicyURI }},
		{name: "Told of logouts", detail: true, value: func(c client) string { return c.BackchannelLogoutURI }},
		{name: "Access tokens", detail: true, value: func(c client) string { return string(c.AccessToken) }},
		{name: "ID tokens", detail: true, value: onLogin(func(c client) string { return string(c.IDTokenAlg) })},
		{name: "Resources", detail: true, value: func(c client) string { return lines(c.Resources) }},
		{name: "Userinfo", detail: true, value: func(c client) string { return string(c.UserinfoAlg) }},
		{name: "Logins of class", detail: true, value: func(c client) string { return c.RequireACR }},
		{name: "Subjects", detail: true, value: func(c client) string { return string(c.SubjectType) }},
		{name: "Sector", detail: true, value: func(c client) string { return c.SectorURI }},
		{name: "Created", aside: true, value: func(c client) string { return stamp(c.Created) }},
		{name: "Updated", detail: true, value: func(c client) string { return stamp(c.Updated) }},
		{name: "Secret made", detail: true, value: func(c client) string { return stamp(c.SecretMade) }},
		{name: "Old secret", detail: true, value: oldClientSecret},
		{name: "Client secret", detail: true, value: func(c client) string { return once(c.secret) }},
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

func (c *cli) clientCommand() *cobra.Command {
	create := &cobra.Command{Use: "create", Short: "Register an OAuth client", Args: positional(),
		RunE: c.with(c.createClient)}
	create.Flags().String("type", "", "the `kind` of application: spa, native, web or service")
	addClientFlags(create)
	ls := &cobra.Command{Use: "list", Short: "List the clients of a project", Args: positional(),
		RunE: c.with(c.listClients)}
	show := &cobra.Command{Use: "show ID", Short: "Show a client", Args: positional("ID"), RunE: c.with(c.showClient)}
	update := &cobra.Command{Use: "update ID", Short: "Change a client; what is not given stays",
		Args: positional("ID"), RunE: c.with(c.updateClient)}
	addClientFlags(update)
	rotate := &cobra.Command{Use: "rotate-secret ID",
		Short: "Give a client a new secret; the old one is good for a while", Args: positional("ID"),
		RunE: c.with(c.rotateSecret)}
	rotate.Flags().Var(&span.Span{Length: fabric.UsualOverlap, Most: fabric.MaxOverlap}, "overlap",
		"the `time` that the old secret is good for; 0 ends it at once")
	end := &cobra.Command{Use: "end-old-secret ID", Short: "End the secret before its present one at once",
		Args: positional("ID"), RunE: c.with(c.endOldSecret)}
	remove := &cobra.Command{Use: "delete ID", Short: "Delete a client and end its tokens",
		Args: positional("ID"), RunE: c.with(c.deleteClient)}
	addYes(remove)
	addProject(create)
	addProject(ls)
	told, redeliver := c.logoutCommands()
	return noun("client", "OAuth clients: applications that ask for tokens", create, ls, show, update, rotate,
		end, remove, told, redeliver)
}

func (c *cli) createClient(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := need(cmd, "type"); err != nil {
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
	made, secret, err := a.IDP.CreateClient(ctx, settings)
	if err != nil {
		return err
	}
	if given {
		shown, err := a.IDP.SetLogo(ctx, made.ID, picture)
		if err != nil {
			return errors.Join(err, a.IDP.DeleteClient(ctx, made.ID))
		}
		made = shown
	}
	if made.Type == idp.Service && len(made.Scopes) == 0 {
		fmt.Fprintf(c.stderr, "this client may ask for no scope yet; give it some with `selvage client update %s --scope …`\n", made.ID)
	}
	return one(c, clients, client{made, secret})
}

func (c *cli) listClients(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[idp.Client], error) {
		return a.IDP.ListClients(ctx, p.ID, q)
	})
	if err != nil {
		return err
	}
	all := make([]client, len(found))
	for i, cl := range found {
		all[i] = client{Client: cl}
	}
	return list(c, clients, all)
}

func (c *cli) showClient(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	found, err := a.IDP.FindClient(ctx, args[0])
	if err != nil {
		return err
	}
	return one(c, clients, client{Client: found})
}

func (c *cli) updateClient(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	found, err := a.IDP.FindClient(ctx, args[0])
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
	if err := a.IDP.UpdateClient(ctx, found, asked); err != nil {
		return err
	}
	if given {
		if _, err := a.IDP.SetLogo(ctx, found.ID, picture); err != nil {
			return err
		}
	}
	return c.showClient(ctx, a, cmd, args)
}

func (c *cli) rotateSecret(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	changed, secret, err := a.IDP.RotateSecret(ctx, args[0], spanOf(cmd, "overlap"), nil)
	if err != nil {
		return err
	}
	return one(c, clients, client{changed, secret})
}

func (c *cli) endOldSecret(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	changed, err := a.IDP.EndOldSecret(ctx, args[0])
	if err != nil {
		return err
	}
	return one(c, clients, client{Client: changed})
}

// oldClientSecret says how the secret before stands.
func oldClientSecret(c client) string {
	if c.Old.Hash == "" {
		return ""
	}
	if !time.Now().Before(c.Old.Until) {
		return "ended " + stamp(c.Old.Until)
	}
	used := "not used since"
	if !c.Old.Used.IsZero() {
		used = "last used " + stamp(c.Old.Used)
	}
	return "good until " + stamp(c.Old.Until) + "; " + used
}

func (c *cli) deleteClient(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	found, err := a.IDP.FindClient(ctx, args[0])
	if err != nil {
		return err
	}
	name := found.Name
	if name == "" {
		name = found.ID
	}
	if err := c.confirm(cmd, "This deletes the client "+name+"; nobody can sign in through it any more.", name); err != nil {
		return err
	}
	return a.IDP.DeleteClient(ctx, found.ID)
}
