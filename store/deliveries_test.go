package store_test

import (
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
	hook  fabric.Webhook
	queue deliver.Queue
	jobs  []deliver.Job
	now   time.Time
}

func newSettled(t *testing.T, c store.Config) settled {
	t.Helper()
	now := time.Now()
	rows, project := fabricRows(t, c)
	s := settled{
		Store: rows,
		hook:  newWebhook(t, rows, project.ID, fabric.AnyEvent),
		queue: rows.Webhooks.Queue(),
		now:   now,
	}
	causeEvents(t, rows, project)
	s.jobs = s.due(t)
	if len(s.jobs) != 6 {
		t.Fatalf("DueJobs = %+v, want six jobs", s.jobs)
	}
	if got := s.jobs[0].Event; got != string(fabric.SubscriberCreated) {
		t.Fatalf("the first event is %q, want %q", got, fabric.SubscriberCreated)
	}
	if got := s.jobs[5].Event; got != string(fabric.ResourceDeleted) {
		t.Fatalf("the last event is %q, want %q", got, fabric.ResourceDeleted)
	}

	const day = 24 * time.Hour
	for i, result := range []deliver.Result{
		{State: deliver.Delivered, Status: 204, Ended: now.Add(-2 * day)},
		{State: deliver.Delivered, Status: 200, Ended: now},
		{
			State:   deliver.Pending,
			Error:   "no",
			Due:     now.Add(time.Minute),
			Refused: "10.0.0.1:80",
			Took:    time.Millisecond,
		},
		{State: deliver.Dead, Status: 410, Ended: now.Add(-31 * day)},
		{
			State:    deliver.Dead,
			Status:   500,
			Ended:    now,
			Response: "out of order",
			Took:     1500 * time.Microsecond,
		},
	} {
		result.Attempts = 1
		s.settle(t, i, result)
	}
	return s
}

// due returns the jobs that are due at s.now.
func (s settled) due(t *testing.T) []deliver.Job {
	t.Helper()
	jobs, err := s.queue.DueJobs(t.Context(), s.hook.ID, s.now, 100)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// settle records the result of job i.
func (s settled) settle(t *testing.T, i int, result deliver.Result) {
	t.Helper()
	result.ReceiverID = s.hook.ID
	result.JobID = s.jobs[i].ID
	result.Queued = s.jobs[i].Queued
	if err := s.queue.Settle(t.Context(), result); err != nil {
		t.Fatal(err)
	}
}

// find returns the delivery of job i.
func (s settled) find(t *testing.T, i int) fabric.Delivery {
	t.Helper()
	d, err := s.FindDelivery(t.Context(), s.hook.ID, s.jobs[i].ID)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSettle(t *testing.T) { store.EachDatabase(t, testSettle) }

// testSettle shows that a settled job is not due, and that only its first result counts.
func testSettle(t *testing.T, c store.Config) {
	s := newSettled(t, c)
	n, oldest, err := s.queue.Backlog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n != 2 {
		t.Errorf("Backlog = %d jobs, want 2", n)
	}
	if oldest.IsZero() {
		t.Error("Backlog returns no time for the oldest job")
	}

	left := s.due(t)
	if len(left) != 1 {
		t.Fatalf("DueJobs = %+v, want one job", left)
	}
	if left[0].ID != s.jobs[5].ID {
		t.Errorf("DueJobs returns %s, want %s, which is not settled", left[0].ID, s.jobs[5].ID)
	}

	s.settle(t, 1, deliver.Result{State: deliver.Dead, Ended: s.now})
	settledTwice := s.find(t, 1)
	if settledTwice.State != fabric.Delivered {
		t.Errorf("a second result changes the state to %s", settledTwice.State)
	}
	if settledTwice.Status != 200 {
		t.Errorf("a second result changes the status to %d, want 200", settledTwice.Status)
	}
	if settledTwice.Attempts != 1 {
		t.Errorf("a second result changes the attempts to %d, want 1", settledTwice.Attempts)
	}

	failed := s.find(t, 2)
	if failed.State != fabric.Pending {
		t.Errorf("after a failure the delivery is %s, want %s", failed.State, fabric.Pending)
	}
	if failed.Error != "no" {
		t.Errorf("after a failure the error is %q, want %q", failed.Error, "no")
	}
	if !failed.Due.After(s.now) {
		t.Errorf("after a failure the delivery is due at %v, want later than %v", failed.Due, s.now)
	}
	if failed.Refused != "10.0.0.1:80" {
		t.Errorf("after a failure the refused address is %q, want 10.0.0.1:80", failed.Refused)
	}
	if failed.Took != time.Millisecond {
		t.Errorf("the failed attempt took %v, want 1ms", failed.Took)
	}

	answered := s.find(t, 4)
	if answered.Response != "out of order" {
		t.Errorf("the response is %q, want %q", answered.Response, "out of order")
	}
	if answered.Took != 1500*time.Microsecond {
		t.Errorf("the answered attempt took %v, want 1.5ms", answered.Took)
	}
	if answered.Refused != "" {
		t.Errorf("after a response the refused address is %q, want none", answered.Refused)
	}
}

func TestForgetDeliveries(t *testing.T) { store.EachDatabase(t, testForgetDeliveries) }

func testForgetDeliveries(t *testing.T, c store.Config) {
	s := newSettled(t, c)
	const day = 24 * time.Hour
	if err := s.ForgetDeliveries(t.Context(), s.now.Add(-day), s.now.Add(-30*day)); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 2, 4, 5} {
		s.find(t, i)
	}
	for _, i := range []int{0, 3} {
		if _, err := s.FindDelivery(t.Context(), s.hook.ID, s.jobs[i].ID); err == nil {
			t.Errorf("FindDelivery finds the old delivery %d after ForgetDeliveries", i)
		}
	}
}

func TestRedeliverDead(t *testing.T) { store.EachDatabase(t, testRedeliverDead) }

// testRedeliverDead shows that dead deliveries are queued again. If an attempt is running at that
// time, its result does not count.
func testRedeliverDead(t *testing.T, c store.Config) {
	s := newSettled(t, c)
	n, err := s.RedeliverDead(t.Context(), s.hook.ID, s.now)
	if err != nil || n != 2 {
		t.Errorf("RedeliverDead = %d, %v, want 2", n, err)
	}
	for _, i := range []int{3, 4} {
		again := s.find(t, i)
		if again.State != fabric.Pending {
			t.Errorf("the requeued delivery %d is %s, want %s", i, again.State, fabric.Pending)
		}
		if again.Attempts != 0 {
			t.Errorf("the requeued delivery %d has %d attempts, want 0", i, again.Attempts)
		}
		if again.Status != 0 {
			t.Errorf("the requeued delivery %d has the status %d, want 0", i, again.Status)
		}
		if !again.Ended.IsZero() {
			t.Errorf("the end of the requeued delivery %d is %v, want none", i, again.Ended)
		}
		if again.Response != "" {
			t.Errorf("the requeued delivery %d has the response %q, want none", i, again.Response)
		}
		if again.Took != 0 {
			t.Errorf("the requeued delivery %d took %v, want 0", i, again.Took)
		}
	}

	s.settle(t, 4, deliver.Result{State: deliver.Delivered, Status: 200, Attempts: 1, Ended: s.now})
	requeued := s.find(t, 4)
	if requeued.State != fabric.Pending {
		t.Errorf("a delivery requeued while it was sent is %s, want %s", requeued.State, fabric.Pending)
	}
	if requeued.Attempts != 0 {
		t.Errorf("a delivery requeued while it was sent has %d attempts, want 0", requeued.Attempts)
	}
}

func TestExpireDeliveries(t *testing.T) { store.EachDatabase(t, testExpireDeliveries) }

func testExpireDeliveries(t *testing.T, c store.Config) {
	s := newSettled(t, c)
	if err := s.ExpireDeliveries(t.Context(), s.now.Add(time.Hour), s.now); err != nil {
		t.Fatal(err)
	}
	expired := s.find(t, 5)
	if expired.State != fabric.Dead {
		t.Errorf("the expired delivery is %s, want %s", expired.State, fabric.Dead)
	}
	if expired.Error == "" {
		t.Error("the expired delivery has no error")
	}
	if expired.Ended.IsZero() {
		t.Error("the expired delivery has no end time")
	}
}

// TestWebhookGone shows that after a webhook or project is deleted, none of its rows remain.
func TestWebhookGone(t *testing.T) { store.EachDatabase(t, testWebhookGone) }

func testWebhookGone(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, p := fabricRows(t, c)
	deleted := newWebhook(t, s, p.ID, fabric.AnyEvent)
	other := newWebhook(t, s, p.ID, fabric.AnyEvent)
	causeEvents(t, s, p)
	if err := s.DeleteWebhook(ctx, p.ID, deleted.ID); err != nil {
		t.Fatal(err)
	}
	queue := s.Webhooks.Queue()
	n, _, err := queue.Backlog(ctx)
	if err != nil || n != 6 {
		t.Errorf("Backlog = %d, %v, want the six deliveries of the other webhook", n, err)
	}

	_, err = queue.HoldReceiver(ctx, deleted.ID, "a", time.Now(), time.Now())
	if !errors.Is(err, problem.Conflict) {
		t.Errorf("HoldReceiver of a deleted webhook = %v, want a conflict", err)
	}
	if err := s.DeleteProject(ctx, revocation.Revocation{ID: p.ID}); err != nil {
		t.Fatal(err)
	}
	if err := s.ForgetDeliveries(ctx, time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	n, _, err = queue.Backlog(ctx)
	if err != nil || n != 0 {
		t.Errorf("Backlog = %d, %v, want 0 deliveries, and none of %s", n, err, other.ID)
	}
}
