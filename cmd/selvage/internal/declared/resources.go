package declared

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/page"
)

// A resource is the entry of a resource in a file.
type resource struct {
	entry
	kind   *kinds.Kind
	sent   map[string]json.RawMessage // members of the entry, by their field names
	values kinds.Values               // fields that a new resource with these members would have
	name   string
}

// version is the member that counts the changes of a resource. A file cannot set it, because a file
// describes the state of a resource, not how many times it changed.
const version = "document_version"

// readResource parses the entry of a resource and checks its members.
func (d *Declarer) readResource(e entry) (r resource, err error) {
	r = resource{entry: e, sent: make(map[string]json.RawMessage)}
	r.kind, err = d.kindOf(e)
	if err != nil {
		return r, err
	}

	var names []string
	for _, f := range r.kind.Fields {
		names = append(names, f.Name)
	}
	var errs []error
	for _, m := range e.members {
		name := m.key.Value
		value := e.child(m.value, name)
		// Differences are computed by field name, so replace aliases with that name.
		if fieldName, ok := r.kind.Alias[name]; ok {
			name = fieldName
		}

		f := r.kind.Field(name)
		switch {
		case name == "kind" || name == "id":
		case f == nil:
			errs = append(errs, e.child(m.key, m.key.Value).errorf(
				"unknown member of %s%s", r.kind.Type, d.c.Suggest(name, names)))
		case f.ReadOnly || name == version && r.kind.Versions:
			errs = append(errs, value.errorf("is read-only"))
		default:
			raw, err := toJSON(value)
			errs = append(errs, err)
			r.sent[name] = raw
		}
	}
	if err := errors.Join(errs...); err != nil {
		return r, err
	}

	r.values, err = r.kind.New(r.sent)
	if err != nil {
		return r, e.blame(err)
	}
	r.name = r.kind.DisplayName(r.values)
	return r, nil
}

// kindOf returns the kind that the entry of a resource names.
func (d *Declarer) kindOf(e entry) (*kinds.Kind, error) {
	named := e.member("kind")
	if named == nil {
		return nil, e.errorf("kind is required, such as swml_script")
	}
	known := d.c.Fabric.Resources.Kinds()
	if kind := known.ByType(named.Value); kind != nil {
		return kind, nil
	}

	var types []string
	for _, kind := range known.All() {
		types = append(types, kind.Type)
	}
	hint := d.c.Suggest(named.Value, types)
	if hint == "" {
		hint = "; known are " + joinSorted(types)
	}
	return nil, e.child(named, "kind").errorf("unknown kind %q%s", named.Value, hint)
}

// planResources is like [plan], but for resources, whose members depend on their kind.
func (d *Declarer) planResources(
	ctx context.Context, p *target, entries []entry, prune bool,
) (steps, removals []Step, err error) {
	var existing []fabric.Resource
	if p.id != "" {
		existing, err = d.listResources(ctx, p.id)
		if err != nil {
			return nil, nil, err
		}
	}

	var errs []error
	taken := make(map[string]place)
	matched := make(map[string]bool)
	for _, e := range idsFirst(entries) {
		r, err := d.readResource(e)
		if err != nil {
			errs = append(errs, err)
			continue
		}

		old, err := r.find(existing, taken, matched)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := r.checkTransport(old); err != nil {
			errs = append(errs, err)
			continue
		}
		if old == nil {
			steps = append(steps, d.makeResource(p, r))
			continue
		}

		matched[old.ID] = true
		s, err := d.changeResource(p, r, *old)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if s != nil {
			steps = append(steps, *s)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	if !prune {
		return steps, nil, nil
	}

	for _, r := range existing {
		if !matched[r.ID] && slices.Contains(p.marks, r.ID) {
			removals = append(removals, d.removeResource(p, r))
		}
	}
	return steps, removals, nil
}

// checkTransport returns an error if an entry describes a gateway whose transport cannot be used. old is
// nil for a new gateway. Other kinds have no transport.
func (r resource) checkTransport(old *fabric.Resource) error {
	if r.kind.Type != fabric.GatewayKind {
		return nil
	}
	if old == nil {
		return r.blame(fabric.ChooseTransport(nil, r.values, r.sent))
	}
	values, err := r.kind.Change(old.Fields, r.sent)
	if err == nil {
		err = fabric.ChooseTransport(old.Fields, values, r.sent)
	}
	return r.blame(err)
}

// listResources returns the resources of a project, without its subscribers.
func (d *Declarer) listResources(ctx context.Context, projectID string) (all []fabric.Resource, err error) {
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[fabric.Thing], error) {
		return d.c.Fabric.Resources.ListThings(ctx, projectID, q)
	})
	if err != nil {
		return nil, err
	}
	for _, thing := range found {
		if thing.Resource != nil {
			all = append(all, *thing.Resource)
		}
	}
	return all, nil
}

// find returns the existing resource that an entry describes, or nil if there is none. By name, it finds
// only resources that are not in matched, because other entries describe those.
func (r resource) find(
	existing []fabric.Resource, taken map[string]place, matched map[string]bool,
) (found *fabric.Resource, err error) {
	if id := r.member("id"); id != nil {
		return r.findByID(id, existing, taken)
	}
	if r.name == "" {
		return nil, r.errorf("%s is required, because it identifies the entry", r.kind.Name[0])
	}
	if err := r.take(taken, r.kind.Type+" "+r.name); err != nil {
		return nil, err
	}

	for _, old := range existing {
		isMeant := old.Type == r.kind.Type && r.kind.DisplayName(old.Fields) == r.name
		if !isMeant || matched[old.ID] {
			continue
		}
		if found != nil {
			return nil, r.errorf("several resources have this name; set id to choose one")
		}
		found = &old
	}
	return found, nil
}

// findByID returns the existing resource with an ID. It reserves the name that the resource will have,
// so that another entry cannot have the same name. If r.name is "", the resource keeps its name.
func (r resource) findByID(
	id *yaml.Node, existing []fabric.Resource, taken map[string]place,
) (*fabric.Resource, error) {
	if err := r.take(taken, "id "+id.Value); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(existing, func(old fabric.Resource) bool {
		return old.ID == id.Value && old.Type == r.kind.Type
	})
	if i < 0 {
		return nil, r.child(id, "id").errorf("the project has no %s with this id", r.kind.Type)
	}
	old := &existing[i]
	return old, r.take(taken, r.kind.Type+" "+cmp.Or(r.name, r.kind.DisplayName(old.Fields)))
}

// take records that the entry describes the resource with this key. If another entry describes the
// same resource, take returns an error.
func (r resource) take(taken map[string]place, key string) error {
	if other, twice := taken[key]; twice {
		return r.errorf("duplicate %s %q; the other one is in line %d", r.kind.Type, r.name, other.node.Line)
	}
	taken[key] = r.place
	return nil
}

// makeResource returns the step that creates and marks a resource.
func (d *Declarer) makeResource(p *target, r resource) Step {
	s := Step{Action: Create, Kind: r.kind.Type, Project: p.name, Name: r.name, place: r.place}
	for _, f := range r.kind.Fields {
		if raw, ok := r.sent[f.Name]; ok {
			s.Changes = append(s.Changes, Change{Member: f.Name, New: shown(f, raw)})
		}
	}

	s.do = func(ctx context.Context) (made, error) {
		created, err := d.c.Fabric.Resources.Create(ctx, p.id, r.kind, r.sent)
		if err != nil {
			return made{}, err
		}
		if err := d.c.Store.MarkDeclared(ctx, p.id, created.ID); err != nil {
			return made{}, err
		}
		address, err := d.addressOf(ctx, p.id, created.ID)
		if err != nil {
			return made{}, err
		}
		return made{id: created.ID, address: address}, nil
	}
	return s
}

// changeResource returns the step that makes a resource match its entry, or nil if it already matches.
// Secrets are stored encrypted and cannot be compared, so they are set only at creation.
func (d *Declarer) changeResource(p *target, r resource, old fabric.Resource) (*Step, error) {
	s := &Step{
		Action:  Update,
		Kind:    r.kind.Type,
		Project: p.name,
		Name:    r.name,
		ID:      old.ID,
		place:   r.place,
	}
	sent := make(map[string]json.RawMessage)
	for _, f := range r.kind.Fields {
		raw, ok := r.sent[f.Name]
		before := old.Fields[f.Name]
		if !ok || f.WriteOnly || string(canonical(raw)) == string(canonical(before)) {
			continue
		}
		sent[f.Name] = raw
		s.Changes = append(s.Changes, Change{Member: f.Name, Old: shown(f, before), New: shown(f, raw)})
	}
	if len(sent) == 0 {
		return nil, nil
	}

	// These kinds accept an update only with the next version.
	if r.kind.Versions {
		var n int64
		if err := json.Unmarshal(old.Fields[version], &n); err != nil {
			return nil, r.errorf("invalid document_version: %v", err)
		}
		sent[version] = strconv.AppendInt(nil, n+1, 10)
	}

	s.do = func(ctx context.Context) (made, error) {
		_, err := d.c.Fabric.Resources.Update(ctx, p.id, r.kind, old.ID, sent)
		return made{}, err
	}
	return s, nil
}

// removeResource returns the step that deletes a resource and its mark.
func (d *Declarer) removeResource(p *target, r fabric.Resource) Step {
	return Step{
		Action:  Delete,
		Kind:    r.Type,
		Project: p.name,
		Name:    r.DisplayName,
		ID:      r.ID,
		place:   place{path: r.Type + " " + r.DisplayName},
		do: func(ctx context.Context) (made, error) {
			if err := d.c.Fabric.Resources.DeleteThing(ctx, p.id, r.ID); err != nil {
				return made{}, err
			}
			return made{}, d.c.Store.UnmarkDeclared(ctx, r.ID)
		},
	}
}

// shown formats the value of a member for people.
func shown(f kinds.Field, raw json.RawMessage) string {
	var text string
	switch {
	case f.WriteOnly:
		return "(not shown)"
	case raw == nil:
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return short(text)
	}
	return short(string(canonical(raw)))
}
