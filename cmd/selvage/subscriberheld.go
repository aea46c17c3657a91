package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// A printedGrant is what an OAuth client has got of a login, for programs.
type printedGrant struct {
	ClientID  string   `json:"client_id"`
	Client    string   `json:"client_name"`
	Scope     []string `json:"scope"`
	CreatedAt moment   `json:"created_at"`
	ExpiresAt moment   `json:"expires_at"`
	RevokedAt moment   `json:"revoked_at,omitempty"`
}

var logins = view[fabric.Login]{
	id: func(l fabric.Login) string { return l.ID },
	json: func(l fabric.Login) any {
		grants := make([]printedGrant, len(l.Grants))
		for i, g := range l.Grants {
			grants[i] = printedGrant{g.ClientID, g.ClientName, g.Scope, iso(g.Created), iso(g.Expires),
				iso(g.Revoked)}
		}
		return struct {
			SID       string         `json:"sid"`
			AuthTime  moment         `json:"auth_time"`
			Address   string         `json:"address"`
			UserAgent string         `json:"user_agent"`
			ExpiresAt moment         `json:"expires_at"`
			EndedAt   moment         `json:"ended_at,omitempty"`
			Grants    []printedGrant `json:"grants"`
		}{l.ID, iso(l.Began), l.Address, l.UserAgent, iso(l.Expires), iso(l.Ended), grants}
	},
	facts: []fact[fabric.Login]{
		{name: "Sid", value: func(l fabric.Login) string { return l.ID }},
		{name: "Ended", value: func(l fabric.Login) string { return stamp(l.Ended) }},
		{name: "Signed in", aside: true, value: func(l fabric.Login) string { return stamp(l.Began) }},
		{name: "From", value: func(l fabric.Login) string { return l.Address }},
		{name: "Apps", value: apps},
		{name: "Browser", value: func(l fabric.Login) string { return l.UserAgent }},
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

var consents = view[fabric.Consent]{
	id: func(o fabric.Consent) string { return o.ClientID },
	json: func(o fabric.Consent) any {
		return struct {
			ClientID  string   `json:"client_id"`
			Client    string   `json:"client_name"`
			Scope     []string `json:"scope"`
			UpdatedAt moment   `json:"updated_at"`
		}{o.ClientID, o.ClientName, append([]string{}, o.Scope...), iso(o.Updated)}
	},
	facts: []fact[fabric.Consent]{
		{name: "Client ID", value: func(o fabric.Consent) string { return o.ClientID }},
		{name: "Name", value: func(o fabric.Consent) string { return o.ClientName }},
		{name: "Scopes", value: func(o fabric.Consent) string { return joined(o.Scope) }},
		{name: "Agreed", aside: true, value: func(o fabric.Consent) string { return stamp(o.Updated) }},
	},
}

var families = view[fabric.Family]{
	id: func(f fabric.Family) string { return f.ID },
	json: func(f fabric.Family) any {
		return struct {
			ID          string `json:"id"`
			ClientID    string `json:"client_id,omitempty"`
			CreatedAt   moment `json:"created_at,omitempty"`
			RefreshedAt moment `json:"refreshed_at,omitempty"`
			Refreshes   int64  `json:"refreshes"`
			ExpiresAt   moment `json:"expires_at"`
			Revoked     bool   `json:"revoked"`
		}{f.ID, f.ClientID, iso(f.Created), iso(f.Used), f.Refreshes, iso(f.Expires), f.Revoked}
	},
	facts: []fact[fabric.Family]{
		{name: "ID", value: func(f fabric.Family) string { return f.ID }},
		{name: "Revoked", value: func(f fabric.Family) string { return strings.TrimPrefix(yesNo(f.Revoked), "no") }},
		{name: "Client", value: func(f fabric.Family) string { return f.ClientID }},
		{name: "Created", aside: true, value: func(f fabric.Family) string { return stamp(f.Created) }},
		{name: "Refreshed", value: func(f fabric.Family) string { return stamp(f.Used) }},
		{name: "Times", value: func(f fabric.Family) string { return strconv.FormatInt(f.Refreshes, 10) }},
		{name: "Expires", aside: true, value: func(f fabric.Family) string { return stamp(f.Expires) }},
	},
}

func (c *cli) listSessions(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	return listHeld(ctx, c, a, cmd, args[0], logins, a.Fabric.SubscriberLogins)
}

func (c *cli) listConsents(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	return listHeld(ctx, c, a, cmd, args[0], consents, a.Fabric.SubscriberConsents)
}

func (c *cli) listFamilies(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	return listHeld(ctx, c, a, cmd, args[0], families, a.Fabric.SubscriberFamilies)
}

// listHeld prints all that a subscriber has of a thing.
func listHeld[T any](
	ctx context.Context, c *cli, a *app, cmd *cobra.Command, id string, v view[T],
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
	return list(c, v, all)
}

func (c *cli) revokeSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	sid, token, client := text(cmd, "session"), text(cmd, "token"), text(cmd, "client")
	if given := slices.DeleteFunc([]*string{sid, token, client}, func(s *string) bool { return s == nil }); len(given) > 1 {
		return usagef("--session, --token and --client end different things: give one of them")
	}
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	switch {
	case sid != nil:
		return a.Fabric.EndLogin(ctx, s.ProjectID, s.ID, *sid)
	case client != nil:
		return a.Fabric.RevokeConsent(ctx, s.ProjectID, s.ID, *client)
	case token != nil:
		return a.Fabric.RevokeFamily(ctx, s.ProjectID, s.ID, *token)
	}
	return a.Fabric.RevokeSubscriber(ctx, s.ProjectID, s.ID)
}
