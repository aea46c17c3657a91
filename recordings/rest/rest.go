// Package rest serves recordings under /api/relay/rest in the format of the vendor's native API. It
// lists, shows, marks and deletes recordings. It also serves the deliveries to status callbacks, the
// retention rules, and reports of accesses and usage.
//
// Package recordings defines the rules. The permissions are the same as in LaML, and only the
// format is different.
package rest

import (
	"log/slog"
	"net/http"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// Config holds the dependencies of an [API].
type Config struct {
	Recordings *recordings.Recordings // required

	// Credentials returns the owner whose recordings a caller may see. If the credentials are
	// missing or wrong, or lack the scope Voice, it returns problem.Unauthenticated. If Credentials
	// is nil, all callers are refused.
	Credentials func(r *http.Request) (recordings.Owner, error)

	// MediaURLs returns a function that returns the URL of a recording's media for a caller. The
	// URL is "" if there is no media. If MediaURLs is nil, documents have no media URLs.
	MediaURLs func(r *http.Request, o recordings.Owner) (func(recordings.Recording) string, error)

	Log *slog.Logger // nil means slog.Default
}

// An API serves the recordings over HTTP.
type API struct {
	c Config
}

// New returns an API with configuration c.
func New(c Config) *API {
	if c.Credentials == nil {
		c.Credentials = func(*http.Request) (recordings.Owner, error) {
			return recordings.Owner{}, problem.NoCredentials()
		}
	}
	if c.MediaURLs == nil {
		c.MediaURLs = func(*http.Request, recordings.Owner) (func(recordings.Recording) string, error) {
			return func(recordings.Recording) string { return "" }, nil
		}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}

	return &API{c}
}

// Prefix is the prefix of all paths of this API.
const Prefix = "/api/relay/rest/recordings"

// Handler serves all paths below Prefix. Scripts from any origin may read the responses with a
// subscriber's token.
func (a *API) Handler() http.Handler {
	mux := web.Mount(a.mount)
	unknown := func(http.ResponseWriter, *http.Request) error { return problem.NoSuch("resource") }
	mux.Handle("/", web.Handle(unknown, a.fail))
	return web.AnyOrigin(mux, http.MethodGet)
}

// Routes returns the patterns that Handler serves.
func (a *API) Routes() []string { return web.Routes(a.mount) }

func (a *API) mount(mux web.Mux) {
	handle := func(pattern string, h ownedHandler) { mux.Handle(pattern, web.Handle(a.owned(h), a.fail)) }
	handle("GET "+Prefix, a.list)
	handle("GET "+Prefix+"/callbacks", a.listCallbacks)
	handle("POST "+Prefix+"/callbacks/redeliver", a.redeliverDead)
	handle("POST "+Prefix+"/callbacks/{callback}/redeliver", a.redeliver)
	handle("DELETE "+Prefix+"/{id}", a.remove)
	handle("GET "+Prefix+"/{id}", a.show)
	handle("PATCH "+Prefix+"/{id}", changing(a.mark))
	handle("GET "+Prefix+"/{id}/accesses", changing(a.listAccesses))
	handle("POST "+Prefix+"/bulk", changing(a.bulk))
	handle("GET "+Prefix+"/retention", changing(a.listRules))
	handle("POST "+Prefix+"/retention", changing(a.addRule))
	handle("GET "+Prefix+"/retention/preview", changing(a.previewRules))
	handle("DELETE "+Prefix+"/retention/{rule}", changing(a.removeRule))
	handle("GET "+Prefix+"/usage", changing(a.usage))
	mux.Handle(Prefix, web.Handle(a.wrongMethod("GET, HEAD"), a.fail))
	mux.Handle(Prefix+"/{id}", web.Handle(a.wrongMethod("DELETE, GET, HEAD, PATCH"), a.fail))
}

// wrongMethod returns a handler for requests with a method that the path does not support.
func (a *API) wrongMethod(allowed string) web.Handler {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Allow", allowed)
		web.NoStore(w)
		const status = http.StatusMethodNotAllowed
		return web.JSON(w, status, map[string]string{"error": http.StatusText(status)})
	}
}

// changing returns a handler that calls h unless the caller is a subscriber. Subscribers may only
// read recordings.
func changing(h ownedHandler) ownedHandler {
	return func(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
		if err := o.MayChange(); err != nil {
			return err
		}
		return h(w, r, o)
	}
}

// An ownedHandler serves a caller whose credentials are valid.
type ownedHandler func(w http.ResponseWriter, r *http.Request, o recordings.Owner) error

// owned returns a handler that checks the credentials before it calls h.
func (a *API) owned(h ownedHandler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		web.NoStore(w)
		o, err := a.c.Credentials(r)
		if err != nil {
			return err
		}
		return h(w, r, o)
	}
}

// list serves GET /api/relay/rest/recordings, newest first.
func (a *API) list(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	asked, err := web.ReadPage(r.URL.Query())
	if err != nil {
		return err
	}
	url, err := a.c.MediaURLs(r, o)
	if err != nil {
		return err
	}

	found, err := a.c.Recordings.List(r.Context(), recordings.Filter{Owner: o}, asked.Query)
	if err != nil {
		return err
	}
	return web.AnswerPage(w, r, asked, found, func(rec recordings.Recording) document {
		return describe(rec, url(rec))
	}, urlTTL)
}

// urlTTL is the query parameter with the lifetime of the media URLs. Links to other pages keep it.
const urlTTL = "MediaUrlTtl"

// show serves GET /api/relay/rest/recordings/{id}.
func (a *API) show(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	rec, err := a.c.Recordings.Find(r.Context(), o, r.PathValue("id"))
	if err != nil {
		return err
	}
	url, err := a.c.MediaURLs(r, o)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, describe(rec, url(rec)))
}

// remove serves DELETE /api/relay/rest/recordings/{id}.
func (a *API) remove(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	if err := o.MayChange(); err != nil {
		return err
	}
	if err := a.c.Recordings.Delete(r.Context(), o.ProjectID, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
