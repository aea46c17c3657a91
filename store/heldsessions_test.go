package store

import (
	"testing"
	"time"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/revocation"
)

func TestHeldSessions(t *testing.T) { EachDatabase(t, testHeldSessions) }

// testHeldSessions shows that a subscriber's live logins are those whose cookie or grant has not expired.
func testHeldSessions(t *testing.T, c Config) {
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

	over := signIn(-time.Hour, "a")
	grant(over, -time.Minute)
	wantApps("before", 0)
	kept, good, ended := signIn(-time.Hour, "a"), signIn(time.Hour, "b"), signIn(time.Hour, "c")
	grant(kept, time.Hour)
	if err := s.EndLogins(t.Context(), now,
		revocation.Revocation{Kind: revocation.Session, ID: ended, Until: now, Expires: now}); err != nil {
		t.Fatal(err)
	}

	all, err := s.LiveLogins(t.Context(), "p", "s", now)
	if err != nil || len(all) != 2 || all[0].ID != good || all[1].ID != kept || all[0].Mark != "b" ||
		all[0].Seen.IsZero() {
		t.Errorf("HeldSessions = %+v, %v, want %s and %s", all, err, good, kept)
	}
	wantApps("of a grant", 1)
	if all, err := s.LiveLogins(t.Context(), "other", "s", now); err != nil || len(all) != 0 {
		t.Errorf("HeldSessions of another project = %+v, %v", all, err)
	}

	if err := s.AddConsent(t.Context(), "s", "c", []string{"email"}, now); err != nil {
		t.Fatal(err)
	}
	wantApps("of a grant and a consent", 1)
}
