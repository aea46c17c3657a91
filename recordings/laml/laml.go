// Package laml serves recordings and calls to the vendor's compatibility clients over LaML
// (2010-04-01).
//
// By default, media is public, so anyone who knows the Sid may fetch it. Projects can change this.
// Switches upload recordings with an ingest key in the URL. All other requests need credentials.
// Functions in the [Config] check keys and credentials. If a recording or call is unknown, deleted,
// or belongs to another account, the response is always the same 404. Every error response is a
// LaML object.
package laml

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// Config holds the dependencies of an [API].
type Config struct {
	Recordings *recordings.Recordings // required
	Calls      *calls.Records         // required

	// Credentials returns the owner whose recordings a caller may see. If the credentials are
	// missing or wrong, or lack the scope Voice, it returns problem.Unauthenticated. If Credentials
	// is nil, all callers are refused.
	Credentials func(r *http.Request) (recordings.Owner, error)

	// IngestKey returns the project of an ingest key. If the key is unknown or revoked, it returns
	// problem.NotFound. recheck returns problem.NotFound if the key was revoked in the meantime. If
	// IngestKey is nil, all keys are unknown.
	IngestKey func(r *http.Request, key string) (projectID string, recheck func() error, err error)

	// Miss counts a request for media against its network before the media is looked up. If the
	// network has sent too many requests, Miss returns problem.RateLimited. The function found undoes
	// the count. If Miss is nil, nothing is counted.
	Miss func(r *http.Request) (found func(), err error)

	PublicURL string // prefix of each media_url; if "", URLs are paths

	// Encoders limits how many pieces of media are encoded or drawn at the same time. 0 means one per
	// CPU.
	Encoders int

	// Offload returns the header that makes the reverse proxy send the file with this MediaKey. If
	// Offload is nil, this server sends files itself.
	Offload func(key string) (header, value string)

	// Redirect returns the URL at which an object store serves the file with this MediaKey and the
	// given headers. If Redirect is nil, this server sends files itself.
	Redirect func(key string, headers map[string]string) (string, error)

	Log *slog.Logger // nil means slog.Default
}

// An API serves recordings and calls over HTTP.
type API struct {
	recordings  *recordings.Recordings
	calls       *calls.Records
	credentials func(r *http.Request) (recordings.Owner, error)
	ingestKey   func(r *http.Request, key string) (projectID string, recheck func() error, err error)
	miss        func(r *http.Request) (found func(), err error)
	publicURL   string
	offload     func(key string) (header, value string)
	redirect    func(key string, headers map[string]string) (string, error)
	turns       chan struct{} // one token for each piece that is being encoded or drawn
	log         *slog.Logger
}

// New returns an API with configuration c.
func New(c Config) *API {
	if c.Credentials == nil {
		c.Credentials = func(*http.Request) (recordings.Owner, error) {
			return recordings.Owner{}, problem.NoCredentials()
		}
	}
	if c.IngestKey == nil {
		c.IngestKey = func(*http.Request, string) (string, func() error, error) {
			return "", nil, problem.NoSuch("ingest key")
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
		recordings:  c.Recordings,
		calls:       c.Calls,
		credentials: c.Credentials,
		ingestKey:   c.IngestKey,
		miss:        c.Miss,
		publicURL:   c.PublicURL,
		offload:     c.Offload,
		redirect:    c.Redirect,
		turns:       make(chan struct{}, c.Encoders),
		log:         c.Log,
	}
}

// Path prefixes. Documents and links use prefix, and the vendor's clients use clientPrefix.
const (
	prefix       = "/api/laml/2010-04-01"
	clientPrefix = "/2010-04-01"
)

// IngestPrefix is the prefix of the URLs to which switches send recordings.
const IngestPrefix = "/ingest/"

// Handler serves all paths below both prefixes and IngestPrefix. Lists are served with and without
// ".json". For a recording, the extension of {file} selects the format.
func (a *API) Handler() http.Handler {
	mux := web.Mount(a.mount)
	mux.Handle("/", a.unrouted(mux))
	return mux
}

// Routes returns the patterns that Handler serves.
func (a *API) Routes() []string { return web.Routes(a.mount) }

func (a *API) mount(mux web.Mux) {
	handle := func(method, path string, h web.Handler) {
		for _, p := range []string{prefix, clientPrefix} {
			mux.Handle(method+" "+p+"/Accounts/{AccountSid}"+path, web.Handle(h, a.fail))
		}
	}
	for _, method := range []string{"POST", "PUT"} {
		mux.Handle(method+" "+IngestPrefix+"{key}/{path...}", web.Handle(a.ingest, a.fail))
	}

	handle("GET", "/Calls", a.owned(a.listCalls))
	handle("GET", "/Calls.json", a.owned(a.listCalls))
	handle("GET", "/Calls/{file}", a.owned(a.showCall))
	handle("POST", "/Calls/{file}", a.owned(a.endCall))

	handle("GET", "/Calls/{CallSid}/Recordings", a.documented(a.listRecordings))
	handle("GET", "/Calls/{CallSid}/Recordings.json", a.documented(a.listRecordings))
	handle("POST", "/Calls/{CallSid}/Recordings", a.documented(a.startRecording))
	handle("POST", "/Calls/{CallSid}/Recordings.json", a.documented(a.startRecording))
	handle("DELETE", "/Calls/{CallSid}/Recordings/{file}", a.owned(a.deleteRecording))
	handle("GET", "/Calls/{CallSid}/Recordings/{file}", a.documented(a.showRecording))
	handle("POST", "/Calls/{CallSid}/Recordings/{file}", a.documented(a.moveRecording))

	handle("GET", "/Conferences/{ConferenceSid}/Recordings", a.documented(a.listRecordings))
	handle("GET", "/Conferences/{ConferenceSid}/Recordings.json", a.documented(a.listRecordings))
	handle("POST", "/Conferences/{ConferenceSid}/Recordings", a.documented(a.startRecording))
	handle("POST", "/Conferences/{ConferenceSid}/Recordings.json", a.documented(a.startRecording))
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

// An ownedHandler serves a caller whose credentials are valid for the account in the path.
type ownedHandler func(w http.ResponseWriter, r *http.Request, o recordings.Owner) error

// owned checks the credentials before it calls h. If the account in the path belongs to another
// owner, the response is the same 404 as for an unknown recording.
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

// A documentHandler responds with documents. urls writes the links in the documents.
type documentHandler func(w http.ResponseWriter, r *http.Request, o recordings.Owner, urls mediaURLs) error

// documented prepares the links before it calls h, so that a wrong MediaUrlTtl is detected before
// anything is stored.
func (a *API) documented(h documentHandler) web.Handler {
	return a.owned(func(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
		urls, err := a.mediaURLs(r, o)
		if err != nil {
			return err
		}
		return h(w, r, o, urls)
	})
}

// unrouted responds to requests that match no route of mux. The status is 405 if the path supports
// another method, and otherwise 404.
func (a *API) unrouted(mux *http.ServeMux) http.Handler {
	return web.Handle(func(w http.ResponseWriter, r *http.Request) error {
		var allowed []string
		for _, method := range []string{
			http.MethodDelete, http.MethodGet, http.MethodHead,
			http.MethodOptions, http.MethodPost, http.MethodPut,
		} {
			probe := *r
			probe.Method = method
			if _, pattern := mux.Handler(&probe); pattern != "/" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) == 0 {
			return problem.NoSuch("resource")
		}
		web.Refuse(r.Context(), problem.New(problem.Unsupported, "method_not_allowed",
			"this resource does not take the method"))
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		a.write(w, http.StatusMethodNotAllowed, codeOf(http.StatusMethodNotAllowed),
			"this resource does not take the method "+r.Method)
		return nil
	}, a.fail)
}

// unauthenticated reports whether err means that the request has no valid credentials.
func unauthenticated(err error) bool { return errors.Is(err, problem.Unauthenticated) }
