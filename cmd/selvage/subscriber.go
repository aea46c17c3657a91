package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
)

var subscribers = view[fabric.Subscriber]{
	id:   func(s fabric.Subscriber) string { return s.ID },
	json: func(s fabric.Subscriber) any { return printSubscriber(s) },
	facts: []fact[fabric.Subscriber]{
		{name: "ID", value: func(s fabric.Subscriber) string { return s.ID }},
		{name: "Project", detail: true, value: func(s fabric.Subscriber) string { return s.ProjectID }},
		{name: "E-mail", value: func(s fabric.Subscriber) string { return s.Email }},
		{name: "Disabled", value: func(s fabric.Subscriber) string { return strings.TrimPrefix(yesNo(s.Disabled), "no") }},
		{name: "Reference", value: func(s fabric.Subscriber) string { return s.Reference }},
		{name: "Name", value: fabric.Subscriber.FullName},
		{name: "Job title", detail: true, value: func(s fabric.Subscriber) string { return s.JobTitle }},
		{name: "Company", detail: true, value: func(s fabric.Subscriber) string { return s.CompanyName }},
		{name: "Time zone", detail: true, value: func(s fabric.Subscriber) string { return s.TimeZone }},
		{name: "Country", detail: true, value: func(s fabric.Subscriber) string { return s.Country }},
		{name: "Region", detail: true, value: func(s fabric.Subscriber) string { return s.Region }},
		{name: "Password", detail: true, value: func(s fabric.Subscriber) string { return yesNo(s.PasswordHash != "") }},
		{name: "Created", aside: true, value: func(s fabric.Subscriber) string { return stamp(s.Created) }},
		{name: "Updated", detail: true, value: func(s fabric.Subscriber) string { return stamp(s.Updated) }},
	},
}

var logins = view[idp.Session]{
	id: func(s idp.Session) string { return s.ID },
	json: func(s idp.Session) any {
		return struct {
			SID       string `json:"sid"`
			AuthTime  moment `json:"auth_time"`
			Address   string `json:"address"`
			UserAgent string `json:"user_agent"`
			ExpiresAt moment `json:"expires_at"`
			EndedAt   moment `json:"ended_at,omitempty"`
		}{s.ID, iso(s.AuthTime), s.Address, s.UserAgent, iso(s.Expires), iso(s.Ended)}
	},
	facts: []fact[idp.Session]{
		{name: "Sid", value: func(s idp.Session) string { return s.ID }},
		{name: "Ended", value: func(s idp.Session) string { return stamp(s.Ended) }},
		{name: "Signed in", aside: true, value: func(s idp.Session) string { return stamp(s.AuthTime) }},
		{name: "From", value: func(s idp.Session) string { return s.Address }},
		{name: "Browser", value: func(s idp.Session) string { return s.UserAgent }},
	},
}

func (c *cli) subscriberCommand() *cobra.Command {
	create := &cobra.Command{Use: "create", Short: "Make a subscriber", Args: positional(), RunE: c.with(c.createSubscriber)}
	ls := &cobra.Command{Use: "list", Short: "List the subscribers of a project", Args: positional(), RunE: c.with(c.listSubscribers)}
	show := &cobra.Command{Use: "show ID", Short: "Show a subscriber", Args: positional("ID"), RunE: c.with(c.showSubscriber)}
	update := &cobra.Command{Use: "update ID", Short: "Change a subscriber; what is not given stays", Args: positional("ID"), RunE: c.with(c.updateSubscriber)}
	remove := &cobra.Command{Use: "delete ID", Short: "Delete a subscriber and end its tokens", Args: positional("ID"), RunE: c.with(c.deleteSubscriber)}
	sessions := &cobra.Command{Use: "sessions ID", Short: "List a subscriber's logins", Args: positional("ID"), RunE: c.with(c.listSessions)}
	addYes(remove)
	for _, cmd := range []*cobra.Command{create, update} {
		cmd.Flags().String("email", "", "its e-mail `address`")
		cmd.Flags().Bool("password-stdin", false, "read its password from stdin")
		for _, p := range profileFlags {
			cmd.Flags().String(p.flag, "", p.usage)
		}
		cmd.Flags().SortFlags = false
	}
	update.Flags().Bool("disabled", false, "lock it out, or with =false let it in again")
	for _, cmd := range []*cobra.Command{create, ls, show, update, remove, sessions} {
		addProject(cmd)
	}
	return noun("subscriber", "Subscribers: the people of a project", create, ls, show, update, remove, sessions)
}

// profileFlags are the flags of what is said of a subscriber.
var profileFlags = []struct {
	flag, usage string
	field       func(*fabric.Profile) **string
}{
	{"first-name", "its first `name`", func(p *fabric.Profile) **string { return &p.FirstName }},
	{"last-name", "its last `name`", func(p *fabric.Profile) **string { return &p.LastName }},
	{"display-name", "the `name` that others see", func(p *fabric.Profile) **string { return &p.DisplayName }},
	{"job-title", "its `job`", func(p *fabric.Profile) **string { return &p.JobTitle }},
	{"time-zone", "its time `zone`, such as Europe/Paris", func(p *fabric.Profile) **string { return &p.TimeZone }},
	{"country", "its `country`", func(p *fabric.Profile) **string { return &p.Country }},
	{"company-name", "its `company`", func(p *fabric.Profile) **string { return &p.CompanyName }},
	{"region", "its `region`", func(p *fabric.Profile) **string { return &p.Region }},
}

// subscriberInput gives what the flags say of a subscriber.
func (c *cli) subscriberInput(cmd *cobra.Command, prompt bool) (in fabric.SubscriberInput, err error) {
	in.Email = text(cmd, "email")
	for _, p := range profileFlags {
		*p.field(&in.Profile) = text(cmd, p.flag)
	}
	if f := cmd.Flags().Lookup("disabled"); f != nil && f.Changed {
		disabled := f.Value.String() == "true"
		in.Disabled = &disabled
	}
	in.Password, err = c.password(cmd, prompt)
	return in, err
}

func (c *cli) createSubscriber(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := need(cmd, "email"); err != nil {
		return err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	in, err := c.subscriberInput(cmd, true)
	if err != nil {
		return err
	}
	s, err := a.fabric.CreateSubscriber(ctx, p.ID, in)
	if err != nil {
		return err
	}
	return one(c, subscribers, s)
}

func (c *cli) listSubscribers(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	all, err := every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Subscriber], error) {
		return a.fabric.ListSubscribers(ctx, p.ID, q)
	})
	if err != nil {
		return err
	}
	return list(c, subscribers, all)
}

func (a *app) subscriber(ctx context.Context, cmd *cobra.Command, id string) (fabric.Subscriber, error) {
	return among(ctx, a, cmd, func(projectID string) (fabric.Subscriber, error) {
		return a.fabric.FindSubscriber(ctx, projectID, id)
	})
}

func (c *cli) showSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	p, err := a.fabric.Presence(ctx, s.ProjectID, s.ID)
	if err != nil {
		return err
	}
	return one(c, withPresence(p), s)
}

func (c *cli) updateSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	in, err := c.subscriberInput(cmd, false)
	if err != nil {
		return err
	}
	if s, err = a.fabric.UpdateSubscriber(ctx, s.ProjectID, s.ID, in); err != nil {
		return err
	}
	return one(c, subscribers, s)
}

func (c *cli) deleteSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if err := c.confirm(cmd, "This deletes the subscriber "+s.Title()+".", s.Title()); err != nil {
		return err
	}
	return a.fabric.DeleteSubscriber(ctx, s.ProjectID, s.ID)
}

func (c *cli) listSessions(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	all, err := a.idp.ListSessions(ctx, s.ProjectID, s.ID)
	if err != nil {
		return err
	}
	return list(c, logins, all)
}
