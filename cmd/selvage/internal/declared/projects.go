package declared

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// Plan compares a file with the existing projects and returns the steps that apply it. With prune,
// the steps also remove things that were created from a file but are no longer in this file.
// Projects are never removed.
func (d *Declarer) Plan(ctx context.Context, f *File, prune bool) (steps []Step, err error) {
	existing, err := page.Every(ctx, d.c.Fabric.Projects.List)
	if err != nil {
		return nil, err
	}

	var errs []error
	taken := make(map[string]place)
	for _, p := range idsFirst(f.projects) {
		needed, err := d.planProject(ctx, p, existing, taken, prune)
		errs = append(errs, err)
		steps = append(steps, needed...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return steps, nil
}

// projectFields maps the members of a project in files to its fields.
func projectFields(p *fabric.Project) []field {
	fields := []field{{"logo", &p.Logo}, {"dark_logo", &p.DarkLogo}}
	for _, f := range fabric.ProjectFields {
		fields = append(fields, field{f.Name, f.Value(p)})
	}
	return fields
}

// freshProject returns a project with default values.
func freshProject() fabric.Project {
	return fabric.Project{
		RecordRate:         fabric.DefaultRecordRate,
		MediaAuth:          fabric.MediaAuths[0],
		Registration:       fabric.RegistrationOff,
		RecordCalls:        fabric.RecordOff,
		ClientRegistration: fabric.ClientsOff,
		OutboundCalls:      fabric.OutboundOff,
	}
}

// planProject returns the steps for a project and everything in it.
func (d *Declarer) planProject(
	ctx context.Context, p project, existing []fabric.Project, taken map[string]place, prune bool,
) ([]Step, error) {
	old, err := findProject(p, existing, taken)
	if err != nil {
		return nil, err
	}

	before := freshProject()
	t := &target{}
	if old != nil {
		before = *old
		t.id = old.ID
		t.marks, err = d.c.Store.ListDeclared(ctx, t.id)
		if err != nil {
			return nil, err
		}
	}

	if err := d.readLogos(ctx, p); err != nil {
		return nil, err
	}
	now := before
	names := append([]string{"id"}, lists...)
	if err := p.read(projectFields(&now), d.c.Suggest, names...); err != nil {
		return nil, err
	}

	t.name = now.Name
	change := before.ChangeTo(now)
	change.Name = &now.Name // a new project needs a name
	if err := change.Check(); err != nil {
		return nil, p.blame(err)
	}

	steps := d.projectStep(p, t, old, now)
	contents, err := d.planThings(ctx, p, t, prune)
	if err != nil {
		return nil, err
	}
	return append(steps, contents...), nil
}

// findProject returns the existing project that an entry describes, or nil if there is none. By name, it
// finds only projects that no other entry describes by ID.
func findProject(p project, existing []fabric.Project, taken map[string]place) (found *fabric.Project, err error) {
	id, name := p.member("id"), p.member("name")
	if id != nil {
		return findProjectByID(p, id, existing, taken)
	}
	if name == nil {
		return nil, p.errorf("name is required, because it identifies the entry")
	}
	if err := p.take(taken, "name", name.Value); err != nil {
		return nil, err
	}

	for _, old := range existing {
		_, isOther := taken["id"+old.ID]
		if old.Name != name.Value || isOther {
			continue
		}
		if found != nil {
			return nil, p.errorf("several projects have this name; set id to choose one")
		}
		found = &old
	}
	return found, nil
}

// findProjectByID returns the existing project with an ID. It reserves the name that the project will
// have, so that an entry without an ID cannot have the same name.
func findProjectByID(
	p project, id *yaml.Node, existing []fabric.Project, taken map[string]place,
) (*fabric.Project, error) {
	if err := p.take(taken, "id", id.Value); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(existing, func(old fabric.Project) bool { return old.ID == id.Value })
	if i < 0 {
		return nil, p.child(id, "id").errorf("no project has this id")
	}

	name := existing[i].Name
	if given := p.member("name"); given != nil {
		name = given.Value
	}
	taken["name"+name] = p.place
	return &existing[i], nil
}

// take records that the entry describes the project whose member has this value. If another entry describes
// the same project, take returns an error.
func (p project) take(taken map[string]place, member, value string) error {
	if other, twice := taken[member+value]; twice {
		return p.errorf("another entry in line %d has the same %s", other.node.Line, member)
	}
	taken[member+value] = p.place
	return nil
}

// projectStep returns the step that creates or updates the project itself. It returns none if the project
// already matches.
func (d *Declarer) projectStep(p project, t *target, old *fabric.Project, now fabric.Project) []Step {
	s := Step{
		Action:  Create,
		Kind:    "project",
		Project: now.Name,
		Name:    now.Name,
		ID:      t.id,
		place:   p.place,
	}
	base := freshProject()
	if old != nil {
		s.Action = Update
		base = *old
	}

	s.Changes = differences(projectFields(&base), projectFields(&now))
	if old != nil && len(s.Changes) == 0 {
		return nil
	}

	s.do = func(ctx context.Context) (m made, err error) {
		if old == nil {
			created, err := d.c.Fabric.Projects.Create(ctx, now.Name)
			if err != nil {
				return m, err
			}
			t.id = created.ID
			m.id = created.ID
			if len(s.Changes) == 1 { // the name is the only change, and every creation has it
				return m, nil
			}
		}
		change := base.ChangeTo(now)
		change.Logos = d.changedLogos(logoNames(base.Logo, base.DarkLogo), logoNames(now.Logo, now.DarkLogo))
		if _, err := d.c.Fabric.Projects.Update(ctx, t.id, change); err != nil {
			return m, fmt.Errorf("updating project: %w", err)
		}
		return m, nil
	}
	return []Step{s}
}

// planThings returns the steps for everything in a project. Removals come last.
func (d *Declarer) planThings(ctx context.Context, p project, t *target, prune bool) ([]Step, error) {
	var steps, removals []Step
	var errs []error
	add := func(changing, removing []Step, err error) {
		steps = append(steps, changing...)
		removals = append(removals, removing...)
		errs = append(errs, err)
	}
	add(plan(ctx, d, d.keys(), t, p.things["keys"], prune))
	add(plan(ctx, d, d.clients(), t, p.things["clients"], prune))
	add(plan(ctx, d, d.subscribers(), t, p.things["subscribers"], prune))
	add(d.planResources(ctx, t, p.things["resources"], prune))
	add(plan(ctx, d, d.upstreams(), t, p.things["upstreams"], prune))
	add(plan(ctx, d, d.webhooks(), t, p.things["webhooks"], prune))
	return append(steps, removals...), errors.Join(errs...)
}
