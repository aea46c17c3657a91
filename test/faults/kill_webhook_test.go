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

// tellDeadline limits how long deliveries may take after a start. The lease of a killed node on a
// webhook ends after some seconds.
const tellDeadline = 90 * time.Second

// TestKillBeforeDelivery kills the server while subscribers are created. Every acknowledged
// subscriber is delivered to the webhook. Every delivered subscriber exists.
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

		acked.await(6 + 3*round)
		s.Kill()
		wg.Wait()
		wantWhole(t, s)
		s.Restart(t)
		made = slices.Concat(append([][]string{made}, done...)...)
	}

	harness.Eventually(t, tellDeadline, "all acknowledged subscribers to be delivered", func() error {
		var delivered []string
		for _, e := range r.Told() {
			delivered = append(delivered, e.Data.ID)
		}
		for _, id := range made {
			if !slices.Contains(delivered, id) {
				return fmt.Errorf("%s was acknowledged but not delivered, among %d", id, len(delivered))
			}
		}
		return nil
	})

	for _, e := range r.Told() {
		p.Get(t, "/api/fabric/resources/subscribers/"+e.Data.ID, p.Basic()).Want(t, 200)
	}
}

// subscribeUntilKilled creates one subscriber after another until the server is killed, and
// returns the acknowledged ids.
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
