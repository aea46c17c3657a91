package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/span"
)

var issued = view[fabric.Tokens]{
	id: func(t fabric.Tokens) string { return t.Access },
	json: func(t fabric.Tokens) any {
		return struct {
			SubscriberID string `json:"subscriber_id,omitempty"`
			Token        string `json:"token"`
			RefreshToken string `json:"refresh_token,omitempty"`
		}{t.SubscriberID, t.Access, t.Refresh}
	},
	facts: []fact[fabric.Tokens]{
		{name: "Subscriber", value: func(t fabric.Tokens) string { return t.SubscriberID }},
		{name: "Token", value: func(t fabric.Tokens) string { return t.Access }},
		{name: "Refresh token", value: func(t fabric.Tokens) string { return t.Refresh }},
	},
}

// An inspected token is what it says and whether it is good.
type inspected struct {
	fabric.Token
	state string // good, expired or revoked
}

var inspections = view[inspected]{
	id: func(t inspected) string { return t.ID },
	json: func(t inspected) any {
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
			IssuedAt     moment           `json:"issued_at"`
			ExpiresAt    moment           `json:"expires_at"`
		}{
			t.state, t.Kind, t.ID, t.Issuer, t.ProjectID, t.SubscriberID, t.ClientID, t.SessionID,
			joined(t.Scope), t.Fingerprint, t.AddressIDs,
			iso(t.IssuedAt), iso(t.ExpiresAt),
		}
	},
	facts: []fact[inspected]{
		{name: "State", value: func(t inspected) string { return t.state }},
		{name: "Kind", value: func(t inspected) string { return string(t.Kind) }},
		{name: "ID", value: func(t inspected) string { return t.ID }},
		{name: "Issuer", value: func(t inspected) string { return t.Issuer }},
		{name: "Project", value: func(t inspected) string { return t.ProjectID }},
		{name: "Subscriber", value: func(t inspected) string { return t.SubscriberID }},
		{name: "Client", value: func(t inspected) string { return t.ClientID }},
		{name: "Session", value: func(t inspected) string { return t.SessionID }},
		{name: "Scope", value: func(t inspected) string { return joined(t.Scope) }},
		{name: "Bound to", value: func(t inspected) string { return t.Fingerprint }},
		{name: "Addresses", value: func(t inspected) string { return lines(t.AddressIDs) }},
		{name: "Issued", value: func(t inspected) string { return stamp(t.IssuedAt) }},
		{name: "Expires", value: func(t inspected) string { return stamp(t.ExpiresAt) }},
	},
}

func (c *cli) tokenCommand() *cobra.Command {
	subscriber := &cobra.Command{Use: "subscriber", Short: "Make a subscriber's access token",
		Args: positional(), RunE: c.withIssuer(c.subscriberToken)}
	subscriber.Flags().String("reference", "", "its `reference` or e-mail; an unknown one makes a subscriber")
	guest := &cobra.Command{Use: "guest", Short: "Make a token that reaches a few addresses",
		Args: positional(), RunE: c.withIssuer(c.guestToken)}
	guest.Flags().StringSlice("address", nil, "`id` of an address that it reaches, up to ten")
	invite := &cobra.Command{Use: "invite", Short: "Make a token that reaches one address of a subscriber",
		Args: positional(), RunE: c.withIssuer(c.inviteToken)}
	invite.Flags().String("address", "", "`id` of the address that it reaches")
	for _, cmd := range []*cobra.Command{subscriber, guest, invite} {
		addProject(cmd)
		cmd.Flags().Var(&span.Span{Length: fabric.TokenLifetime, Least: time.Second,
			Most: fabric.MaxLifetime}, "expires-in", "the `time` it lives")
	}
	inspect := &cobra.Command{Use: "inspect", Short: "Show what a token on stdin says", Args: positional(),
		RunE: c.withIssuer(c.inspectToken)}
	revoke := &cobra.Command{Use: "revoke", Short: "End the token on stdin", Args: positional(),
		RunE: c.withIssuer(c.revokeToken)}
	return noun("token", "Tokens: by which subscribers and guests act", subscriber, guest, invite,
		c.embedCommand(), inspect, revoke)
}

// withIssuer runs a command about tokens, which name their issuer: that of the
// server in the data directory, where the configuration does not say.
func (c *cli) withIssuer(do command) func(*cobra.Command, []string) error {
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
	at := time.Now().Add(spanOf(cmd, "expires-in")).Unix()
	return &at
}

func (c *cli) subscriberToken(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := need(cmd, "reference"); err != nil {
		return err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	reference, _ := cmd.Flags().GetString("reference")
	tokens, err := a.Fabric.SubscriberToken(
		ctx, fabric.Issuer{ProjectID: p.ID},
		fabric.SubscriberTokenInput{Reference: reference, ExpireAt: expireAt(cmd)})
	if err != nil {
		return err
	}
	return one(c, issued, tokens)
}

func (c *cli) guestToken(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := need(cmd, "address"); err != nil {
		return err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	ids, _ := cmd.Flags().GetStringSlice("address")
	tokens, err := a.Fabric.GuestToken(ctx, fabric.Issuer{ProjectID: p.ID},
		fabric.GuestTokenInput{AllowedAddresses: ids, ExpireAt: expireAt(cmd)})
	if err != nil {
		return err
	}
	return one(c, issued, tokens)
}

func (c *cli) inspectToken(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	raw, err := c.secret("token")
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
	case a.Fabric.Check(ctx, t) != nil:
		seen.state = "revoked"
	}
	return one(c, inspections, seen)
}

func (c *cli) revokeToken(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	raw, err := c.secret("token")
	if err != nil {
		return err
	}
	if k, err := a.Fabric.FindEmbedKey(ctx, strings.TrimSpace(raw)); err == nil {
		return a.Fabric.RevokeEmbedKey(ctx, k)
	}
	t, err := a.openAny(ctx, raw)
	if err != nil {
		return err
	}
	return a.Fabric.Revoke(ctx, t)
}

// openAny returns what a token of whatever kind says.
func (a *app) openAny(ctx context.Context, raw string) (fabric.Token, error) {
	raw = strings.TrimSpace(raw)
	if t, ok := a.Fabric.Inspect(raw, fabric.SAT, fabric.Guest, fabric.Invite, fabric.Refresh, fabric.Service); ok {
		return t, nil
	}
	t, _, err := a.IDP.InspectAccessToken(ctx, raw)
	if err != nil {
		return fabric.Token{}, problem.New(problem.Unauthenticated, "unauthorized",
			"this is no token of the server's, or a JWT that has expired or was revoked")
	}
	return t, nil
}

// address returns the address that --address names.
func (a *app) address(ctx context.Context, cmd *cobra.Command) (fabric.Address, error) {
	if err := need(cmd, "address"); err != nil {
		return fabric.Address{}, err
	}
	id, _ := cmd.Flags().GetString("address")
	return among(ctx, a, cmd, func(projectID string) (fabric.Address, error) {
		return a.Fabric.FindAddress(ctx, reachAll(projectID), id)
	})
}

// inviteToken makes an invite as the subscriber of the address would.
func (c *cli) inviteToken(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	address, err := a.address(ctx, cmd)
	if err != nil {
		return err
	}
	inviter := reachAll(address.ProjectID)
	inviter.SubscriberID = address.ResourceID
	token, err := a.Fabric.Invite(ctx, inviter, fabric.InviteInput{AddressID: address.ID, ExpiresAt: expireAt(cmd)})
	if err != nil {
		return err
	}
	return one(c, issued, fabric.Tokens{Access: token})
}
