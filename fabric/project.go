package fabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// DefaultRecordRate is what a minute of recording costs in a new project.
const DefaultRecordRate = 2500

// A Project is a tenant: everything else belongs to one, and nothing is seen
// from another.
type Project struct {
	ID         string
	Name       string
	RecordRate int64  // price of a recorded minute, in millionths of a dollar
	MediaAuth  string // who may fetch the media of its recordings: a member of MediaAuths
	// RequireFactor has every login of a subscriber proven by two factors.
	RequireFactor bool
	Color         string // of buttons on its pages and in its mails, "#rrggbb"; "" for ours
	Logo          string // name of its picture there; "" for none
	Terms         string // address of its terms, shown where people sign in; "" for none
	Privacy       string // of its privacy policy, likewise

	Registration Registration // who may make an account by its pages

	Created time.Time
	Updated time.Time
}

// A Registration says who may make an account: those whom somebody else makes one for
// (off), or whoever reads mail at an address (open).
type Registration string

// The ways of registration, the default first.
const (
	RegistrationOff  Registration = "off"
	RegistrationOpen Registration = "open"
)

// MediaAuths are the ways to say who may fetch media, the default first: whoever
// knows its URL; who has credentials; those, and whoever has a link that they
// signed.
var MediaAuths = []string{"public", "basic", "signed"}

// A ProjectChange is what of a project to change; nil fields stay.
type ProjectChange struct {
	Name       *string
	RecordRate *int64
	MediaAuth  *string

	RequireFactor *bool
	Color         *string
	Terms         *string
	Privacy       *string

	Registration *Registration
}

// Check reports everything that is wrong with the change.
func (c ProjectChange) Check() error {
	var errs []error
	if c.Name != nil {
		errs = append(errs, checkRequired("name", *c.Name))
	}
	if c.RecordRate != nil && *c.RecordRate < 0 {
		errs = append(errs, problem.BadParam("record_rate", "record_rate must not be negative"))
	}
	if c.MediaAuth != nil && !slices.Contains(MediaAuths, *c.MediaAuth) {
		errs = append(errs, problem.BadParam(
			"media_auth", "media_auth must be one of %s", strings.Join(MediaAuths, ", ")))
	}
	if c.Color != nil && *c.Color != "" && !mail.IsColor(*c.Color) {
		errs = append(errs, problem.BadParam(
			"color", "color must be # and six hexadecimal digits in small letters, such as #2f4b9b"))
	}
	errs = append(errs, checkLink("tos_uri", c.Terms), checkLink("policy_uri", c.Privacy))
	if r := c.Registration; r != nil && *r != RegistrationOff && *r != RegistrationOpen {
		errs = append(errs, problem.BadParam("registration", "registration must be one of off, open"))
	}
	return errors.Join(errs...)
}

// CreateProject makes a project of that name, with the default rate.
func (f *Fabric) CreateProject(ctx context.Context, name string) (Project, error) {
	if err := checkRequired("name", name); err != nil {
		return Project{}, err
	}
	now := f.now()
	p := Project{ID: newID(), Name: name, RecordRate: DefaultRecordRate, MediaAuth: MediaAuths[0],
		Registration: RegistrationOff, Created: now, Updated: now}
	if err := f.c.Store.CreateProject(ctx, p); err != nil {
		return Project{}, fmt.Errorf("creating project: %w", err)
	}
	return p, nil
}

// FindProject returns a project.
func (f *Fabric) FindProject(ctx context.Context, id string) (Project, error) {
	id, ok := canonical(id)
	if !ok {
		return Project{}, problem.NoSuch("project")
	}
	return f.c.Store.FindProject(ctx, id)
}

// ListProjects returns a page of all projects.
func (f *Fabric) ListProjects(ctx context.Context, q page.Query) (page.Page[Project], error) {
	return f.c.Store.ListProjects(ctx, q)
}

// UpdateProject changes a project.
func (f *Fabric) UpdateProject(ctx context.Context, id string, c ProjectChange) (Project, error) {
	id, ok := canonical(id)
	if !ok {
		return Project{}, problem.NoSuch("project")
	}
	if err := c.Check(); err != nil {
		return Project{}, err
	}
	return f.c.Store.UpdateProject(ctx, id, c, f.now())
}

// AnyRegistration reports whether people may make themselves accounts in any project.
func (f *Fabric) AnyRegistration(ctx context.Context) (bool, error) {
	return f.c.Store.AnyRegistration(ctx)
}

// DeleteProject deletes a project with all that is in it, and ends its tokens.
func (f *Fabric) DeleteProject(ctx context.Context, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("project")
	}
	if err := f.c.Store.DeleteProject(ctx, gone(revocation.Project, id, f.now())); err != nil {
		return err
	}
	return f.c.Revocations.Sync(ctx)
}
