package nodes

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// startLocalHooks starts two nodes that may send webhooks to this machine.
func startLocalHooks(t *testing.T) *harness.Nodes {
	t.Helper()
	c := harness.Config{Env: []string{harness.AllowLocal}}
	return harness.StartNodes(t, nil, c, c)
}

// TestDeliveredOnce shows that the event of each subscriber created at two nodes is delivered once.
// If a node is killed while the receiver fails, the remaining node delivers all events.
func TestDeliveredOnce(t *testing.T) {
	rows(t)
	harness.NotStorage(t)
	n := startLocalHooks(t)
	p := n.NewProject(t)
	r := harness.NewReceiver(t)
	p.NewWebhook(t, r.URL, "subscriber.created")

	ids := createCrowd(t, p, "first", 40)
	harness.Eventually(t, soon, "all events to be delivered", func() error { return checkTold(r, ids) })
	if got := len(r.Told()); got != len(ids) {
		t.Errorf("%d deliveries for %d subscribers, want one for each", got, len(ids))
	}

	r.Answer(503)
	ids = append(ids, createCrowd(t, p, "while it fails", 10)...)
	n.Each[1].Kill()
	r.Answer(200)
	at := &harness.Project{Server: n.Each[0], ID: p.ID, Key: p.Key}
	ids = append(ids, createCrowd(t, at, "at one node", 10)...)
	harness.Eventually(t, 2*soon, "all events to be delivered by the remaining node", func() error {
		return checkTold(r, ids)
	})
}

// createCrowd creates subscribers concurrently and returns their IDs.
func createCrowd(t *testing.T, p *harness.Project, name string, n int) []string {
	t.Helper()
	ids := make([]string, n)
	var work sync.WaitGroup
	for i := range ids {
		work.Go(func() { ids[i] = p.NewSAT(t, fmt.Sprintf("%s %d", name, i)).SubscriberID })
	}
	work.Wait()
	return ids
}

// checkTold returns an error unless an event was delivered for each of the subscribers.
func checkTold(r *harness.Receiver, ids []string) error {
	var delivered []string
	for _, e := range r.Told() {
		delivered = append(delivered, e.Data.ID)
	}

	for _, id := range ids {
		if !slices.Contains(delivered, id) {
			return fmt.Errorf("none of %d deliveries is for %s", len(delivered), id)
		}
	}
	return nil
}

// TestPresenceDelivered brings a subscriber online at both nodes. The webhook receives an event
// when the first socket goes online, and another event when the last socket goes offline. If a node
// is killed, the other node may repeat the killed node's last delivery, as the same event.
func TestPresenceDelivered(t *testing.T) {
	t.Parallel()
	n := startLocalHooks(t)
	p := n.NewProject(t)
	r := harness.NewReceiver(t)
	p.NewWebhook(t, r.URL, "subscriber.online", "subscriber.offline")
	sat := p.NewSAT(t, "ada")

	wantTold := func(events ...string) {
		t.Helper()
		var got []string
		// Repeated deliveries of one event count once.
		harness.Eventually(t, soon, fmt.Sprintf("the delivery of %v", events), func() error {
			got = nil
			known := map[string]bool{}
			for _, e := range r.Told() {
				if !known[e.ID] {
					known[e.ID], got = true, append(got, e.Event)
				}
			}
			if len(got) < len(events) {
				return fmt.Errorf("only the events %v were delivered", got)
			}
			return nil
		})
		if !slices.Equal(got, events) {
			t.Errorf("the delivered events are %v, want %v", got, events)
		}
	}

	a, _ := n.Each[0].Connect(t, sat.Token, "")
	b, _ := n.Each[1].Connect(t, sat.Token, "")
	online(t, a)
	wantTold("subscriber.online")
	online(t, b)
	a.Call(t, "subscriber.offline", map[string]any{})
	b.Call(t, "subscriber.offline", map[string]any{})
	wantTold("subscriber.online", "subscriber.offline")

	c, protocol := n.Each[1].Connect(t, sat.Token, "")
	online(t, c)
	n.Each[1].Kill()
	d, _ := n.Each[0].Connect(t, sat.Token, protocol)
	d.Call(t, "subscriber.offline", map[string]any{})
	wantTold("subscriber.online", "subscriber.offline", "subscriber.online", "subscriber.offline")
}
