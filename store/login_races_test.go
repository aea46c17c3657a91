package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// TestLoginsAgainstEnds shows that if new logins begin while the logins of a subscriber are ended,
// each new login is either ended or refused.
func TestLoginsAgainstEnds(t *testing.T) { EachDatabase(t, testLoginsAgainstEnds) }

func testLoginsAgainstEnds(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	hash := "hash"
	off, on := true, false
	for round := range rounds {
		next := fmt.Sprint("hash", round)
		change := fabric.SubscriberChange{PasswordHash: &next}
		if round%2 == 1 {
			change = fabric.SubscriberChange{Disabled: &off}
		}

		var begun []idp.Login
		var mu sync.Mutex
		logIn := func() {
			l := login(idp.Grant{SessionID: newID()})
			if err := s.CreateLogin(ctx, l, hash); err != nil {
				expect(t, "CreateLogin", err, problem.Conflict)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			begun = append(begun, l)
		}
		endLogins := func() {
			r := end(revocation.Subscriber, "s")
			_, err := s.UpdateSubscriber(ctx, "p", "s", change, time.Now(), &r)
			expect(t, "UpdateSubscriber", err)
		}

		together(logIn, logIn, logIn, logIn, endLogins, logIn, logIn, logIn, logIn)
		for _, l := range begun {
			found, err := s.FindLogin(ctx, l.ID)
			if err != nil {
				t.Fatal(err)
			}
			if found.Ended.IsZero() {
				t.Errorf("round %d: the login %s, which started while all were ended, has not ended", round, l.ID)
			}
		}

		enable := fabric.SubscriberChange{Disabled: &on}
		if _, err := s.UpdateSubscriber(ctx, "p", "s", enable, time.Now(), nil); err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			hash = next
		}
	}
}

// TestEndLoginsAhead shows that if the logins of a subscriber are ended, the revocations also cover a
// login from a node whose clock is ahead. Otherwise, copies of this login in the session store would
// remain valid.
func TestEndLoginsAhead(t *testing.T) { EachDatabase(t, testEndLoginsAhead) }

func testEndLoginsAhead(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	now := time.Now()
	made := make(map[string]time.Time)
	for _, ahead := range []time.Duration{-time.Minute, time.Minute} {
		l := login(idp.Grant{SessionID: newID()})
		l.AuthTime = now.Add(ahead)
		if err := s.CreateLogin(ctx, l, "hash"); err != nil {
			t.Fatal(err)
		}
		made[l.ID] = l.AuthTime
	}

	hash := "next"
	change := fabric.SubscriberChange{PasswordHash: &hash}
	r := end(revocation.Subscriber, "s")
	if _, err := s.UpdateSubscriber(ctx, "p", "s", change, now, &r); err != nil {
		t.Fatal(err)
	}
	list := revocation.New(s, nil)
	if err := list.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	for id, at := range made {
		err := list.Check(at,
			revocation.Subject{Kind: revocation.Session, ID: id},
			revocation.Subject{Kind: revocation.Subscriber, ID: "s"})
		if !errors.Is(err, problem.Unauthenticated) {
			t.Errorf("Check of a login made %s after now = %v, want Unauthenticated", at.Sub(now), err)
		}
	}
	later := now.Add(2 * time.Minute)
	if err := list.Check(later, revocation.Subject{Kind: revocation.Subscriber, ID: "s"}); err != nil {
		t.Errorf("Check of a later login = %v, want no error", err)
	}
}

// TestRedeemAgainstEnds shows that if a code is redeemed while its login, client, consent or
// subscriber ends, the result is a revoked grant or no grant. If the login has ended, the client
// gets one logout if it had a grant, and otherwise none.
func TestRedeemAgainstEnds(t *testing.T) { EachDatabase(t, testRedeemAgainstEnds) }

func testRedeemAgainstEnds(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	ctx := t.Context()
	oneIfAny := func(grants int) int { return min(grants, 1) }
	none := func(int) int { return 0 }
	ends := []struct {
		name    string
		do      func(g idp.Grant) error
		logouts func(grants int) int // how many logouts the client gets; nil if the client is deleted
		rounds  int
	}{
		{
			name: "EndSession",
			do: func(g idp.Grant) error {
				return s.EndLogins(ctx, time.Now(), end(revocation.Session, g.SessionID))
			},
			logouts: oneIfAny,
			rounds:  rounds,
		},
		{
			name: "UpdateSubscriber",
			do: func(idp.Grant) error {
				hash, email := "hash", newID()+"@example.com"
				change := fabric.SubscriberChange{PasswordHash: &hash, Email: &email}
				r := end(revocation.Subscriber, "s")
				_, err := s.UpdateSubscriber(ctx, "p", "s", change, time.Now(), &r)
				return err
			},
			logouts: oneIfAny,
			rounds:  rounds,
		},
		{
			name: "RevokeConsent",
			do: func(g idp.Grant) error {
				revoke := func(id string) revocation.Revocation { return end(revocation.Grant, id) }
				return s.RevokeConsent(ctx, "s", g.ClientID, time.Now(), revoke)
			},
			logouts: none, // the login continues
			rounds:  rounds,
		},
		{
			name:   "DeleteClient",
			do:     func(g idp.Grant) error { return s.DeleteClient(ctx, end(revocation.Client, g.ClientID)) },
			rounds: rounds,
		},
		{
			name: "DeleteSubscriber",
			do: func(idp.Grant) error {
				return s.DeleteSubscriber(ctx, "p", end(revocation.Subscriber, "s"))
			},
			logouts: oneIfAny,
			rounds:  1, // the subscriber is not created again
		},
	}

	for _, e := range ends {
		for range e.rounds {
			g.SessionID = newID()
			g.ClientID = newID()
			signIn(t, s, g)
			client := idp.Client{ID: g.ClientID, ProjectID: "p", Created: time.Now(), Metadata: listening}
			if err := s.CreateClient(ctx, client); err != nil {
				t.Fatal(err)
			}
			if err := s.AddConsent(ctx, "s", g.ClientID, []string{"openid"}, time.Now()); err != nil {
				t.Fatal(err)
			}

			var mu sync.Mutex
			var given []string
			redeem := func() {
				grant := g
				grant.ID = newID()
				code := idp.RedeemedCode{
					Hash:     newID(),
					GrantID:  grant.ID,
					ClientID: grant.ClientID,
					Rights:   []string{"openid"},
				}
				if err := s.RedeemCode(ctx, code, grant); err != nil {
					expect(t, "RedeemCode against "+e.name, err, problem.NotFound)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				given = append(given, grant.ID)
			}
			endGrants := func() { expect(t, e.name, e.do(g)) }

			together(redeem, redeem, redeem, endGrants, redeem, redeem, redeem)
			for _, id := range given {
				found, err := s.FindGrant(ctx, id)
				if err == nil && found.Revoked.IsZero() {
					t.Errorf("a grant redeemed during %s is still valid: %+v", e.name, found)
				}
				expect(t, "FindGrant", err, problem.NotFound)
			}

			if e.logouts != nil {
				wantLogouts(t, s, g.ClientID, e.logouts(len(given)))
			}
		}
	}
}
