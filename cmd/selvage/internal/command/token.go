package command

import (
	"context"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/span"
	"github.com/spf13/cobra"
	"strings"
	"time"
)

var issued = cli.View[fabric.TokenPair]{
	ID: func(t fabric.TokenPair) string { return t.Access },
	JSON: func(t fabric.TokenPair) any {
		return struct {
			SubscriberID string `json:"subscriber_id,omitempty"`
			Token        string `json:"token"`
			RefreshToken string `json:"refresh_token,omitempty"`
		}{t.SubscriberID, t.Access, t.Refresh}
	},
	Facts: []cli.Fact[fabric.TokenPair]{
		{Name: "Subscriber", Value: func(t fabric.TokenPair) string { return t.SubscriberID }},
		{Name: "Token", Value: func(t fabric.TokenPair) string { return t.Access }},
		{Name: "Refresh token", Value: func(t fabric.TokenPair) string { return t.Refresh }},
	},
}

// An inspected token is what it says and whether it is good.
type inspected struct {
	fabric.Token
	state string // good, expired or revoked
}

var inspections = cli.View[inspected]{
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
			Thumbprint   string           `json:"jkt,omitempty"`
			AddressIDs   []string         `json:"address_ids,omitempty"`
			IssuedAt     cli.Time         `json:"issued_at"`
			ExpiresAt    cli.Time         `json:"expires_at"`
		}{
			t.state, t.Kind, t.ID, t.Issuer, t.ProjectID, t.SubscriberID, t.ClientID, t.SessionID,
			cli.Join(t.Scope), t.Fingerprint, t.AddressIDs,
			cli.UTC(t.IssuedAt), cli.UTC(t.ExpiresAt),
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
		{Name: "Bound to", Value: func(t inspected) string { return t.Fingerprint }},
		{Name: "Addresses", Value: func(t inspected) string { return cli.Lines(t.AddressIDs) }},
		{Name: "Issued", Value: func(t inspected) string { return cli.FormatTime(t.IssuedAt) }},
		{Name: "Expires", Value: func(t inspected) string { return cli.FormatTime(t.ExpiresAt) }},
	},
}

func (c *commands) tokenCommand() *cobra.Command {
	subscriber := &cobra.Command{Use: "subscriber", Short: "Make a subscriber's access token",
		Args: cli.NoArguments, RunE: c.withIssuer(c.subscriberToken)}
	subscriber.Flags().String("reference", "", "its `reference` or e-mail; an unknown one makes a subscriber")
	guest := &cobra.Command{Use: "guest", Short: "Make a token that reaches a few addresses",
		Args: cli.NoArguments, RunE: c.withIssuer(c.guestToken)}
	guest.Flags().StringSlice("address", nil, "`id` of an address that it reaches, up to ten")
	invite := &cobra.Command{Use: "invite", Short: "Make a token that reaches one address of a subscriber",
		Args: cli.NoArguments, RunE: c.withIssuer(c.inviteToken)}
	invite.Flags().String("address", "", "`id` of the address that it reaches")
	for _, cmd := range []*cobra.Command{subscriber, guest, invite} {
		addProject(cmd)
		cmd.Flags().Var(&span.Span{Length: fabric.TokenLifetime, Least: time.Second,
			Most: fabric.MaxLifetime}, "expires-in", "the `time` it lives")
	}
	inspect := &cobra.Command{Use: "inspect", Short: "Show what a token on stdin says", Args: cli.NoArguments,
		RunE: c.withIssuer(c.inspectToken)}
	revoke := &cobra.Command{Use: "revoke", Short: "End the token on stdin", Args: cli.NoArguments,
		RunE: c.withIssuer(c.revokeToken)}
	return cli.Noun("token", "Tokens: by which subscribers and guests act", subscriber, guest, invite,
		c.embedCommand(), inspect, revoke)
}

// withIssuer runs a command about tokens, which name their issuer: that of the
// server in the data directory, where the configuration does not say.
func (c *commands) withIssuer(do action) func(*cobra.Command, []string) error {
	return c.with(func(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
		_, beside := datadir.ReadRunning(a.Config.Data)
		if a.Config.Database.Shared() && a.Config.AuthURL == "" && a.Config.PublicURL == "" && !beside {
			c.warnings().Warn("tokens of other nodes may have another issuer than here; set SELVAGE_AUTH_URL as they do", "issuer", a.Where.Issuer())
		}
		return do(ctx, a, cmd, args)
	})
}

// expireAt returns the end that --expires-in asks for, nil for the usual one.
func expireAt(cmd *cobra.Command) *int64 {
	if !cmd.Flags().Changed("expires-in") {
		return nil
	}
	at := time.Now().Add(cli.Span(cmd, "expires-in")).Unix()
	return &at
}

func (c *commands) subscriberToken(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "reference"); err != nil {
		return err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	reference, _ := cmd.Flags().GetString("reference")
	tokens, err := a.Fabric.Tokens.IssueSubscriber(
		ctx, fabric.Issuer{ProjectID: p.ID},
		fabric.SubscriberTokenInput{Reference: reference, ExpireAt: expireAt(cmd)})
	if err != nil {
		return err
	}
	return cli.Show(c.Env, issued, tokens)
}

func (c *commands) guestToken(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "address"); err != nil {
		return err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	ids, _ := cmd.Flags().GetStringSlice("address")
	tokens, err := a.Fabric.Tokens.IssueGuest(ctx, fabric.Issuer{ProjectID: p.ID},
		fabric.GuestTokenInput{AllowedAddresses: ids, ExpireAt: expireAt(cmd)})
	if err != nil {
		return err
	}
	return cli.Show(c.Env, issued, tokens)
}

func (c *commands) inspectToken(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	raw, err := c.ReadSecret("token")
	if err != nil {
		return err
	}
	t, err := a.openAny(ctx, raw)
	if err != nil {
		return err
	}
	seen := inspected{t, "good"}
	switch {
	case !time.Now().Before(t.ExpiresAt):
		seen.state = "expired"
	case a.Fabric.Tokens.Check(ctx, t) != nil:
		seen.state = "revoked"
	}
	return cli.Show(c.Env, inspections, seen)
}

func (c *commands) revokeToken(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	raw, err := c.ReadSecret("token")
	if err != nil {
		return err
	}
	if k, err := a.Fabric.EmbedKeys.Find(ctx, strings.TrimSpace(raw)); err == nil {
		return a.Fabric.EmbedKeys.Revoke(ctx, k)
	}
	t, err := a.openAny(ctx, raw)
	if err != nil {
		return err
	}
	return a.Fabric.Tokens.Revoke(ctx, t)
}

// openAny returns what a token of whatever kind says.
func (a *app) openAny(ctx context.Context, raw string) (fabric.Token, error) {
	raw = strings.TrimSpace(raw)
	if t, ok := a.Fabric.Tokens.Inspect(raw, fabric.SAT, fabric.Guest, fabric.Invite, fabric.Refresh, fabric.Service); ok {
		return t, nil
	}
	t, _, err := a.IDP.Tokens.Inspect(ctx, raw)
	if err != nil {
		return fabric.Token{}, problem.New(problem.Unauthenticated, "unauthorized",
			"this is no token of the server's, or a JWT that has expired or was revoked")
	}
	return t, nil
}

// address returns the address that --address names.
func (a *app) address(ctx context.Context, cmd *cobra.Command) (fabric.Address, error) {
	if err := cli.Need(cmd, "address"); err != nil {
		return fabric.Address{}, err
	}
	id, _ := cmd.Flags().GetString("address")
	return among(ctx, a, cmd, func(projectID string) (fabric.Address, error) {
		return a.Fabric.Addresses.Find(ctx, reachAll(projectID), id)
	})
}

// inviteToken makes an invite as the subscriber of the address would.
func (c *commands) inviteToken(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	address, err := a.address(ctx, cmd)
	if err != nil {
		return err
	}
	inviter := reachAll(address.ProjectID)
	inviter.SubscriberID = address.ResourceID
	token, err := a.Fabric.Tokens.IssueInvite(ctx, inviter, fabric.InviteInput{AddressID: address.ID, ExpiresAt: expireAt(cmd)})
	if err != nil {
		return err
	}
	return cli.Show(c.Env, issued, fabric.TokenPair{Access: token})
}
