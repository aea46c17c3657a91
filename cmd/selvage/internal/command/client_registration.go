package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/span"
)

// A registrationToken is an initial access token to print.
type registrationToken struct {
	fabric.RegistrationToken
	secret string // "" unless the token was just created
}

var registrationTokenView = cli.View[registrationToken]{
	ID:     func(k registrationToken) string { return k.ID },
	Secret: func(k registrationToken) string { return k.secret },
	JSON: func(k registrationToken) any {
		return struct {
			ID        string   `json:"id"`
			ProjectID string   `json:"project_id"`
			Token     string   `json:"token,omitempty"`
			Name      string   `json:"name,omitempty"`
			Prefix    string   `json:"prefix"`
			MaxUses   int64    `json:"max_uses"`
			Uses      int64    `json:"uses"`
			CreatedAt cli.Time `json:"created_at"`
			ExpiresAt cli.Time `json:"expires_at,omitempty"`
			RevokedAt cli.Time `json:"revoked_at,omitempty"`
		}{
			ID:        k.ID,
			ProjectID: k.ProjectID,
			Token:     k.secret,
			Name:      k.Name,
			Prefix:    k.Prefix,
			MaxUses:   k.MaxUses,
			Uses:      k.Uses,
			CreatedAt: cli.UTC(k.Created),
			ExpiresAt: cli.UTC(k.Expires),
			RevokedAt: cli.UTC(k.Revoked),
		}
	},
	Facts: []cli.Fact[registrationToken]{
		{Name: "ID", Value: func(k registrationToken) string { return k.ID }},
		{Name: "Project", Detail: true, Value: func(k registrationToken) string { return k.ProjectID }},
		{Name: "Name", Value: func(k registrationToken) string { return k.Name }},
		{Name: "Revoked", Value: func(k registrationToken) string { return cli.FormatTime(k.Revoked) }},
		{Name: "Expires", Value: func(k registrationToken) string { return formatExpiry(k.Expires) }},
		{Name: "Uses", Value: formatUses},
		{Name: "Secret", Value: func(k registrationToken) string { return k.Prefix + "…" }},
		{Name: "Created", Minor: true, Value: func(k registrationToken) string { return cli.FormatTime(k.Created) }},
		{Name: "Token", Detail: true, Value: func(k registrationToken) string { return cli.Once(k.secret) }},
	},
}

// formatUses formats how many clients a token has registered, and how many it may register.
func formatUses(k registrationToken) string {
	if k.MaxUses == 0 {
		return fmt.Sprint(k.Uses)
	}
	return fmt.Sprintf("%d of %d", k.Uses, k.MaxUses)
}

func (c *commands) clientRegistrationCommand() *cobra.Command {
	n := noun[registrationToken]{commands: c, view: registrationTokenView, list: listRegistrationTokens}
	create := n.projectCommand("create", "Create an initial access token for /oauth/register; it is printed once", nil,
		c.createRegistrationToken)
	f := create.Flags()
	f.String("name", "", "`name` shown in lists")
	f.Var(&span.Span{Length: fabric.DefaultRegistration, Most: 10 * 365 * span.Day}, "expires-in",
		"`time` until the token expires, such as 12h or 90d")
	f.Int64("max-uses", 0, "`number` of clients that the token may register; 0 for any number")
	ls := n.listCommand("list", "List the initial access tokens of a project")
	revoke := cli.Command("revoke ID", "Revoke an initial access token; its clients stay",
		c.with(revokeRegistrationToken))
	addProject(create, ls, revoke)

	tokens := cli.Noun("token", "Initial access tokens: how clients get permission to register", create, ls, revoke)
	return cli.Noun("client-registration", "OAuth clients that register themselves", tokens)
}

func (c *commands) createRegistrationToken(
	ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project,
) (registrationToken, error) {
	in := fabric.RegistrationTokenInput{Expires: time.Now().Add(cli.Span(cmd, "expires-in"))}
	in.Name, _ = cmd.Flags().GetString("name")
	in.MaxUses, _ = cmd.Flags().GetInt64("max-uses")
	k, secret, err := a.Fabric.RegistrationTokens.Create(ctx, p.ID, in, nil)
	if err != nil {
		return registrationToken{}, err
	}
	if p.ClientRegistration == fabric.ClientsOff {
		fmt.Fprintf(c.Stderr, "the project accepts no registrations yet; permit them with "+
			"`selvage project update %s --client-registration token`\n", p.ID)
	}
	return registrationToken{k, secret}, nil
}

func listRegistrationTokens(ctx context.Context, a *app, cmd *cobra.Command) ([]registrationToken, error) {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return nil, err
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.RegistrationToken], error) {
		return a.Fabric.RegistrationTokens.List(ctx, p.ID, q)
	})
	if err != nil {
		return nil, err
	}

	all := make([]registrationToken, len(found))
	for i, k := range found {
		all[i] = registrationToken{RegistrationToken: k}
	}
	return all, nil
}

func revokeRegistrationToken(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	return tryProjects(ctx, a, cmd, func(projectID string) error {
		return a.Fabric.RegistrationTokens.Revoke(ctx, projectID, args[0])
	})
}
