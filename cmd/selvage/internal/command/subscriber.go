package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// subscriberCommands builds the commands for subscribers.
type subscriberCommands struct{ *commands }

func (c subscriberCommands) command() *cobra.Command {
	n := noun[fabric.Subscriber]{
		commands: c.commands,
		view:     subscriberView,
		find:     findSubscriber,
		list:     inProject(func(a *app) lister[fabric.Subscriber] { return a.Fabric.Subscribers.List }),
	}
	create := n.projectCommand("create", "Create a subscriber", []string{"email"}, c.createSubscriber)
	ls := n.listCommand("list", "List the subscribers of a project")
	show := cli.Command("show ID", "Show a subscriber", c.with(c.showSubscriber))
	update := n.changeCommand("update ID", "Update a subscriber: only the given flags change it",
		c.updateSubscriber)
	remove := n.deleteCommand("delete ID", "Delete a subscriber and revoke its tokens",
		func(s fabric.Subscriber) (what, name string) {
			return "This deletes the subscriber " + s.Title() + ".", s.Title()
		},
		func(ctx context.Context, a *app, s fabric.Subscriber) error {
			return a.Fabric.Subscribers.Delete(ctx, s.ProjectID, s.ID)
		})
	unlock := cli.Command("unlock ID", "Allow password logins again after too many wrong passwords",
		c.with(unlockSubscriber))

	for _, cmd := range []*cobra.Command{create, update} {
		addSubscriberFlags(cmd)
	}
	update.Flags().Bool("disabled", false, "disable the account; =false enables it again")
	cmds := []*cobra.Command{create, ls, show, update, remove, unlock, c.subscriberImportCommand()}
	cmds = append(cmds, c.accessCommands()...)
	cmds = append(cmds, c.rightsCommands()...)
	cmds = append(cmds, c.subscriberMailCommands()...)
	addProject(cmds...)
	return cli.Noun("subscriber",
		"Subscribers: the people of a project, each named by id or, in a project, by email or reference", cmds...)
}

func addSubscriberFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.String("email", "", "email `address`")
	f.Bool("password-stdin", false, "read the password from stdin")
	for _, p := range fabric.PersonFields {
		f.String(personFlag(p), "", cmp.Or(personUsage[p.Name], "`"+strings.ToLower(p.Label)+"`"))
	}

	f.String("claims", "", "`file` with a JSON object of other standard claims, such as picture, birthdate or "+
		"phone_number; it replaces the previous ones")
	f.Bool("email-verified", false, "the email address is known to be theirs")
	f.String("record-calls", "", "`setting`: inherit (the project's), off, or on to record their calls. A call is "+
		"recorded if this setting is on for one of its subscribers")
	f.String("forward-busy", "", "`address` or phone number for calls that they reject, and for calls that "+
		"arrive while three other calls ring; empty for none")
	f.String("forward-no-answer", "", "`address` or phone number for calls that they do not answer; empty for none")
	f.Int("ring-seconds", 0, "`seconds` to ring before --forward-no-answer applies, 5 to 60; 0 for 20")
	f.SortFlags = false
}

// personFlag returns the flag that sets a field of the person.
func personFlag(f fabric.PersonField) string { return strings.ReplaceAll(f.Name, "_", "-") }

// personUsage contains the descriptions of flags, by field. The flags of other fields are described by
// the label of the field.
var personUsage = map[string]string{
	"first_name":   "first `name`",
	"last_name":    "last `name`",
	"display_name": "`name` that others see",
	"job_title":    "job `title`",
	"time_zone":    "time `zone`, such as Europe/Paris",
}

// subscriberInput returns the fields of a subscriber that the flags set. If prompt is true, it may ask
// for a password.
func (c subscriberCommands) subscriberInput(cmd *cobra.Command, prompt bool) (in fabric.SubscriberInput, err error) {
	in.Email = cli.Text(cmd, "email")
	for _, f := range fabric.PersonFields {
		*f.Input(&in.Profile) = cli.Text(cmd, personFlag(f))
	}

	in.Disabled = cli.Bool(cmd, "disabled")
	in.Verified = cli.Bool(cmd, "email-verified")
	in.RecordCalls = (*fabric.RecordCalls)(cli.Text(cmd, "record-calls"))
	in.Forwarding = fabric.ForwardingInput{
		Busy:        cli.Text(cmd, "forward-busy"),
		NoAnswer:    cli.Text(cmd, "forward-no-answer"),
		RingSeconds: cli.Int(cmd, "ring-seconds"),
	}
	in.Claims, err = c.flagClaims(cmd)
	if err != nil {
		return in, err
	}
	in.Password, err = c.ReadPassword(cmd, prompt)
	return in, err
}

// flagClaims reads the file named by --claims. It returns nil if the flag is not set.
func (c subscriberCommands) flagClaims(cmd *cobra.Command) (*fabric.StandardClaims, error) {
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
		return nil, cli.Usagef("--claims: %s is not a JSON object of standard claims "+
			"(OpenID Connect Core, section 5.1): %v", *file, err)
	}
	return &claims, nil
}

func (c subscriberCommands) createSubscriber(
	ctx context.Context, a *app, cmd *cobra.Command, p fabric.Project,
) (fabric.Subscriber, error) {
	in, err := c.subscriberInput(cmd, true)
	if err != nil {
		return fabric.Subscriber{}, err
	}
	return a.Fabric.Subscribers.Create(ctx, p.ID, in)
}

// findSubscriber finds a subscriber by id or, within one project, by email address or reference.
// Different projects may have different subscribers with the same address or reference.
func findSubscriber(ctx context.Context, a *app, cmd *cobra.Command, id string) (fabric.Subscriber, error) {
	if !strings.Contains(id, "@") {
		s, err := searchProjects(ctx, a, cmd, func(projectID string) (fabric.Subscriber, error) {
			return a.Fabric.Subscribers.Find(ctx, projectID, id)
		})
		if !errors.Is(err, problem.NotFound) {
			return s, err
		}
		if _, projectErr := a.project(ctx, cmd); projectErr != nil {
			return s, err
		}
	}

	p, err := a.project(ctx, cmd)
	if err != nil {
		return fabric.Subscriber{}, err
	}
	return a.Fabric.Subscribers.FindReferred(ctx, p.ID, id)
}

func (c subscriberCommands) showSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := findSubscriber(ctx, a, cmd, args[0])
	if err != nil {
		return err
	}
	p, err := a.Fabric.Presence.Find(ctx, s.ProjectID, s.ID)
	if err != nil {
		return err
	}
	return cli.Show(c.Env, withPresence(p), s)
}

func (c subscriberCommands) updateSubscriber(
	ctx context.Context, a *app, cmd *cobra.Command, s fabric.Subscriber,
) (fabric.Subscriber, error) {
	in, err := c.subscriberInput(cmd, false)
	if err != nil {
		return fabric.Subscriber{}, err
	}
	return a.Fabric.Subscribers.Update(ctx, s.ProjectID, s.ID, in)
}

func unlockSubscriber(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	s, err := findSubscriber(ctx, a, cmd, args[0])
	if err != nil {
		return err
	}
	return a.IDP.Attempts.Unlock(ctx, s)
}
