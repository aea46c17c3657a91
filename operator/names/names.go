// Package names finds the names of the actors and targets of audit events. The events themselves
// identify them only by id, so that the trail can be kept after the data of a person is erased.
package names

import (
	"cmp"
	"context"
	"errors"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// A Finder finds names. If Calls, Rooms or Recordings is nil, it finds no names of that kind.
type Finder struct {
	Fabric    *fabric.Fabric
	Clients   *idp.Provider
	Operators *operator.Operators
	Calls     *calls.Records // may be nil
	Rooms     *calls.Rooms   // may be nil

	// Recordings returns a page of recordings. It may be nil.
	Recordings func(context.Context, recordings.Filter, page.Query) (page.Page[recordings.Recording], error)
}

// A Name is the name of an entity. Text is "" if the entity never had a name, or has been deleted.
// The name of a deleted subscriber is kept until the subscriber is erased.
type Name struct {
	Text    string
	Sid     string // the Sid of a recording
	Deleted bool   // whether it is a deleted subscriber; Text may then be ""
}

// String returns the name as it is exported. It marks the name of a deleted subscriber.
func (n Name) String() string {
	if n.Deleted && n.Text != "" {
		return n.Text + " (deleted)"
	}
	return n.Text
}

// maxKnown is the maximum number of names that a Lookup remembers.
const maxKnown = 10_000

type key struct{ project, kind, id string }

// A Lookup caches the names that it finds. It must not be used concurrently.
type Lookup struct {
	finder Finder
	known  map[key]Name
}

// Begin returns a Lookup that knows no names yet.
func (f Finder) Begin() *Lookup { return &Lookup{finder: f, known: make(map[key]Name)} }

// Find returns the name of an entity in a project.
func (l *Lookup) Find(ctx context.Context, projectID, kind, id string) (Name, error) {
	if id == "" {
		return Name{}, nil
	}
	entity := key{project: projectID, kind: kind, id: id}
	if name, ok := l.known[entity]; ok {
		return name, nil
	}
	name, err := l.finder.find(ctx, projectID, kind, id)
	if err != nil {
		return Name{}, err
	}
	if len(l.known) >= maxKnown {
		clear(l.known)
	}
	l.known[entity] = name
	return name, nil
}

// Actor returns the name of the actor of an event.
func (l *Lookup) Actor(ctx context.Context, e audit.Event) (Name, error) {
	return l.Find(ctx, e.ProjectID, string(e.Actor.Kind), e.Actor.ID)
}

// Target returns the name of the target of an event. If the target has no name, Target returns the
// name or email in the details of the event.
func (l *Lookup) Target(ctx context.Context, e audit.Event) (Name, error) {
	name, err := l.Find(ctx, e.ProjectID, TargetKind(e), TargetID(e))
	if err != nil {
		return Name{}, err
	}
	if name.Text == "" {
		name.Text = cmp.Or(e.Detail["name"], e.Detail["email"])
	}
	return name, nil
}

// TargetKind returns the kind of the entity whose name stands for the target of an event. For an
// email, this is the subscriber to whom it was sent.
func TargetKind(e audit.Event) string {
	if isMail(e) {
		return "subscriber"
	}
	return e.Target.Kind
}

// TargetID returns the id of the entity whose name stands for the target of an event.
func TargetID(e audit.Event) string {
	if isMail(e) {
		return e.Detail["subscriber"]
	}
	return e.Target.ID
}

func isMail(e audit.Event) bool { return e.Target.Kind == "mail" && e.Detail["subscriber"] != "" }

// find returns the name of an entity in a project. An entity that does not exist has no name.
func (f Finder) find(ctx context.Context, projectID, kind, id string) (Name, error) {
	if kind == "subscriber" {
		return f.subscriber(ctx, projectID, id)
	}
	if kind == "recording" {
		return f.recording(ctx, projectID, id)
	}
	text, err := f.text(ctx, projectID, kind, id)
	if err != nil {
		return Name{}, problem.IgnoreNotFound(err)
	}
	return Name{Text: text}, nil
}

// text returns the name of an entity whose Name consists only of a text. It returns "" for an unknown
// kind.
func (f Finder) text(ctx context.Context, projectID, kind, id string) (string, error) {
	switch kind {
	case string(audit.CLI):
		return id, nil

	case "operator":
		o, err := f.Operators.Find(ctx, id)
		if err != nil {
			return "", err
		}
		return o.Title(), nil

	case "project":
		p, err := f.Fabric.Projects.Find(ctx, id)
		if err != nil {
			return "", err
		}
		return p.Name, nil

	case "client":
		return f.client(ctx, projectID, id)

	case "api_key":
		k, err := f.Fabric.APIKeys.Find(ctx, projectID, id)
		if err != nil {
			return "", err
		}
		return cmp.Or(k.Name, k.Prefix+"…"), nil

	case "call":
		return f.call(ctx, projectID, id)

	case "room_session":
		return f.room(ctx, projectID, id)

	case "webhook":
		w, err := f.Fabric.Webhooks.Find(ctx, projectID, id)
		if err != nil {
			return "", err
		}
		return cmp.Or(w.Name, w.URL), nil
	}
	return f.resource(ctx, projectID, kind, id)
}

// resource returns the name of a resource, or "" if kind is not the type of a resource.
func (f Finder) resource(ctx context.Context, projectID, kind, id string) (string, error) {
	k := f.Fabric.Resources.Kinds().ByType(kind)
	if k == nil {
		return "", nil
	}
	r, err := f.Fabric.Resources.Find(ctx, projectID, k, id)
	if err != nil {
		return "", err
	}
	return r.DisplayName, nil
}

// client returns the name of an OAuth client of the project. It returns "" for a client of another
// project, whose name the reader may not see.
func (f Finder) client(ctx context.Context, projectID, id string) (string, error) {
	c, err := f.Clients.Clients.Find(ctx, id)
	if err != nil || c.ProjectID != projectID {
		return "", err
	}
	return cmp.Or(c.Name, c.ID), nil
}

// subscriber returns the name of a subscriber, even after it was deleted, but not after it was
// erased.
func (f Finder) subscriber(ctx context.Context, projectID, id string) (Name, error) {
	s, err := f.Fabric.Subscribers.Find(ctx, projectID, id)
	if err == nil {
		return Name{Text: cmp.Or(s.Email, s.FullName(), s.Reference)}, nil
	}
	if !errors.Is(err, problem.NotFound) {
		return Name{}, err
	}

	text, err := f.Fabric.Subscribers.DeletedName(ctx, projectID, id)
	if err != nil {
		return Name{}, problem.IgnoreNotFound(err)
	}
	return Name{Text: text, Deleted: true}, nil
}

// call returns the name of a call: its parties.
func (f Finder) call(ctx context.Context, projectID, id string) (string, error) {
	if f.Calls == nil {
		return "", nil
	}
	r, err := f.Calls.Find(ctx, projectID, "", id)
	if err != nil {
		return "", err
	}
	return cmp.Or(Between(Party(r.From), Party(r.To)), id), nil
}

// room returns the name of a room session: the name that its room had when the session began.
func (f Finder) room(ctx context.Context, projectID, id string) (string, error) {
	if f.Rooms == nil {
		return "", nil
	}
	s, err := f.Rooms.Find(ctx, projectID, id)
	if err != nil {
		return "", err
	}
	return cmp.Or(s.Name, s.Address), nil
}

// recording returns the name of a recording: its participants, file or time. Events name recordings
// by id, since a Sid may be enough to fetch the media.
func (f Finder) recording(ctx context.Context, projectID, id string) (Name, error) {
	if f.Recordings == nil {
		return Name{}, nil
	}
	found, err := f.Recordings(ctx, recordings.Filter{Owner: recordings.Owner{ProjectID: projectID}},
		page.Query{Size: 1, From: id})
	if err != nil || len(found.Items) == 0 || found.Items[0].ID != id {
		return Name{}, err
	}
	r := found.Items[0]
	text := cmp.Or(Between(r.From, r.To), r.Name, r.Created.UTC().Format("2 Jan 2006, 15:04:05"))
	return Name{Text: text, Sid: r.Sid}, nil
}

// Party returns the address of a party of a call, or else its name. It returns "" for an erased
// party.
func Party(p calls.Party) string { return cmp.Or(p.Address, p.Name) }

// Between describes who called whom.
func Between(from, to string) string {
	switch {
	case from == "" && to == "":
		return ""
	case to == "":
		return from
	case from == "":
		return "to " + to
	}
	return from + " → " + to
}
