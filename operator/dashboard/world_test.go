package dashboard_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/blob"
	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/once"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/session"
	sessions "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/operator/dashboard"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

const good = "a loom of one's own"

// A world is a dashboard with a real database, a real server and two projects.
type world struct {
	testing.TB
	url        string
	api        *dashboard.API
	fabric     *fabric.Fabric
	idp        *idp.Provider
	recordings *recordings.Recordings
	operators  *operator.Operators
	factors    *factor.Factors
	one, two   fabric.Project
	dir        string
	rows       *store.Store
	rotated    []string        // uses of the keys that were rotated
	mailed     []string        // recipients of test emails, and ids of retried emails
	requires   []operator.Role // roles that need a second factor
	noCalls    bool            // whether the server carries no calls
	maxUpload  int64           // maximum size of a recording; 0 means the default
	backups    *dashboard.Backups
	limits     *limit.Limiter
	forms      once.Forms // forms that another node handles

	full atomic.Bool // if true, revocations fail because the disk is full
	away atomic.Bool // if true, webhooks cannot be read because the database is unavailable

	mu sync.Mutex
	at time.Time // see now
}

// A fullLog is a revocation log that fails while full is true.
type fullLog struct {
	revocation.Log
	full *atomic.Bool
}

func (l fullLog) AddRevocation(ctx context.Context, r revocation.Revocation) error {
	if l.full.Load() {
		return errors.New("the disk is full")
	}
	return l.Log.AddRevocation(ctx, r)
}

// awayHooks are webhooks that cannot be listed while away is true.
type awayHooks struct {
	fabric.WebhookStore
	away *atomic.Bool
}

func (s awayHooks) ListWebhooks(
	ctx context.Context, projectID, text string, q page.Query,
) (page.Page[fabric.Webhook], error) {
	if s.away.Load() {
		return page.Page[fabric.Webhook]{}, problem.New(problem.Unavailable, "temporarily_unavailable", "away")
	}
	return s.WebhookStore.ListWebhooks(ctx, projectID, text, q)
}

// now returns the time of a clock that advances a millisecond whenever it is read. Therefore, nothing
// expires early on a slow machine.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(time.Millisecond)
	return w.at
}

// named returns the URL of the dashboard with a host name instead of an IP address, as passkeys
// require.
func (w *world) named() string { return strings.Replace(w.url, "127.0.0.1", "localhost", 1) }

// pass advances the clock.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newWorld(t testing.TB) *world { return newWorldThat(t) }

// newWorldThat returns a world in which the roles in requires need a second factor.
func newWorldThat(t testing.TB, requires ...operator.Role) *world {
	t.Helper()
	return newWorldOf(&world{TB: t, requires: requires})
}

// newWorldOf completes w, whose options are already set, and returns it.
func newWorldOf(w *world) *world {
	w.Helper()
	ctx := w.Context()
	w.dir, w.at = storetest.Dir(w), time.Now()
	if tomorrow := w.at.UTC().Truncate(span.Day).Add(span.Day); tomorrow.Sub(w.at) < time.Minute {
		w.at = tomorrow // so that no test runs past midnight
	}
	w.rows = storetest.Open(w, w.dir, w.now)
	live, err := sessions.Open(context.Background(), sessions.Config{Dir: w.dir})
	must(w, err)
	w.Cleanup(func() { _ = live.Close() })
	w.limits = limit.New(live, limit.Rates{
		limit.LoginPerAccount: limit.Of(4, time.Hour),
		limit.LoginPerDevice:  limit.Of(4, time.Hour),
	})

	// Start the server before its handler exists, since its address is part of the configuration.
	var handler http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(rw, r)
	}))
	w.Cleanup(server.Close)
	w.url = server.URL

	w.openServices(live)
	w.forms = once.Forms{Sessions: live, Kind: "operator-form", Kept: time.Hour, Now: w.now}
	log := slog.New(slog.NewTextHandler(w.Output(), nil))
	w.api, err = dashboard.New(dashboard.Config{
		Operators:     w.operators,
		Fabric:        w.fabric,
		Clients:       w.idp,
		Recordings:    w.recordings,
		Calls:         calls.NewRecords(w.rows),
		Rooms:         calls.NewRooms(w.rows, w.rows),
		NoCalls:       w.noCalls,
		Sessions:      live,
		PublicURL:     w.url,
		AuthURL:       w.url,
		Log:           log,
		Now:           w.now,
		Audit:         w.rows.ListAudit,
		SecretsShown:  w.rows.SecretsShown,
		Factors:       w.factors,
		RequireFactor: w.requires,
		Counts:        w.rows.ListCounts,
		Installation:  w.installation(),
		Health: func(context.Context) []dashboard.Health {
			return []dashboard.Health{{Name: "store", OK: true}}
		},
	})
	must(w, err)
	handler = web.Outer(w.api.Handler(), log, nil)

	w.one, err = w.fabric.Projects.Create(ctx, "One")
	must(w, err)
	w.two, err = w.fabric.Projects.Create(ctx, "Two")
	must(w, err)
	return w
}

// openServices creates the services that the dashboard uses.
func (w *world) openServices(live session.Store) {
	w.Helper()
	ring := storetest.Ring(w, w.dir, w.rows, nil)
	revoked := w.revocations()
	passwords := password.Weak(2)
	catalog, err := kinds.Load("testdata/kinds")
	must(w, err)
	w.factors, err = factor.New(factor.Config{
		Store:    w.rows,
		Sessions: live,
		Ring:     ring,
		AuthURL:  w.named(),
		Now:      w.now,
	})
	must(w, err)

	stores := w.rows.Fabric()
	stores.Webhooks = awayHooks{WebhookStore: stores.Webhooks, away: &w.away}
	w.fabric = fabric.New(fabric.Config{
		Stores:      stores,
		Kinds:       catalog,
		Ring:        ring,
		Passwords:   passwords,
		Revocations: revoked,
		Sessions:    live,
		Host:        "puc.localhost:8443",
		Issuer:      w.url + "/",
		Now:         w.now,
		CheckURL:    egress.Policy{}.Check,
		Factors:     w.factors,
		EndLogin:    func(ctx context.Context, sid string) error { return w.idp.Logins.End(ctx, sid) },
	})
	w.idp = idp.New(idp.Config{
		Store: idp.Stores{
			Clients:       w.rows,
			Logins:        w.rows,
			Grants:        w.rows,
			Consents:      w.rows,
			Letters:       w.rows,
			Uses:          w.rows,
			Registrations: w.rows,
			Upstreams:     w.rows,
		},
		Subscribers: w.rows,
		Sessions:    live,
		Fabric:      w.fabric,
		Passwords:   passwords,
		Ring:        ring,
		Revocations: revoked,
		Issuer:      w.url + "/",
		Now:         w.now,
		Limits:      w.limits,
	})

	media, err := blob.OpenDir(w.TempDir())
	must(w, err)
	w.Cleanup(func() { _ = media.Close() })
	w.recordings = recordings.New(recordings.Config{
		Store:     w.rows,
		Media:     media,
		Links:     ring,
		MaxUpload: w.maxUpload,
		Now:       w.now,
	})
	w.operators = operator.New(operator.Config{
		Store:     w.rows,
		Passwords: passwords,
		Limits:    w.limits,
		Sessions:  live,
		Now:       w.now,
	})
}

// revocations returns the revocations of the database, and follows them until the test ends.
func (w *world) revocations() *revocation.List {
	w.Helper()
	revoked := revocation.New(fullLog{Log: w.rows, full: &w.full}, nil)
	must(w, revoked.Sync(w.Context()))
	following, stop := context.WithCancel(context.Background())
	var follower sync.WaitGroup
	follower.Go(func() { revoked.Run(following) })
	w.Cleanup(func() {
		stop()
		follower.Wait()
	})
	return revoked
}

// operator creates an operator and returns it with a browser that is signed in as that operator.
func (w *world) operator(email string, roles ...operator.Membership) (operator.Operator, browser) {
	w.Helper()
	secret := good
	o, err := w.operators.Create(context.Background(), operator.Input{Email: &email, Password: &secret, Roles: roles})
	must(w, err)
	b := w.browser()
	b.signIn(email)
	return o, b
}

// firstPage is the query for the first page of a list.
var firstPage = page.Query{Size: 50}

var ofAll = operator.Membership{Role: operator.Owner}

// record stores a recording in a project.
func (w *world) record(projectID, call string) recordings.Recording {
	w.Helper()
	wav, err := os.ReadFile("../../cmd/selvage/internal/demo/welcome.wav")
	must(w, err)
	about := recordings.Description{Metadata: recordings.Metadata{CallSid: call, From: "/public/a", To: "/private/b"}}
	r, _, err := w.recordings.Ingest(context.Background(), recordings.Upload{
		ProjectID: projectID, Body: bytes.NewReader(wav), Describe: func() (recordings.Description, error) {
			return about, nil
		},
	})
	must(w, err)
	return r
}
