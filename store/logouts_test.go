package store

import (
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// listening is the metadata of a client with a back-channel logout URI.
var listening = idp.Metadata{BackchannelLogoutURI: "https://rp.example/logout"}

// logoutsOf returns all logouts of a client.
func logoutsOf(t *testing.T, s *Store, clientID string) []fabric.Logout {
	t.Helper()
	found, err := s.ListLogouts(t.Context(), clientID, "", page.Query{Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	return found.Items
}

func wantLogouts(t *testing.T, s *Store, clientID string, want int) {
	t.Helper()
	if got := logoutsOf(t, s, clientID); len(got) != want {
		t.Errorf("client %s receives %+v, want %d logouts", clientID, got, want)
	}
}

// createGrant creates a grant for a client in the login sid.
func createGrant(t *testing.T, s *Store, sid, clientID string) {
	t.Helper()
	g := idp.Grant{
		ID:           newID(),
		ProjectID:    "p",
		ClientID:     clientID,
		SubscriberID: "s",
		SessionID:    sid,
		Expires:      time.Now().Add(time.Hour),
	}
	code := idp.RedeemedCode{Hash: newID(), GrantID: g.ID, ClientID: clientID}
	if err := s.RedeemCode(t.Context(), code, g); err != nil {
		t.Fatal(err)
	}
}

func newClient(t *testing.T, s *Store, m idp.Metadata) idp.Client {
	t.Helper()
	c := idp.Client{ID: newID(), ProjectID: "p", Metadata: m}
	if err := s.CreateClient(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLogouts shows that when a login ends for any reason, one logout is queued for each client that
// ever had a grant in it and has a back-channel logout URI. No logout is queued for any other client,
// or while the login continues.
func TestLogouts(t *testing.T) { EachDatabase(t, testLogouts) }

func testLogouts(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	hash := "hash"
	yes, no := true, false
	update := func(c fabric.SubscriberChange) error {
		r := end(revocation.Subscriber, "s")
		_, err := s.UpdateSubscriber(ctx, "p", "s", c, time.Now(), &r)
		return err
	}
	endSession := func(sid string) error {
		return s.EndLogins(ctx, time.Now(), end(revocation.Session, sid))
	}

	for _, tt := range []struct {
		name   string
		do     func(sid string) error
		ended  int // expected logouts in the login sid, for each of its clients
		others int // expected logouts in the subscriber's other login, for each of its clients
	}{
		{name: "EndSession", do: endSession, ended: 1},
		{
			name: "EndSession again",
			do: func(sid string) error {
				if err := endSession(sid); err != nil {
					return err
				}
				return endSession(sid)
			},
			ended: 1,
		},
		{
			name:   "a new password",
			do:     func(string) error { return update(fabric.SubscriberChange{PasswordHash: &hash}) },
			ended:  1,
			others: 1,
		},
		{
			name:   "disabled",
			do:     func(string) error { return update(fabric.SubscriberChange{Disabled: &yes}) },
			ended:  1,
			others: 1,
		},
		{
			name:   "enabled, with all logins ended",
			do:     func(string) error { return update(fabric.SubscriberChange{Disabled: &no}) },
			ended:  1,
			others: 1,
		},
		{
			name: "deleted by another project",
			do: func(string) error {
				err := s.DeleteSubscriber(ctx, "q", end(revocation.Subscriber, "s"))
				if !errors.Is(err, problem.NotFound) {
					t.Errorf("DeleteSubscriber of another project = %v, want not found", err)
				}
				return nil
			},
		},
		{
			name:   "deleted",
			do:     func(string) error { return s.DeleteSubscriber(ctx, "p", end(revocation.Subscriber, "s")) },
			ended:  1,
			others: 1,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			enable := fabric.SubscriberChange{Disabled: &no}
			if _, err := s.UpdateSubscriber(ctx, "p", "s", enable, time.Now(), nil); err != nil {
				t.Fatal(err)
			}

			sid, other := newID(), newID()
			for _, id := range []string{sid, other} {
				if err := s.CreateLogin(ctx, login(idp.Grant{SessionID: id}), hash); err != nil {
					t.Fatal(err)
				}
			}

			twice := newClient(t, s, listening)
			revoked := newClient(t, s, listening)
			elsewhere := newClient(t, s, listening)
			none := newClient(t, s, listening)
			silent := newClient(t, s, idp.Metadata{})
			for _, id := range []string{twice.ID, twice.ID, revoked.ID, silent.ID} {
				createGrant(t, s, sid, id)
			}

			createGrant(t, s, other, elsewhere.ID)

			// A client that revokes its own grant keeps its session.
			err := s.change(ctx, audit.None("a test"), func(t tx) error {
				_, err := t.Exec(ctx, `UPDATE grants SET revoked = 1 WHERE client_id = $1`, revoked.ID)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.do(sid); err != nil {
				t.Fatal(err)
			}

			wantLogouts(t, s, twice.ID, tt.ended)
			wantLogouts(t, s, revoked.ID, tt.ended)
			wantLogouts(t, s, elsewhere.ID, tt.others)
			wantLogouts(t, s, silent.ID, 0)
			wantLogouts(t, s, none.ID, 0)

			for _, l := range logoutsOf(t, s, twice.ID) {
				if l.LoginID != sid {
					t.Errorf("the logout is of the login %s, want %s", l.LoginID, sid)
				}
				if l.SubscriberID != "s" {
					t.Errorf("the logout is of the subscriber %q, want s", l.SubscriberID)
				}
				if l.State != fabric.Pending {
					t.Errorf("the logout is %s, want %s", l.State, fabric.Pending)
				}
				if l.Created.IsZero() {
					t.Error("the logout has no creation time")
				}
			}
		})
	}
}
