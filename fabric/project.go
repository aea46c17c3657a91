package fabric

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// Projects manages projects and their logos.
type Projects struct {
	*core
	store ProjectStore
}

// A ProjectStore keeps projects; see [Stores].
type ProjectStore interface {
	CreateProject(ctx context.Context, p Project) error
	FindProject(ctx context.Context, id string) (Project, error)
	// ProjectsNamed returns the ids of up to two projects with this name, ignoring the case of A to Z.
	ProjectsNamed(ctx context.Context, name string) ([]string, error)
	// ListProjects lists the projects whose name contains each word of text, ignoring the case of A to Z,
	// or whose id is text.
	ListProjects(ctx context.Context, text string, q page.Query) (page.Page[Project], error)
	// FindRegistrar returns a project in which clients can register themselves. It prefers the open
	// project. If no project permits this, it returns problem.NotFound.
	FindRegistrar(ctx context.Context) (Project, error)
	// AnyRegistration reports whether any project has RegistrationOpen.
	AnyRegistration(ctx context.Context) (bool, error)
	// UpdateProject returns problem.Conflict if the change sets ClientsOpen and this is already set
	// in another project.
	UpdateProject(ctx context.Context, id string, c ProjectChange, at time.Time) (Project, error)
	// FindRecordCalls returns the RecordCalls setting of a project. It also returns the settings,
	// by id, of the project's subscribers with these ids. It reads all of them in one query.
	FindRecordCalls(ctx context.Context, projectID string, ids []string) (
		project RecordCalls, subscribers map[string]RecordCalls, err error)
	// FindLogo returns the PNG with this name, whether it belongs to a project or a client.
	FindLogo(ctx context.Context, name string) ([]byte, error)
	// DeleteProject also deletes everything that belongs to the project.
	DeleteProject(ctx context.Context, r revocation.Revocation) error
}

// DefaultRecordRate is the RecordRate of a new project.
const DefaultRecordRate = 2500

// MaxUploadRate is the maximum UploadRate of a project.
const MaxUploadRate = 1_000_000

// A Project is a tenant. Everything else belongs to one project and is invisible to other projects.
// Commands and exports use its JSON form; see [ProjectFields].
type Project struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// RecordRate is the price per recorded minute, in millionths of a dollar.
	RecordRate int64 `json:"record_rate"`
	// MediaAuth is the media policy of the project's recordings, one of MediaAuths.
	MediaAuth string `json:"media_auth"`
	// RequireFactor requires two factors for every login of a subscriber.
	RequireFactor bool `json:"require_factor"`
	// Registration determines whether people can register on the project's pages.
	Registration Registration `json:"registration"`
	// RecordCalls is RecordOff or RecordOn.
	RecordCalls RecordCalls `json:"record_calls"`
	// ClientRegistration determines whether OAuth clients can register themselves.
	ClientRegistration ClientRegistration `json:"client_registration"`
	// OutboundCalls determines whether calls to phone numbers and gateways are permitted.
	OutboundCalls OutboundCalls `json:"outbound_calls"`
	// OutboundPrefixes contains the prefixes of the phone numbers that may be called.
	OutboundPrefixes Prefixes `json:"outbound_prefixes"`
	// RecordingQuota is the maximum size of all recordings in bytes; 0 means no limit.
	RecordingQuota int64 `json:"recording_quota"`
	// UploadRate is the maximum number of uploads of recordings per minute; 0 means no limit.
	UploadRate int64 `json:"upload_rate"`
	// Color is the color of buttons on pages and in emails, "#rrggbb"; "" means selvage's color.
	Color string `json:"color,omitempty"`
	// Terms is the URL of the terms for sign-in pages; "" for none.
	Terms string `json:"tos_uri,omitempty"`
	// Privacy is the URL of the privacy policy for sign-in pages; "" for none.
	Privacy string `json:"policy_uri,omitempty"`

	Logo     string    `json:"-"` // name of the project's logo; "" for none
	DarkLogo string    `json:"-"` // name of the logo for dark pages; "" if Logo is for all pages
	Created  time.Time `json:"created_at,omitzero"`
	Updated  time.Time `json:"-"`
}

// A Registration determines who may create accounts. If it is off, only the project's backends and
// operators may. If it is open, anyone who can receive email at the account's address may.
type Registration string

// The registration modes, the default first.
const (
	RegistrationOff  Registration = "off"
	RegistrationOpen Registration = "open"
)

// A ClientRegistration determines who may register OAuth clients (RFC 7591): only operators (off),
// holders of an initial access token (token), or anyone (open). At most one project can be open,
// because a registration without a token names no project.
type ClientRegistration string

// The modes of client registration, the default first.
const (
	ClientsOff     ClientRegistration = "off"
	ClientsByToken ClientRegistration = "token"
	ClientsOpen    ClientRegistration = "open"
)

// ClientRegistrations returns all modes of client registration, the default first.
func ClientRegistrations() []ClientRegistration {
	return []ClientRegistration{ClientsOff, ClientsByToken, ClientsOpen}
}

// MediaAuths contains the media policies, the default first. They permit fetching media with only
// the URL (public), with credentials (basic), or with credentials or a signed link (signed).
var MediaAuths = []string{"public", "basic", "signed"}

// A ProjectChange holds the fields of a project to update; nil fields are left unchanged.
type ProjectChange struct {
	Name       *string
	RecordRate *int64
	MediaAuth  *string

	RequireFactor *bool
	Color         *string
	Terms         *string
	Privacy       *string

	Registration *Registration
	RecordCalls  *RecordCalls

	ClientRegistration *ClientRegistration

	OutboundCalls    *OutboundCalls
	OutboundPrefixes *Prefixes

	RecordingQuota *int64
	UploadRate     *int64

	Logos brand.Logos // made by [brand.MakeLogo]; themes without an entry are left unchanged
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
	if c.RecordingQuota != nil && *c.RecordingQuota < 0 {
		errs = append(errs, problem.BadParam("recording_quota", "recording_quota must not be negative"))
	}
	if c.UploadRate != nil && (*c.UploadRate < 0 || *c.UploadRate > MaxUploadRate) {
		errs = append(errs, problem.BadParam("upload_rate", "upload_rate must be from 0 to %d", MaxUploadRate))
	}
	if c.MediaAuth != nil && !slices.Contains(MediaAuths, *c.MediaAuth) {
		errs = append(errs, problem.BadParam(
			"media_auth", "media_auth must be one of %s", strings.Join(MediaAuths, ", ")))
	}
	if c.Color != nil && *c.Color != "" && !mail.IsColor(*c.Color) {
		errs = append(errs, problem.BadParam(
			"color", "color must be # and six lower-case hexadecimal digits, such as #2f4b9b"))
	}

	errs = append(errs, checkLink("tos_uri", c.Terms), checkLink("policy_uri", c.Privacy))
	if r := c.Registration; r != nil && *r != RegistrationOff && *r != RegistrationOpen {
		errs = append(errs, problem.BadParam("registration", "registration must be one of off, open"))
	}
	if r := c.ClientRegistration; r != nil && !slices.Contains(ClientRegistrations(), *r) {
		errs = append(errs, problem.BadParam(
			"client_registration", "client_registration must be one of off, token, open"))
	}
	errs = append(errs, checkRecordCalls(c.RecordCalls, RecordOff, RecordOn), c.checkOutbound())

	return errors.Join(errs...)
}

// Create creates a project with this name and the default rate.
func (ps *Projects) Create(ctx context.Context, name string) (Project, error) {
	return ps.CreateAs(ctx, newID(), name)
}

// CreateAs is like Create, for callers that must know the id before the project exists. The id must
// be a new UUID of version 7.
func (ps *Projects) CreateAs(ctx context.Context, id, name string) (Project, error) {
	if err := checkRequired("name", name); err != nil {
		return Project{}, err
	}
	now := ps.now()
	p := Project{
		ID:                 id,
		Name:               name,
		RecordRate:         DefaultRecordRate,
		MediaAuth:          MediaAuths[0],
		Registration:       RegistrationOff,
		RecordCalls:        RecordOff,
		ClientRegistration: ClientsOff,
		OutboundCalls:      OutboundOff,
		Created:            now,
		Updated:            now,
	}
	if err := ps.store.CreateProject(ctx, p); err != nil {
		return Project{}, fmt.Errorf("creating project: %w", err)
	}
	return p, nil
}

// Find returns a project.
func (ps *Projects) Find(ctx context.Context, id string) (Project, error) {
	id, ok := canonical(id)
	if !ok {
		return Project{}, problem.NoSuch("project")
	}
	return ps.store.FindProject(ctx, id)
}

// List returns a page of all projects.
func (ps *Projects) List(ctx context.Context, q page.Query) (page.Page[Project], error) {
	return ps.store.ListProjects(ctx, "", q)
}

// Named returns the ids of up to two projects with this name, ignoring the case of A to Z.
func (ps *Projects) Named(ctx context.Context, name string) ([]string, error) {
	return ps.store.ProjectsNamed(ctx, name)
}

// Search returns a page of the projects whose name contains each word of text, ignoring the case of A to Z,
// or whose id is text. If there are very many projects, the page may end before it is full.
func (ps *Projects) Search(ctx context.Context, text string, q page.Query) (page.Page[Project], error) {
	return ps.store.ListProjects(ctx, text, q)
}

// Update changes a project.
func (ps *Projects) Update(ctx context.Context, id string, c ProjectChange) (Project, error) {
	id, ok := canonical(id)
	if !ok {
		return Project{}, problem.NoSuch("project")
	}
	if err := c.Check(); err != nil {
		return Project{}, err
	}
	if len(c.Logos) > 0 {
		defer ps.ForgetLogos()
	}
	return ps.store.UpdateProject(ctx, id, c, ps.now())
}

// FindRegistrar returns a project in which clients can register themselves. It prefers the open
// project. If no project permits this, it returns problem.NotFound.
func (ps *Projects) FindRegistrar(ctx context.Context) (Project, error) {
	return ps.store.FindRegistrar(ctx)
}

// AnyRegistration reports whether people can register in any project.
func (ps *Projects) AnyRegistration(ctx context.Context) (bool, error) {
	return ps.store.AnyRegistration(ctx)
}

// Delete deletes a project with everything in it, and revokes its tokens.
func (ps *Projects) Delete(ctx context.Context, id string) error {
	id, ok := canonical(id)
	if !ok {
		return problem.NoSuch("project")
	}
	if err := ps.store.DeleteProject(ctx, permanentRevocation(revocation.Project, id, ps.now())); err != nil {
		return err
	}
	return ps.c.Revocations.Sync(ctx)
}

// maxLink is the maximum length of the URL of the terms or the privacy policy.
const maxLink = 2000

// CheckLink returns an error on param unless link is "", or an http or https URL without
// credentials that is not too long. Browsers would execute a URL such as javascript:alert(1).
func CheckLink(param, link string) error {
	u, err := url.Parse(link)
	if link != "" && (err != nil || len(link) > maxLink || u.Scheme != "https" && u.Scheme != "http" ||
		u.Host == "" || u.User != nil) {
		return problem.BadParam(param, "%s must be an http or https URL", param)
	}
	return nil
}

func checkLink(param string, link *string) error {
	if link == nil {
		return nil
	}
	return CheckLink(param, *link)
}

// ForgetLogos clears the cache of logos. It must be called after this node has changed a logo.
func (ps *Projects) ForgetLogos() { ps.caches.logos.Clear() }

// FindLogo returns the PNG with this name if a project or client uses it or used it within the last
// 300 ms.
func (ps *Projects) FindLogo(ctx context.Context, name string) ([]byte, error) {
	if _, ok := brand.ParseLogo(name); !ok {
		return nil, problem.NoSuch("logo")
	}
	return ps.caches.logos.Load(name, func() ([]byte, error) { return ps.store.FindLogo(ctx, name) })
}
