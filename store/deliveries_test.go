package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store"
)

// settled holds a webhook with six deliveries. All but the last have been attempted.
type settled struct {
	*store.Store
	w    fabric.Webhook
	jobs []deliver.Job
	now  time.Time
}

func newSettled(t *testing.T, c store.Config) settled {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	s, p := fabricRows(t, c)
	w := newWebhook(t, s, p.ID, fabric.AnyEvent)
	change(t, s, p)
	jobs, err := s.Webhooks.Queue().DueJobs(ctx, w.ID, now, 100)
	if err != nil || len(jobs) != 6 || jobs[0].Event != string(fabric.SubscriberCreated) ||
		jobs[5].Event != string(fabric.ResourceDeleted) {
		t.Fatalf("DueJobs = %+v, %v, want six in order", jobs, err)
	}

	for i, r := range []deliver.Result{
		{State: deliver.Delivered, Status: 204, Ended: now.Add(-48 * time.Hour)},
		{State: deliver.Delivered, Status: 200, Ended: now},
		{State: deliver.Pending, Error: "no", Due: now.Add(time.Minute), Refused: "10.0.0.1:80",
			Took: time.Millisecond},
		{State: deliver.Dead, Status: 410, Ended: now.Add(-31 * 24 * time.Hour)},
		{State: deliver.Dead, Status: 500, Ended: now, Response: "out of order", Took: 1500 * time.Microsecond},
	} {
		r.ReceiverID, r.JobID = w.ID, jobs[i].ID
		r.Queued, r.Attempts = jobs[i].Queued, 1
		if err := s.Webhooks.Queue().Settle(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	return settled{s, w, jobs, now}
}

// find fails the test if err is not nil. Otherwise it returns the delivery of job i.
func (s settled) find(t *testing.T, i int, err error) fabric.Delivery {
	t.Helper()
	return delivery(t, s.Store, s.w, s.jobs[i].ID, err)
}

func TestSettle(t *testing.T) { store.EachDatabase(t, testSettle) }

// testSettle shows that a settled job is not due, and that only its first result counts.
func testSettle(t *testing.T, c store.Config) {
	s, ctx := newSettled(t, c), t.Context()
	if n, oldest, err := s.Webhooks.Queue().Backlog(ctx); n != 2 || oldest.IsZero() || err != nil {
		t.Errorf("Backlog = %d, %v, %v, want 2", n, oldest, err)
	}
	if left, err := s.Webhooks.Queue().DueJobs(ctx, s.w.ID, s.now, 100); err != nil || len(left) != 1 ||
		left[0].ID != s.jobs[5].ID {
		t.Errorf("DueJobs = %+v, %v, want the unsettled one", left, err)
	}

	late := deliver.Result{
		ReceiverID: s.w.ID,
		JobID:      s.jobs[1].ID,
		Queued:     s.jobs[1].Queued,
		State:      deliver.Dead,
		Ended:      s.now,
	}
	if d := s.find(t, 1, s.Webhooks.Queue().Settle(ctx, late)); d.State != fabric.Delivered ||
		d.Status != 200 || d.Attempts != 1 {
		t.Errorf("settled twice: %+v, want no change", d)
	}
	if d := s.find(t, 2, nil); d.State != fabric.Pending || d.Error != "no" || !d.Due.After(s.now) ||
		d.Refused != "10.0.0.1:80" || d.Took != time.Millisecond {
		t.Errorf("after a failure: %+v, want it pending with the error", d)
	}
	if d := s.find(t, 4, nil); d.Response != "out of order" || d.Took != 1500*time.Microsecond || d.Refused != "" {
		t.Errorf("after a response: %+v, want the response kept", d)
	}
}

func TestForgetDeliveries(t *testing.T) { store.EachDatabase(t, testForgetDeliveries) }

func testForgetDeliveries(t *testing.T, c store.Config) {
	s, ctx := newSettled(t, c), t.Context()
	if err := s.ForgetDeliveries(ctx, s.now.Add(-24*time.Hour), s.now.Add(-30*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, true, false, true, true} {
		if _, err := s.FindDelivery(ctx, s.w.ID, s.jobs[i].ID); (err == nil) != want {
			t.Errorf("after ForgetDeliveries FindDelivery %d = %v, want success %v", i, err, want)
		}
	}
}

func TestRedeliverDead(t *testing.T) { store.EachDatabase(t, testRedeliverDead) }

// testRedeliverDead shows that dead deliveries are queued again. If an attempt is running at that
// time, its result does not count.
func testRedeliverDead(t *testing.T, c store.Config) {
	s, ctx := newSettled(t, c), t.Context()
	if n, err := s.RedeliverDead(ctx, s.w.ID, s.now); n != 2 || err != nil {
		t.Errorf("RedeliverDead = %d, %v, want 2", n, err)
	}
	for _, i := range []int{3, 4} {
		if d := s.find(t, i, nil); d.State != fabric.Pending || d.Attempts != 0 || d.Status != 0 ||
			!d.Ended.IsZero() || d.Response != "" || d.Took != 0 {
			t.Errorf("a dead delivery that was queued again: %+v, want it pending and reset", d)
		}
	}

	sent := deliver.Result{
		ReceiverID: s.w.ID,
		JobID:      s.jobs[4].ID,
		Queued:     s.jobs[4].Queued,
		State:      deliver.Delivered,
		Status:     200,
		Attempts:   1,
		Ended:      s.now,
	}
	if d := s.find(t, 4, s.Webhooks.Queue().Settle(ctx, sent)); d.State != fabric.Pending || d.Attempts != 0 {
		t.Errorf("a delivery queued again while it was sent: %+v, want it to stay pending", d)
	}
}

func TestExpireDeliveries(t *testing.T) { store.EachDatabase(t, testExpireDeliveries) }

func testExpireDeliveries(t *testing.T, c store.Config) {
	s, ctx := newSettled(t, c), t.Context()
	if err := s.ExpireDeliveries(ctx, s.now.Add(time.Hour), s.now); err != nil {
		t.Fatal(err)
	}
	if d := s.find(t, 5, nil); d.State != fabric.Dead || d.Error == "" || d.Ended.IsZero() {
		t.Errorf("after ExpireDeliveries: %+v, want a dead letter", d)
	}
}

func delivery(t *testing.T, s *store.Store, w fabric.Webhook, id string, err error) fabric.Delivery {
	t.Helper()
	d, ferr := s.FindDelivery(t.Context(), w.ID, id)
	if err := errors.Join(err, ferr); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestWebhookGone shows that after a webhook or project is deleted, none of its rows remain.
func TestWebhookGone(t *testing.T) { store.EachDatabase(t, testWebhookGone) }

func testWebhookGone(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, p := fabricRows(t, c)
	w, other := newWebhook(t, s, p.ID, fabric.AnyEvent), newWebhook(t, s, p.ID, fabric.AnyEvent)
	change(t, s, p)
	if err := s.DeleteWebhook(ctx, p.ID, w.ID); err != nil {
		t.Fatal(err)
	}
	if n, _, err := s.Webhooks.Queue().Backlog(ctx); n != 6 || err != nil {
		t.Errorf("Backlog = %d, %v, want the six of the other webhook", n, err)
	}

	if _, err := s.Webhooks.Queue().HoldReceiver(ctx, w.ID,
		"a", time.Now(), time.Now()); !errors.Is(err, problem.Conflict) {
		t.Errorf("HoldReceiver of a deleted webhook = %v, want a conflict", err)
	}
	if err := s.DeleteProject(ctx, revocation.Revocation{ID: p.ID}); err != nil {
		t.Fatal(err)
	}
	if err := s.ForgetDeliveries(ctx, time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if n, _, err := s.Webhooks.Queue().Backlog(ctx); n != 0 || err != nil {
		t.Errorf("Backlog = %d, %v, want nothing of %s", n, err, other.ID)
	}
}

func TestSigningKeyRace(t *testing.T) { store.EachDatabase(t, testSigningKeyRace) }

func testSigningKeyRace(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	won, _ := race(func(int) (bool, error) {
		err := s.CreateSigningKey(context.Background(),
			fabric.SigningKey{ID: newID(), ProjectID: p.ID, Sealed: "x", Created: time.Now()})
		return err == nil, nil
	})
	if won != 1 {
		t.Errorf("CreateSigningKey: %d of %d won, want 1", won, crowd)
	}

	next := fabric.SigningKey{ID: newID(), ProjectID: p.ID, Sealed: "y", Starts: time.Now()}
	if err := s.RotateSigningKey(t.Context(), next, time.Time{}, false); err != nil {
		t.Fatal(err)
	}
	if all, err := s.ListSigningKeys(t.Context(), p.ID); err != nil || len(all) != 2 || all[1].ID != next.ID {
		t.Errorf("ListSigningKeys = %+v, %v, want the old key and the next", all, err)
	}

	alone := fabric.SigningKey{ID: newID(), ProjectID: p.ID, Sealed: "z", Starts: time.Now()}
	if err := s.RotateSigningKey(t.Context(), alone, time.Time{}, true); err != nil {
		t.Fatal(err)
	}
	if all, err := s.ListSigningKeys(t.Context(), p.ID); err != nil || len(all) != 1 || all[0].ID != alone.ID {
		t.Errorf("ListSigningKeys = %+v, %v, want the new key alone", all, err)
	}
}
