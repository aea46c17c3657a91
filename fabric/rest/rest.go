// Package rest serves three JSON APIs: the fabric's under /api/fabric, the project's API
// keys under /api/project, and the subscribers' own under /subscriber.
//
// Paths, statuses, member names, pages and errors match the Call Fabric API exactly, so
// that its clients work unchanged. Package fabric decides what is allowed and what happens.
package rest

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/web"
)

// Config holds the dependencies of an API.
type Config struct {
	Fabric  *fabric.Fabric
	Clients *idp.Provider // the OAuth clients

	// Access opens any access token of the issuer, sealed or JWT. It returns
	// problem.Unauthenticated for everything else. Nil opens sealed tokens only.
	Access func(ctx context.Context, raw string) (fabric.Token, error)

	// Admit counts a request of an authenticated caller under the name who. It returns
	// problem.RateLimited if there are too many. Nil admits all requests.
	Admit func(r *http.Request, who string) error

	Log *slog.Logger // nil means slog.Default()
}

// An API serves the fabric. Make one with [New].
type API struct {
	fabric  *fabric.Fabric
	clients *idp.Provider
	access  func(ctx context.Context, raw string) (fabric.Token, error)
	admit   func(r *http.Request, who string) error
	log     *slog.Logger
}

// New returns an API with the dependencies in c.
func New(c Config) *API {
	a := &API{fabric: c.Fabric, clients: c.Clients, access: c.Access, admit: c.Admit, log: c.Log}
	if a.admit == nil {
		a.admit = func(*http.Request, string) error { return nil }
	}
	if a.access == nil {
		a.access = func(ctx context.Context, raw string) (fabric.Token, error) {
			return a.fabric.Tokens.Open(ctx, raw, fabric.SAT, fabric.Service)
		}
	}
	if a.log == nil {
		a.log = slog.Default()
	}
	return a
}

type route struct {
	method, path string
	handler      web.Handler
}

// routes lists every route of the API.
func (a *API) routes() []route {
	all := []route{
		{"GET", "/api/fabric/addresses", a.bearer(a.listAddresses, fabric.SAT, fabric.Guest, fabric.Invite)},
		{"GET", "/api/fabric/addresses/{id}", a.bearer(a.getAddress, fabric.SAT, fabric.Guest, fabric.Invite)},
		{"GET", "/api/fabric/audit", a.keeper(a.listAudit)},
		{"POST", "/api/fabric/embeds/tokens", a.createEmbedToken},
		{"POST", "/api/fabric/guests/tokens", a.projectOrSAT(a.createGuestToken)},
		{"GET", "/api/fabric/resources", a.project(a.listThings)},
		{"DELETE", "/api/fabric/resources/{id}", a.project(a.deleteThing)},
		{"GET", "/api/fabric/resources/{id}", a.project(a.getThing)},
		{"GET", "/api/fabric/resources/{id}/{what}", a.project(a.getOfThing)},
		{"POST", "/api/fabric/resources/{id}/{what}", a.project(a.assign)},
		{"GET", "/api/fabric/resources/subscribers", a.project(a.listSubscribers)},
		{"POST", "/api/fabric/resources/subscribers", a.project(a.createSubscriber)},
		{"DELETE", "/api/fabric/resources/subscribers/{id}", a.project(a.deleteSubscriber)},
		{"GET", "/api/fabric/resources/subscribers/{id}", a.project(a.getSubscriber)},
		{"PATCH", "/api/fabric/resources/subscribers/{id}", a.project(a.updateSubscriber)},
		{"PUT", "/api/fabric/resources/subscribers/{id}", a.project(a.updateSubscriber)},
		{"GET", "/api/fabric/resources/subscribers/{id}/addresses", a.project(a.listSubscriberAddresses)},
		{"GET", "/api/fabric/subscriber/info", a.bearer(a.getInfo, fabric.SAT)},
		{"POST", "/api/fabric/subscriber/invites", a.bearer(a.createInvite, fabric.SAT)},
		{"GET", "/api/fabric/resources/subscribers/{id}/claims", a.project(a.getClaims)},
		{"PUT", "/api/fabric/resources/subscribers/{id}/claims", a.project(a.putClaims)},
		{"POST", "/api/fabric/subscribers", a.project(a.createSubscriber)},
		{"POST", "/api/fabric/subscribers/tokens", a.project(a.createSubscriberToken)},
		{"POST", "/api/fabric/subscribers/tokens/refresh", a.project(a.refreshToken)},
		{"GET", "/api/project/tokens", a.keeper(a.listKeys)},
		{"POST", "/api/project/tokens", a.keeper(a.createKey)},
		{"DELETE", "/api/project/tokens/{id}", a.keeper(a.revokeKey)},
		{"GET", "/api/project/tokens/{id}", a.keeper(a.getKey)},
		{"PATCH", "/api/project/tokens/{id}", a.keeper(a.updateKey)},
		{"PUT", "/api/project/tokens/{id}", a.keeper(a.updateKey)},
		{"POST", "/api/project/tokens/{id}/rotate", a.keeper(a.rotateKey)},
		{"POST", "/subscriber/devices", a.bearer(a.registerDevice, fabric.SAT)},
		{"DELETE", "/subscriber/devices/{id}", a.bearer(a.deleteDevice, fabric.SAT)},
		{"GET", "/subscriber/info", a.bearer(a.getInfo, fabric.SAT)},
	}

	all = append(all, a.sipRoutes()...)
	all = append(all, a.heldRoutes()...)
	all = append(all, a.webhookRoutes()...)
	all = append(all, a.projectRoutes()...)
	all = append(all, a.clientRoutes()...)
	all = append(all, a.logoutRoutes()...)
	for _, k := range a.fabric.Resources.Kinds().All() {
		all = append(all, a.kindRoutes(k)...)
	}

	return all
}

// Routes returns the patterns that are served, as "METHOD /path".
func (a *API) Routes() (all []string) {
	for _, rt := range a.routes() {
		all = append(all, rt.method+" "+rt.path)
	}
	return all
}

// Handler returns the handler of the API. Authenticated callers get 404 for unknown paths.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	allowed := make(map[string][]string)
	for _, rt := range a.routes() {
		mux.Handle(rt.method+" "+rt.path, a.handle(rt.handler))
		allowed[rt.path] = append(allowed[rt.path], rt.method)
	}

	// Other methods of a known path get 405 and an Allow header.
	for path, methods := range allowed {
		if slices.Contains(methods, http.MethodGet) {
			methods = append(methods, http.MethodHead)
		}
		// Register each method alone: a pattern for all methods would conflict with wildcards.
		for _, method := range allMethods {
			if !slices.Contains(methods, method) {
				mux.Handle(method+" "+path, a.handle(notAllowed(strings.Join(methods, ", "))))
			}
		}
	}

	mux.Handle("/", a.handle(a.unknown))
	return web.AnyOrigin(mux, allMethods...)
}

// allMethods are the methods used by at least one path.
var allMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete}

// handle wraps h as an http.Handler whose responses are never cached.
func (a *API) handle(h web.Handler) http.Handler {
	return web.Handle(func(w http.ResponseWriter, r *http.Request) error {
		web.NoStore(w)
		return h(w, r)
	}, a.fail)
}
