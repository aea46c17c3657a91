package command

import (
	"context"
	"errors"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/cmd/selvage/internal/server"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/spf13/cobra"
)

var projects = cli.View[fabric.Project]{
	ID: func(p fabric.Project) string { return p.ID },
	JSON: func(p fabric.Project) any {
		return struct {
			ID         string   `json:"id"`
			Name       string   `json:"name"`
			RecordRate int64    `json:"record_rate"`
			MediaAuth  string   `json:"media_auth"`
			Factor     bool     `json:"require_factor"`
			Registers  string   `json:"registration"`
			Color      string   `json:"color,omitempty"`
			Logo       string   `json:"logo,omitempty"`
			Terms      string   `json:"tos_uri,omitempty"`
			Privacy    string   `json:"policy_uri,omitempty"`
			CreatedAt  cli.Time `json:"created_at"`
			UpdatedAt  cli.Time `json:"updated_at"`
		}{p.ID, p.Name, p.RecordRate, p.MediaAuth, p.RequireFactor, string(p.Registration), p.Color, p.Logo,
			p.Terms, p.Privacy, cli.UTC(p.Created), cli.UTC(p.Updated)}
	},
	Facts: []cli.Fact[fabric.Project]{
		{Name: "ID", Value: func(p fabric.Project) string { return p.ID }},
		{Name: "Name", Value: func(p fabric.Project) string { return p.Name }},
		{Name: "Price of a minute", Detail: true, Value: func(p fabric.Project) string {
			return dollars(p.RecordRate)
		}},
		{Name: "Media", Detail: true, Value: func(p fabric.Project) string { return mediaFor[p.MediaAuth] }},
		{Name: "Two factors", Detail: true, Value: func(p fabric.Project) string { return cli.YesNo(p.RequireFactor) }},
		{Name: "Registration", Detail: true, Value: func(p fabric.Project) string {
			return registrationFor[p.Registration]
		}},
		{Name: "Color", Detail: true, Value: func(p fabric.Project) string { return p.Color }},
		{Name: "Logo", Detail: true, Value: func(p fabric.Project) string { return p.Logo }},
		{Name: "Terms", Detail: true, Value: func(p fabric.Project) string { return p.Terms }},
		{Name: "Privacy", Detail: true, Value: func(p fabric.Project) string { return p.Privacy }},
		{Name: "Created", Minor: true, Value: func(p fabric.Project) string { return cli.FormatTime(p.Created) }},
		{Name: "Updated", Detail: true, Value: func(p fabric.Project) string { return cli.FormatTime(p.Updated) }},
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

func (c *commands) projectCommand() *cobra.Command {
	create := cli.Command("create NAME", "Make a project", c.createProject)
	show := cli.Command("show ID", "Show a project", c.with(c.showProject))
	ls := &cobra.Command{Use: "list", Short: "List projects", Args: cli.NoArguments, RunE: c.with(c.listProjects)}
	update := cli.Command("update ID", "Change a project", c.with(c.updateProject))
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
	remove := cli.Command("delete ID", "Delete a project with everything in it", c.with(c.deleteProject))
	cli.AddYes(remove)
	return cli.Noun("project", "Projects: everything else belongs to one", create, ls, show, update, remove)
}

// createProject makes the data directory too: it is how a server without a demo
// begins.
func (c *commands) createProject(cmd *cobra.Command, args []string) error {
	conf, _, err := c.loadConfig(cmd.Flags())
	if err != nil {
		return err
	}
	if !conf.Database.Shared() {
		if err := datadir.Make(conf.Data); err != nil {
			return err
		}
	}
	return c.open(cmd.Context(), conf, server.Options{}, func(a *app) error {
		p, err := a.Fabric.Projects.Create(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return cli.Show(c.Env, projects, p)
	})
}

func (c *commands) listProjects(ctx context.Context, a *app, _ *cobra.Command, _ []string) error {
	all, err := page.Every(ctx, a.Fabric.Projects.List)
	if err != nil {
		return err
	}
	return cli.List(c.Env, projects, all)
}

func (c *commands) showProject(ctx context.Context, a *app, _ *cobra.Command, args []string) error {
	p, err := a.Fabric.Projects.Find(ctx, args[0])
	if err != nil {
		return err
	}
	return cli.Show(c.Env, projects, p)
}

func (c *commands) updateProject(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	change := fabric.ProjectChange{Name: cli.Text(cmd, "name"), MediaAuth: cli.Text(cmd, "media-auth"),
		Color: cli.Text(cmd, "color"), Terms: cli.Text(cmd, "tos-uri"), Privacy: cli.Text(cmd, "policy-uri"),
		RequireFactor: cli.Bool(cmd, "require-factor")}
	if who := cli.Text(cmd, "registration"); who != nil {
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
	p, err := a.Fabric.Projects.Update(ctx, args[0], change)
	if err == nil && given {
		p, err = a.Fabric.Projects.SetLogo(ctx, p.ID, made)
	}
	if err != nil {
		return err
	}
	return cli.Show(c.Env, projects, p)
}

func (c *commands) deleteProject(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	p, err := a.Fabric.Projects.Find(ctx, args[0])
	if err != nil {
		return err
	}
	if err := c.Confirm(cmd, fmt.Sprintf("This deletes the project %s and all its keys, clients, subscribers and recordings.", p.Name), p.Name); err != nil {
		return err
	}
	return a.Fabric.Projects.Delete(ctx, p.ID)
}

// addProject returns a command the flag --project.
func addProject(cmd *cobra.Command) {
	cmd.Flags().String("project", "", cli.ProjectUsage)
}

// project returns the project that a command is about.
func (a *app) project(ctx context.Context, cmd *cobra.Command) (fabric.Project, error) {
	if id, _ := cmd.Flags().GetString("project"); id != "" {
		p, err := a.Fabric.Projects.Find(ctx, id)
		if errors.Is(err, problem.NotFound) {
			return p, cli.NotFoundf("--project: there is no project %s; `selvage project list` shows those there are", id)
		}
		return p, err
	}
	some, err := a.Fabric.Projects.List(ctx, page.Query{Size: 2})
	switch {
	case err != nil:
		return fabric.Project{}, err
	case len(some.Items) == 0:
		return fabric.Project{}, cli.NotFoundf("there is no project yet; make one with `selvage project create NAME`")
	case len(some.Items) > 1:
		return fabric.Project{}, cli.Usagef(
			"%s needs --project: there are several; `selvage project list` shows them", cli.Name(cmd))
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
	all, err := page.Every(ctx, a.Fabric.Projects.List)
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
