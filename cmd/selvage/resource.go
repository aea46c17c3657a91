package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/suggest"
)

// A resource is one with its kind, as it is printed.
type resource struct {
	fabric.Resource
	kind *kinds.Kind
}

var resources = view[resource]{
	id:   func(r resource) string { return r.ID },
	json: func(r resource) any { return fabric.Document(r.kind, r.Resource) },
	facts: []fact[resource]{
		{name: "ID", value: func(r resource) string { return r.ID }},
		{name: "Project", detail: true, value: func(r resource) string { return r.ProjectID }},
		{name: "Kind", value: func(r resource) string { return r.Type }},
		{name: "Name", value: func(r resource) string { return r.DisplayName }},
		{name: "Created", aside: true, value: func(r resource) string { return stamp(r.Created) }},
		{name: "Updated", detail: true, value: func(r resource) string { return stamp(r.Updated) }},
		{name: "Fields", detail: true, value: func(r resource) string {
			text, _ := json.MarshalIndent(r.kind.Document(nil, r.Fields), "", "  ") // it is JSON
			return string(text)
		}},
	},
}

func (c *cli) resourceCommand() *cobra.Command {
	ls := &cobra.Command{Use: "list", Short: "List the resources of a project; subscribers have their own command", Args: positional(), RunE: c.with(c.listResources)}
	ls.Flags().String("kind", "", "only those of a `kind`, such as swml_script")
	show := &cobra.Command{Use: "show ID", Short: "Show a resource", Args: positional("ID"),
		RunE: c.with(c.showResource)}
	create := &cobra.Command{
		Use: "create KIND FILE.json", Short: "Make a resource of a kind from a JSON object; - is stdin",
		Args: positional("KIND", "FILE.json"), RunE: c.with(c.createResource),
	}
	remove := &cobra.Command{Use: "delete ID", Short: "Delete a resource with its addresses",
		Args: positional("ID"), RunE: c.with(c.deleteResource)}
	addYes(remove)
	for _, cmd := range []*cobra.Command{ls, show, create, remove} {
		addProject(cmd)
	}
	return noun("resource", "Resources: whatever can be called", ls, show, create, remove)
}

// kindNamed returns a kind by its type or path.
func (a *app) kindNamed(name string) (*kinds.Kind, error) {
	all := a.Fabric.Kinds()
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
		return nil, usagef("subscribers have a command of their own: `selvage subscriber --help`")
	}
	return nil, usagef("there is no kind %q%s", name,
		suggest.MeantOr(name, types, "there are "+strings.Join(types, ", ")))
}

func (c *cli) listResources(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
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
		return a.Fabric.ListThings(ctx, p.ID, q)
	})
	if err != nil {
		return err
	}
	shown := []resource{}
	for _, t := range found {
		if t.Resource != nil && (k == nil || k.Type == t.Resource.Type) {
			shown = append(shown, resource{*t.Resource, a.Fabric.KindOf(*t.Resource)})
		}
	}
	return list(c, resources, shown)
}

// findResource finds a resource by its id.
func (a *app) findResource(ctx context.Context, cmd *cobra.Command, id string) (resource, error) {
	t, err := among(ctx, a, cmd, func(projectID string) (fabric.Thing, error) {
		return a.Fabric.FindThing(ctx, projectID, id)
	})
	if err != nil {
		return resource{}, err
	}
	if t.Subscriber != nil {
		return resource{}, notFoundf("%s is a subscriber: `selvage subscriber show` shows it", id)
	}
	return resource{*t.Resource, a.Fabric.KindOf(*t.Resource)}, nil
}

func (c *cli) showResource(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := a.findResource(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	return one(c, resources, r)
}

// maxResource bounds the file of a resource, as the API bounds its body.
const maxResource = 1 << 20

func (c *cli) createResource(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
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
	made, err := a.Fabric.CreateResource(ctx, p.ID, k, sent)
	if err != nil {
		return inFile(args[1], err)
	}
	return one(c, resources, resource{made, k})
}

// inFile tells what is wrong with the members of a file, which are no flags.
func inFile(name string, err error) error {
	var faults []error
	for _, p := range problem.All(err) {
		if p.Param == "" {
			return err
		}
		faults = append(faults, usagef("%s: %s", shown(name), p.Message))
	}
	if faults == nil {
		return err
	}
	return errors.Join(faults...)
}

// shown names a file of the command line.
func shown(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// readFile reads a file, or stdin, of so many bytes at most.
func (c *cli) readFile(name string, most int) ([]byte, error) {
	in := c.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", shown(name), err)
	case len(text) > most:
		return nil, fmt.Errorf("%s is larger than %d MiB", shown(name), most>>20)
	}
	return text, nil
}

// readObject reads the JSON object of a file, or of stdin.
func (c *cli) readObject(name string) (object map[string]json.RawMessage, err error) {
	text, err := c.readFile(name, maxResource)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, usagef("%s needs a JSON object: %w", shown(name), err)
	}
	return object, nil
}

func (c *cli) deleteResource(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := a.findResource(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if err := c.confirm(cmd, "This deletes the "+r.Type+" "+r.DisplayName+" and its addresses.", r.DisplayName); err != nil {
		return err
	}
	return a.Fabric.DeleteThing(ctx, r.ProjectID, r.ID)
}
