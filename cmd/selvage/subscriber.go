package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

var subscribers = view[fabric.Subscriber]{
	id:   func(s fabric.Subscriber) string { return s.ID },
	json: func(s fabric.Subscriber) any { return printSubscriber(s) },
	facts: []fact[fabric.Subscriber]{
		{name: "ID", value: func(s fabric.Subscriber) string { return s.ID }},
		{name: "Project", detail: true, value: func(s fabric.Subscriber) string { return s.ProjectID }},
		{name: "E-mail", value: func(s fabric.Subscriber) string { return s.Email }},
		{name: "Disabled", value: func(s fabric.Subscriber) string {
			return strings.TrimPrefix(yesNo(s.Disabled), "no")
		}},
		{name: "Reference", value: func(s fabric.Subscriber) string { return s.Reference }},
		{name: "Name", value: fabric.Subscriber.FullName},
		{name: "Job title", detail: true, value: func(s fabric.Subscriber) string { return s.JobTitle }},
		{name: "Company", detail: true, value: func(s fabric.Subscriber) string { return s.CompanyName }},
		{name: "Time zone", detail: true, value: func(s fabric.Subscriber) string { return s.TimeZone }},
		{name: "Country", detail: true, value: func(s fabric.Subscriber) string { return s.Country }},
		{name: "Region", detail: true, value: func(s fabric.Subscriber) string { return s.Region }},
		{name: "Verified", detail: true, value: func(s fabric.Subscriber) string { return yesNo(s.Verified) }},
		{name: "Claims", detail: true, value: otherClaims},
		{name: "Password", detail: true, value: func(s fabric.Subscriber) string {
			return yesNo(s.PasswordHash != "")
		}},
		{name: "Created", aside: true, value: func(s fabric.Subscriber) string { return stamp(s.Created) }},
		{name: "Updated", detail: true, value: func(s fabric.Subscriber) string { return stamp(s.Updated) }},
	},
}

func (c *cli) subscriberCommand() *cobra.Command {
	create := &cobra.Command{Use: "create", Short: "Make a subscriber", Args: positional(),
		RunE: c.with(c.createSubscriber)}
	ls := &cobra.Command{Use: "list", Short: "List the subscribers of a project", Args: positional(),
		RunE: c.with(c.listSubscribers)}
	show := &cobra.Command{Use: "show ID", Short: "Show a subscriber", Args: positional("ID"),
		RunE: c.with(c.showSubscriber)}
	update := &cobra.Command{Use: "update ID", Short: "Change a subscriber; what is not given stays",
		Args: positional("ID"), RunE: c.with(c.updateSubscriber)}
	remove := &cobra.Command{Use: "delete ID", Short: "Delete a subscriber and end its tokens",
		Args: positional("ID"), RunE: c.with(c.deleteSubscriber)}
	sessions := &cobra.Command{Use: "sessions ID", Short: "List a subscriber's logins",
		Args: positional("ID"), RunE: c.with(c.listSessions)}
	consents := &cobra.Command{Use: "consents ID", Short: "List what a subscriber has agreed to, by client",
		Args: positional("ID"), RunE: c.with(c.listConsents)}
	tokens := &cobra.Command{Use: "tokens ID", Short: "List a subscriber's refresh tokens that were used",
		Args: positional("ID"), RunE: c.with(c.listFamilies)}
	factors := &cobra.Command{Use: "factors ID",
		Short: "List what proves who a subscriber is beside a password", Args: positional("ID"),
		RunE: c.with(c.listFactors)}
	removeFactor := &cobra.Command{
		Use: "remove-factor ID FACTOR", Short: "Take a passkey, an authenticator app or the recovery codes away from a subscriber",
		Args: positional("ID", "FACTOR"), RunE: c.with(c.removeFactor),
	}
	revoke := &cobra.Command{
		Use: "revoke ID", Short: "End all that a subscriber holds by now: logins, tokens, sockets",
		Args: positional("ID"), RunE: c.with(c.revokeSubscriber),
	}
	unlock := &cobra.Command{
		Use: "unlock ID", Short: "Let passwords be tried again at a subscriber's account after too many wrong ones", Args: positional("ID"), RunE: c.with(c.unlockSubscriber),
	}
	load := c.subscriberImportCommand()
	revoke.Flags().String("session", "", "only the login of this `sid`, with what was born of it")
	revoke.Flags().String("token", "", "only the refresh token of this `id`, with what came from it")
	revoke.Flags().String("client", "", "only what the client of this `id` has got, and the consent to it")
	addYes(remove)
	for _, cmd := range []*cobra.Command{create, update} {
		cmd.Flags().String("email", "", "its e-mail `address`")
		cmd.Flags().Bool("password-stdin", false, "read its password from stdin")
		for _, p := range profileFlags {
			cmd.Flags().String(p.flag, "", p.usage)
		}
		cmd.Flags().String("claims", "",
			"its other standard claims, such as picture, birthdate or phone_number, as a JSON object in this `file`; they take the place of those it had")
		cmd.Flags().Bool("email-verified", false, "somebody has shown that the e-mail is its own")
		cmd.Flags().SortFlags = false
	}
	update.Flags().Bool("disabled", false, "lock it out, or with =false let it in again")
	all := append([]*cobra.Command{create, ls, show, update, remove, sessions, consents, tokens, factors,
		removeFactor, revoke, unlock, load}, c.rightsCommands()...)
	for _, cmd := range all {
		addProject(cmd)
	}
	return noun("subscriber", "Subscribers: the people of a project, each by its id or, in the project, its e-mail", append(all, c.inviteCommand(), c.verifyCommand())...)
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

// subscriberInput returns what the flags say of a subscriber.
func (c *cli) subscriberInput(cmd *cobra.Command, prompt bool) (in fabric.SubscriberInput, err error) {
	in.Email = text(cmd, "email")
	for _, p := range profileFlags {
		*p.field(&in.Profile) = text(cmd, p.flag)
	}
	in.Disabled, in.Verified = truth(cmd, "disabled"), truth(cmd, "email-verified")
	if in.Claims, err = c.standardClaims(cmd); err != nil {
		return in, err
	}
	in.Password, err = c.password(cmd, prompt)
	return in, err
}

// truth returns a flag that is true or false, or nil where it was not given.
func truth(cmd *cobra.Command, flag string) *bool {
	f := cmd.Flags().Lookup(flag)
	if f == nil || !f.Changed {
		return nil
	}
	v := f.Value.String() == "true"
	return &v
}

// standardClaims reads the file of --claims.
func (c *cli) standardClaims(cmd *cobra.Command) (*fabric.StandardClaims, error) {
	file := text(cmd, "claims")
	if file == nil {
		return nil, nil
	}
	object, err := c.readObject(*file)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	var claims fabric.StandardClaims
	if err := dec.Decode(&claims); err != nil {
		return nil, usagef("--claims: %s is not a JSON object of standard claims (OpenID Connect Core, section 5.1): %v", *file, err)
	}
	return &claims, nil
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
	s, err := a.Fabric.CreateSubscriber(ctx, p.ID, in)
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
	all, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Subscriber], error) {
		return a.Fabric.ListSubscribers(ctx, p.ID, q)
	})
	if err != nil {
		return err
	}
	return list(c, subscribers, all)
}

// subscriber finds a subscriber by its id or, in one project, by its e-mail: other projects
// may have somebody else under that.
func (a *app) subscriber(ctx context.Context, cmd *cobra.Command, id string) (fabric.Subscriber, error) {
	if strings.Contains(id, "@") {
		p, err := a.project(ctx, cmd)
		if err != nil {
			return fabric.Subscriber{}, err
		}
		return a.Store.FindSubscriberByEmail(ctx, p.ID, fabric.NormalizeEmail(id))
	}
	return among(ctx, a, cmd, func(projectID string) (fabric.Subscriber, error) {
		return a.Fabric.FindSubscriber(ctx, projectID, id)
	})
}

func (c *cli) showSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	p, err := a.Fabric.Presence(ctx, s.ProjectID, s.ID)
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
	if s, err = a.Fabric.UpdateSubscriber(ctx, s.ProjectID, s.ID, in); err != nil {
		return err
	}
	return one(c, subscribers, s)
}

func (c *cli) unlockSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	return a.IDP.Unlock(ctx, s)
}

func (c *cli) deleteSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if err := c.confirm(cmd, "This deletes the subscriber "+s.Title()+".", s.Title()); err != nil {
		return err
	}
	return a.Fabric.DeleteSubscriber(ctx, s.ProjectID, s.ID)
}
