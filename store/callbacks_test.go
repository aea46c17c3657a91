package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store"
)

// addCalledBack stores a completed recording with a callback to url.
func addCalledBack(t *testing.T, s *store.Store, projectID, url string, now time.Time) {
	t.Helper()
	r := recordings.Recording{
		ID:        newID(),
		Sid:       newID(),
		ProjectID: projectID,
		Status:    recordings.Completed,
		Bytes:     10,
		Created:   now,
		Updated:   now,
	}
	r.Callback = recordings.Callback{URL: url, Method: "POST", Events: []string{"completed"}}
	_, added, err := s.AddRecording(t.Context(), r, recordings.Arrival{})
	if err != nil || !added {
		t.Fatalf("AddRecording = %v, %v, want true", added, err)
	}
}

func listCallbacks(t *testing.T, s *store.Store, projectID string, state deliver.State) []recordings.Delivery {
	t.Helper()
	found, err := s.ListCallbacks(t.Context(), projectID, state, page.Query{Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	return found.Items
}

func TestCallbacks(t *testing.T) { store.EachDatabase(t, testCallbacks) }

// testCallbacks shows that all callbacks to an origin have one receiver. The receiver is deleted
// once it has no pending deliveries, and created again with the next delivery.
func testCallbacks(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	ctx := t.Context()
	now := time.Now()
	queue := s.CallbackQueue()
	for i := range 3 {
		addCalledBack(t, s, p.ID, fmt.Sprintf("https://Example.com/%d?a=b", i), now)
	}
	addCalledBack(t, s, p.ID, "https://example.com:8443/", now)
	receivers, err := queue.DueReceivers(ctx, now, 10)
	if err != nil || len(receivers) != 2 {
		t.Fatalf("DueReceivers = %v, %v, want 2", receivers, err)
	}

	for _, id := range receivers {
		giveUp(t, queue, id, p.ID, now)
	}
	if dead := listCallbacks(t, s, p.ID, deliver.Dead); len(dead) != 4 {
		t.Fatalf("there are %d dead letters, want 4", len(dead))
	}

	// The receivers are deleted, but the dead deliveries to them remain and can be queued again.
	later := now.Add(2 * time.Hour)
	if err := s.ForgetCallbacks(ctx, now, now.Add(-time.Hour), later); err != nil {
		t.Fatal(err)
	}

	_, err = queue.HoldReceiver(ctx, receivers[0], "node", later, later.Add(time.Minute))
	if err == nil {
		t.Error("a receiver for which nothing waits was not forgotten")
	}
	n, err := s.RedeliverDeadCallbacks(ctx, p.ID, later)
	if err != nil || n != 4 {
		t.Errorf("RedeliverDeadCallbacks = %d, %v, want 4", n, err)
	}

	again, err := queue.DueReceivers(ctx, later, 10)
	if err != nil || len(again) != 2 {
		t.Errorf("DueReceivers after dead letters were queued again = %v, %v, want 2", again, err)
	}
	if err := s.ForgetCallbacks(ctx, later, later, later.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}

	if left := listCallbacks(t, s, p.ID, deliver.Pending); len(left) != 4 {
		t.Errorf("%d callbacks wait after ForgetCallbacks, want 4", len(left))
	}

	if err := s.ExpireCallbacks(ctx, later.Add(time.Second), later); err != nil {
		t.Fatal(err)
	}
	if err := s.ForgetCallbacks(ctx, later, later.Add(time.Second), later); err != nil {
		t.Fatal(err)
	}
	if left := listCallbacks(t, s, p.ID, ""); len(left) != 0 {
		t.Errorf("%d callbacks are left after they expired, want none", len(left))
	}
	n, err = s.RedeliverDeadCallbacks(ctx, p.ID, later)
	if err != nil || n != 0 {
		t.Errorf("RedeliverDeadCallbacks without dead letters = %d, %v, want 0", n, err)
	}
}

// giveUp holds a receiver of a project, and makes a dead letter of each of its jobs.
func giveUp(t *testing.T, queue deliver.Queue, receiverID, projectID string, now time.Time) {
	t.Helper()
	ctx := t.Context()
	held, err := queue.HoldReceiver(ctx, receiverID, "node", now, now.Add(time.Minute))
	if err != nil || held.ProjectID != projectID {
		t.Errorf("HoldReceiver = %+v, %v, want a receiver of the project %s", held, err, projectID)
	}

	jobs, err := queue.DueJobs(ctx, receiverID, now, 10)
	if err != nil || len(jobs) == 0 {
		t.Fatalf("DueJobs = %v, %v, want at least one job", jobs, err)
	}
	for _, job := range jobs {
		delivery, err := recordings.ParseDelivery(job.Body)
		if err != nil {
			t.Errorf("ParseDelivery(%q) = %v", job.Body, err)
		}
		if delivery.Method != "POST" {
			t.Errorf("the method in %q is %q, want POST", job.Body, delivery.Method)
		}
		if delivery.Fields == "" {
			t.Errorf("%q has no fields", job.Body)
		}

		dead := deliver.Result{
			ReceiverID: receiverID,
			JobID:      job.ID,
			Queued:     job.Queued,
			State:      deliver.Dead,
			Attempts:   9,
			Ended:      now,
		}
		if err := queue.Settle(ctx, dead); err != nil {
			t.Fatal(err)
		}
	}
}
