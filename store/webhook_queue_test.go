package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/store"
)

// TestHoldReceiver shows that only one of many nodes holds a webhook, until the node releases the
// webhook or the node's lease ends.
func TestHoldReceiver(t *testing.T) { store.EachDatabase(t, testHoldReceiver) }

func testHoldReceiver(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, p := fabricRows(t, c)
	w := newWebhook(t, s, p.ID, fabric.AnyEvent)
	queue := s.Webhooks.Queue()
	now := time.Now()
	causeEvents(t, s, p)
	won := race(t, problem.Conflict, func(i int) error {
		_, err := queue.HoldReceiver(ctx, w.ID, fmt.Sprint(i), now, now.Add(time.Minute))
		return err
	})
	if won != 1 {
		t.Errorf("%d of %d nodes hold the webhook, want 1", won, crowd)
	}

	due := func(now time.Time) int {
		t.Helper()
		ids, err := queue.DueReceivers(ctx, now, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(ids)
	}
	if n := due(now); n != 0 {
		t.Errorf("DueReceivers while one is held = %d, want 0", n)
	}

	later := now.Add(2 * time.Minute)
	if n := due(later); n != 1 {
		t.Errorf("DueReceivers after the holder's lease ended = %d, want 1", n)
	}

	held, err := queue.HoldReceiver(ctx, w.ID, "b", later, later.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if held.URL != w.URL {
		t.Errorf("HoldReceiver returns the URL %q, want %s", held.URL, w.URL)
	}
	if held.ProjectID != p.ID {
		t.Errorf("HoldReceiver returns the project %q, want %s", held.ProjectID, p.ID)
	}

	if err := queue.ReleaseReceiver(ctx, w.ID, "a stranger", later, 9, time.Time{}); err != nil {
		t.Error(err)
	}
	if n := due(later); n != 0 {
		t.Errorf("DueReceivers after a release by another node = %d, want 0", n)
	}
	if err := queue.ReleaseReceiver(ctx, w.ID, "b", later, 3, later.Add(time.Minute)); err != nil {
		t.Error(err)
	}
	if n := due(later); n != 0 {
		t.Errorf("DueReceivers of a resting webhook = %d, want 0", n)
	}
	if n := due(later.Add(2 * time.Minute)); n != 1 {
		t.Errorf("DueReceivers after the rest = %d, want 1", n)
	}
}

// TestClockSetBack shows that a released webhook can be held again after the clock was set back.
func TestClockSetBack(t *testing.T) { store.EachDatabase(t, testClockSetBack) }

func testClockSetBack(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, p := fabricRows(t, c)
	w := newWebhook(t, s, p.ID, fabric.AnyEvent)
	causeEvents(t, s, p)
	queue := s.Webhooks.Queue()
	now := time.Now()
	if _, err := queue.HoldReceiver(ctx, w.ID, "a", now, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := queue.ReleaseReceiver(ctx, w.ID, "a", now, 0, time.Time{}); err != nil {
		t.Fatal(err)
	}

	earlier := now.Add(-time.Hour)
	ids, err := queue.DueReceivers(ctx, earlier, 10)
	if err != nil || !slices.Equal(ids, []string{w.ID}) {
		t.Errorf("DueReceivers an hour earlier = %v, %v, want the released webhook", ids, err)
	}
	if _, err := queue.HoldReceiver(ctx, w.ID, "b", earlier, now); err != nil {
		t.Errorf("HoldReceiver of a released webhook an hour earlier = %v", err)
	}
	_, err = queue.HoldReceiver(ctx, w.ID, "a", earlier, now)
	if !errors.Is(err, problem.Conflict) {
		t.Errorf("HoldReceiver of a held webhook = %v, want a conflict", err)
	}
}

// TestWoken shows that a delivery that was queued again is due immediately, even if the turn in
// which it failed has not ended yet.
func TestWoken(t *testing.T) { store.EachDatabase(t, testWoken) }

func testWoken(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, p := fabricRows(t, c)
	w := newWebhook(t, s, p.ID, fabric.AnyEvent)
	causeEvents(t, s, p)
	queue := s.Webhooks.Queue()
	now := time.Now()
	wantDue := func(want int) {
		t.Helper()
		ids, err := queue.DueReceivers(ctx, now, 10)
		if err != nil || len(ids) != want {
			t.Errorf("DueReceivers = %d, %v, want %d", len(ids), err, want)
		}
	}
	hold := func() {
		t.Helper()
		if _, err := queue.HoldReceiver(ctx, w.ID, "a", now, now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	// turn calls send while the webhook is held. Then the webhook rests for an hour.
	turn := func(send func()) {
		t.Helper()
		hold()
		send()
		hold() // renews the lease
		if err := queue.ReleaseReceiver(ctx, w.ID, "a", now, 9, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}

	jobs, err := queue.DueJobs(ctx, w.ID, now, 10)
	if err != nil || len(jobs) == 0 {
		t.Fatalf("DueJobs = %d, %v, want at least one", len(jobs), err)
	}

	turn(func() {
		dead := deliver.Result{
			ReceiverID: w.ID,
			JobID:      jobs[0].ID,
			Queued:     jobs[0].Queued,
			State:      deliver.Dead,
			Attempts:   9,
			Ended:      now,
		}
		if err := queue.Settle(ctx, dead); err != nil {
			t.Fatal(err)
		}
		n, err := s.RedeliverDead(ctx, w.ID, now)
		if err != nil || n != 1 {
			t.Fatalf("RedeliverDead = %d, %v, want 1", n, err)
		}
	})
	wantDue(1)

	turn(func() {})
	wantDue(0) // the webhook rests, because nothing was queued again
}

// TestUpdateHeldWebhook shows that a webhook that is changed while it is held keeps the failures and
// the rest that its holder writes, unless its URL changes.
func TestUpdateHeldWebhook(t *testing.T) { store.EachDatabase(t, testUpdateHeldWebhook) }

func testUpdateHeldWebhook(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, p := fabricRows(t, c)
	queue := s.Webhooks.Queue()
	now := time.Now()
	release := func(w fabric.Webhook) {
		t.Helper()
		if err := queue.ReleaseReceiver(ctx, w.ID, "a", now, 3, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	update := func(w fabric.Webhook) {
		t.Helper()
		old := w.Updated
		w.Updated = old.Add(time.Second)
		if err := s.UpdateWebhook(ctx, w, old); err != nil {
			t.Fatal(err)
		}
	}
	find := func(w fabric.Webhook) fabric.Webhook {
		t.Helper()
		found, err := s.FindWebhook(ctx, p.ID, w.ID)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}

	hold := func(w fabric.Webhook) {
		t.Helper()
		if _, err := queue.HoldReceiver(ctx, w.ID, "a", now, now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}

	renamed := newWebhook(t, s, p.ID, fabric.AnyEvent)
	moved := newWebhook(t, s, p.ID, fabric.AnyEvent)
	hold(renamed)
	hold(moved)
	release(renamed)
	renamed.Name = "renamed"
	update(renamed)
	if got := find(renamed); got.Failures != 3 || !got.Rests.After(now) {
		t.Errorf("the renamed webhook has %d failures and rests until %v, want 3 and a rest", got.Failures, got.Rests)
	}

	moved.URL += "elsewhere"
	update(moved)
	release(moved)
	got := find(moved)
	if !got.Rests.IsZero() {
		t.Errorf("the webhook with a new URL rests until %v, want no rest", got.Rests)
	}
	if got.Failures != 0 {
		t.Errorf("the webhook with a new URL has %d failures, want 0", got.Failures)
	}

	hold(moved)
	release(moved)
	moved = find(moved)
	if moved.Failures != 3 {
		t.Errorf("after the next turn, the webhook has %d failures, want 3", moved.Failures)
	}
	moved.Enabled = false
	update(moved)
	if got := find(moved); got.Failures != 0 {
		t.Errorf("the disabled webhook has %d failures, want 0", got.Failures)
	}
}

// TestProjectsTakeTurns shows that a project with many new webhooks does not delay the webhooks of
// other projects.
func TestProjectsTakeTurns(t *testing.T) { store.EachDatabase(t, testProjectsTakeTurns) }

func testProjectsTakeTurns(t *testing.T, c store.Config) {
	ctx := t.Context()
	s, crowded := fabricRows(t, c)
	quiet := fabric.Project{ID: newID(), Name: "quiet", Created: time.Now(), Updated: time.Now()}
	if err := s.CreateProject(ctx, quiet); err != nil {
		t.Fatal(err)
	}

	queue := s.Webhooks.Queue()
	now := time.Now()
	served := newWebhook(t, s, quiet.ID, fabric.AnyEvent)
	if _, err := queue.HoldReceiver(ctx, served.ID, "a", now.Add(-time.Minute), now); err != nil {
		t.Fatal(err)
	}
	if err := queue.ReleaseReceiver(ctx, served.ID, "a", now, 0, time.Time{}); err != nil {
		t.Fatal(err)
	}

	held := newWebhook(t, s, crowded.ID, fabric.AnyEvent)
	for range 20 {
		newWebhook(t, s, crowded.ID, fabric.AnyEvent) // these webhooks were never held
	}

	causeEvents(t, s, crowded)
	causeEvents(t, s, quiet)
	first := func(most int) []string {
		t.Helper()
		ids, err := queue.DueReceivers(ctx, now, most)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if ids := first(2); !slices.Contains(ids, served.ID) {
		t.Errorf("DueReceivers = %v, want a webhook of each project first", ids)
	}

	if _, err := queue.HoldReceiver(ctx, held.ID, "a", now, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if ids := first(1); !slices.Contains(ids, served.ID) {
		t.Errorf("DueReceivers = %v, want the webhook of the project without a held webhook", ids)
	}
	if ids := first(50); len(ids) != 21 {
		t.Errorf("DueReceivers returned %d, want all 21", len(ids))
	}
}
