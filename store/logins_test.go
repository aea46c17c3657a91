package store

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// grantRows returns a store with a project, a client and a subscriber. g is a grant that is not
// stored. ahead is how far the store's clock is ahead.
func grantRows(t *testing.T, c Config) (s *Store, g idp.Grant, ahead *atomic.Int64) {
	t.Helper()
	ahead = new(atomic.Int64)
	c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	s = opened(t, c)

	g = idp.Grant{
		ProjectID:    "p",
		ClientID:     "c",
		SubscriberID: "s",
		SessionID:    newID(),
		RefreshHash:  "first",
		Expires:      time.Now().Add(time.Hour),
		IdleUntil:    time.Now().Add(time.Hour),
	}

	err := s.change(t.Context(), audit.None("a test"), func(tx tx) error {
		for _, query := range []string{
			`INSERT INTO projects (id, name, record_rate, created, updated) VALUES ('p', 'P', 0, 0, 0)`,
			`INSERT INTO subscribers (id, project_id, email, password_hash, created, updated)
				VALUES ('s', 'p', 'a@example.com', 'hash', 0, 0)`,
			`INSERT INTO clients (id, project_id, name, type, profile, auth_method, grants, scopes,
				access_token, id_token_alg, created, updated)
				VALUES ('c', 'p', '', 'spa', 'default', 'none', '', '', 'fabric', 'RS256', 0, 0)`,
		} {
			if _, err := tx.Exec(t.Context(), query); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, g, ahead
}

// signIn creates the login to which a grant belongs.
func signIn(t *testing.T, s *Store, g idp.Grant) {
	t.Helper()
	if err := s.CreateLogin(t.Context(), login(g), "hash"); err != nil {
		t.Fatal(err)
	}
}

func login(g idp.Grant) idp.Login {
	return idp.Login{ID: g.SessionID, ProjectID: "p", SubscriberID: "s", Expires: time.Now()}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// crowd calls do fifty times concurrently. It returns how many calls succeeded, and how many
// returned a conflict.
func crowd(t *testing.T, do func() error) (won, lost int64) {
	t.Helper()
	var calling sync.WaitGroup
	var succeeded, conflicts atomic.Int64
	for range 50 {
		calling.Go(func() {
			switch err := do(); {
			case err == nil:
				succeeded.Add(1)
			case errors.Is(err, problem.Conflict):
				conflicts.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	calling.Wait()
	return succeeded.Load(), conflicts.Load()
}

func TestEndSession(t *testing.T) { EachDatabase(t, testEndSession) }

func testEndSession(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	signIn(t, s, g)
	storeGrant(t, s, &g)
	r := revocation.Revocation{Kind: revocation.Session, ID: g.SessionID, Expires: time.Now().Add(time.Hour)}
	for range 2 {
		if err := s.EndLogins(t.Context(), time.Now(), r); err != nil {
			t.Fatal(err)
		}
	}
	grant, err := s.FindGrant(t.Context(), g.ID)
	if err != nil {
		t.Fatal(err)
	}
	if grant.Revoked.IsZero() {
		t.Error("the grant of an ended login is not revoked")
	}

	revoked, _, err := s.RevocationsSince(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(revoked) != 1 {
		t.Fatalf("revocations = %+v, want one", revoked)
	}
	if revoked[0].Kind != revocation.Session {
		t.Errorf("the revocation is of a %s, want a %s", revoked[0].Kind, revocation.Session)
	}
	if revoked[0].ID != g.SessionID {
		t.Errorf("the revocation is of %s, want the login %s", revoked[0].ID, g.SessionID)
	}
}

// TestCreateLoginTooLate shows that no login is created if the password has changed since it was
// checked.
func TestCreateLoginTooLate(t *testing.T) { EachDatabase(t, testCreateLoginTooLate) }

func testCreateLoginTooLate(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	if err := s.CreateLogin(t.Context(), login(g), "an old hash"); !errors.Is(err, problem.Conflict) {
		t.Errorf("CreateLogin with an old hash = %v, want problem.Conflict", err)
	}
	if _, err := s.FindLogin(t.Context(), g.SessionID); !errors.Is(err, problem.NotFound) {
		t.Errorf("FindLogin = %v, want problem.NotFound", err)
	}
}

func TestSweepLogins(t *testing.T) { EachDatabase(t, testSweepLogins) }

func testSweepLogins(t *testing.T, c Config) {
	s, g, ahead := grantRows(t, c)
	signIn(t, s, g)
	storeGrant(t, s, &g)
	countRows := func() (n int) {
		t.Helper()
		_, codeErr := s.FindRedeemedCode(t.Context(), "h")
		_, grantErr := s.FindGrant(t.Context(), g.ID)
		_, loginErr := s.FindLogin(t.Context(), g.SessionID)
		for _, err := range []error{codeErr, grantErr, loginErr} {
			if err == nil {
				n++
			}
		}
		return n
	}

	now := time.Now()
	tests := []struct {
		name           string
		ahead          time.Duration
		began, expired time.Time
		left           int
	}{
		{
			name:    "nothing is old enough",
			began:   now.Add(-time.Minute),
			expired: now.Add(100 * time.Hour),
			left:    3,
		},
		{
			name:    "the code has expired, and the grant has not",
			ahead:   2 * time.Hour,
			began:   now.Add(time.Minute),
			expired: now,
			left:    2,
		},
		{
			name:    "everything is old enough",
			ahead:   2 * time.Hour,
			began:   now.Add(time.Minute),
			expired: now.Add(100 * time.Hour),
			left:    0,
		},
	}

	for _, tt := range tests {
		ahead.Store(int64(tt.ahead))
		if err := s.SweepLogins(t.Context(), tt.began, tt.expired); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if n := countRows(); n != tt.left {
			t.Errorf("%s: a sweep leaves %d rows, want %d", tt.name, n, tt.left)
		}
	}
}

// TestRehashPassword shows that a hash is replaced only if it is still the hash that was read.
func TestRehashPassword(t *testing.T) { EachDatabase(t, testRehashPassword) }

func testRehashPassword(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	sub, err := s.FindSubscriber(t.Context(), g.ProjectID, g.SubscriberID)
	if err != nil {
		t.Fatal(err)
	}

	rehash := func(project, old, new string) error {
		return s.RehashPassword(t.Context(), project, sub.ID, old, new)
	}
	if err := rehash(sub.ProjectID, sub.PasswordHash, "one"); err != nil {
		t.Errorf("RehashPassword = %v", err)
	}

	if err := rehash(sub.ProjectID, sub.PasswordHash, "two"); !errors.Is(err, problem.NotFound) {
		t.Errorf("RehashPassword of another hash = %v, want problem.NotFound", err)
	}
	if err := rehash(newID(), "one", "three"); !errors.Is(err, problem.NotFound) {
		t.Errorf("RehashPassword in another project = %v, want problem.NotFound", err)
	}
	rehashed, err := s.FindSubscriber(t.Context(), g.ProjectID, g.SubscriberID)
	if err != nil || rehashed.PasswordHash != "one" {
		t.Errorf("the hash is %q, %v, want %q", rehashed.PasswordHash, err, "one")
	}
}

// TestLiveLogins shows that a login is live as long as its cookie or one of its grants has not
// expired.
func TestLiveLogins(t *testing.T) { EachDatabase(t, testLiveLogins) }

func testLiveLogins(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	now := time.Now()
	logIn := func(expires time.Duration, mark string) string {
		t.Helper()
		l := login(g)
		l.ID = newID()
		l.Mark = mark
		l.AuthTime = now
		l.Expires = now.Add(expires)
		if err := s.CreateLogin(t.Context(), l, "hash"); err != nil {
			t.Fatal(err)
		}
		return l.ID
	}

	grant := func(sid string, lives time.Duration) {
		t.Helper()
		stored := g
		stored.ID = newID()
		stored.SessionID = sid
		stored.Scope = []string{"openid"}
		stored.Created = now
		stored.IdleUntil = now.Add(lives)
		stored.Expires = now.Add(lives)
		code := idp.RedeemedCode{Hash: stored.ID, GrantID: stored.ID, ClientID: "c", Expires: now}
		if err := s.RedeemCode(t.Context(), code, stored); err != nil {
			t.Fatal(err)
		}
	}

	listApps := func() []idp.App {
		t.Helper()
		apps, err := s.ListApps(t.Context(), "p", "s", now)
		if err != nil {
			t.Fatal(err)
		}
		return apps
	}
	wantOneApp := func(when string) {
		t.Helper()
		apps := listApps()
		if len(apps) != 1 {
			t.Fatalf("%s: the apps are %+v, want one", when, apps)
		}
		if apps[0].ClientID != "c" {
			t.Errorf("%s: the app is %q, want c", when, apps[0].ClientID)
		}
		if len(apps[0].Scopes) != 1 {
			t.Errorf("%s: the scopes of the app are %q, want one", when, apps[0].Scopes)
		}
		if apps[0].Since.IsZero() {
			t.Errorf("%s: the app has no start time", when)
		}
	}

	expired := logIn(-time.Hour, "a")
	grant(expired, -time.Minute)
	if apps := listApps(); len(apps) != 0 {
		t.Errorf("with only an expired grant the apps are %+v, want none", apps)
	}

	kept := logIn(-time.Hour, "a")
	good := logIn(time.Hour, "b")
	over := logIn(time.Hour, "c")
	grant(kept, time.Hour)
	r := revocation.Revocation{Kind: revocation.Session, ID: over, Until: now, Expires: now}
	if err := s.EndLogins(t.Context(), now, r); err != nil {
		t.Fatal(err)
	}

	live, err := s.LiveLogins(t.Context(), "p", "s", now)
	if err != nil {
		t.Fatal(err)
	}
	if len(live) != 2 {
		t.Fatalf("LiveLogins = %+v, want two logins", live)
	}
	if live[0].ID != good {
		t.Errorf("the first live login is %s, want %s", live[0].ID, good)
	}
	if live[1].ID != kept {
		t.Errorf("the second live login is %s, want %s", live[1].ID, kept)
	}
	if live[0].Mark != "b" {
		t.Errorf("the mark of the first live login is %q, want b", live[0].Mark)
	}
	if live[0].Seen.IsZero() {
		t.Error("the first live login has never been seen")
	}
	wantOneApp("with a live grant")
	elsewhere, err := s.LiveLogins(t.Context(), "other", "s", now)
	if err != nil || len(elsewhere) != 0 {
		t.Errorf("LiveLogins of another project = %+v, %v, want none", elsewhere, err)
	}

	if err := s.AddConsent(t.Context(), "s", "c", []string{"email"}, now); err != nil {
		t.Fatal(err)
	}
	wantOneApp("with a live grant and a consent")
}
