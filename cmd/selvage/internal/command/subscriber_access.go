package command

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
)

// A grantJSON is the access to a subscriber's data that a login granted to an OAuth client.
type grantJSON struct {
	ClientID  string   `json:"client_id"`
	Client    string   `json:"client_name"`
	Scope     []string `json:"scope"`
	CreatedAt cli.Time `json:"created_at"`
	ExpiresAt cli.Time `json:"expires_at"`
	RevokedAt cli.Time `json:"revoked_at,omitempty"`
}

var loginView = cli.View[fabric.Login]{
	ID: func(l fabric.Login) string { return l.ID },
	JSON: func(l fabric.Login) any {
		grants := make([]grantJSON, len(l.Grants))
		for i, g := range l.Grants {
			grants[i] = grantJSON{
				ClientID:  g.ClientID,
				Client:    g.ClientName,
				Scope:     g.Scope,
				CreatedAt: cli.UTC(g.Created),
				ExpiresAt: cli.UTC(g.Expires),
				RevokedAt: cli.UTC(g.Revoked),
			}
		}

		return struct {
			SID       string      `json:"sid"`
			AuthTime  cli.Time    `json:"auth_time"`
			Address   string      `json:"address"`
			UserAgent string      `json:"user_agent"`
			ExpiresAt cli.Time    `json:"expires_at"`
			EndedAt   cli.Time    `json:"ended_at,omitempty"`
			Grants    []grantJSON `json:"grants"`
		}{
			SID:       l.ID,
			AuthTime:  cli.UTC(l.Began),
			Address:   l.Address,
			UserAgent: l.UserAgent,
			ExpiresAt: cli.UTC(l.Expires),
			EndedAt:   cli.UTC(l.Ended),
			Grants:    grants,
		}
	},
	Facts: []cli.Fact[fabric.Login]{
		{Name: "Sid", Value: func(l fabric.Login) string { return l.ID }},
		{Name: "Ended", Value: func(l fabric.Login) string { return cli.FormatTime(l.Ended) }},
		{Name: "Signed in", Minor: true, Value: func(l fabric.Login) string { return cli.FormatTime(l.Began) }},
		{Name: "From", Value: func(l fabric.Login) string { return l.Address }},
		{Name: "Apps", Value: formatApps},
		{Name: "Browser", Value: func(l fabric.Login) string { return l.UserAgent }},
	},
}

// formatApps names the clients that hold a valid grant of a login.
func formatApps(l fabric.Login) string {
	var names []string
	for _, g := range l.Grants {
		if g.Revoked.IsZero() && !slices.Contains(names, g.ClientName) {
			names = append(names, g.ClientName)
		}
	}
	return strings.Join(names, ", ")
}

var consentView = cli.View[fabric.Consent]{
	ID: func(o fabric.Consent) string { return o.ClientID },
	JSON: func(o fabric.Consent) any {
		return struct {
			ClientID  string   `json:"client_id"`
			Client    string   `json:"client_name"`
			Scope     []string `json:"scope"`
			UpdatedAt cli.Time `json:"updated_at"`
		}{
			ClientID:  o.ClientID,
			Client:    o.ClientName,
			Scope:     append([]string{}, o.Scope...),
			UpdatedAt: cli.UTC(o.Updated),
		}
	},
	Facts: []cli.Fact[fabric.Consent]{
		{Name: "Client ID", Value: func(o fabric.Consent) string { return o.ClientID }},
		{Name: "Name", Value: func(o fabric.Consent) string { return o.ClientName }},
		{Name: "Scopes", Value: func(o fabric.Consent) string { return cli.Join(o.Scope) }},
		{Name: "Agreed", Minor: true, Value: func(o fabric.Consent) string { return cli.FormatTime(o.Updated) }},
	},
}

var familyView = cli.View[fabric.Family]{
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
		}{
			ID:          f.ID,
			ClientID:    f.ClientID,
			CreatedAt:   cli.UTC(f.Created),
			RefreshedAt: cli.UTC(f.Used),
			Refreshes:   f.Refreshes,
			ExpiresAt:   cli.UTC(f.Expires),
			Revoked:     f.Revoked,
		}
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

var factorView = cli.View[factor.Factor]{
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
		}{
			ID:        f.ID,
			Type:      f.Type,
			Name:      f.Name,
			BackedUp:  f.BackedUp,
			Left:      f.Left,
			CreatedAt: cli.UTC(f.Created),
			UsedAt:    cli.UTC(f.Used),
		}
	},
	Facts: []cli.Fact[factor.Factor]{
		{Name: "ID", Value: func(f factor.Factor) string { return f.ID }},
		{Name: "Type", Value: func(f factor.Factor) string { return f.Type }},
		{Name: "Name", Value: func(f factor.Factor) string { return f.Name }},
		{Name: "Left", Value: formatLeft},
		{Name: "Created", Minor: true, Value: func(f factor.Factor) string { return cli.FormatTime(f.Created) }},
		{Name: "Used", Minor: true, Value: func(f factor.Factor) string { return cli.FormatTime(f.Used) }},
	},
}

// formatLeft formats how many recovery codes are left. For other factors, it returns "".
func formatLeft(f factor.Factor) string {
	if f.Type != factor.TypeRecovery {
		return ""
	}
	return strconv.Itoa(f.Left)
}

// accessCommands returns the commands for logins, consents, tokens and factors.
func (c subscriberCommands) accessCommands() []*cobra.Command {
	removeFactor := cli.Command("remove-factor ID FACTOR",
		"Remove a passkey, an authenticator app or the recovery codes of a subscriber", c.with(removeFactor))
	revoke := cli.Command("revoke ID", "Revoke everything a subscriber holds now: logins, tokens, sockets",
		c.with(revokeSubscriber))
	revoke.Flags().String("session", "", "only the login with this `sid`, and its tokens")
	revoke.Flags().String("token", "", "only the refresh token with this `id`, and its access tokens")
	revoke.Flags().String("client", "", "only the tokens of the client with this `id`, and the consent to it")
	return []*cobra.Command{
		accessList(c.commands, "sessions ID", "List the logins of a subscriber", loginView,
			func(a *app) ownedLister[fabric.Login] { return a.Fabric.Logins.List }),
		accessList(c.commands, "consents ID", "List what a subscriber consented to, by client", consentView,
			func(a *app) ownedLister[fabric.Consent] { return a.Fabric.Logins.ListConsents }),
		accessList(c.commands, "tokens ID", "List the used refresh tokens of a subscriber", familyView,
			func(a *app) ownedLister[fabric.Family] { return a.Fabric.Tokens.ListFamilies }),
		accessList(c.commands, "factors ID", "List the second factors of a subscriber", factorView,
			func(a *app) ownedLister[factor.Factor] { return a.Fabric.Subscribers.ListFactors }),
		removeFactor, revoke,
	}
}

// An ownedLister lists a page of the items of a subscriber.
type ownedLister[T any] func(ctx context.Context, projectID, id string, q page.Query) (page.Page[T], error)

// accessList returns a command that prints all items of a subscriber.
func accessList[T any](
	c *commands, use, short string, view cli.View[T], list func(a *app) ownedLister[T],
) *cobra.Command {
	do := func(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
		s, err := findSubscriber(ctx, a, cmd, args[0])
		if err != nil {
			return err
		}
		items, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[T], error) {
			return list(a)(ctx, s.ProjectID, s.ID, q)
		})
		if err != nil {
			return err
		}
		return cli.List(c.Env, view, items)
	}
	return cli.Command(use, short, c.with(do))
}

func removeFactor(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := findSubscriber(ctx, a, cmd, args[0])
	if err != nil {
		return err
	}
	return a.Fabric.Subscribers.RemoveFactor(ctx, s.ProjectID, s.ID, args[1])
}

// revokeSubscriber revokes what the flag names or, without a flag, everything that the subscriber holds.
func revokeSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	sid := cli.Text(cmd, "session")
	token := cli.Text(cmd, "token")
	clientID := cli.Text(cmd, "client")
	given := 0
	for _, value := range []*string{sid, token, clientID} {
		if value != nil {
			given++
		}
	}
	if given > 1 {
		return cli.Usagef("--session, --token and --client exclude each other")
	}

	s, err := findSubscriber(ctx, a, cmd, args[0])
	if err != nil {
		return err
	}
	switch {
	case sid != nil:
		return a.Fabric.Logins.End(ctx, s.ProjectID, s.ID, *sid)
	case clientID != nil:
		return a.Fabric.Logins.RevokeConsent(ctx, s.ProjectID, s.ID, *clientID)
	case token != nil:
		return a.Fabric.Tokens.RevokeFamily(ctx, s.ProjectID, s.ID, *token)
	}
	return a.Fabric.Subscribers.Revoke(ctx, s.ProjectID, s.ID)
}
