// Package dashboard serves the pages on which operators see and change what there is:
// under /dashboard, as HTML made here, of which none needs JavaScript.
//
// [routes] is the one table of what is served: each route names who may have it, so that
// a page is a file with its handlers, a line in that table and a file under
// templates/pages/dashboard. Handlers find the operator's rights checked, the project
// read and the form's token proven.
//
// The rules are elsewhere: in package operator what a role may do, in fabric, idp and
// recordings all else.
package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
)

// Config says what an API serves.
type Config struct {
	Operators  *operator.Operators
	Fabric     *fabric.Fabric
	Clients    *idp.Provider
	Recordings *recordings.Recordings // nil where there are none
	PublicURL  string                 // {base_url}: where browsers find us
	Factors    *factor.Factors        // nil where there are none

	// RequireFactor has each operator who has one of these roles, in whatever project, set a
	// second factor up before anything else.
	RequireFactor []operator.Role

	AuthURL string // {auth_url}

	// Audit returns a page of the audit trail, the newest first; nil shows none.
	Audit func(ctx context.Context, f audit.Filter, q page.Query) (page.Page[audit.Event], error)

	// SecretsShown returns the events of who was shown a secret: an operator, whoever acted by
	// what that was shown, and so on, the newest first; nil shows none.
	SecretsShown func(ctx context.Context, operatorID string) ([]audit.Event, error)

	// Health tells how what we stand on does; nil tells nothing.
	Health func(ctx context.Context) []Health

	Installation Installation // what owners see beyond projects

	Log *slog.Logger     // nil means slog.Default()
	Now func() time.Time // nil means time.Now
}

// Health is how one thing does that we stand on.
type Health struct {
	Name string
	Note string // "" where there is nothing to say
	OK   bool
}

// An API serves the pages.
type API struct {
	site   *site
	routes []route
}

// New returns an API that serves the pages of c.
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

	s := &site{
		Operators: c.Operators, Fabric: c.Fabric, Factors: c.Factors, RequireFactor: c.RequireFactor,
		PublicURL: c.PublicURL, AuthURL: c.AuthURL, Log: c.Log, Now: c.Now,
		origin: public.Scheme + "://" + public.Host, cookies: web.Cookies{PublicURL: public},
		streams: streams{by: make(map[string]int), stop: make(chan struct{})},
	}
	all := routes(c, s)
	s.links = linksOf(all)
	return &API{s, all}, nil
}

// Prefix is the path under which the pages are.
const Prefix = "/dashboard"

// Handler serves the routes.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	a.mount(mux)
	return mux
}

// Routes lists the patterns that are served.
func (a *API) Routes() []string {
	var all web.Patterns
	a.mount(&all)
	return all
}

func (a *API) mount(mux web.Mux) {
	for _, rt := range a.routes {
		mux.Handle(rt.pattern, a.site.handle(rt))
	}
}
