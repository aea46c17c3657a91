// Package laml serves the recordings API of LaML (2010-04-01), as the
// compatibility clients speak it.
//
// Media is public unless its project says otherwise: whoever knows the Sid may
// fetch it. Everything else needs credentials, which a func of the [Config]
// checks, so that this package knows neither API keys nor tokens. What is unknown,
// deleted or another's is one and the same 404. Every error is a LaML object.
package laml

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// Config says what an [API] stands on.
type Config struct {
	Recordings *recordings.Recordings // the rules; required

	// Credentials returns whose recordings a caller may see. None, wrong ones and ones
	// without the scope Voice are a problem.Unauthenticated. nil accepts nobody.
	Credentials func(r *http.Request) (recordings.Owner, error)

	// Miss counts a request for media from a network, before it is known whether there
	// is any, and gives problem.RateLimited where there are too many; found takes it
	// back. Nil counts none.
	Miss func(r *http.Request) (found func(), err error)

	PublicURL string // in front of each media_url; "" leaves it root-relative

	// Encoders is how many pieces of MP3 are encoded, and outlines drawn, at a time;
	// 0 is one a processor.
	Encoders int

	// Offload returns the header by which the server in front sends a file itself, by
	// its MediaKey. nil sends it from here.
	Offload func(key string) (header, value string)

	Log *slog.Logger // nil means slog.Default
}

// An API serves the recordings.
type API struct {
	recordings  *recordings.Recordings
	credentials func(r *http.Request) (recordings.Owner, error)
	miss        func(r *http.Request) (found func(), err error)
	publicURL   string
	offload     func(key string) (header, value string)
	turns       chan struct{} // to encode or draw, one for each that does
	log         *slog.Logger
}

// New makes the API.
func New(c Config) *API {
	if c.Credentials == nil {
		c.Credentials = func(*http.Request) (recordings.Owner, error) {
			return recordings.Owner{}, problem.NoCredentials()
		}
	}
	if c.Miss == nil {
		c.Miss = func(*http.Request) (func(), error) { return func() {}, nil }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Encoders <= 0 {
		c.Encoders = runtime.GOMAXPROCS(0)
	}
	return &API{
		recordings: c.Recordings, credentials: c.Credentials, miss: c.Miss, publicURL: c.PublicURL,
		offload: c.Offload, turns: make(chan struct{}, c.Encoders), log: c.Log,
	}
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
	a.mount(mux)
	mux.Handle("/", a.unrouted(mux))
	return mux
}

// Routes lists the patterns that are served.
func (a *API) Routes() []string {
	var all web.Patterns
	a.mount(&all)
	return all
}

func (a *API) mount(mux web.Mux) {
	handle := func(method, path string, h web.Handler) {
		for _, p := range []string{prefix, clientPrefix} {
			mux.Handle(method+" "+p+"/Accounts/{AccountSid}"+path, web.Handle(h, a.fail))
		}
	}
	handle("GET", "/Calls/{CallSid}/Recordings", a.documented(a.listRecordings))
	handle("GET", "/Calls/{CallSid}/Recordings.json", a.documented(a.listRecordings))
	handle("POST", "/Calls/{CallSid}/Recordings", a.documented(a.startRecording))
	handle("POST", "/Calls/{CallSid}/Recordings.json", a.documented(a.startRecording))
	handle("DELETE", "/Calls/{CallSid}/Recordings/{file}", a.owned(a.deleteRecording))
	handle("GET", "/Calls/{CallSid}/Recordings/{file}", a.documented(a.showRecording))
	handle("POST", "/Calls/{CallSid}/Recordings/{file}", a.documented(a.moveRecording))
	handle("GET", "/Conferences/{ConferenceSid}/Recordings", a.documented(a.listRecordings))
	handle("GET", "/Conferences/{ConferenceSid}/Recordings.json", a.documented(a.listRecordings))
	handle("DELETE", "/Conferences/{ConferenceSid}/Recordings/{file}", a.owned(a.deleteRecording))
	handle("GET", "/Conferences/{ConferenceSid}/Recordings/{file}", a.documented(a.showRecording))
	handle("POST", "/Conferences/{ConferenceSid}/Recordings/{file}", a.documented(a.moveRecording))
	handle("GET", "/Recordings", a.documented(a.listRecordings))
	handle("POST", "/Recordings", a.documented(a.createRecording))
	handle("GET", "/Recordings.json", a.documented(a.listRecordings))
	handle("POST", "/Recordings.json", a.documented(a.createRecording))
	handle("DELETE", "/Recordings/{file}", a.owned(a.deleteRecording))
	handle("GET", "/Recordings/{file}", a.getRecording)
	handle("OPTIONS", "/Recordings/{file}", a.preflight)
	handle("GET", "/Recordings/{file}/Transcriptions", a.owned(a.listTranscriptions))
	handle("GET", "/Recordings/{file}/Transcriptions.json", a.owned(a.listTranscriptions))
}

// An ownedHandler serves a caller with valid credentials for the account in the
// path.
type ownedHandler func(w http.ResponseWriter, r *http.Request, o recordings.Owner) error

// owned checks the credentials. Another's account is a 404 like any unknown
// recording.
func (a *API) owned(h ownedHandler) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		web.NoStore(w)
		o, err := a.credentials(r)
		if err != nil {
			return err
		}
		if o.ProjectID != r.PathValue("AccountSid") {
			return problem.NoSuch("recording")
		}
		return h(w, r, o)
	}
}

// A documentHandler answers with documents, and the links in them.
type documentHandler func(w http.ResponseWriter, r *http.Request, o recordings.Owner, urls mediaURLs) error

// documented returns the links that are asked for, before anything is stored.
func (a *API) documented(h documentHandler) web.Handler {
	return a.owned(func(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
		urls, err := a.mediaURLs(r, o.ProjectID)
		if err != nil {
			return err
		}
		return h(w, r, o, urls)
	})
}

// unrouted answers what no route of mux serves: 405 where another method would
// do, else 404.
func (a *API) unrouted(mux *http.ServeMux) http.Handler {
	return web.Handle(func(w http.ResponseWriter, r *http.Request) error {
		probe, allowed := *r, []string(nil)
		for _, probe.Method = range []string{http.MethodDelete, http.MethodGet, http.MethodHead,
			http.MethodOptions, http.MethodPost} {
			if _, pattern := mux.Handler(&probe); pattern != "/" {
				allowed = append(allowed, probe.Method)
			}
		}
		if len(allowed) == 0 {
			return problem.NoSuch("resource")
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		a.write(w, http.StatusMethodNotAllowed, codeOf(http.StatusMethodNotAllowed),
			"this resource does not take the method "+r.Method)
		return nil
	}, a.fail)
}

// unauthenticated tells whether err says that there were no valid credentials.
func unauthenticated(err error) bool { return errors.Is(err, problem.Unauthenticated) }
