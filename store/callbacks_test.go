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
	if _, added, err := s.AddRecording(t.Context(), r, recordings.Arrival{}); err != nil || !added {
		t.Fatalf("AddRecording = %v, %v", added, err)
	}
}

func listCallbacks(t *testing.T, s *store.Store, projectID string, state deliver.State) []recordings.Delivery {
	t.Helper()
	p, err := s.ListCallbacks(t.Context(), projectID, state, page.Query{Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	return p.Items
}

func TestCallbacks(t *testing.T) { store.EachDatabase(t, testCallbacks) }

// testCallbacks shows that all callbacks to an origin have one receiver. The receiver is deleted
// once it has no pending deliveries, and created again with the next delivery.
func testCallbacks(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	ctx, now, queue := t.Context(), time.Now(), s.CallbackQueue()
	for i := range 3 {
		addCalledBack(t, s, p.ID, fmt.Sprintf("https://Example.com/%d?a=b", i), now)
	}
	addCalledBack(t, s, p.ID, "https://example.com:8443/", now)
	receivers, err := queue.DueReceivers(ctx, now, 10)
	if err != nil || len(receivers) != 2 {
		t.Fatalf("DueReceivers = %v, %v, want 2", receivers, err)
	}

	for _, id := range receivers {
		held, err := queue.HoldReceiver(ctx, id, "node", now, now.Add(time.Minute))
		if err != nil || held.ProjectID != p.ID {
			t.Errorf("HoldReceiver = %+v, %v, want one of the project", held, err)
		}

		jobs, err := queue.DueJobs(ctx, id, now, 10)
		if err != nil || len(jobs) == 0 {
			t.Fatalf("DueJobs = %v, %v, want some", jobs, err)
		}

		for _, j := range jobs {
			if d, err := recordings.ParseDelivery(j.Body); err != nil || d.Method != "POST" || d.Fields == "" {
				t.Errorf("ParseDelivery(%q) = %+v, %v", j.Body, d, err)
			}
			if err := queue.Settle(ctx, deliver.Result{
				ReceiverID: id,
				JobID:      j.ID,
				Queued:     j.Queued,
				State:      deliver.Dead,
				Attempts:   9,
				Ended:      now,
			}); err != nil {
				t.Fatal(err)
			}
		}
	}

	if dead := listCallbacks(t, s, p.ID, deliver.Dead); len(dead) != 4 {
		t.Fatalf("%d dead letters, want 4", len(dead))
	}

	// The receivers are deleted, but the dead deliveries to them remain and can be queued again.
	later := now.Add(2 * time.Hour)
	if err := s.ForgetCallbacks(ctx, now, now.Add(-time.Hour), later); err != nil {
		t.Fatal(err)
	}

	if _, err := queue.HoldReceiver(ctx, receivers[0], "node", later, later.Add(time.Minute)); err == nil {
		t.Error("a receiver for which nothing waits was not forgotten")
	}
	if n, err := s.RedeliverDeadCallbacks(ctx, p.ID, later); n != 4 || err != nil {
		t.Errorf("RedeliverDeadCallbacks = %d, %v, want 4", n, err)
	}

	if again, err := queue.DueReceivers(ctx, later, 10); len(again) != 2 || err != nil {
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
	if n, err := s.RedeliverDeadCallbacks(ctx, p.ID, later); n != 0 || err != nil {
		t.Errorf("RedeliverDeadCallbacks of nothing = %d, %v, want 0", n, err)
	}
}
