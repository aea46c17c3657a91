// Package declared makes what there is of projects what a file says of them: API
// keys, clients, subscribers, resources and webhooks.
//
// A file is read and checked as a whole before anything is changed, and what is wrong
// is told with its line and its path. A [Plan] has a step for whatever differs, and
// none for what does not: a file that was applied gives an empty one. What a file says
// nothing of stays as it is. Each step is one change of package fabric or idp, with
// their rules and their audit events.
//
// Things are known by the names that the file gives them. Those that were made from a
// file are marked, so that only such are removed where a file does not name them any
// more.
package declared

import (
	"context"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

// A Store keeps the marks of what was made from a file. A mark of what is not there any
// more does no harm: ids are not used again.
type Store interface {
	// MarkDeclared marks a thing of a project; once more changes nothing.
	MarkDeclared(ctx context.Context, projectID, id string) error
	// ListDeclared returns the ids of all things of a project that are marked.
	ListDeclared(ctx context.Context, projectID string) ([]string, error)
	// UnmarkDeclared removes a mark, be it there or not.
	UnmarkDeclared(ctx context.Context, id string) error
}

// Config says what a Declarer works with.
type Config struct {
	Fabric *fabric.Fabric
	IDP    *idp.Provider
	Store  Store
	// Suggest returns the end of a sentence that names which of names was meant by one that
	// there is not, or "".
	Suggest func(name string, names []string) string
}

// A Declarer plans changes and makes them.
type Declarer struct{ c Config }

// New makes a Declarer.
func New(c Config) *Declarer { return &Declarer{c} }

// An Action says what a step does.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// A Change is a member of a thing that is not as the file says; "" is none.
type Change struct {
	Member string `json:"member"`
	Old    string `json:"old,omitempty"`
	New    string `json:"new,omitempty"`
}

// A Step is one change of one thing.
type Step struct {
	Action  Action
	Kind    string // project, key, client, subscriber, webhook, or that of a resource
	Project string // the name of its project
	Name    string
	ID      string // "" of what is to be made
	Changes []Change

	place place
	do    func(ctx context.Context) (made, error)
}

// made is what a step has made: its id, and a secret that is not kept.
type made struct{ id, secret, address string }

// A Done is a step that was taken.
type Done struct {
	Step
	Secret  string // of a key or client that was made; it is kept nowhere
	Address string // of a resource or subscriber that was made: where it is reached
}

// Apply takes the steps in their order, and tells of each. It ends with the first that
// fails: what was done stays, and the next plan goes on from there.
func (d *Declarer) Apply(ctx context.Context, steps []Step, tell func(Done) error) error {
	for _, s := range steps {
		m, err := s.do(ctx)
		if err != nil {
			return s.place.wrap(err)
		}
		if m.id != "" {
			s.ID = m.id
		}
		if err := tell(Done{Step: s, Secret: m.secret, Address: m.address}); err != nil {
			return err
		}
	}
	return nil
}
