package store

import (
	"testing"
	"time"

	"github.com/selvage/selvage/internal/deliver"
)

func TestEraseResponse(t *testing.T) { EachDatabase(t, testEraseResponse) }

// testEraseResponse shows that the erasure of a subscriber who was deleted before removes what a
// receiver responded to the deletion, but does not remove the delivery.
func testEraseResponse(t *testing.T, c Config) {
	s, _, _ := grantRows(t, c)
	sub := plantCanary(t, s)
	if _, err := s.EraseSubscriber(t.Context(), "p", eraser(sub.ID), time.Now()); err != nil {
		t.Fatal(err)
	}

	queue, now := s.Webhooks.Queue(), time.Now()
	receivers, err := queue.DueReceivers(t.Context(), now, 10)
	if err != nil || len(receivers) != 1 {
		t.Fatalf("DueReceivers = %v, %v, want one", receivers, err)
	}
	jobs, err := queue.DueJobs(t.Context(), receivers[0], now, 100)
	if err != nil || len(jobs) == 0 {
		t.Fatalf("DueJobs = %v, %v, want some", jobs, err)
	}
	reporting := 0
	for _, j := range jobs {
		if j.Subject != sub.ID {
			continue
		}
		reporting++
		if err := queue.Settle(t.Context(), deliver.Result{ReceiverID: receivers[0], JobID: j.ID, Queued: j.Queued,
			State: deliver.Pending, Attempts: 1, Status: 500, Response: "no canary here", Due: now}); err != nil {
			t.Fatal(err)
		}
	}
	if reporting == 0 {
		t.Fatal("no delivery is about the deletion")
	}

	e, err := s.EraseSubscriber(t.Context(), "p", eraser(sub.ID), time.Now())
	if err != nil || e.Found || e.Anonymised["webhook_deliveries"] != int64(reporting) {
		t.Errorf("EraseSubscriber = %+v, %v, want %d anonymized deliveries", e, err, reporting)
	}
	wantNoCanary(t, s, c.URL)
	if left, err := queue.DueJobs(t.Context(), receivers[0], now, 100); err != nil || len(left) != len(jobs) {
		t.Errorf("%d of %d deliveries remain, %v, want all", len(left), len(jobs), err)
	}
}
