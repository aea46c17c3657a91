package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/store"
)

// newWebhook creates a webhook in a project, for the given events.
func newWebhook(t *testing.T, s *store.Store, projectID string, events ...fabric.EventName) fabric.Webhook {
	t.Helper()
	w := fabric.Webhook{
		ID:        newID(),
		ProjectID: projectID,
		URL:       "https://example.com/",
		Events:    events,
		Enabled:   true,
		Created:   time.Now(),
		Updated:   time.UnixMicro(time.Now().UnixMicro()),
	}
	if err := s.CreateWebhook(t.Context(), w, 50); err != nil {
		t.Fatal(err)
	}
	return w
}

// pendingEvents returns the names of the events that are pending for a webhook, oldest first.
func pendingEvents(t *testing.T, s *store.Store, w fabric.Webhook) (names []string) {
	t.Helper()
	p, err := s.ListDeliveries(t.Context(), w.ID, "", page.Query{Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range slices.Backward(p.Items) {
		names = append(names, string(d.Event))
		if d.State != fabric.Pending || !strings.Contains(string(d.Body), `"id":"`+d.ID+`"`) ||
			!strings.Contains(string(d.Body), d.Subject) {
			t.Errorf("delivery %+v with body %s, want a pending one with its own id and subject", d, d.Body)
		}
	}
	return names
}

func event(name fabric.EventName, projectID, subject string) fabric.Event {
	id := newID()
	return fabric.Event{
		ID:        id,
		ProjectID: projectID,
		Name:      name,
		Subject:   subject,
		Created:   time.Now(),
		Body:      []byte(fmt.Sprintf(`{"id":"%s","of":"%s"}`, id, subject)),
	}
}

func tell(name fabric.EventName) fabric.Teller {
	return func(r fabric.Resource) (fabric.Event, error) { return event(name, r.ProjectID, r.ID), nil }
}

// change creates, changes and deletes a subscriber and a resource.
func change(t *testing.T, s *store.Store, p fabric.Project) {
	t.Helper()
	ctx := t.Context()

	sub, a := subscriber(p, newID()+"@example.com", "", newID())
	name := "Ada"
	made := s.CreateSubscriber(ctx, sub, a)
	_, err := s.UpdateSubscriber(ctx, p.ID, sub.ID,
		fabric.SubscriberChange{Profile: fabric.Profile{FirstName: &name}}, time.Now(), nil)
	end := revocation.Revocation{
		Kind:    revocation.Subscriber,
		ID:      sub.ID,
		Until:   time.Now(),
		Expires: time.Now().Add(time.Hour),
	}

	r := fabric.Resource{
		ID:        newID(),
		ProjectID: p.ID,
		Type:      "swml_script",
		Fields:    kinds.Values{},
		Created:   time.Now(),
		Updated:   time.UnixMicro(time.Now().UnixMicro()),
	}
	old := r.Updated
	err = errors.Join(made, err, s.DeleteSubscriber(ctx, p.ID, end),
		s.CreateResource(ctx, r, fabric.Address{
			ID:         newID(),
			ProjectID:  p.ID,
			ResourceID: r.ID,
			Name:       newID(),
		}, tell(fabric.ResourceCreated)))

	r.Updated = old.Add(time.Second)
	err = errors.Join(err, s.UpdateResource(ctx, r, old, tell(fabric.ResourceUpdated)),
		s.DeleteResource(ctx, p.ID, r.Type, r.ID, revocation.Revocation{}, tell(fabric.ResourceDeleted)))
	if err != nil {
		t.Fatal(err)
	}
}

func TestEvents(t *testing.T) { store.EachDatabase(t, testEvents) }

func testEvents(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	other := newProject(t, s)
	all := newWebhook(t, s, p.ID, fabric.AnyEvent)
	some := newWebhook(t, s, p.ID, fabric.SubscriberDeleted, fabric.ResourceCreated)
	foreign := newWebhook(t, s, other.ID, fabric.AnyEvent)
	off := newWebhook(t, s, p.ID, fabric.AnyEvent)
	off.Enabled = false
	if err := s.UpdateWebhook(t.Context(), off, off.Updated); err != nil {
		t.Fatal(err)
	}

	change(t, s, p)
	for _, tt := range []struct {
		name    string
		webhook fabric.Webhook
		want    string
	}{
		{"all", all, "subscriber.created subscriber.updated subscriber.deleted " +
			"resource.created resource.updated resource.deleted"},
		{"some", some, "subscriber.deleted resource.created"},
		{"of another project", foreign, ""},
		{"off", off, ""},
	} {
		if got := strings.Join(pendingEvents(t, s, tt.webhook), " "); got != tt.want {
			t.Errorf("%s: pending events %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestRefusedChange shows that a failed change sends no event.
func TestRefusedChange(t *testing.T) { store.EachDatabase(t, testRefusedChange) }

func testRefusedChange(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	w := newWebhook(t, s, p.ID, fabric.AnyEvent)
	sub, a := subscriber(p, "ada@example.com", "", "ada")
	if err := s.CreateSubscriber(t.Context(), sub, a); err != nil {
		t.Fatal(err)
	}

	again, a := subscriber(p, "ada@example.com", "", "ada2")
	if err := s.CreateSubscriber(t.Context(), again, a); !errors.Is(err, problem.Conflict) {
		t.Errorf("CreateSubscriber of an email in use = %v, want Conflict", err)
	}
	if err := s.DeleteSubscriber(t.Context(), newProject(t, s).ID,
		revocation.Revocation{ID: sub.ID}); !errors.Is(err, problem.NotFound) {
		t.Errorf("DeleteSubscriber of another project = %v, want NotFound", err)
	}

	if got := pendingEvents(t, s, w); len(got) != 1 {
		t.Errorf("pending events %v, want the one creation", got)
	}
}

// TestHoldReceiver shows that only one of many nodes holds a webhook, until the node releases the
// webhook or its lease ends.
func TestHoldReceiver(t *testing.T) { store.EachDatabase(t, testHoldReceiver) }

func testHoldReceiver(t *testing.T, c store.Config) {
	ctx := context.Background()
	s, p := fabricRows(t, c)
	w := newWebhook(t, s, p.ID, fabric.AnyEvent)
	now := time.Now()
	change(t, s, p)
	won, errs := race(func(i int) (bool, error) {
		_, err := s.Webhooks.Queue().HoldReceiver(ctx, w.ID, fmt.Sprint(i), now, now.Add(time.Minute))
		return err == nil, err
	})
	if won != 1 {
		t.Errorf("HoldReceiver: %d of %d hold it, want 1", won, crowd)
	}

	for _, err := range errs {
		if !errors.Is(err, problem.Conflict) {
			t.Errorf("HoldReceiver = %v, want a conflict", err)
		}
	}

	due := func(at time.Time) int {
		t.Helper()
		ids, err := s.Webhooks.Queue().DueReceivers(ctx, at, 10)
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

	r, err := s.Webhooks.Queue().HoldReceiver(ctx, w.ID, "b", later, later.Add(time.Minute))
	if err != nil || r.URL != w.URL || r.ProjectID != p.ID {
		t.Errorf("HoldReceiver = %+v, %v, want the webhook", r, err)
	}
	if err := s.Webhooks.Queue().ReleaseReceiver(ctx, w.ID, "a stranger", later, 9, time.Time{}); err != nil {
		t.Error(err)
	}

	if n := due(later); n != 0 {
		t.Errorf("DueReceivers after a release by another node = %d, want 0", n)
	}
	if err := s.Webhooks.Queue().ReleaseReceiver(ctx, w.ID, "b", later, 3, later.Add(time.Minute)); err != nil {
		t.Error(err)
	}
	if n, m := due(later), due(later.Add(2*time.Minute)); n != 0 || m != 1 {
		t.Errorf("DueReceivers of a resting webhook = %d, and after the rest = %d, want 0 and 1", n, m)
	}
}

// TestWoken shows that a delivery that was queued again is due immediately, even if the turn in
// which it failed has not ended yet.
func TestWoken(t *testing.T) { store.EachDatabase(t, testWoken) }

func testWoken(t *testing.T, c store.Config) {
	ctx := context.Background()
	s, p := fabricRows(t, c)
	w := newWebhook(t, s, p.ID, fabric.AnyEvent)
	change(t, s, p)
	q, now := s.Webhooks.Queue(), time.Now()
	due := func(want int) {
		t.Helper()
		if ids, err := q.DueReceivers(ctx, now, 10); err != nil || len(ids) != want {
			t.Errorf("DueReceivers = %d, %v, want %d", len(ids), err, want)
		}
	}

	turn := func(rests time.Time, during func()) {
		t.Helper()
		if _, err := q.HoldReceiver(ctx, w.ID, "a", now, now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		during()
		if _, err := q.HoldReceiver(ctx, w.ID, "a", now, now.Add(time.Minute)); err != nil { // renews the lease
			t.Fatal(err)
		}
		if err := q.ReleaseReceiver(ctx, w.ID, "a", now, 9, rests); err != nil {
			t.Fatal(err)
		}
	}

	jobs, err := q.DueJobs(ctx, w.ID, now, 10)
	if err != nil || len(jobs) == 0 {
		t.Fatalf("DueJobs = %d, %v, want some", len(jobs), err)
	}

	turn(now.Add(time.Hour), func() {
		if err := q.Settle(ctx, deliver.Result{
			ReceiverID: w.ID,
			JobID:      jobs[0].ID,
			Queued:     jobs[0].Queued,
			State:      deliver.Dead,
			Attempts:   9,
			Ended:      now,
		}); err != nil {
			t.Fatal(err)
		}
		if n, err := s.RedeliverDead(ctx, w.ID, now); n != 1 || err != nil {
			t.Fatalf("RedeliverDead = %d, %v, want 1", n, err)
		}
	})
	due(1)

	turn(now.Add(time.Hour), func() {})
	due(0) // the webhook rests, because nothing was queued again
}

// TestProjectsTakeTurns shows that a project with many new webhooks does not delay the webhooks of
// other projects.
func TestProjectsTakeTurns(t *testing.T) { store.EachDatabase(t, testProjectsTakeTurns) }

func testProjectsTakeTurns(t *testing.T, c store.Config) {
	ctx := context.Background()
	s, crowded := fabricRows(t, c)
	quiet := fabric.Project{ID: newID(), Name: "quiet", Created: time.Now(), Updated: time.Now()}
	if err := s.CreateProject(ctx, quiet); err != nil {
		t.Fatal(err)
	}

	now := time.Now()
	served := newWebhook(t, s, quiet.ID, fabric.AnyEvent)
	if _, err := s.Webhooks.Queue().HoldReceiver(ctx, served.ID, "a", now.Add(-time.Minute), now); err != nil {
		t.Fatal(err)
	}
	if err := s.Webhooks.Queue().ReleaseReceiver(ctx, served.ID, "a", now, 0, time.Time{}); err != nil {
		t.Fatal(err)
	}

	held := newWebhook(t, s, crowded.ID, fabric.AnyEvent)
	for range 20 {
		newWebhook(t, s, crowded.ID, fabric.AnyEvent) // the new webhook was never held
	}

	change(t, s, crowded)
	change(t, s, quiet)
	first := func(most int) []string {
		t.Helper()
		ids, err := s.Webhooks.Queue().DueReceivers(ctx, now, most)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if ids := first(2); !slices.Contains(ids, served.ID) {
		t.Errorf("DueReceivers = %v, want one of each project first", ids)
	}

	if _, err := s.Webhooks.Queue().HoldReceiver(ctx, held.ID, "a", now, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if ids := first(1); !slices.Contains(ids, served.ID) {
		t.Errorf("DueReceivers = %v, want that of the project without a held webhook", ids)
	}
	if ids := first(50); len(ids) != 21 {
		t.Errorf("DueReceivers returned %d, want all 21", len(ids))
	}
}
