package command

import (
	"bytes"
	"context"
	"encoding/json"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/spf13/cobra"
	"strings"
)

var subscribers = cli.View[fabric.Subscriber]{
	ID:   func(s fabric.Subscriber) string { return s.ID },
	JSON: func(s fabric.Subscriber) any { return printSubscriber(s) },
	Facts: []cli.Fact[fabric.Subscriber]{
		{Name: "ID", Value: func(s fabric.Subscriber) string { return s.ID }},
		{Name: "Project", Detail: true, Value: func(s fabric.Subscriber) string { return s.ProjectID }},
		{Name: "E-mail", Value: func(s fabric.Subscriber) string { return s.Email }},
		{Name: "Disabled", Value: func(s fabric.Subscriber) string {
			return cli.YesOnly(s.Disabled)
		}},
		{Name: "Reference", Value: func(s fabric.Subscriber) string { return s.Reference }},
		{Name: "Name", Value: fabric.Subscriber.FullName},
		{Name: "Job title", Detail: true, Value: func(s fabric.Subscriber) string { return s.JobTitle }},
		{Name: "Company", Detail: true, Value: func(s fabric.Subscriber) string { return s.CompanyName }},
		{Name: "Time zone", Detail: true, Value: func(s fabric.Subscriber) string { return s.TimeZone }},
		{Name: "Country", Detail: true, Value: func(s fabric.Subscriber) string { return s.Country }},
		{Name: "Region", Detail: true, Value: func(s fabric.Subscriber) string { return s.Region }},
		{Name: "Verified", Detail: true, Value: func(s fabric.Subscriber) string { return cli.YesNo(s.Verified) }},
		{Name: "Claims", Detail: true, Value: otherClaims},
		{Name: "Password", Detail: true, Value: func(s fabric.Subscriber) string {
			return cli.YesNo(s.PasswordHash != "")
		}},
		{Name: "Created", Minor: true, Value: func(s fabric.Subscriber) string { return cli.FormatTime(s.Created) }},
		{Name: "Updated", Detail: true, Value: func(s fabric.Subscriber) string { return cli.FormatTime(s.Updated) }},
	},
}

func (c *commands) subscriberCommand() *cobra.Command {
	create := &cobra.Command{Use: "create", Short: "Make a subscriber", Args: cli.NoArguments,
		RunE: c.with(c.createSubscriber)}
	ls := &cobra.Command{Use: "list", Short: "List the subscribers of a project", Args: cli.NoArguments,
		RunE: c.with(c.listSubscribers)}
	show := cli.Command("show ID", "Show a subscriber", c.with(c.showSubscriber))
	update := cli.Command("update ID", "Change a subscriber; what is not given stays", c.with(c.updateSubscriber))
	remove := cli.Command("delete ID", "Delete a subscriber and end its tokens", c.with(c.deleteSubscriber))
	sessions := cli.Command("sessions ID", "List a subscriber's logins", c.with(c.listSessions))
	consents := cli.Command("consents ID", "List what a subscriber has agreed to, by client", c.with(c.listConsents))
	tokens := cli.Command("tokens ID", "List a subscriber's refresh tokens that were used", c.with(c.listFamilies))
	factors := cli.Command("factors ID", "List what proves who a subscriber is beside a password", c.with(c.listFactors))
	removeFactor := cli.Command("remove-factor ID FACTOR", "Take a passkey, an authenticator app or the recovery codes away from a subscriber", c.with(c.removeFactor))
	revoke := cli.Command("revoke ID", "End all that a subscriber holds by now: logins, tokens, sockets", c.with(c.revokeSubscriber))
	unlock := cli.Command("unlock ID", "Let passwords be tried again at a subscriber's account after too many wrong ones", c.with(c.unlockSubscriber))
	load := c.subscriberImportCommand()
	revoke.Flags().String("session", "", "only the login of this `sid`, with what was born of it")
	revoke.Flags().String("token", "", "only the refresh token of this `id`, with what came from it")
	revoke.Flags().String("client", "", "only what the client of this `id` has got, and the consent to it")
	cli.AddYes(remove)
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
	return cli.Noun("subscriber", "Subscribers: the people of a project, each by its id or, in the project, its e-mail", append(all, c.inviteCommand(), c.verifyCommand())...)
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
func (c *commands) subscriberInput(cmd *cobra.Command, prompt bool) (in fabric.SubscriberInput, err error) {
	in.Email = cli.Text(cmd, "email")
	for _, p := range profileFlags {
		*p.field(&in.Profile) = cli.Text(cmd, p.flag)
	}
	in.Disabled, in.Verified = cli.Bool(cmd, "disabled"), cli.Bool(cmd, "email-verified")
	if in.Claims, err = c.standardClaims(cmd); err != nil {
		return in, err
	}
	in.Password, err = c.ReadPassword(cmd, prompt)
	return in, err
}

// standardClaims reads the file of --claims.
func (c *commands) standardClaims(cmd *cobra.Command) (*fabric.StandardClaims, error) {
	file := cli.Text(cmd, "claims")
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
		return nil, cli.Usagef("--claims: %s is not a JSON object of standard claims (OpenID Connect Core, section 5.1): %v", *file, err)
	}
	return &claims, nil
}

func (c *commands) createSubscriber(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	if err := cli.Need(cmd, "email"); err != nil {
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
	s, err := a.Fabric.Subscribers.Create(ctx, p.ID, in)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, subscribers, s)
}

func (c *commands) listSubscribers(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	all, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Subscriber], error) {
		return a.Fabric.Subscribers.List(ctx, p.ID, q)
	})
	if err != nil {
		return err
	}
	return cli.List(c.Env, subscribers, all)
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
		return a.Fabric.Subscribers.Find(ctx, projectID, id)
	})
}

func (c *commands) showSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	p, err := a.Fabric.Presence.Find(ctx, s.ProjectID, s.ID)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, withPresence(p), s)
}

func (c *commands) updateSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	in, err := c.subscriberInput(cmd, false)
	if err != nil {
		return err
	}
	if s, err = a.Fabric.Subscribers.Update(ctx, s.ProjectID, s.ID, in); err != nil {
		return err
	}
	return cli.Show(c.Env, subscribers, s)
}

func (c *commands) unlockSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	return a.IDP.Attempts.Unlock(ctx, s)
}

func (c *commands) deleteSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := a.subscriber(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if err := c.Confirm(cmd, "This deletes the subscriber "+s.Title()+".", s.Title()); err != nil {
		return err
	}
	return a.Fabric.Subscribers.Delete(ctx, s.ProjectID, s.ID)
}
