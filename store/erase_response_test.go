package store

import (
	"testing"
	"time"

	"github.com/selvage/selvage/internal/deliver"
)

func TestEraseResponse(t *testing.T) { EachDatabase(t, testEraseResponse) }

// testEraseResponse shows that erasing a subscriber again removes a receiver's response to the event
// about the first erasure, but not the delivery of the event.
func testEraseResponse(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	sub := plantCanary(t, s)
	if _, err := s.EraseSubscriber(t.Context(), "p", erasureOf(sub.ID), time.Now()); err != nil {
		t.Fatal(err)
	}

	now := time.Now()
	queue := s.Webhooks.Queue()
	receivers, err := queue.DueReceivers(t.Context(), now, 10)
	if err != nil || len(receivers) != 1 {
		t.Fatalf("DueReceivers = %v, %v, want one", receivers, err)
	}
	dueJobs := func() []deliver.Job {
		t.Helper()
		jobs, err := queue.DueJobs(t.Context(), receivers[0], now, 100)
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}

	jobs := dueJobs()
	var responses int64
	for _, job := range jobs {
		if job.Subject != sub.ID {
			continue
		}
		responses++
		result := deliver.Result{
			ReceiverID: receivers[0],
			JobID:      job.ID,
			Queued:     job.Queued,
			State:      deliver.Pending,
			Attempts:   1,
			Status:     500,
			Response:   "no canary here",
			Due:        now,
		}
		if err := queue.Settle(t.Context(), result); err != nil {
			t.Fatal(err)
		}
	}
	if responses == 0 {
		t.Fatal("there is no delivery about the first erasure")
	}

	erasure, err := s.EraseSubscriber(t.Context(), "p", erasureOf(sub.ID), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if erasure.Found {
		t.Error("EraseSubscriber finds a subscriber who was already erased")
	}
	if n := erasure.Anonymized["webhook_deliveries"]; n != responses {
		t.Errorf("EraseSubscriber anonymizes %d deliveries, want %d", n, responses)
	}
	wantNoCanary(t, s, c.URL)
	if n := len(dueJobs()); n != len(jobs) {
		t.Errorf("%d deliveries remain, want all %d", n, len(jobs))
	}
}
