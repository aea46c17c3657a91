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
	"github.com/selvage/selvage/internal/revocation"
	sessions "github.com/selvage/selvage/internal/session/sql"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/operator/dashboard"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

const good = "a loom of one's own"

// A world is a dashboard on a real database and server, with two projects.
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
	rotated    []string        // uses whose keys were rotated
	mailed     []string        // recipients of test emails
	requires   []operator.Role // roles that need a second factor
	noCalls    bool            // the server carries no calls
	maxUpload  int64           // maximum size of a recording; 0 means the default
	backups    *dashboard.Backups
	limits     *limit.Limiter
	forms      once.Forms // of another node

	full atomic.Bool // if true, revocations fail because the disk is full

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

// now returns the time of a clock that advances a millisecond whenever it is read. Nothing expires
// early on a slow machine.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(time.Millisecond)
	return w.at
}

// named returns the URL of the dashboard with a host name instead of an IP address, as passkeys
// require.
func (w *world) named() string { return strings.Replace(w.url, "127.0.0.1", "localhost", 1) }

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
	t := w.TB
	t.Helper()
	ctx, dir := context.Background(), storetest.Dir(t)
	w.dir, w.at = dir, time.Now()

	// Open the database, the session store and the revocations.
	rows := storetest.Open(t, dir, nil)
	w.rows = rows
	live, err := sessions.Open(ctx, sessions.Config{Dir: dir})
	must(t, err)
	t.Cleanup(func() { _ = live.Close() })
	ring := storetest.Ring(t, dir, rows, nil)
	revoked := revocation.New(fullLog{rows, &w.full}, nil)
	must(t, revoked.Sync(ctx))
	polling, stop := context.WithCancel(ctx)
	var polls sync.WaitGroup
	polls.Go(func() { revoked.Run(polling) })
	t.Cleanup(func() { stop(); polls.Wait() })

	// Start the server before its handler exists, since its address is part of the configuration.
	var handler http.Handler
	srv := httptest.NewServer(http.HandlerFunc(
		func(rw http.ResponseWriter, r *http.Request) { handler.ServeHTTP(rw, r) }))
	t.Cleanup(srv.Close)
	w.url = srv.URL

	// Create the packages that the dashboard uses.
	pass := password.Weak(2)
	catalog, err := kinds.Load("testdata/kinds")
	must(t, err)
	w.factors, err = factor.New(factor.Config{Store: rows, Sessions: live, Ring: ring, AuthURL: w.named(),
		Now: w.now})
	must(t, err)
	w.fabric = fabric.New(fabric.Config{
		Stores: rows.Fabric(), Kinds: catalog, Ring: ring, Passwords: pass, Revocations: revoked, Sessions: live,
		Host: "puc.localhost:8443", Issuer: w.url + "/", CheckURL: egress.Policy{}.Check, Factors: w.factors,
		EndLogin: func(ctx context.Context, sid string) error { return w.idp.Logins.End(ctx, sid) },
	})

	w.limits = limit.New(live, limit.Rates{limit.LoginPerAccount: limit.Of(4, time.Hour),
		limit.LoginPerDevice: limit.Of(4, time.Hour)})
	w.idp = idp.New(idp.Config{
		Store: idp.Stores{Clients: rows, Logins: rows, Grants: rows, Consents: rows, Letters: rows,
			Uses: rows, Registrations: rows, Upstreams: rows},
		Subscribers: rows, Sessions: live, Fabric: w.fabric,
		Passwords: pass, Ring: ring, Revocations: revoked, Issuer: w.url + "/", Limits: w.limits})

	media, err := blob.OpenDir(t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = media.Close() })
	w.recordings = recordings.New(recordings.Config{Store: rows, Media: media, Links: ring, MaxUpload: w.maxUpload})

	w.operators = operator.New(operator.Config{Store: rows, Passwords: pass, Limits: w.limits, Sessions: live,
		Now: w.now})

	w.forms = once.Forms{Sessions: live, Kind: "operator-form", Kept: time.Hour, Now: w.now}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	w.api, err = dashboard.New(dashboard.Config{
		Operators: w.operators, Fabric: w.fabric, Clients: w.idp, Recordings: w.recordings,
		Calls: calls.NewRecords(rows), Rooms: calls.NewRooms(rows, rows), NoCalls: w.noCalls, Sessions: live,
		PublicURL: w.url, AuthURL: w.url, Log: log, Now: w.now, Audit: rows.ListAudit, SecretsShown: rows.SecretsShown,
		Factors: w.factors, RequireFactor: w.requires, Counts: rows.ListCounts,
		Installation: w.installation(),
		Health: func(context.Context) []dashboard.Health {
			return []dashboard.Health{{Name: "store", OK: true}}
		},
	})
	must(t, err)
	handler = web.Outer(w.api.Handler(), log, nil)

	w.one, err = w.fabric.Projects.Create(ctx, "One")
	must(t, err)
	w.two, err = w.fabric.Projects.Create(ctx, "Two")
	must(t, err)
	return w
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
