package command

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/cnf"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/span"
)

var tokensView = cli.View[fabric.TokenPair]{
	ID: func(t fabric.TokenPair) string { return t.Access },
	JSON: func(t fabric.TokenPair) any {
		return struct {
			SubscriberID string `json:"subscriber_id,omitempty"`
			Token        string `json:"token"`
			RefreshToken string `json:"refresh_token,omitempty"`
		}{SubscriberID: t.SubscriberID, Token: t.Access, RefreshToken: t.Refresh}
	},
	Facts: []cli.Fact[fabric.TokenPair]{
		{Name: "Subscriber", Value: func(t fabric.TokenPair) string { return t.SubscriberID }},
		{Name: "Token", Value: func(t fabric.TokenPair) string { return t.Access }},
		{Name: "Refresh token", Value: func(t fabric.TokenPair) string { return t.Refresh }},
	},
}

// An inspected is the content of a token, and whether the token is valid.
type inspected struct {
	fabric.Token
	state string // good, expired or revoked
}

var inspectionView = cli.View[inspected]{
	ID: func(t inspected) string { return t.ID },
	JSON: func(t inspected) any {
		return struct {
			State        string           `json:"state"`
			Kind         fabric.TokenKind `json:"kind"`
			ID           string           `json:"jti"`
			Issuer       string           `json:"iss"`
			ProjectID    string           `json:"project_id"`
			SubscriberID string           `json:"subscriber_id,omitempty"`
			ClientID     string           `json:"client_id,omitempty"`
			SessionID    string           `json:"sid,omitempty"`
			Scope        string           `json:"scope,omitempty"`
			cnf.Claim
			AddressIDs []string `json:"address_ids,omitempty"`
			IssuedAt   cli.Time `json:"issued_at"`
			ExpiresAt  cli.Time `json:"expires_at"`
		}{
			State:        t.state,
			Kind:         t.Kind,
			ID:           t.ID,
			Issuer:       t.Issuer,
			ProjectID:    t.ProjectID,
			SubscriberID: t.SubscriberID,
			ClientID:     t.ClientID,
			SessionID:    t.SessionID,
			Scope:        cli.Join(t.Scope),
			Claim:        claimOf(t),
			AddressIDs:   t.AddressIDs,
			IssuedAt:     cli.UTC(t.IssuedAt),
			ExpiresAt:    cli.UTC(t.ExpiresAt),
		}
	},
	Facts: []cli.Fact[inspected]{
		{Name: "State", Value: func(t inspected) string { return t.state }},
		{Name: "Kind", Value: func(t inspected) string { return string(t.Kind) }},
		{Name: "ID", Value: func(t inspected) string { return t.ID }},
		{Name: "Issuer", Value: func(t inspected) string { return t.Issuer }},
		{Name: "Project", Value: func(t inspected) string { return t.ProjectID }},
		{Name: "Subscriber", Value: func(t inspected) string { return t.SubscriberID }},
		{Name: "Client", Value: func(t inspected) string { return t.ClientID }},
		{Name: "Session", Value: func(t inspected) string { return t.SessionID }},
		{Name: "Scope", Value: func(t inspected) string { return cli.Join(t.Scope) }},
		{Name: "Bound to", Value: func(t inspected) string { return t.Binding }},
		{Name: "Addresses", Value: func(t inspected) string { return cli.Lines(t.AddressIDs) }},
		{Name: "Issued", Value: func(t inspected) string { return cli.FormatTime(t.IssuedAt) }},
		{Name: "Expires", Value: func(t inspected) string { return cli.FormatTime(t.ExpiresAt) }},
	},
}

// claimOf returns what a token is bound to.
func claimOf(t inspected) cnf.Claim {
	if c := cnf.ClaimOf(t.Binding); c != nil {
		return *c
	}
	return cnf.Claim{}
}

// tokenCommands builds the commands for tokens and embed keys.
type tokenCommands struct{ *commands }

func (c tokenCommands) command() *cobra.Command {
	subscriber := c.issueCommand("subscriber", "Create an access token of a subscriber", subscriberToken)
	subscriber.Flags().String("reference", "",
		"`reference` or email of the subscriber; if it is unknown, a subscriber is created")
	guest := c.issueCommand("guest", "Create a token that reaches up to ten addresses", guestToken)
	guest.Flags().StringSlice("address", nil, "`id` of an address that the token reaches, up to ten")
	invite := c.issueCommand("invite", "Create a token that reaches one address of a subscriber", inviteToken)
	invite.Flags().String("address", "", "`id` of the address that the token reaches")
	inspect := cli.Command("inspect", "Show the content of a token on stdin", c.withIssuer(c.inspectToken))
	revoke := cli.Command("revoke", "Revoke a token on stdin", c.withIssuer(c.revokeToken))
	return cli.Noun("token", "Tokens with which subscribers and guests act", subscriber, guest, invite,
		c.embedCommand(), inspect, revoke)
}

// issueCommand returns a command that calls issue and prints the tokens it returns.
func (c tokenCommands) issueCommand(
	use, short string,
	issue func(context.Context, *app, *cobra.Command) (fabric.TokenPair, error),
) *cobra.Command {
	show := func(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
		tokens, err := issue(ctx, a, cmd)
		if err != nil {
			return err
		}
		return cli.Show(c.Env, tokensView, tokens)
	}
	cmd := cli.Command(use, short, c.withIssuer(show))
	addProject(cmd)
	lifetime := &span.Span{Length: fabric.TokenLifetime, Least: time.Second, Most: fabric.MaxLifetime}
	cmd.Flags().Var(lifetime, "expires-in", "`time` until the token expires")
	return cmd
}

// withIssuer is like with, but for commands that issue or read tokens, which contain the issuer. If the
// database is PostgreSQL, the configuration does not set the issuer, and no server is running in the data
// directory, it warns that other nodes may have another issuer.
func (c tokenCommands) withIssuer(do action) runner {
	return c.with(func(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
		_, running := datadir.ReadRunning(a.Config.Data)
		isSet := a.Config.AuthURL != "" || a.Config.PublicURL != ""
		if a.Config.Database.Shared() && !isSet && !running {
			c.warnings().Warn("the issuer here may differ from that of other nodes; set SELVAGE_AUTH_URL as they do",
				"issuer", a.Where.Issuer())
		}
		return do(ctx, a, cmd, args)
	})
}

// flagExpiry returns the time that --expires-in sets, or nil for the default.
func flagExpiry(cmd *cobra.Command) *int64 {
	if !cmd.Flags().Changed("expires-in") {
		return nil
	}
	at := time.Now().Add(cli.Span(cmd, "expires-in")).Unix()
	return &at
}

func subscriberToken(ctx context.Context, a *app, cmd *cobra.Command) (tokens fabric.TokenPair, err error) {
	if err := cli.Need(cmd, "reference"); err != nil {
		return tokens, err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return tokens, err
	}
	reference, _ := cmd.Flags().GetString("reference")
	in := fabric.SubscriberTokenInput{Reference: reference, ExpireAt: flagExpiry(cmd)}
	return a.Fabric.Tokens.IssueSubscriber(ctx, fabric.Issuer{ProjectID: p.ID}, in)
}

func guestToken(ctx context.Context, a *app, cmd *cobra.Command) (tokens fabric.TokenPair, err error) {
	if err := cli.Need(cmd, "address"); err != nil {
		return tokens, err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return tokens, err
	}
	ids, _ := cmd.Flags().GetStringSlice("address")
	in := fabric.GuestTokenInput{AllowedAddresses: ids, ExpireAt: flagExpiry(cmd)}
	return a.Fabric.Tokens.IssueGuest(ctx, fabric.Issuer{ProjectID: p.ID}, in)
}

// inviteToken creates an invite on behalf of the subscriber who owns the address.
func inviteToken(ctx context.Context, a *app, cmd *cobra.Command) (fabric.TokenPair, error) {
	address, err := flagAddress(ctx, a, cmd)
	if err != nil {
		return fabric.TokenPair{}, err
	}
	inviter := reachAll(address.ProjectID)
	inviter.SubscriberID = address.ResourceID
	in := fabric.InviteInput{AddressID: address.ID, ExpiresAt: flagExpiry(cmd)}
	token, err := a.Fabric.Tokens.IssueInvite(ctx, inviter, in)
	if err != nil {
		return fabric.TokenPair{}, err
	}
	return fabric.TokenPair{Access: token}, nil
}

func (c tokenCommands) inspectToken(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	raw, err := c.ReadSecret("token")
	if err != nil {
		return err
	}

	t, err := a.openToken(ctx, raw)
	if err != nil {
		return err
	}

	state := "good"
	err = a.Fabric.Tokens.Check(ctx, t)
	switch {
	case !time.Now().Before(t.ExpiresAt):
		state = "expired"
	case errors.Is(err, problem.Unauthenticated):
		state = "revoked"
	case err != nil: // such as a database that cannot be reached
		return err
	}
	return cli.Show(c.Env, inspectionView, inspected{t, state})
}

func (c tokenCommands) revokeToken(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	raw, err := c.ReadSecret("token")
	if err != nil {
		return err
	}
	if k, err := a.Fabric.EmbedKeys.Find(ctx, strings.TrimSpace(raw)); err == nil {
		return a.Fabric.EmbedKeys.Revoke(ctx, k)
	}
	t, err := a.openToken(ctx, raw)
	if err != nil {
		return err
	}
	return a.Fabric.Tokens.Revoke(ctx, t)
}

// openToken returns the content of a token of any kind.
func (a *app) openToken(ctx context.Context, raw string) (fabric.Token, error) {
	raw = strings.TrimSpace(raw)
	ours := []fabric.TokenKind{fabric.SAT, fabric.Guest, fabric.Invite, fabric.Refresh, fabric.Service}
	if t, ok := a.Fabric.Tokens.Inspect(raw, ours...); ok {
		return t, nil
	}
	t, _, err := a.IDP.Tokens.Inspect(ctx, raw)
	switch p := problem.First(err); {
	case err == nil:
		return t, nil
	case p == nil, p.Kind == problem.Unavailable:
		return fabric.Token{}, err
	}
	return fabric.Token{}, problem.New(problem.Unauthenticated, "unauthorized",
		"this server did not issue this token, or it is a JWT that expired or was revoked")
}
