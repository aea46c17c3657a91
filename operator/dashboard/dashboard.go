// Package dashboard serves the pages on which operators manage projects and the installation. Their
// paths are under /dashboard. They are rendered on the server, and none of them needs JavaScript.
//
// Each group of pages, such as keyPages, is a type with handlers and a method that returns a table
// of routes. A route names the permission that it needs. Before a handler runs, the permission is
// checked, the project of the path is loaded and the form token is verified.
//
// The package holds no business rules. Package operator decides what a role may do; packages
// fabric, idp, calls and recordings decide everything else.
package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/once"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// Config holds the services behind the pages.
type Config struct {
	Operators  *operator.Operators
	Fabric     *fabric.Fabric
	Clients    *idp.Provider
	Recordings *recordings.Recordings // nil if the server keeps no recordings
	Calls      *calls.Records         // nil hides all calls
	Rooms      *calls.Rooms           // nil hides all room sessions
	NoCalls    bool                   // whether this server serves no calls

	// Move moves a running call into the room at an address, or out of its room if address is "".
	// Move is nil if this server carries no calls.
	Move      func(ctx context.Context, projectID, id, address string) error
	Sessions  session.Store   // remembers sent forms; nil means that only this server remembers them
	PublicURL string          // the URL at which browsers reach the server, {base_url} in the configuration
	Factors   *factor.Factors // nil if second factors are not supported

	// RequireFactor lists the roles that need a second factor. An operator with one of them, in
	// any project, must set one up before doing anything else.
	RequireFactor []operator.Role

	AuthURL string // the URL of the identity service, {auth_url} in the configuration

	// Audit returns a page of the audit trail, newest first. If it is nil, pages show no events.
	Audit func(ctx context.Context, f audit.Filter, q page.Query) (page.Page[audit.Event], error)

	// SecretsShown returns the events in which an operator saw a secret, newest first. If such a
	// secret was used to get further secrets, it also returns the events in which these were shown,
	// and so on. If SecretsShown is nil, pages list no secrets.
	SecretsShown func(ctx context.Context, operatorID string) ([]audit.Event, error)

	// Health returns the states of the services that the server depends on. If Health is nil, pages
	// show no states.
	Health func(ctx context.Context) []Health

	Counts CountsFunc // returns how often events happened in a project on each day; nil hides the charts

	Installation Installation // information for owners about the installation

	Log *slog.Logger     // nil means slog.Default()
	Now func() time.Time // nil means time.Now
}

// Health describes the state of one service that the server depends on.
type Health struct {
	Name string
	Note string // may be empty
	OK   bool
}

// An API serves the pages of the dashboard.
type API struct {
	site   *site
	routes []route
}

// New returns an API with the services in c.
func New(c Config) (*API, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	public, err := url.Parse(c.PublicURL)
	if err != nil {
		return nil, err
	}
	c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")

	forms := once.Forms{
		Sessions: c.Sessions,
		Kind:     "operator-form",
		Kept:     c.Operators.SessionLifetime(),
		Now:      c.Now,
	}
	s := &site{
		Operators:     c.Operators,
		Fabric:        c.Fabric,
		Factors:       c.Factors,
		RequireFactor: c.RequireFactor,
		NoCalls:       c.NoCalls,
		NoRecordings:  c.Recordings == nil,
		PublicURL:     c.PublicURL,
		AuthURL:       c.AuthURL,
		Log:           c.Log,
		Now:           c.Now,
		origin:        public.Scheme + "://" + public.Host,
		cookies:       web.Cookies{PublicURL: public},
		streams:       streams{bySession: make(map[string]int), stop: make(chan struct{})},
		forms:         once.New(forms, c.Log),
		clicks:        once.New(once.Forms{Now: c.Now}, c.Log),
	}
	served := routes(c, s)
	s.links = linksOf(served)
	served = append(served, landings(served)...)
	return &API{site: s, routes: served}, nil
}

// Prefix is the path under which the pages are served.
const Prefix = "/dashboard"

// Handler returns a handler for all routes.
func (a *API) Handler() http.Handler { return web.Mount(a.mount) }

// Routes returns the patterns of all routes.
func (a *API) Routes() []string { return web.Routes(a.mount) }

func (a *API) mount(mux web.Mux) {
	for _, rt := range a.routes {
		mux.Handle(rt.pattern, a.site.handle(rt))
	}
}
