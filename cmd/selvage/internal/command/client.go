package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
)

// A client is an OAuth client in the form that is printed. secret is set only if the client was
// just created or its secret was just rotated.
type client struct {
	idp.Client
	secret string
}

var clientView = cli.View[client]{
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
			RegisteredBy string   `json:"registered_by,omitempty"`
			Logo         string   `json:"logo,omitempty"`
			DarkLogo     string   `json:"dark_logo,omitempty"`
			CreatedAt    cli.Time `json:"created_at"`
			UpdatedAt    cli.Time `json:"updated_at"`
			SecretMade   cli.Time `json:"secret_rotated_at,omitempty"`
			OldUntil     cli.Time `json:"old_secret_until,omitempty"`
			OldUsedAt    cli.Time `json:"old_secret_used_at,omitempty"`
		}{
			ClientID:     c.ID,
			ClientSecret: c.secret,
			Type:         c.Type,
			ProjectID:    c.ProjectID,
			Name:         c.Name,
			Profile:      c.Profile,
			AuthMethod:   c.AuthMethod,
			FirstParty:   c.FirstParty,
			PKCE:         pkce(c),
			RedirectURIs: c.RedirectURIs,
			LogoutURIs:   c.LogoutURIs,
			Grants:       append([]string{}, c.Grants...),
			Scopes:       append([]string{}, c.Scopes...),
			AccessToken:  c.AccessToken,
			IDTokenAlg:   string(c.IDTokenAlg),
			Metadata:     c.Metadata,
			RegisteredBy: c.RegisteredBy,
			Logo:         c.Logo,
			DarkLogo:     c.DarkLogo,
			CreatedAt:    cli.UTC(c.Created),
			UpdatedAt:    cli.UTC(c.Updated),
			SecretMade:   cli.UTC(c.SecretMade),
			OldUntil:     cli.UTC(c.Old.Until),
			OldUsedAt:    cli.UTC(c.Old.Used),
		}
	},
	Facts: []cli.Fact[client]{
		{Name: "Client ID", Value: func(c client) string { return c.ID }},
		{Name: "Project", Detail: true, Value: func(c client) string { return c.ProjectID }},
		{Name: "Name", Value: func(c client) string { return c.Name }},
		{Name: "Type", Value: func(c client) string { return string(c.Type) }},
		{Name: "Profile", Detail: true, Value: func(c client) string { return string(c.Profile) }},
		{Name: "Authentication", Detail: true, Value: func(c client) string { return string(c.AuthMethod) }},
		{Name: "Certificate", Detail: true, Value: func(c client) string { return c.CertificateSubject.Setting() }},
		{Name: "Keys", Detail: true, Value: formatKeys},
		{Name: "Requests", Detail: true, Value: formatRequests},
		{Name: "Request URIs", Detail: true, Value: func(c client) string { return cli.Lines(c.RequestURIs) }},
		{Name: "PKCE", Detail: true, Value: onLogin(pkce)},
		{Name: "First party", Detail: true, Value: func(c client) string { return cli.YesNo(c.FirstParty) }},
		{Name: "Grants", Value: func(c client) string { return cli.Join(shortGrants(c.Grants)) }},
		{Name: "Response types", Detail: true, Value: func(c client) string { return cli.Join(c.ResponseTypes) }},
		{Name: "Scopes", Detail: true, Value: func(c client) string { return cli.Join(c.Scopes) }},
		{Name: "Redirects to", Detail: true, Value: func(c client) string { return cli.Lines(c.RedirectURIs) }},
		{Name: "After logout", Detail: true, Value: func(c client) string { return cli.Lines(c.LogoutURIs) }},
		{Name: "Color", Detail: true, Value: func(c client) string { return c.BrandColor }},
		{Name: "Logo", Detail: true, Value: func(c client) string { return c.Logo }},
		{Name: "Dark logo", Detail: true, Value: func(c client) string { return c.DarkLogo }},
		{Name: "Terms", Detail: true, Value: func(c client) string { return c.TermsURI }},
		{Name: "Privacy", Detail: true, Value: func(c client) string { return c.PolicyURI }},
		{Name: "Back-channel logout", Detail: true, Value: func(c client) string { return c.BackchannelLogoutURI }},
		{Name: "Front-channel logout", Detail: true, Value: func(c client) string { return c.FrontchannelLogoutURI }},
		{Name: "Access tokens", Detail: true, Value: formatTokens},
		{Name: "ID tokens", Detail: true, Value: onLogin(func(c client) string { return string(c.IDTokenAlg) })},
		{Name: "Resources", Detail: true, Value: func(c client) string { return cli.Lines(c.Resources) }},
		{Name: "Userinfo", Detail: true, Value: func(c client) string { return string(c.UserinfoAlg) }},
		{Name: "Required ACR", Detail: true, Value: func(c client) string { return c.RequireACR }},
		{Name: "Subjects", Detail: true, Value: func(c client) string { return string(c.SubjectType) }},
		{Name: "Sector", Detail: true, Value: func(c client) string { return c.SectorURI }},
		{Name: "Login starts at", Detail: true, Value: func(c client) string { return c.InitiateLoginURI }},
		{Name: "Registered by", Detail: true, Value: formatRegistration},
		{Name: "Created", Minor: true, Value: func(c client) string { return cli.FormatTime(c.Created) }},
		{Name: "Updated", Detail: true, Value: func(c client) string { return cli.FormatTime(c.Updated) }},
		{Name: "Secret rotated", Detail: true, Value: func(c client) string { return cli.FormatTime(c.SecretMade) }},
		{Name: "Old secret", Detail: true, Value: formatOldSecret},
		{Name: "Client secret", Detail: true, Value: func(c client) string { return cli.Once(c.secret) }},
	},
}

// formatRegistration describes how a client registered itself, or returns "" if an operator registered
// it.
func formatRegistration(c client) string {
	switch c.RegisteredBy {
	case "":
		return ""
	case idp.RegisteredOpenly:
		return "itself, without a token"
	}
	return "itself, with the token " + c.RegisteredBy
}

// shortGrants returns the names that flags and tables use for grants. JSON uses their full names.
func shortGrants(grants []string) []string {
	short := slices.Clone(grants)
	for i, g := range short {
		if g == idp.GrantDevice {
			short[i] = idp.ShortDevice
		}
	}
	return short
}

// formatTokens describes a client's access tokens: their format, and whether they are bound to a key
// or to the client's certificate.
func formatTokens(c client) string {
	if c.DPoPBound {
		return string(c.AccessToken) + ", bound by DPoP"
	}
	if c.CertificateBound {
		return string(c.AccessToken) + ", bound to the certificate"
	}
	return string(c.AccessToken)
}

// formatRequests describes how a client must send its authorization requests, or returns "".
func formatRequests(c client) string {
	var how []string
	if c.RequirePushed {
		how = append(how, "pushed")
	}
	if c.RequireObject {
		how = append(how, "signed")
	}
	return cli.Join(how)
}

// onLogin returns a fact that is empty for service clients, because no user signs in to them.
func onLogin(value func(client) string) func(client) string {
	return func(c client) string {
		if c.Type == idp.Service {
			return ""
		}
		return value(c)
	}
}

// pkce returns the rule of a client for PKCE.
func pkce(c client) string {
	if c.PKCEOptional {
		return "optional"
	}
	return "required"
}

// clientCommands builds the commands for OAuth clients and for the logouts sent to them.
type clientCommands struct{ *commands }

func (c clientCommands) command() *cobra.Command {
	n := noun[client]{commands: c.commands, view: clientView, find: findClient, list: listClients}
	create := n.projectCommand("create", "Create an OAuth client", []string{"type"}, c.createClient)
	create.Flags().String("type", "", "`kind` of application: spa, native, web or service")
	addClientFlags(create)
	ls := n.listCommand("list", "List the clients of a project")
	show := n.showCommand("show ID", "Show a client")
	update := n.changeCommand("update ID", "Update a client: only the given flags change it", updateClient)
	addClientFlags(update)
	rotate := n.command("rotate-secret ID", "Replace a client's secret; the old one stays valid for a while",
		func(ctx context.Context, a *app, cmd *cobra.Command, args []string) (client, error) {
			rotated, secret, err := a.IDP.Clients.RotateSecret(ctx, args[0], cli.Span(cmd, "overlap"), nil)
			if err != nil {
				return client{}, err
			}
			return client{rotated, secret}, nil
		})
	addOverlap(rotate, "`time` that the old secret stays valid; 0 revokes it immediately")
	end := n.command("end-old-secret ID", "Revoke a client's old secret immediately",
		func(ctx context.Context, a *app, _ *cobra.Command, args []string) (client, error) {
			changed, err := a.IDP.Clients.EndOldSecret(ctx, args[0])
			if err != nil {
				return client{}, err
			}
			return client{Client: changed}, nil
		})
	remove := n.deleteCommand("delete ID", "Delete a client and revoke its tokens", warnClient,
		func(ctx context.Context, a *app, cl client) error { return a.IDP.Clients.Delete(ctx, cl.ID) })

	addProject(create, ls)
	logouts, redeliver := c.logoutCommands()
	return cli.Noun("client", "OAuth clients: applications that request tokens", create, ls, show, update,
		rotate, end, remove, logouts, redeliver)
}

func findClient(ctx context.Context, a *app, _ *cobra.Command, id string) (client, error) {
	found, err := a.IDP.Clients.Find(ctx, id)
	if err != nil {
		return client{}, err
	}
	return client{Client: found}, nil
}

func listClients(ctx context.Context, a *app, cmd *cobra.Command) ([]client, error) {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return nil, err
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[idp.Client], error) {
		return a.IDP.Clients.List(ctx, p.ID, q)
	})
	if err != nil {
		return nil, err
	}
	clients := make([]client, len(found))
	for i, cl := range found {
		clients[i] = client{Client: cl}
	}
	return clients, nil
}

func (c clientCommands) createClient(
	ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project,
) (client, error) {
	kind, _ := cmd.Flags().GetString("type")
	settings := idp.Client{Type: idp.ClientType(kind), ProjectID: p.ID}
	if err := setClient(cmd, &settings); err != nil {
		return client{}, err
	}
	logos, err := flagLogos(cmd)
	if err != nil {
		return client{}, err
	}

	created, secret, err := a.IDP.Clients.Create(ctx, settings)
	if err != nil {
		return client{}, err
	}
	branded, err := a.IDP.Clients.SetLogos(ctx, created.ID, logos)
	if err != nil { // create no client if its logo cannot be stored
		return client{}, errors.Join(err, a.IDP.Clients.Delete(ctx, created.ID))
	}
	created = branded
	if created.Type == idp.Service && len(created.Scopes) == 0 {
		fmt.Fprintf(c.Stderr, "this client may request no scope yet; add some with "+
			"`selvage client update %s --scope …`\n", created.ID)
	}
	return client{created, secret}, nil
}

func updateClient(ctx context.Context, a *app, cmd *cobra.Command, cl client) (client, error) {
	updated := cl.Client
	if err := setClient(cmd, &updated); err != nil {
		return client{}, err
	}

	logos, err := flagLogos(cmd)
	if err != nil {
		return client{}, err
	}

	if err := a.IDP.Clients.Update(ctx, cl.Client, updated, logos); err != nil {
		return client{}, err
	}
	return findClient(ctx, a, cmd, cl.ID)
}

// formatOldSecret describes the previous secret of a client.
func formatOldSecret(c client) string {
	if c.Old.Hash == "" {
		return ""
	}
	if !time.Now().Before(c.Old.Until) {
		return "expired " + cli.FormatTime(c.Old.Until)
	}
	used := "not used since"
	if !c.Old.Used.IsZero() {
		used = "last used " + cli.FormatTime(c.Old.Used)
	}
	return "valid until " + cli.FormatTime(c.Old.Until) + "; " + used
}

// warnClient returns the warning before a client is deleted, and the name to type.
func warnClient(cl client) (what, name string) {
	name = cmp.Or(cl.Name, cl.ID)
	return "This deletes the client " + name + "; nobody can sign in through it afterwards.", name
}
