// Package rest serves three JSON APIs. The fabric API is under /api/fabric. The API that manages a
// project and its keys is under /api/project. The subscribers' own API is under /subscriber.
//
// Paths, statuses, member names, pages and errors match the Call Fabric API exactly, so that its
// clients work unchanged. The rules are in package fabric.
package rest

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/web"
)

// Config holds the dependencies of an API.
type Config struct {
	Fabric  *fabric.Fabric
	Clients *idp.Provider // the OAuth clients
	Rooms   *calls.Rooms
	Move    Mover // nil if this server carries no calls
	Chat    *chat.Chat

	// Access opens any access token of the issuer, sealed or JWT. It returns
	// problem.Unauthenticated for anything else. If Access is nil, only sealed tokens are accepted.
	Access func(ctx context.Context, raw string) (fabric.Token, error)

	// Confirm returns problem.Unauthenticated unless a request proves possession of the key to
	// which its access token is bound. If Confirm is nil, bound tokens need no proof.
	Confirm func(r *http.Request, raw string, t fabric.Token) error

	// Admit counts a request. who identifies the authenticated caller. If the caller has sent too
	// many requests, Admit returns problem.RateLimited. If Admit is nil, all requests are admitted.
	Admit func(r *http.Request, who string) error

	Log *slog.Logger // nil means slog.Default()
}

// An API serves the APIs of this package. Create one with [New].
type API struct {
	credentials *credentials
	routes      []route
	log         *slog.Logger
}

// New returns an API with the dependencies in c.
func New(c Config) *API {
	if c.Admit == nil {
		c.Admit = func(*http.Request, string) error { return nil }
	}
	if c.Confirm == nil {
		c.Confirm = func(*http.Request, string, fabric.Token) error { return nil }
	}
	if c.Access == nil {
		c.Access = func(ctx context.Context, raw string) (fabric.Token, error) {
			return c.Fabric.Tokens.Open(ctx, raw, fabric.SAT, fabric.Service)
		}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}

	by := &credentials{fabric: c.Fabric, access: c.Access, admit: c.Admit, confirm: c.Confirm}
	return &API{credentials: by, routes: routes(c, by), log: c.Log}
}

type route struct {
	method, path string
	handler      web.Handler
}

// routes returns every route of the API. Each file defines its own routes.
func routes(c Config, by *credentials) []route {
	f := c.Fabric
	resources := resourceAPI{f}

	all := slices.Concat(
		addressAPI{f.Addresses}.routes(by),
		auditAPI{f.Audit}.routes(by),
		chatAPI{c.Chat}.routes(by),
		clientAPI{c.Clients, f.Deliveries}.routes(by),
		deviceAPI{f.Devices}.routes(by),
		ingestKeyAPI{f.IngestKeys, by}.routes(),
		keyAPI{f.APIKeys}.routes(by),
		loginAPI{f.Logins}.routes(by),
		moveAPI{c.Move}.routes(by),
		numberAPI{f.PhoneNumbers}.routes(by),
		projectAPI{f.Projects, c.Clients.Issuer}.routes(by),
		registrationTokenAPI{f.RegistrationTokens}.routes(by),
		resources.routes(by),
		roomAPI{c.Rooms}.routes(by),
		sipAPI{f}.routes(by),
		subscriberAPI{fabric: f, subscribers: f.Subscribers, by: by}.routes(),
		tokenAPI{f.Tokens, by}.routes(),
		upstreamAPI{c.Clients.Upstreams}.routes(by),
		webhookAPI{f.Webhooks, f.Deliveries}.routes(by),
	)
	for _, k := range f.Resources.Kinds().All() {
		all = append(all, kindAPI{resources, k}.routes(by)...)
	}
	return all
}

// Routes returns the patterns that are served, as "METHOD /path".
func (a *API) Routes() (all []string) {
	for _, rt := range a.routes {
		all = append(all, rt.method+" "+rt.path)
	}
	return all
}

// Handler returns the handler of the API. Unknown paths get 404 if the caller is authenticated, and
// 401 otherwise.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	allowed := make(map[string][]string)
	for _, rt := range a.routes {
		mux.Handle(rt.method+" "+rt.path, a.handle(rt.handler))
		allowed[rt.path] = append(allowed[rt.path], rt.method)
	}

	// Other methods of a known path get 405 and an Allow header.
	for path, methods := range allowed {
		if slices.Contains(methods, http.MethodGet) {
			methods = append(methods, http.MethodHead)
		}
		// Register each method separately, because a pattern for all methods would conflict with
		// wildcards.
		for _, method := range allMethods {
			if !slices.Contains(methods, method) {
				mux.Handle(method+" "+path, a.handle(notAllowed(strings.Join(methods, ", "))))
			}
		}
	}

	mux.Handle("/", a.handle(a.credentials.unknown))
	return web.AnyOrigin(mux, allMethods...)
}

// allMethods contains the methods that at least one path uses.
var allMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete}

// handle wraps h as an http.Handler whose responses are never cached.
func (a *API) handle(h web.Handler) http.Handler {
	return web.Handle(func(w http.ResponseWriter, r *http.Request) error {
		web.NoStore(w)
		return h(w, r)
	}, a.fail)
}
