package laml_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/openapi/openapitest"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/laml"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// key is the API key of every project in these tests.
const key = "PTkey"

// A server is the API with a real listener, database and directory, and with the same middleware as
// in production.
type server struct {
	*httptest.Server
	rules      *recordings.Recordings
	dir        string
	store      *store.Store
	media      string
	project    string
	subscriber string // a subscriber of the project, with the address /private/alice
	clock      clock

	ended    map[string]time.Time // when makers of links were revoked, by maker
	checkErr error                // the error of each check of a maker that is not revoked, or nil
}

const maxUpload = 1 << 20

func newServer(t testing.TB, change ...func(*server, *recordings.Config, *laml.Config)) *server {
	t.Helper()
	s := &server{media: filepath.Join(t.TempDir(), "media")}
	s.clock.set(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))
	s.dir = storetest.Dir(t)
	s.store = storetest.Open(t, s.dir, nil)
	rules := recordings.Config{
		Store:        s.store,
		Media:        storetest.Media(t, s.media),
		SubscriberOf: s.store.SubscriberOf,
		MaxUpload:    maxUpload,
		Now:          s.clock.now,
	}
	log := slog.New(slog.DiscardHandler)
	c := laml.Config{
		Credentials: s.credentials,
		PublicURL:   "https://example.com",
		Log:         log,
		Calls:       calls.NewRecords(s.store),
	}

	for _, f := range change {
		f(s, &rules, &c)
	}

	s.rules = recordings.New(rules)
	c.Recordings = s.rules
	s.project = s.addProject(t)
	s.subscriber = storetest.AddSubscriber(t, s.store, s.project, "alice", s.clock.now())
	s.Server = httptest.NewServer(web.Outer(laml.New(c).Handler(), log, nil))
	t.Cleanup(s.Close)
	return s
}

// signing returns a change of the configuration that adds keys for signing links.
func signing(t testing.TB) func(*server, *recordings.Config, *laml.Config) {
	return func(s *server, c *recordings.Config, _ *laml.Config) {
		c.Links = storetest.Ring(t, s.dir, s.store, nil)
		c.CheckMaker = func(maker string, made time.Time) error {
			if end, ended := s.ended[maker]; ended && !made.After(end) {
				return problem.NoCredentials()
			}
			return s.checkErr
		}
	}
}

// setMediaAuth sets who may fetch the project's media.
func (s *server) setMediaAuth(t testing.TB, auth recordings.MediaAuth) {
	t.Helper()
	text := string(auth)
	change := fabric.ProjectChange{MediaAuth: &text}
	if _, err := s.store.UpdateProject(t.Context(), s.project, change, s.clock.now()); err != nil {
		t.Fatal(err)
	}
	s.clock.set(s.clock.now().Add(time.Second)) // so that caches expire
}

// credentials accepts the key of every project, the subscriber's token, and the session of an operator
// of the server's project.
func (s *server) credentials(r *http.Request) (recordings.Owner, error) {
	if project, secret, ok := web.Basic(r); ok && secret == key {
		return recordings.Owner{ProjectID: project, Maker: "key"}, nil
	}
	if token, ok := web.Bearer(r); ok && token == "subscriber" {
		return recordings.Owner{ProjectID: s.project, SubscriberID: s.subscriber, Maker: "subscriber"}, nil
	}
	if c, err := r.Cookie("session"); err == nil && c.Value == "ann" && r.Header.Get("Authorization") == "" {
		return recordings.Owner{ProjectID: s.project, OperatorID: "ann"}, nil
	}
	return recordings.Owner{}, problem.NoCredentials()
}

func (s *server) addProject(t testing.TB) string {
	t.Helper()
	return storetest.AddProject(t, s.store, s.clock.now())
}

// path returns a path below the project's account.
func (s *server) path(rest string) string {
	return "/api/laml/2010-04-01/Accounts/" + s.project + rest
}

// An option changes a request before it is sent.
type option func(r *http.Request)

func header(name, value string) option { return func(r *http.Request) { r.Header.Set(name, value) } }

func (s *server) basic(r *http.Request) { r.SetBasicAuth(s.project, key) }

func asSubscriber(r *http.Request) { r.Header.Set("Authorization", "Bearer subscriber") }

func body(kind string, b []byte) option {
	return func(r *http.Request) {
		r.Body = io.NopCloser(bytes.NewReader(b))
		r.ContentLength = int64(len(b))
		if kind != "" {
			r.Header.Set("Content-Type", kind)
		}
	}
}

// An answer is a response with its whole body.
type answer struct {
	*http.Response
	body []byte
}

func (s *server) do(t testing.TB, method, path string, opts ...option) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}

	for _, o := range opts {
		o(r)
	}

	var documented openapitest.Transport
	res, err := documented.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for _, fault := range documented.Faults() {
		t.Error(fault)
	}

	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res, b}
}

// read decodes the JSON body of a response.
func read[T any](t testing.TB, a answer) (v T) {
	t.Helper()
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%s %s = %d %q: %v", a.Request.Method, a.Request.URL.Path, a.StatusCode, a.body, err)
	}
	return v
}

// A clock returns the time that the test has set. A handler may read it after its response has
// arrived.
type clock struct{ at atomic.Pointer[time.Time] }

func (c *clock) now() time.Time { return *c.at.Load() }

func (c *clock) set(at time.Time) { c.at.Store(&at) }

// wantError checks that a response is a LaML error with this status and code.
func wantError(t testing.TB, name string, a answer, status, code int) {
	t.Helper()
	e := read[map[string]any](t, a)
	message, _ := e["message"].(string)
	moreInfo, _ := e["more_info"].(string)
	if a.StatusCode != status {
		t.Errorf("%s = %d %s, want %d", name, a.StatusCode, a.body, status)
	}
	if e["status"] != float64(status) || e["code"] != float64(code) {
		t.Errorf("%s has the error %s, want status %d, code %d", name, a.body, status, code)
	}
	if message == "" || !strings.HasPrefix(moreInfo, "https://") {
		t.Errorf("%s has the error %s, want a message, and a link in more_info", name, a.body)
	}
	if len(e) != 4 {
		t.Errorf("%s has an error with %d members, want 4", name, len(e))
	}
}

// wantStatus checks the status of a response.
func wantStatus(t testing.TB, name string, a answer, status int) {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("%s = %d %s, want %d", name, a.StatusCode, a.body, status)
	}
}

// wantFile checks that the body of a response is this file.
func wantFile(t testing.TB, name string, a answer, file []byte) {
	t.Helper()
	if !bytes.Equal(a.body, file) {
		t.Errorf("%s = %d with %d bytes, want the file of %d bytes", name, a.StatusCode, len(a.body), len(file))
	}
}

// wantHeader checks a header of a response.
func wantHeader(t testing.TB, name string, h http.Header, field, want string) {
	t.Helper()
	if got := h.Get(field); got != want {
		t.Errorf("%s has the header %s %q, want %q", name, field, got, want)
	}
}

// upload uploads a file from the corpus, one second after the previous upload, and returns the
// recording's Sid.
func (s *server) upload(t testing.TB, file, query string) string {
	t.Helper()
	s.clock.set(s.clock.now().Add(time.Second))
	a := s.do(t, "POST", s.path("/Recordings?"+query), s.basic, body("audio/wav", corpusFile(t, file)),
		header("Idempotency-Key", s.clock.now().String()))
	if a.StatusCode != http.StatusCreated {
		t.Fatalf("upload of %s = %d %s, want 201", file, a.StatusCode, a.body)
	}
	return read[struct{ Sid string }](t, a).Sid
}

func corpusFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mediaFiles returns the number of files in the media directory.
func (s *server) mediaFiles(t testing.TB) (n int) {
	t.Helper()
	err := filepath.WalkDir(s.media, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
