package declared

import (
	"context"
	"errors"
	"slices"

	"go.yaml.in/yaml/v3"
)

// A noun describes a kind of thing in a file, such as API keys, and how to read, create and change
// things of this kind.
type noun[T any] struct {
	kind   string
	fields func(*T) []field
	id     func(T) string
	name   func(T) string // returns the name that identifies a thing in files
	by     string         // member that holds the name
	fresh  func() T       // returns a thing with default values
	list   func(ctx context.Context, projectID string) ([]T, error)
	settle func(*T) error // normalizes the values of a file to their stored form
	check  func(ctx context.Context, t T, isNew bool) error
	create func(ctx context.Context, projectID string, t T) (made, error)
	update func(ctx context.Context, projectID string, old, t T) error
	remove func(ctx context.Context, projectID string, t T) error
	stays  bool                       // whether prune keeps things of this kind
	unsaid func(e entry, old T, t *T) // sets members of t that e implies but does not name; may be nil
}

// A target is the project that steps apply to. Its ID is "" until the project is created.
type target struct {
	id, name string
	marks    []string // IDs of the things created from a file
}

// things compares a project's things of one kind with the entries of a file.
type things[T any] struct {
	d        *Declarer
	n        noun[T]
	p        *target
	existing []T
	taken    map[string]place // entries seen so far, by ID or name
	matched  map[string]bool  // IDs of the existing things that the file names
}

// plan returns a step for each entry that differs from the project. With prune, it also returns
// removals of things that were created from a file but are not in this file. They are separate, because
// the removals of all kinds are done last.
func plan[T any](
	ctx context.Context, d *Declarer, n noun[T], p *target, entries []entry, prune bool,
) (steps, removals []Step, err error) {
	ts := &things[T]{
		d:       d,
		n:       n,
		p:       p,
		taken:   make(map[string]place),
		matched: make(map[string]bool),
	}
	if p.id != "" {
		ts.existing, err = n.list(ctx, p.id)
		if err != nil {
			return nil, nil, err
		}
	}

	var errs []error
	for _, e := range idsFirst(entries) {
		s, err := ts.compare(ctx, e)
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
	if !prune || n.stays {
		return steps, nil, nil
	}

	for _, t := range ts.existing {
		id := n.id(t)
		if !ts.matched[id] && slices.Contains(p.marks, id) {
			removals = append(removals, ts.removal(t))
		}
	}
	return steps, removals, nil
}

// idsFirst returns the entries with an id, followed by the others. Thus, the name of a thing that is
// renamed by its id is free for another entry.
func idsFirst[E interface{ member(name string) *yaml.Node }](entries []E) []E {
	var withID, others []E
	for _, e := range entries {
		if e.member("id") != nil {
			withID = append(withID, e)
		} else {
			others = append(others, e)
		}
	}
	return append(withID, others...)
}

// compare returns the step that an entry requires, or nil if the project already matches the entry.
func (ts *things[T]) compare(ctx context.Context, e entry) (*Step, error) {
	described := ts.n.fresh()
	err := e.read(ts.n.fields(&described), ts.d.c.Suggest, "id")
	if err != nil {
		return nil, err
	}
	if err := ts.n.settle(&described); err != nil {
		return nil, e.blame(err)
	}

	old, err := ts.find(e, described)
	if err != nil {
		return nil, err
	}
	if old == nil {
		if err := ts.n.check(ctx, described, true); err != nil {
			return nil, e.blame(err)
		}
		return ts.creation(e, described), nil
	}

	// Apply the entry to the existing thing. Members that the entry does not name keep their
	// values.
	now := *old
	_ = e.read(ts.n.fields(&now), ts.d.c.Suggest, "id") // the same read succeeded above
	if err := ts.n.settle(&now); err != nil {
		return nil, e.blame(err)
	}
	if ts.n.unsaid != nil {
		ts.n.unsaid(e, *old, &now)
	}

	changes := differences(ts.n.fields(old), ts.n.fields(&now))
	if len(changes) == 0 {
		return nil, nil
	}
	if err := ts.n.check(ctx, now, false); err != nil {
		return nil, e.blame(err)
	}

	before := *old
	return &Step{
		Action:  Update,
		Kind:    ts.n.kind,
		Project: ts.p.name,
		Name:    ts.n.name(now),
		ID:      ts.n.id(now),
		Changes: changes,
		place:   e.place,
		do: func(ctx context.Context) (made, error) {
			return made{}, ts.n.update(ctx, ts.p.id, before, now)
		},
	}, nil
}

// find finds the existing thing that an entry describes, by its ID or by its name. By name, it finds only
// things that no entry describes by ID, and returns nil if there is none. An unknown ID is an error.
func (ts *things[T]) find(e entry, described T) (found *T, err error) {
	name := ts.n.name(described)
	if id := e.member("id"); id != nil {
		return ts.findByID(e, id, name)
	}
	if name == "" {
		return nil, e.errorf("%s is required, because it identifies the entry", ts.n.by)
	}
	if err := ts.take(e, "name "+name, name); err != nil {
		return nil, err
	}

	for _, old := range ts.existing {
		if ts.n.name(old) != name || ts.matched[ts.n.id(old)] {
			continue
		}
		if found != nil {
			return nil, e.errorf("several have the %s %s; set id to choose one", ts.n.by, name)
		}
		found = &old
	}
	if found != nil {
		ts.matched[ts.n.id(*found)] = true
	}
	return found, nil
}

// findByID returns the existing thing with an ID. It reserves the name that the thing will have, so
// that an entry without an ID cannot have the same name. With the name "", the thing keeps its name.
func (ts *things[T]) findByID(e entry, id *yaml.Node, name string) (*T, error) {
	if err := ts.take(e, "id "+id.Value, name); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(ts.existing, func(old T) bool { return ts.n.id(old) == id.Value })
	if i < 0 {
		return nil, e.child(id, "id").errorf("the project has no %s with this id", ts.n.kind)
	}

	ts.matched[id.Value] = true
	if name == "" {
		name = ts.n.name(ts.existing[i])
	}
	ts.taken["name "+name] = e.place
	return &ts.existing[i], nil
}

// take records that an entry describes the thing with this key. If another entry describes the same
// thing, take returns an error.
func (ts *things[T]) take(e entry, key, name string) error {
	if other, twice := ts.taken[key]; twice {
		return e.errorf("duplicate %s %q; the other one is in line %d", ts.n.kind, name, other.node.Line)
	}
	ts.taken[key] = e.place
	return nil
}

// creation returns the step that creates and marks a thing.
func (ts *things[T]) creation(e entry, described T) *Step {
	fresh := ts.n.fresh()
	return &Step{
		Action:  Create,
		Kind:    ts.n.kind,
		Project: ts.p.name,
		Name:    ts.n.name(described),
		place:   e.place,
		Changes: differences(ts.n.fields(&fresh), ts.n.fields(&described)),
		do: func(ctx context.Context) (made, error) {
			m, err := ts.n.create(ctx, ts.p.id, described)
			if err != nil {
				return made{}, err
			}
			return m, ts.d.c.Store.MarkDeclared(ctx, ts.p.id, m.id)
		},
	}
}

// removal returns the step that deletes a thing and its mark.
func (ts *things[T]) removal(t T) Step {
	return Step{
		Action:  Delete,
		Kind:    ts.n.kind,
		Project: ts.p.name,
		Name:    ts.n.name(t),
		ID:      ts.n.id(t),
		place:   place{path: ts.n.kind + " " + ts.n.name(t)},
		do: func(ctx context.Context) (made, error) {
			if err := ts.n.remove(ctx, ts.p.id, t); err != nil {
				return made{}, err
			}
			return made{}, ts.d.c.Store.UnmarkDeclared(ctx, ts.n.id(t))
		},
	}
}

// changed returns the new value if it differs from the old value, and nil otherwise. An update does not
// set members that are nil, so it does not undo concurrent changes to them.
func changed[V comparable](old, now V) *V {
	if old == now {
		return nil
	}
	return &now
}

// differences returns a change for each field whose values differ.
func differences(old, now []field) (changes []Change) {
	for i, f := range now {
		if !same(old[i].to, f.to) {
			changes = append(changes, Change{Member: f.name, Old: show(old[i].to), New: show(f.to)})
		}
	}
	return changes
}
