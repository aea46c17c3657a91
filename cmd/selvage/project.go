package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/server"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

var projects = view[fabric.Project]{
	id: func(p fabric.Project) string { return p.ID },
	json: func(p fabric.Project) any {
		return struct {
			ID         string `json:"id"`
			Name       string `json:"name"`
			RecordRate int64  `json:"record_rate"`
			MediaAuth  string `json:"media_auth"`
			Factor     bool   `json:"require_factor"`
			Registers  string `json:"registration"`
			Color      string `json:"color,omitempty"`
			Logo       string `json:"logo,omitempty"`
			Terms      string `json:"tos_uri,omitempty"`
			Privacy    string `json:"policy_uri,omitempty"`
			CreatedAt  moment `json:"created_at"`
			UpdatedAt  moment `json:"updated_at"`
		}{p.ID, p.Name, p.RecordRate, p.MediaAuth, p.RequireFactor, string(p.Registration), p.Color, p.Logo,
			p.Terms, p.Privacy, iso(p.Created), iso(p.Updated)}
	},
	facts: []fact[fabric.Project]{
		{name: "ID", value: func(p fabric.Project) string { return p.ID }},
		{name: "Name", value: func(p fabric.Project) string { return p.Name }},
		{name: "Price of a minute", detail: true, value: func(p fabric.Project) string {
			return dollars(p.RecordRate)
		}},
		{name: "Media", detail: true, value: func(p fabric.Project) string { return mediaFor[p.MediaAuth] }},
		{name: "Two factors", detail: true, value: func(p fabric.Project) string { return yesNo(p.RequireFactor) }},
		{name: "Registration", detail: true, value: func(p fabric.Project) string {
			return registrationFor[p.Registration]
		}},
		{name: "Color", detail: true, value: func(p fabric.Project) string { return p.Color }},
		{name: "Logo", detail: true, value: func(p fabric.Project) string { return p.Logo }},
		{name: "Terms", detail: true, value: func(p fabric.Project) string { return p.Terms }},
		{name: "Privacy", detail: true, value: func(p fabric.Project) string { return p.Privacy }},
		{name: "Created", aside: true, value: func(p fabric.Project) string { return stamp(p.Created) }},
		{name: "Updated", detail: true, value: func(p fabric.Project) string { return stamp(p.Updated) }},
	},
}

// mediaFor says in words who may fetch media.
var mediaFor = map[string]string{
	"public": "public: for whoever knows the URL",
	"basic":  "basic: for who has credentials",
	"signed": "signed: for who has credentials, or a link that they signed",
}

// registrationFor says in words who may make accounts.
var registrationFor = map[fabric.Registration]string{
	fabric.RegistrationOff:  "off: accounts are made for people",
	fabric.RegistrationOpen: "open: people make accounts themselves, with an address that is theirs",
}

// dollars writes millionths of a dollar.
func dollars(micros int64) string { return fmt.Sprintf("$%d.%06d", micros/1e6, micros%1e6) }

func (c *cli) projectCommand() *cobra.Command {
	create := &cobra.Command{Use: "create NAME", Short: "Make a project", Args: positional("NAME"),
		RunE: c.createProject}
	show := &cobra.Command{Use: "show ID", Short: "Show a project", Args: positional("ID"),
		RunE: c.with(c.showProject)}
	ls := &cobra.Command{Use: "list", Short: "List projects", Args: positional(), RunE: c.with(c.listProjects)}
	update := &cobra.Command{Use: "update ID", Short: "Change a project", Args: positional("ID"),
		RunE: c.with(c.updateProject)}
	update.Flags().String("name", "", "its `name`")
	update.Flags().Int64("record-rate", 0, "`price` of a recorded minute, in millionths of a dollar")
	update.Flags().String("color", "", "the `color` of buttons on its pages and in its mails, such as #2f4b9b")
	update.Flags().String("logo", "", "a `file` with its logo, PNG, JPEG or WebP, shown on its pages and in its mails; \"\" for none")
	update.Flags().String("tos-uri", "", "the `uri` of its terms, shown where people sign in; \"\" for none")
	update.Flags().String("policy-uri", "", "the `uri` of its privacy policy, likewise")
	update.Flags().String("media-auth", "",
		"`who` may fetch the media of recordings: public, basic (credentials) or signed (those, and signed links)")
	update.Flags().Bool("require-factor", false,
		"every login of its subscribers needs two factors; with =false a password is enough again")
	update.Flags().String("registration", "",
		"`who` may make an account: off (operators and backends), or open (whoever reads mail at its address)")
	remove := &cobra.Command{
		Use: "delete ID", Short: "Delete a project with everything in it", Args: positional("ID"),
		RunE: c.with(c.deleteProject),
	}
	addYes(remove)
	return noun("project", "Projects: everything else belongs to one", create, ls, show, update, remove)
}

// createProject makes the data directory too: it is how a server without a demo
// begins.
func (c *cli) createProject(cmd *cobra.Command, args []string) error {
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	if !conf.Database.Shared() {
		if err := datadir.Make(conf.Data); err != nil {
			return err
		}
	}
	return c.over(cmd.Context(), conf, server.Options{}, func(a *app) error {
		p, err := a.Fabric.CreateProject(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return one(c, projects, p)
	})
}

func (c *cli) listProjects(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	all, err := page.Every(ctx, a.Fabric.ListProjects)
	if err != nil {
		return err
	}
	return list(c, projects, all)
}

func (c *cli) showProject(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	p, err := a.Fabric.FindProject(ctx, args[0])
	if err != nil {
		return err
	}
	return one(c, projects, p)
}

func (c *cli) updateProject(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	change := fabric.ProjectChange{Name: text(cmd, "name"), MediaAuth: text(cmd, "media-auth"),
		Color: text(cmd, "color"), Terms: text(cmd, "tos-uri"), Privacy: text(cmd, "policy-uri"),
		RequireFactor: truth(cmd, "require-factor")}
	if who := text(cmd, "registration"); who != nil {
		change.Registration = (*fabric.Registration)(who)
	}
	if cmd.Flags().Changed("record-rate") {
		rate, err := cmd.Flags().GetInt64("record-rate")
		if err != nil {
			return err
		}
		change.RecordRate = &rate
	}
	made, given, err := typedLogo(cmd)
	if err != nil {
		return err
	}
	p, err := a.Fabric.UpdateProject(ctx, args[0], change)
	if err == nil && given {
		p, err = a.Fabric.SetLogo(ctx, p.ID, made)
	}
	if err != nil {
		return err
	}
	return one(c, projects, p)
}

func (c *cli) deleteProject(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	p, err := a.Fabric.FindProject(ctx, args[0])
	if err != nil {
		return err
	}
	if err := c.confirm(cmd, fmt.Sprintf("This deletes the project %s and all its keys, clients, subscribers and recordings.", p.Name), p.Name); err != nil {
		return err
	}
	return a.Fabric.DeleteProject(ctx, p.ID)
}

// addProject returns a command the flag --project.
func addProject(cmd *cobra.Command) {
	cmd.Flags().String("project", "", "`id` of the project (may be left out where there is only one)")
}

// project returns the project that a command is about.
func (a *app) project(ctx context.Context, cmd *cobra.Command) (fabric.Project, error) {
	if id, _ := cmd.Flags().GetString("project"); id != "" {
		p, err := a.Fabric.FindProject(ctx, id)
		if errors.Is(err, problem.NotFound) {
			return p, notFoundf("--project: there is no project %s; `selvage project list` shows those there are", id)
		}
		return p, err
	}
	some, err := a.Fabric.ListProjects(ctx, page.Query{Size: 2})
	switch {
	case err != nil:
		return fabric.Project{}, err
	case len(some.Items) == 0:
		return fabric.Project{}, notFoundf("there is no project yet; make one with `selvage project create NAME`")
	case len(some.Items) > 1:
		return fabric.Project{}, usagef(
			"%s needs --project: there are several; `selvage project list` shows them", verb(cmd))
	}
	return some.Items[0], nil
}

// among finds a thing by its id in the project of --project or, as ids are
// unique, in whichever has it.
func among[T any](ctx context.Context, a *app, cmd *cobra.Command, find func(projectID string) (T, error)) (found T, err error) {
	if cmd.Flags().Changed("project") {
		p, err := a.project(ctx, cmd)
		if err != nil {
			return found, err
		}
		return find(p.ID)
	}
	all, err := page.Every(ctx, a.Fabric.ListProjects)
	if err != nil {
		return found, err
	}
	err = problem.NoSuch("project")
	for _, p := range all {
		if found, err = find(p.ID); problem.First(err) == nil || problem.First(err).Kind != problem.NotFound {
			return found, err
		}
	}
	return found, err
}
