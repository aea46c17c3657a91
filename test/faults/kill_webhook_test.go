package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// tellDeadline limits how long the next delivery may take. It includes the few seconds until a
// killed node's lease on the webhook expires.
const tellDeadline = 90 * time.Second

// TestKillBeforeDelivery kills the server while subscribers are created. The webhook receives an
// event for every acknowledged subscriber, and no event for a subscriber that does not exist.
func TestKillBeforeDelivery(t *testing.T) {
	harness.Rows(t)
	t.Parallel()
	const workers = 4
	s := harness.StartConfig(t, harness.Config{Env: []string{harness.AllowLocal}})
	p := s.NewProject(t)
	r := harness.NewReceiver(t)
	p.NewWebhook(t, r.URL, "subscriber.created")
	var made []string

	for round := range rounds() {
		acked := newCounter()
		done := make([][]string, workers)
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() { done[i] = subscribeUntilKilled(p, fmt.Sprintf("r%dw%d", round, i), acked) })
		}

		acked.await(min(6+3*round, 60))
		s.Kill()
		wg.Wait()
		wantWhole(t, s)
		s.Restart(t)
		made = slices.Concat(append([][]string{made}, done...)...)
	}

	for missing := undelivered(r, made); len(missing) > 0; {
		before := len(missing)
		harness.Eventually(t, tellDeadline, "another acknowledged subscriber to be delivered", func() error {
			if missing = undelivered(r, made); len(missing) >= before {
				return fmt.Errorf("the webhook has not received %d of %d subscribers, for example %s",
					len(missing), len(made), missing[0])
			}
			return nil
		})
	}

	for _, e := range r.Told() {
		p.Get(t, "/api/fabric/resources/subscribers/"+e.Data.ID, p.Basic()).Want(t, 200)
	}
}

// undelivered returns the ids that the webhook has not received.
func undelivered(r *harness.Receiver, ids []string) (missing []string) {
	delivered := make(map[string]bool)
	for _, e := range r.Told() {
		delivered[e.Data.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return delivered[id] })
}

// subscribeUntilKilled creates one subscriber after another until the server is killed, and returns
// the ids of those that the server acknowledged.
func subscribeUntilKilled(p *harness.Project, name string, acked *counter) (ids []string) {
	for i := 0; ; i++ {
		a, err := p.Try("POST", "/api/fabric/resources/subscribers", p.Basic(),
			harness.JSON(map[string]string{"email": fmt.Sprintf("%sn%d@example.com", name, i)}))
		if err == nil && a.Status == http.StatusServiceUnavailable && !isGone(p) {
			continue
		}
		if err != nil || a.Status != http.StatusCreated {
			return ids
		}

		var made struct{ ID string }
		if json.Unmarshal(a.Body, &made) != nil {
			return ids
		}
		ids = append(ids, made.ID)
		acked.add()
	}
}
