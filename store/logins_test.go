package store

import (
	"context"
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
	var wg sync.WaitGroup
	var w, l atomic.Int64
	for range 50 {
		wg.Go(func() {
			switch err := do(); {
			case err == nil:
				w.Add(1)
			case errors.Is(err, problem.Conflict):
				l.Add(1)
			default:
				t.Error(err)
			}
		})
	}

	wg.Wait()
	return w.Load(), l.Load()
}

func TestRedeemCodeOnce(t *testing.T) { EachDatabase(t, testRedeemCodeOnce) }

func testRedeemCodeOnce(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	signIn(t, s, g)
	won, lost := crowd(t, func() error {
		g := g
		g.ID = newID()
		return s.RedeemCode(context.Background(),
			idp.RedeemedCode{Hash: "h", GrantID: g.ID, ClientID: "c", Expires: time.Now().Add(time.Hour)}, g)
	})
	if won != 1 || lost != 49 {
		t.Errorf("%d redemptions of one code won and %d lost, want 1 and 49", won, lost)
	}

	first, err := s.FindRedeemedCode(t.Context(), "h")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.FindGrant(t.Context(), first.GrantID); err != nil {
		t.Errorf("the winner's grant: %v", err)
	}
}

func TestRotateGrantOnce(t *testing.T) { EachDatabase(t, testRotateGrantOnce) }

func testRotateGrantOnce(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	signIn(t, s, g)
	g.ID = newID()
	if err := s.RedeemCode(t.Context(), idp.RedeemedCode{Hash: "h", GrantID: g.ID, ClientID: "c"}, g); err != nil {
		t.Fatal(err)
	}

	next := func(hash string) idp.Grant {
		return idp.Grant{
			ID:          g.ID,
			RefreshHash: hash,
			Seed:        "sealed " + hash,
			Rotated:     time.UnixMicro(5).UTC(),
			IdleUntil:   time.UnixMicro(7).UTC(),
		}
	}

	won, lost := crowd(t, func() error { return s.RotateGrant(context.Background(), next(newID()), "first") })
	if won != 1 || lost != 49 {
		t.Errorf("%d rotations of one token won and %d lost, want 1 and 49", won, lost)
	}

	got, err := s.FindGrant(t.Context(), g.ID)
	if err != nil {
		t.Fatal(err)
	}
	if want := next(got.RefreshHash); got.RefreshHash == "first" || got.Seed != want.Seed ||
		got.Rotated != want.Rotated || got.IdleUntil != want.IdleUntil {
		t.Errorf("FindGrant after a rotation = %+v, want one complete rotation", got)
	}
}

func TestEndSession(t *testing.T) { EachDatabase(t, testEndSession) }

func testEndSession(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	g.ID = newID()
	err := errors.Join(s.CreateLogin(t.Context(), login(g), "hash"),
		s.RedeemCode(t.Context(), idp.RedeemedCode{Hash: "h", GrantID: g.ID, ClientID: "c"}, g))
	if err != nil {
		t.Fatal(err)
	}

	r := revocation.Revocation{Kind: revocation.Session, ID: g.SessionID, Expires: time.Now().Add(time.Hour)}
	for range 2 {
		if err := s.EndLogins(t.Context(), time.Now(), r); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.FindGrant(t.Context(), g.ID); err != nil || got.Revoked.IsZero() {
		t.Errorf("the grant of an ended login: %+v, %v, want it revoked", got, err)
	}

	revoked, _, err := s.RevocationsSince(t.Context(), 0)
	if err != nil || len(revoked) != 1 || revoked[0].Kind != revocation.Session || revoked[0].ID != g.SessionID {
		t.Errorf("revocations = %+v, %v, want one of the login", revoked, err)
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
	g.ID = newID()
	code := idp.RedeemedCode{Hash: "h", GrantID: g.ID, ClientID: "c", Expires: time.Now().Add(time.Hour)}
	if err := errors.Join(s.CreateLogin(t.Context(), login(g), "hash"),
		s.RedeemCode(t.Context(), code, g)); err != nil {
		t.Fatal(err)
	}

	there := func() (n int) {
		_, code := s.FindRedeemedCode(t.Context(), "h")
		_, grant := s.FindGrant(t.Context(), g.ID)
		_, login := s.FindLogin(t.Context(), g.SessionID)
		for _, err := range []error{code, grant, login} {
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
		{"nothing is old enough", 0, now.Add(-time.Minute), now.Add(100 * time.Hour), 3},
		{"the code has expired, and the grant has not", 2 * time.Hour, now.Add(time.Minute), now, 2},
		{"all", 2 * time.Hour, now.Add(time.Minute), now.Add(100 * time.Hour), 0},
	}

	for _, tt := range tests {
		ahead.Store(int64(tt.ahead))
		if err := s.SweepLogins(t.Context(), tt.began, tt.expired); err != nil || there() != tt.left {
			t.Errorf("%s: a sweep leaves %d rows, want %d; %v", tt.name, there(), tt.left, err)
		}
	}
}

// TestRehashPassword shows that a hash is replaced once, and only if it is still the hash that was
// read.
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

	for _, err := range []error{rehash(sub.ProjectID, sub.PasswordHash, "two"), rehash(newID(), "one", "three")} {
		if !errors.Is(err, problem.NotFound) {
			t.Errorf("RehashPassword of another hash or project = %v, want problem.NotFound", err)
		}
	}
	if got, err := s.FindSubscriber(t.Context(), g.ProjectID, g.SubscriberID); got.PasswordHash != "one" ||
		err != nil {
		t.Errorf("the hash is %q, %v, want \"one\"", got.PasswordHash, err)
	}
}

// TestLiveLogins shows that a login is live as long as its cookie or one of its grants has not
// expired.
func TestLiveLogins(t *testing.T) { EachDatabase(t, testLiveLogins) }

func testLiveLogins(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	now := time.Now()
	signIn := func(expires time.Duration, mark string) string {
		t.Helper()
		l := login(g)
		l.ID, l.Mark = newID(), mark
		l.AuthTime, l.Expires = now, now.Add(expires)
		if err := s.CreateLogin(t.Context(), l, "hash"); err != nil {
			t.Fatal(err)
		}
		return l.ID
	}

	grant := func(sid string, lives time.Duration) {
		t.Helper()
		n := g
		n.ID, n.SessionID, n.Scope = newID(), sid, []string{"openid"}
		n.Created, n.IdleUntil, n.Expires = now, now.Add(lives), now.Add(lives)
		if err := s.RedeemCode(t.Context(),
			idp.RedeemedCode{Hash: n.ID, GrantID: n.ID, ClientID: "c", Expires: now}, n); err != nil {
			t.Fatal(err)
		}
	}

	wantApps := func(when string, want int) {
		t.Helper()
		apps, err := s.ListApps(t.Context(), "p", "s", now)
		if err != nil || len(apps) != want || want == 1 &&
			(apps[0].ClientID != "c" || len(apps[0].Scopes) != 1 || apps[0].Since.IsZero()) {
			t.Errorf("%s: the apps are %+v, %v, want %d", when, apps, err, want)
		}
	}

	expired := signIn(-time.Hour, "a")
	grant(expired, -time.Minute)
	wantApps("with only an expired grant", 0)
	kept, good, ended := signIn(-time.Hour, "a"), signIn(time.Hour, "b"), signIn(time.Hour, "c")
	grant(kept, time.Hour)
	if err := s.EndLogins(t.Context(), now,
		revocation.Revocation{Kind: revocation.Session, ID: ended, Until: now, Expires: now}); err != nil {
		t.Fatal(err)
	}

	all, err := s.LiveLogins(t.Context(), "p", "s", now)
	if err != nil || len(all) != 2 || all[0].ID != good || all[1].ID != kept || all[0].Mark != "b" ||
		all[0].Seen.IsZero() {
		t.Errorf("LiveLogins = %+v, %v, want %s and %s", all, err, good, kept)
	}
	wantApps("with a live grant", 1)
	if all, err := s.LiveLogins(t.Context(), "other", "s", now); err != nil || len(all) != 0 {
		t.Errorf("LiveLogins of another project = %+v, %v, want none", all, err)
	}

	if err := s.AddConsent(t.Context(), "s", "c", []string{"email"}, now); err != nil {
		t.Fatal(err)
	}
	wantApps("with a live grant and a consent", 1)
}
