package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
)

// TestLogoutReceivers shows that a pending logout is sent to the client's current URI, or not sent
// at all if the client no longer has one.
func TestLogoutReceivers(t *testing.T) { EachDatabase(t, testLogoutReceivers) }

func testLogoutReceivers(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	ctx := t.Context()
	queue := s.Logouts.Queue()
	client := newClient(t, s, listening)
	signIn(t, s, g)
	createGrant(t, s, g.SessionID, client.ID)
	if err := s.EndLogins(ctx, time.Now(), end(revocation.Session, g.SessionID)); err != nil {
		t.Fatal(err)
	}

	now := time.Now()
	wantDue := func(want ...string) {
		t.Helper()
		ids, err := queue.DueReceivers(ctx, now, 10)
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("DueReceivers = %v, %v, want %v", ids, err, want)
		}
	}
	replaceClient := func() {
		t.Helper()
		if err := s.ReplaceClient(ctx, client, nil, client.Updated); err != nil {
			t.Fatal(err)
		}
	}
	wantDue(client.ID)

	receiver, err := queue.HoldReceiver(ctx, client.ID, "a", now, now.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if receiver.URL != listening.BackchannelLogoutURI {
		t.Errorf("the URL of the receiver is %q, want %s", receiver.URL, listening.BackchannelLogoutURI)
	}
	if receiver.ProjectID != "p" {
		t.Errorf("the project of the receiver is %q, want p", receiver.ProjectID)
	}
	_, err = queue.HoldReceiver(ctx, client.ID, "b", now, now.Add(time.Minute))
	if !errors.Is(err, problem.Conflict) {
		t.Errorf("HoldReceiver of a held receiver = %v, want a conflict", err)
	}

	jobs, err := queue.DueJobs(ctx, client.ID, now, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != 1 {
		t.Fatalf("DueJobs = %+v, want the logout", jobs)
	}
	if jobs[0].ID != g.SessionID {
		t.Fatalf("the id of the logout is %q, want that of the login, %s", jobs[0].ID, g.SessionID)
	}
	if jobs[0].Subject != "s" {
		t.Fatalf("the logout is of the subscriber %q, want s", jobs[0].Subject)
	}
	if err := queue.ReleaseReceiver(ctx, client.ID, "a", now, 3, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantDue() // the receiver rests after failures

	client.Name = "the same URI"
	replaceClient()
	wantDue()

	client.BackchannelLogoutURI = "https://rp.example/elsewhere"
	replaceClient()
	wantDue(client.ID)
	receiver, err = queue.HoldReceiver(ctx, client.ID, "b", now, now)
	if err != nil {
		t.Fatal(err)
	}
	if receiver.URL != client.BackchannelLogoutURI {
		t.Errorf("after a change the URL of the receiver is %q, want %s", receiver.URL, client.BackchannelLogoutURI)
	}
	if receiver.Failures != 0 {
		t.Errorf("after a change the receiver has %d failures, want 0", receiver.Failures)
	}

	client.BackchannelLogoutURI = ""
	replaceClient()
	wantDue()
	if err := s.ForgetLogouts(ctx, time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	wantLogouts(t, s, client.ID, 0)
}

// TestLogoutsOver shows how delivered logouts are deleted, dead logouts are redelivered, and pending
// logouts expire.
func TestLogoutsOver(t *testing.T) { EachDatabase(t, testLogoutsOver) }

func testLogoutsOver(t *testing.T, c Config) {
	s, g, _ := grantRows(t, c)
	ctx := t.Context()
	queue := s.Logouts.Queue()
	client := newClient(t, s, listening)
	now := time.Now()
	var sids []string
	for range 4 {
		g.SessionID = newID()
		sids = append(sids, g.SessionID)
		signIn(t, s, g)
		createGrant(t, s, g.SessionID, client.ID)
		if err := s.EndLogins(ctx, now, end(revocation.Session, g.SessionID)); err != nil {
			t.Fatal(err)
		}
	}

	jobs := map[string]deliver.Job{}
	due, err := queue.DueJobs(ctx, client.ID, now, 10)
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
		r.ReceiverID = client.ID
		r.JobID = sids[i]
		r.Queued = jobs[sids[i]].Queued
		if err := queue.Settle(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	waiting, oldest, err := queue.Backlog(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if waiting != 1 {
		t.Errorf("Backlog = %d logouts, want the pending one", waiting)
	}
	if oldest.IsZero() {
		t.Error("Backlog returns no time of the oldest logout")
	}

	if err := s.ForgetLogouts(ctx, now.Add(-24*time.Hour), now.Add(-30*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantLogouts(t, s, client.ID, 3)
	again, err := s.RedeliverLogout(ctx, client.ID, sids[1], now)
	if err != nil {
		t.Fatal(err)
	}
	if again.State != fabric.Pending {
		t.Errorf("after RedeliverLogout the logout is %s, want %s", again.State, fabric.Pending)
	}
	if again.Attempts != 0 {
		t.Errorf("after RedeliverLogout the logout has %d attempts, want 0", again.Attempts)
	}
	if again.Status != 0 {
		t.Errorf("after RedeliverLogout the logout has the status %d, want 0", again.Status)
	}

	if _, err := s.RedeliverLogout(ctx, client.ID, sids[0], now); !errors.Is(err, problem.NotFound) {
		t.Errorf("RedeliverLogout of a deleted logout = %v, want not found", err)
	}
	n, err := s.RedeliverDeadLogouts(ctx, client.ID, now)
	if err != nil || n != 1 {
		t.Errorf("RedeliverDeadLogouts = %d, %v, want 1", n, err)
	}
	dead, err := s.ListLogouts(ctx, client.ID, fabric.Dead, page.Query{Size: 10})
	if err != nil || len(dead.Items) != 0 {
		t.Errorf("ListLogouts of dead logouts = %+v, %v, want none", dead.Items, err)
	}

	if err := s.ExpireLogouts(ctx, now.Add(time.Hour), now); err != nil {
		t.Fatal(err)
	}
	for _, l := range logoutsOf(t, s, client.ID) {
		if l.State != fabric.Dead {
			t.Errorf("the expired logout of %s is %s, want %s", l.LoginID, l.State, fabric.Dead)
		}
		if l.Error == "" {
			t.Errorf("the expired logout of %s has no error", l.LoginID)
		}
	}
}
