// Package declared applies files that describe projects: their API keys, clients,
// subscribers, resources, upstream providers and webhooks.
//
// A file is read and checked as a whole before anything changes. Errors name the line of each
// problem, and its path within the file. [Declarer.Plan] returns a step for each difference between the
// file and the projects; if the file was already applied, it returns no steps. Members that a file does
// not name keep their values. Each step calls package fabric or idp once, so that the same rules apply and
// the same audit events are recorded as for other changes.
//
// Things are identified by the names that files give them, or by their ids. Things created from a file
// are marked. With prune, marked things that are no longer in the file are removed.
package declared

import (
	"context"
	"errors"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/brand"
)

// A Store keeps the marks of things created from a file. The mark of a deleted thing does no harm,
// because IDs are never reused.
type Store interface {
	// MarkDeclared marks a thing in a project. It does nothing if the thing is already marked.
	MarkDeclared(ctx context.Context, projectID, id string) error
	// ListDeclared returns the IDs of all marked things of a project.
	ListDeclared(ctx context.Context, projectID string) ([]string, error)
	// UnmarkDeclared removes a mark. A missing mark is not an error.
	UnmarkDeclared(ctx context.Context, id string) error
}

// Config configures a Declarer.
type Config struct {
	Fabric *fabric.Fabric
	IDP    *idp.Provider
	Store  Store
	// Suggest returns a suffix for an error message about an unknown name. The suffix suggests the
	// most similar of names. The suffix is "" if none of them is similar.
	Suggest func(name string, names []string) string
	// ReadFile reads the file of a logo. Its path may be relative to the file of the projects.
	ReadFile func(path string) ([]byte, error)
}

// A Declarer plans and applies changes.
type Declarer struct {
	c     Config
	logos map[string]brand.Logo // logos of the planned file, by name
}

// New returns a Declarer.
func New(c Config) *Declarer { return &Declarer{c, make(map[string]brand.Logo)} }

// An Action is the kind of change that a step makes.
type Action string

// These are the possible actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// A Change is a member whose value, Old, differs from its value in the file, New. An empty Old or New
// means that the member has no value.
type Change struct {
	Member string `json:"member"`
	Old    string `json:"old,omitempty"`
	New    string `json:"new,omitempty"`
}

// A Step creates, updates or deletes one thing.
type Step struct {
	Action  Action
	Kind    string // project, key, client, subscriber, upstream, webhook, or the type of a resource
	Project string // name of the thing's project
	Name    string
	ID      string // "" for a thing that does not exist yet
	Changes []Change

	place place
	do    func(ctx context.Context) (made, error)
}

// made is the result of a step: an ID, the address, and a secret that is not stored.
type made struct{ id, secret, address string }

// A Done is a completed step.
type Done struct {
	Step
	Secret  string // secret of a created key or client; it is not stored
	Address string // address of a created resource or subscriber
}

// Apply performs the steps in order and calls tell after each of them. It stops at the first error.
// Completed steps are not undone, so the next plan contains only the remaining steps. If a step fails
// after it has created a secret, Apply still calls tell for the step, because the secret cannot be read
// later.
func (d *Declarer) Apply(ctx context.Context, steps []Step, tell func(Done) error) error {
	for _, s := range steps {
		m, err := s.do(ctx)
		if err != nil {
			err = s.place.wrap(err)
		}
		if err != nil && m.secret == "" {
			return err
		}
		if m.id != "" {
			s.ID = m.id
		}
		told := tell(Done{Step: s, Secret: m.secret, Address: m.address})
		if err := errors.Join(err, told); err != nil {
			return err
		}
	}
	return nil
}
