// Package laml serves the recordings API of LaML (2010-04-01), as the
// compatibility clients speak it.
//
// Media is public: whoever knows the Sid may fetch it. Everything else needs
// credentials, which a func of the [Config] checks, so that this package knows
// neither API keys nor tokens. What is unknown, deleted or another's is one and
// the same 404. Every error is a LaML object.
package laml

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// Config says what an [API] stands on.
type Config struct {
	Recordings *recordings.Recordings // the rules; required

	// Credentials gives who is calling. None, wrong ones and ones without the scope
	// Voice are a problem.Unauthenticated. nil accepts nobody.
	Credentials func(r *http.Request) (Caller, error)

	PublicURL string       // in front of each media_url; "" leaves it root-relative
	Log       *slog.Logger // nil means slog.Default
}

// A Caller is who is calling: a project, or with a SubscriberID a subscriber of
// it, who sees what is tied to it and changes nothing.
type Caller struct {
	ProjectID    string
	SubscriberID string
}

// An API serves the recordings.
type API struct {
	recordings  *recordings.Recordings
	credentials func(r *http.Request) (Caller, error)
	publicURL   string
	log         *slog.Logger
}

// New makes the API.
func New(c Config) *API {
	if c.Credentials == nil {
		c.Credentials = func(*http.Request) (Caller, error) { return Caller{}, problem.NoCredentials() }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &API{recordings: c.Recordings, credentials: c.Credentials, publicURL: c.PublicURL, log: c.Log}
}

// The path prefixes: that of the documents and links, and that of the clients.
const (
	prefix       = "/api/laml/2010-04-01"
	clientPrefix = "/2010-04-01"
)

// Handler serves all paths below the prefixes. A list is served with and without
// ".json"; the {file} of a recording says its own format.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(method, path string, h web.Handler) {
		for _, p := range []string{prefix, clientPrefix} {
			mux.Handle(method+" "+p+"/Accounts/{AccountSid}"+path, web.Handle(h, a.fail))
		}
	}
	handle("GET", "/Calls/{CallSid}/Recordings", a.owned(a.listRecordings))
	handle("GET", "/Calls/{CallSid}/Recordings.json", a.owned(a.listRecordings))
	handle("DELETE", "/Calls/{CallSid}/Recordings/{file}", a.owned(a.deleteRecording))
	handle("GET", "/Calls/{CallSid}/Recordings/{file}", a.owned(a.showRecording))
	handle("GET", "/Conferences/{ConferenceSid}/Recordings", a.owned(a.listRecordings))
	handle("GET", "/Conferences/{ConferenceSid}/Recordings.json", a.owned(a.listRecordings))
	handle("DELETE", "/Conferences/{ConferenceSid}/Recordings/{file}", a.owned(a.deleteRecording))
	handle("GET", "/Conferences/{ConferenceSid}/Recordings/{file}", a.owned(a.showRecording))
	handle("GET", "/Recordings", a.owned(a.listRecordings))
	handle("POST", "/Recordings", a.owned(a.createRecording))
	handle("GET", "/Recordings.json", a.owned(a.listRecordings))
	handle("POST", "/Recordings.json", a.owned(a.createRecording))
	handle("DELETE", "/Recordings/{file}", a.owned(a.deleteRecording))
	handle("GET", "/Recordings/{file}", a.getRecording)
	handle("OPTIONS", "/Recordings/{file}", a.preflight)
	mux.Handle("/", a.unrouted(mux))
	return mux
}

// An ownedHandler serves a caller with valid credentials for the account in the
// path.
type ownedHandler func(w http.ResponseWriter, r *http.Request, o recordings.Owner) error

// owned checks the credentials. Another's account is a 404 like any unknown
// recording.
func (a *API) owned(h ownedHandler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		web.NoStore(w)
		caller, err := a.credentials(r)
		if err != nil {
			return err
		}
		if caller.ProjectID != r.PathValue("AccountSid") {
			return problem.NoSuch("recording")
		}
		return h(w, r, recordings.Owner(caller))
	}
}

// unrouted answers what no route of mux serves: 405 where another method would
// do, else 404.
func (a *API) unrouted(mux *http.ServeMux) http.Handler {
	return web.Handle(func(w http.ResponseWriter, r *http.Request) error {
		probe, allowed := *r, []string(nil)
		for _, probe.Method = range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost} {
			if _, pattern := mux.Handler(&probe); pattern != "/" {
				allowed = append(allowed, probe.Method)
			}
		}
		if len(allowed) == 0 {
			return problem.NoSuch("resource")
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		a.write(w, http.StatusMethodNotAllowed, "this resource does not take the method "+r.Method)
		return nil
	}, a.fail)
}

// readOnly refuses changes by a subscriber.
func readOnly(o recordings.Owner) error {
	if o.SubscriberID == "" {
		return nil
	}
	return problem.New(problem.Forbidden, "forbidden", "a subscriber may read its recordings and change nothing")
}

// unauthenticated tells whether err says that there were no valid credentials.
func unauthenticated(err error) bool { return errors.Is(err, problem.Unauthenticated) }
