package command

import (
	"context"
	"encoding/json"
	"errors"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/suggest"
	"github.com/spf13/cobra"
	"strings"
)

// A resource is one with its kind, as it is printed.
type resource struct {
	fabric.Resource
	kind *kinds.Kind
}

var resources = cli.View[resource]{
	ID:   func(r resource) string { return r.ID },
	JSON: func(r resource) any { return fabric.Document(r.kind, r.Resource) },
	Facts: []cli.Fact[resource]{
		{Name: "ID", Value: func(r resource) string { return r.ID }},
		{Name: "Project", Detail: true, Value: func(r resource) string { return r.ProjectID }},
		{Name: "Kind", Value: func(r resource) string { return r.Type }},
		{Name: "Name", Value: func(r resource) string { return r.DisplayName }},
		{Name: "Created", Minor: true, Value: func(r resource) string { return cli.FormatTime(r.Created) }},
		{Name: "Updated", Detail: true, Value: func(r resource) string { return cli.FormatTime(r.Updated) }},
		{Name: "Fields", Detail: true, Value: func(r resource) string {
			text, _ := json.MarshalIndent(r.kind.Document(nil, r.Fields), "", "  ") // it is JSON
			return string(text)
		}},
	},
}

func (c *commands) resourceCommand() *cobra.Command {
	ls := &cobra.Command{Use: "list", Short: "List the resources of a project; subscribers have their own command", Args: cli.NoArguments, RunE: c.with(c.listResources)}
	ls.Flags().String("kind", "", "only those of a `kind`, such as swml_script")
	show := cli.Command("show ID", "Show a resource", c.with(c.showResource))
	create := cli.Command("create KIND FILE.json", "Make a resource of a kind from a JSON object; - is stdin", c.with(c.createResource))
	remove := cli.Command("delete ID", "Delete a resource with its addresses", c.with(c.deleteResource))
	cli.AddYes(remove)
	for _, cmd := range []*cobra.Command{ls, show, create, remove} {
		addProject(cmd)
	}
	return cli.Noun("resource", "Resources: whatever can be called", ls, show, create, remove)
}

// kindNamed returns a kind by its type or path.
func (a *app) kindNamed(name string) (*kinds.Kind, error) {
	all := a.Fabric.Resources.Kinds()
	if k := all.ByType(name); k != nil {
		return k, nil
	}
	for _, path := range []string{name, name + "s"} {
		if k := all.ByPath(path); k != nil {
			return k, nil
		}
	}
	var types []string
	for _, k := range all.All() {
		types = append(types, k.Type)
	}
	if name == "subscriber" || name == "subscribers" {
		return nil, cli.Usagef("subscribers have a command of their own: `selvage subscriber --help`")
	}
	return nil, cli.Usagef("there is no kind %q%s", name,
		suggest.MeantOr(name, types, "there are "+strings.Join(types, ", ")))
}

func (c *commands) listResources(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	var k *kinds.Kind
	if name, _ := cmd.Flags().GetString("kind"); name != "" {
		if k, err = a.kindNamed(name); err != nil {
			return err
		}
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Thing], error) {
		return a.Fabric.Resources.ListThings(ctx, p.ID, q)
	})
	if err != nil {
		return err
	}
	shown := []resource{}
	for _, t := range found {
		if t.Resource != nil && (k == nil || k.Type == t.Resource.Type) {
			shown = append(shown, resource{*t.Resource, a.Fabric.Resources.KindOf(*t.Resource)})
		}
	}
	return cli.List(c.Env, resources, shown)
}

// findResource finds a resource by its id.
func (a *app) findResource(ctx context.Context, cmd *cobra.Command, id string) (resource, error) {
	t, err := among(ctx, a, cmd, func(projectID string) (fabric.Thing, error) {
		return a.Fabric.Resources.FindThing(ctx, projectID, id)
	})
	if err != nil {
		return resource{}, err
	}
	if t.Subscriber != nil {
		return resource{}, cli.NotFoundf("%s is a subscriber: `selvage subscriber show` shows it", id)
	}
	return resource{*t.Resource, a.Fabric.Resources.KindOf(*t.Resource)}, nil
}

func (c *commands) showResource(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := a.findResource(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	return cli.Show(c.Env, resources, r)
}

// maxResource bounds the file of a resource, as the API bounds its body.
const maxResource = 1 << 20

func (c *commands) createResource(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	k, err := a.kindNamed(args[0])
	if err != nil {
		return err
	}
	sent, err := c.readObject(args[1])
	if err != nil {
		return err
	}
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	made, err := a.Fabric.Resources.Create(ctx, p.ID, k, sent)
	if err != nil {
		return inFile(args[1], err)
	}
	return cli.Show(c.Env, resources, resource{made, k})
}

// inFile tells what is wrong with the members of a file, which are no flags.
func inFile(name string, err error) error {
	var faults []error
	for _, p := range problem.All(err) {
		if p.Param == "" {
			return err
		}
		faults = append(faults, cli.Usagef("%s: %s", cli.InputName(name), p.Message))
	}
	if faults == nil {
		return err
	}
	return errors.Join(faults...)
}

// readObject reads the JSON object of a file, or of stdin.
func (c *commands) readObject(name string) (object map[string]json.RawMessage, err error) {
	text, err := c.ReadInput(name, maxResource)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, cli.Usagef("%s needs a JSON object: %w", cli.InputName(name), err)
	}
	return object, nil
}

func (c *commands) deleteResource(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := a.findResource(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if err := c.Confirm(cmd, "This deletes the "+r.Type+" "+r.DisplayName+" and its addresses.", r.DisplayName); err != nil {
		return err
	}
	return a.Fabric.Resources.DeleteThing(ctx, r.ProjectID, r.ID)
}
