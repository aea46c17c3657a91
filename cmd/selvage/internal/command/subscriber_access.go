package command

import (
	"context"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/spf13/cobra"
	"slices"
	"strconv"
	"strings"
)

// A printedGrant is what an OAuth client has got of a login, for programs.
type printedGrant struct {
	ClientID  string   `json:"client_id"`
	Client    string   `json:"client_name"`
	Scope     []string `json:"scope"`
	CreatedAt cli.Time `json:"created_at"`
	ExpiresAt cli.Time `json:"expires_at"`
	RevokedAt cli.Time `json:"revoked_at,omitempty"`
}

var logins = cli.View[fabric.Login]{
	ID: func(l fabric.Login) string { return l.ID },
	JSON: func(l fabric.Login) any {
		grants := make([]printedGrant, len(l.Grants))
		for i, g := range l.Grants {
			grants[i] = printedGrant{g.ClientID, g.ClientName, g.Scope, cli.UTC(g.Created), cli.UTC(g.Expires),
				cli.UTC(g.Revoked)}
		}
		return struct {
			SID       string         `json:"sid"`
			AuthTime  cli.Time       `json:"auth_time"`
			Address   string         `json:"address"`
			UserAgent string         `json:"user_agent"`
			ExpiresAt cli.Time       `json:"expires_at"`
			EndedAt   cli.Time       `json:"ended_at,omitempty"`
			Grants    []printedGrant `json:"grants"`
		}{l.ID, cli.UTC(l.Began), l.Address, l.UserAgent, cli.UTC(l.Expires), cli.UTC(l.Ended), grants}
	},
	Facts: []cli.Fact[fabric.Login]{
		{Name: "Sid", Value: func(l fabric.Login) string { return l.ID }},
		{Name: "Ended", Value: func(l fabric.Login) string { return cli.FormatTime(l.Ended) }},
		{Name: "Signed in", Minor: true, Value: func(l fabric.Login) string { return cli.FormatTime(l.Began) }},
		{Name: "From", Value: func(l fabric.Login) string { return l.Address }},
		{Name: "Apps", Value: apps},
		{Name: "Browser", Value: func(l fabric.Login) string { return l.UserAgent }},
	},
}

// apps names the clients that hold a grant of a login which is good.
func apps(l fabric.Login) string {
	var names []string
	for _, g := range l.Grants {
		if g.Revoked.IsZero() && !slices.Contains(names, g.ClientName) {
			names = append(names, g.ClientName)
		}
	}
	return strings.Join(names, ", ")
}

var consents = cli.View[fabric.Consent]{
	ID: func(o fabric.Consent) string { return o.ClientID },
	JSON: func(o fabric.Consent) any {
		return struct {
			ClientID  string   `json:"client_id"`
			Client    string   `json:"client_name"`
			Scope     []string `json:"scope"`
			UpdatedAt cli.Time `json:"updated_at"`
		}{o.ClientID, o.ClientName, append([]string{}, o.Scope...), cli.UTC(o.Updated)}
	},
	Facts: []cli.Fact[fabric.Consent]{
		{Name: "Client ID", Value: func(o fabric.Consent) string { return o.ClientID }},
		{Name: "Name", Value: func(o fabric.Consent) string { return o.ClientName }},
		{Name: "Scopes", Value: func(o fabric.Consent) string { return cli.Join(o.Scope) }},
		{Name: "Agreed", Minor: true, Value: func(o fabric.Consent) string { return cli.FormatTime(o.Updated) }},
	},
}

var families = cli.View[fabric.Family]{
	ID: func(f fabric.Family) string { return f.ID },
	JSON: func(f fabric.Family) any {
		return struct {
			ID          string   `json:"id"`
			ClientID    string   `json:"client_id,omitempty"`
			CreatedAt   cli.Time `json:"created_at,omitempty"`
			RefreshedAt cli.Time `json:"refreshed_at,omitempty"`
			Refreshes   int64    `json:"refreshes"`
			ExpiresAt   cli.Time `json:"expires_at"`
			Revoked     bool     `json:"revoked"`
		}{f.ID, f.ClientID, cli.UTC(f.Created), cli.UTC(f.Used), f.Refreshes, cli.UTC(f.Expires), f.Revoked}
	},
	Facts: []cli.Fact[fabric.Family]{
		{Name: "ID", Value: func(f fabric.Family) string { return f.ID }},
		{Name: "Revoked", Value: func(f fabric.Family) string { return cli.YesOnly(f.Revoked) }},
		{Name: "Client", Value: func(f fabric.Family) string { return f.ClientID }},
		{Name: "Created", Minor: true, Value: func(f fabric.Family) string { return cli.FormatTime(f.Created) }},
		{Name: "Refreshed", Value: func(f fabric.Family) string { return cli.FormatTime(f.Used) }},
		{Name: "Times", Value: func(f fabric.Family) string { return strconv.FormatInt(f.Refreshes, 10) }},
		{Name: "Expires", Minor: true, Value: func(f fabric.Family) string { return cli.FormatTime(f.Expires) }},
	},
}

func (c *commands) listSessions(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	return listHeld(ctx, c, a, cmd, args[0], logins, a.Fabric.Logins.List)
}

func (c *commands) listConsents(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	return listHeld(ctx, c, a, cmd, args[0], consents, a.Fabric.Logins.ListConsents)
}

func (c *commands) listFamilies(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	return listHeld(ctx, c, a, cmd, args[0], families, a.Fabric.Tokens.ListFamilies)
}

// listHeld prints all that a subscriber has of a thing.
func listHeld[T any](
	ctx context.Context, c *commands, a *app, cmd *cobra.Command, id string, v cli.View[T],
	held func(context.Context, string, string, page.Query) (page.Page[T], error),
) error {
	s, err := a.subscriber(ctx, cmd, id)
	if err != nil {
		return err
	}
	all, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[T], error) {
		return held(ctx, s.ProjectID, s.ID, q)
	})
	if err != nil {
		return err
	}
	return cli.List(c.Env, v, all)
}

func (c *commands) revokeSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	sid, token, client := cli.Text(cmd, "session"), cli.Text(cmd, "token"), cli.Text(cmd, "client")
	if given := slices.DeleteFunc([]*string{sid, token, client}, func(s *string) bool { return s == nil }); len(given) > 1 {
		return cli.Usagef("--session, --token and --client end different things: give one of them")
	}
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	switch {
	case sid != nil:
		return a.Fabric.Logins.End(ctx, s.ProjectID, s.ID, *sid)
	case client != nil:
		return a.Fabric.Logins.RevokeConsent(ctx, s.ProjectID, s.ID, *client)
	case token != nil:
		return a.Fabric.Tokens.RevokeFamily(ctx, s.ProjectID, s.ID, *token)
	}
	return a.Fabric.Subscribers.Revoke(ctx, s.ProjectID, s.ID)
}

var factors = cli.View[factor.Factor]{
	ID: func(f factor.Factor) string { return f.ID },
	JSON: func(f factor.Factor) any {
		return struct {
			ID        string   `json:"id"`
			Type      string   `json:"type"`
			Name      string   `json:"name,omitempty"`
			BackedUp  bool     `json:"backed_up"`
			Left      int      `json:"left"`
			CreatedAt cli.Time `json:"created_at"`
			UsedAt    cli.Time `json:"used_at,omitempty"`
		}{f.ID, f.Type, f.Name, f.BackedUp, f.Left, cli.UTC(f.Created), cli.UTC(f.Used)}
	},
	Facts: []cli.Fact[factor.Factor]{
		{Name: "ID", Value: func(f factor.Factor) string { return f.ID }},
		{Name: "Type", Value: func(f factor.Factor) string { return f.Type }},
		{Name: "Name", Value: func(f factor.Factor) string { return f.Name }},
		{Name: "Left", Value: left},
		{Name: "Created", Minor: true, Value: func(f factor.Factor) string { return cli.FormatTime(f.Created) }},
		{Name: "Used", Minor: true, Value: func(f factor.Factor) string { return cli.FormatTime(f.Used) }},
	},
}

// left tells how many recovery codes are.
func left(f factor.Factor) string {
	if f.Type != factor.TypeRecovery {
		return ""
	}
	return strconv.Itoa(f.Left)
}

func (c *commands) listFactors(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	return listHeld(ctx, c, a, cmd, args[0], factors, a.Fabric.Subscribers.ListFactors)
}

func (c *commands) removeFactor(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	return a.Fabric.Subscribers.RemoveFactor(ctx, s.ProjectID, s.ID, args[1])
}
