package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// listens is the metadata of a client with a back-channel logout URI.
var listens = idp.Metadata{BackchannelLogoutURI: "https://rp.example/logout"}

// logoutsOf returns all logouts of a client.
func logoutsOf(t *testing.T, s *Store, clientID string) []fabric.Logout {
	t.Helper()
	p, err := s.ListLogouts(t.Context(), clientID, "", page.Query{Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	return p.Items
}

func wantLogouts(t *testing.T, s *Store, clientID string, want int) {
	t.Helper()
	if got := logoutsOf(t, s, clientID); len(got) != want {
		t.Errorf("client %s receives %+v, want %d logouts", clientID, got, want)
	}
}

// granted creates a grant in a login, for a client.
func granted(t *testing.T, s *Store, sid, clientID string) {
	t.Helper()
	g := idp.Grant{
		ID:           newID(),
		ProjectID:    "p",
		ClientID:     clientID,
		SubscriberID: "s",
		SessionID:    sid,
		Expires:      time.Now().Add(time.Hour),
	}
	if err := s.RedeemCode(t.Context(), idp.RedeemedCode{Hash: newID(), GrantID: g.ID, ClientID: clientID},
		g); err != nil {
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

// TestLogouts shows that when a login ends for any reason, one logout is queued for each client
// that has a grant in it. None is queued for other clients. A login that continues causes no
// logouts.
func TestLogouts(t *testing.T) { EachDatabase(t, testLogouts) }

func testLogouts(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	ctx := t.Context()
	hash, off, on := "hash", true, false
	change := func(c fabric.SubscriberChange) func(string) error {
		return func(string) error {
			r := end(revocation.Subscriber, "s")
			_, err := s.UpdateSubscriber(ctx, "p", "s", c, time.Now(), &r)
			return err
		}
	}

	for _, e := range []struct {
		name   string
		do     func(sid string) error
		others int // expected logouts for the subscriber's other login; -1 if no login ends
	}{
		{"EndSession", func(sid string) error {
			return s.EndLogins(ctx, time.Now(), end(revocation.Session, sid))
		}, 0},
		{"EndSession again", func(sid string) error {
			return errors.Join(s.EndLogins(ctx, time.Now(), end(revocation.Session, sid)),
				s.EndLogins(ctx, time.Now(), end(revocation.Session, sid)))
		}, 0},
		{"a new password", change(fabric.SubscriberChange{PasswordHash: &hash}), 1},
		{"disabled", change(fabric.SubscriberChange{Disabled: &off}), 1},
		{"enabled, then all revoked", change(fabric.SubscriberChange{Disabled: &on}), 1},
		{"deleted by another project", func(string) error {
			if err := s.DeleteSubscriber(ctx, "q", end(revocation.Subscriber, "s")); !errors.Is(err, problem.NotFound) {
				t.Errorf("DeleteSubscriber of another project = %v, want not found", err)
			}
			return nil
		}, -1},
		{"deleted", func(string) error { return s.DeleteSubscriber(ctx, "p", end(revocation.Subscriber, "s")) }, 1},
	} {
		t.Run(e.name, func(t *testing.T) {
			if _, err := s.UpdateSubscriber(ctx, "p", "s",
				fabric.SubscriberChange{Disabled: &on}, time.Now(), nil); err != nil {
				t.Fatal(err)
			}

			sid, other := newID(), newID()
			for _, id := range []string{sid, other} {
				if err := s.CreateLogin(ctx, login(idp.Grant{SessionID: id}), hash); err != nil {
					t.Fatal(err)
				}
			}

			twice, revoked := newClient(t, s, listens), newClient(t, s, listens)
			elsewhere, none := newClient(t, s, listens), newClient(t, s, listens)
			silent := newClient(t, s, idp.Metadata{})
			for _, id := range []string{twice.ID, twice.ID, revoked.ID, silent.ID} {
				granted(t, s, sid, id)
			}

			granted(t, s, other, elsewhere.ID)
			// A client that revokes its own grant keeps its session.
			err := s.change(ctx, audit.None("a test"), func(t tx) error {
				_, err := t.Exec(ctx, `UPDATE grants SET revoked = 1 WHERE client_id = $1`, revoked.ID)
				return err
			})
			if err := errors.Join(err, e.do(sid)); err != nil {
				t.Fatal(err)
			}

			want := 1
			if e.others < 0 { // no login has ended
				want, e.others = 0, 0
			}
			wantLogouts(t, s, twice.ID, want)
			wantLogouts(t, s, revoked.ID, want)
			wantLogouts(t, s, elsewhere.ID, e.others)
			wantLogouts(t, s, silent.ID, 0)
			wantLogouts(t, s, none.ID, 0)

			for _, l := range logoutsOf(t, s, twice.ID) {
				if l.LoginID != sid || l.SubscriberID != "s" || l.State != fabric.Pending || l.Created.IsZero() {
					t.Errorf("the logout is %+v, want a pending one of %s", l, sid)
				}
			}
		})
	}
}

// TestLogoutReceivers shows that a pending logout is sent to the client's current URI, or not sent
// at all if the client no longer has one.
func TestLogoutReceivers(t *testing.T) { EachDatabase(t, testLogoutReceivers) }

func testLogoutReceivers(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	ctx := t.Context()
	q := s.Logouts.Queue()
	client := newClient(t, s, listens)
	signIn(t, s, g)
	granted(t, s, g.SessionID, client.ID)
	if err := s.EndLogins(ctx, time.Now(), end(revocation.Session, g.SessionID)); err != nil {
		t.Fatal(err)
	}

	now := time.Now()
	due := func(want ...string) {
		t.Helper()
		if ids, err := q.DueReceivers(ctx, now, 10); err != nil || fmt.Sprint(ids) != fmt.Sprint(want) {
			t.Errorf("DueReceivers = %v, %v, want %v", ids, err, want)
		}
	}
	due(client.ID)

	r, err := q.HoldReceiver(ctx, client.ID, "a", now, now.Add(time.Minute))
	if err != nil || r.URL != listens.BackchannelLogoutURI || r.ProjectID != "p" {
		t.Errorf("HoldReceiver = %+v, %v, want the client with its URI", r, err)
	}
	if _, err := q.HoldReceiver(ctx, client.ID, "b", now, now.Add(time.Minute)); !errors.Is(err, problem.Conflict) {
		t.Errorf("HoldReceiver of a held receiver = %v, want a conflict", err)
	}

	jobs, err := q.DueJobs(ctx, client.ID, now, 10)
	if err != nil || len(jobs) != 1 || jobs[0].ID != g.SessionID || jobs[0].Subject != "s" {
		t.Fatalf("DueJobs = %+v, %v, want the logout", jobs, err)
	}
	if err := q.ReleaseReceiver(ctx, client.ID, "a", now, 3, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	due() // the receiver rests after failures

	client.Name = "the same URI"
	if err := s.ReplaceClient(ctx, client, nil, client.Updated); err != nil {
		t.Fatal(err)
	}
	due()

	client.BackchannelLogoutURI = "https://rp.example/elsewhere"
	if err := s.ReplaceClient(ctx, client, nil, client.Updated); err != nil {
		t.Fatal(err)
	}
	due(client.ID)
	if r, err := q.HoldReceiver(ctx, client.ID, "b", now, now); err != nil ||
		r.URL != client.BackchannelLogoutURI || r.Failures != 0 {
		t.Errorf("HoldReceiver after a change = %+v, %v, want the new URI and no failures", r, err)
	}

	client.BackchannelLogoutURI = ""
	if err := s.ReplaceClient(ctx, client, nil, client.Updated); err != nil {
		t.Fatal(err)
	}
	due()
	if err := s.ForgetLogouts(ctx, time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	wantLogouts(t, s, client.ID, 0)
}

func TestLogoutsOver(t *testing.T) { EachDatabase(t, testLogoutsOver) }

func testLogoutsOver(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	ctx := t.Context()
	q := s.Logouts.Queue()
	client := newClient(t, s, listens)
	now := time.Now()
	var sids []string
	for range 4 {
		g.SessionID = newID()
		sids = append(sids, g.SessionID)
		signIn(t, s, g)
		granted(t, s, g.SessionID, client.ID)
		if err := s.EndLogins(ctx, now, end(revocation.Session, g.SessionID)); err != nil {
			t.Fatal(err)
		}
	}

	jobs := map[string]deliver.Job{}
	due, err := q.DueJobs(ctx, client.ID, now, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range due {
		jobs[j.ID] = j
	}

	for i, r := range []deliver.Result{
		{State: deliver.Delivered, Status: 200, Ended: now.Add(-48 * time.Hour)},
		{State: deliver.Dead, Status: 400, Ended: now, Attempts: 1},
		{State: deliver.Dead, Status: 500, Ended: now, Attempts: 9},
	} {
		r.ReceiverID, r.JobID, r.Queued = client.ID, sids[i], jobs[sids[i]].Queued
		if err := q.Settle(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if n, oldest, err := q.Backlog(ctx); n != 1 || oldest.IsZero() || err != nil {
		t.Errorf("Backlog = %d, %v, %v, want the pending one", n, oldest, err)
	}

	if err := s.ForgetLogouts(ctx, now.Add(-24*time.Hour), now.Add(-30*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantLogouts(t, s, client.ID, 3)
	if l, err := s.RedeliverLogout(ctx, client.ID, sids[1], now); err != nil || l.State != fabric.Pending ||
		l.Attempts != 0 || l.Status != 0 {
		t.Errorf("RedeliverLogout = %+v, %v, want it pending", l, err)
	}

	if _, err := s.RedeliverLogout(ctx, client.ID, sids[0], now); !errors.Is(err, problem.NotFound) {
		t.Errorf("RedeliverLogout of a deleted logout = %v, want not found", err)
	}
	if n, err := s.RedeliverDeadLogouts(ctx, client.ID, now); n != 1 || err != nil {
		t.Errorf("RedeliverDeadLogouts = %d, %v, want 1", n, err)
	}
	if p, err := s.ListLogouts(ctx, client.ID, fabric.Dead, page.Query{Size: 10}); len(p.Items) != 0 || err != nil {
		t.Errorf("ListLogouts of dead logouts = %+v, %v, want none", p.Items, err)
	}

	if err := s.ExpireLogouts(ctx, now.Add(time.Hour), now); err != nil {
		t.Fatal(err)
	}
	for _, l := range logoutsOf(t, s, client.ID) {
		if l.State != fabric.Dead || l.Error == "" {
			t.Errorf("expired: %+v, want a dead letter", l)
		}
	}
}
